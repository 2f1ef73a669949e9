#![no_main]

use libfuzzer_sys::fuzz_target;
use revenant_fuzz::wire_frames::check;

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
});
