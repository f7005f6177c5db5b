//! Fuzzes message parsing: parsed messages are serialized and edited without losing a byte.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    trunkline_testkit::invariants::check_message(bytes);
});
