//! Fuzzes client messages to the gateway, over a stream and as POST body.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    trunkline_testkit::exchanges::check_request(bytes);
});
