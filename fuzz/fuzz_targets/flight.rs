#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| halftrack_fuzz::flight(bytes));
