//! Fuzzes server responses, through a host and the gateway to a client.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    trunkline_testkit::exchanges::check_answer(bytes);
});
