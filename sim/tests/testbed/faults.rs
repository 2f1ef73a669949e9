//! A scenario for each kind of fault.

use super::directory::judge_all;

#[test]
fn the_engine_withstands_every_kind_of_fault() {
    judge_all("faults", |_, _| ());
}
