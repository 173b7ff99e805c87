#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crawler_fuzz::traps(data));
