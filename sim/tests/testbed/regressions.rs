//! Every situation in which the engine was once wrong, as a scenario of its own. `docs/findings.md`
//! tells their stories.

use super::directory::judge_all;

#[test]
fn no_regression_comes_back() {
    judge_all("regressions", |_, _| ());
}
