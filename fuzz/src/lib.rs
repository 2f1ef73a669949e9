//! What each fuzz target does with its input, as functions that stable code can call, too: the tests of
//! the testbed replay `corpus` with them. `check` panics if its input shows a bug, and only then.

pub mod crash_image;
pub mod fault_plan;
pub mod job_event_log;
pub mod scenario_text;
pub mod wire_frames;
