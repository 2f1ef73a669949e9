#![no_main]

use libfuzzer_sys::fuzz_target;
use revenant_fuzz::crash_image::{CrashImage, check};

fuzz_target!(|image: CrashImage| {
    check(&image);
});
