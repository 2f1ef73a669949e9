#![no_main]

use libfuzzer_sys::fuzz_target;
use revenant_fuzz::job_event_log::check;

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
});
