//! Fuzzes configuration parsing with the invariants of the property tests.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    trunkline_testkit::invariants::check(bytes);
});
