//! Any bytes of a client to the gateway, over a stream and as the body of a POST.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    trunkline_testkit::exchanges::check_request(bytes);
});
