//! What each fuzz target does with its input, as functions that stable code can call, too: the tests of
//! the testbed replay `corpus` with them. `check` panics if its input shows a bug, and only then.

pub mod scenario_text;
