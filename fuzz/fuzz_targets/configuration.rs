//! Any bytes as a configuration: the invariants that the property tests check as well.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    trunkline_testkit::invariants::check(bytes);
});
