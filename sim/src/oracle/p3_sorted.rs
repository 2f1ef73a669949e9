//! P3: what a sort emits is a permutation of what it read, in order: every output file that a sort was
//! written to is in the order that the job asks for, judged on the committed bytes without a
//! witness. (That it is a permutation is S1's comparison with the whole table, and P1's count.)

use super::s1_output::is_pending;
use super::{History, Violation};
use crate::reference::Reference;

pub fn check(history: &History, reference: &Reference) -> Result<(), Violation> {
    let outcome = history.outcome;
    let fail = |message: String| history.violation("P3", outcome.trace.len(), message);
    let committed = outcome.output.iter().filter(|(path, _)| !is_pending(path));
    let committed = committed.map(|(path, bytes)| (path.clone(), bytes.clone())).collect();
    reference.in_order(&committed).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::testing::{Story, caught, passes, test_reference};

    #[test]
    fn a_file_that_is_out_of_order_is_caught() {
        let judge = |history: &History| check(history, &test_reference());
        let mut story = Story::new();
        story.output("part-0", b"0\n2\n");
        passes(judge, &story);
        story.output("part-1", b"3\n1\n");
        caught(judge, &story, "part-1 is out of order: '1' comes after '3'");
    }
}
