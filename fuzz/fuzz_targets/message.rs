//! Any bytes as a message: what is read can be written and edited without losing a byte.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    trunkline_testkit::invariants::check_message(bytes);
});
