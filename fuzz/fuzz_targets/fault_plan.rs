#![no_main]

use libfuzzer_sys::fuzz_target;
use revenant_fuzz::fault_plan::{FaultPlan, check};

fuzz_target!(|plan: FaultPlan| {
    check(&plan);
});
