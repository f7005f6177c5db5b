//! Addresses and element IDs that hold names of servers and tools.

use std::fmt::Write as _;

/// A path segment or the value of a query parameter, percent-encoded.
pub(super) fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// `path?key=value&…`, without the empty values.
pub(super) fn with_query(path: &str, parameters: &[(&str, &str)]) -> String {
    let mut out = path.to_owned();
    let mut separator = '?';
    for (key, value) in parameters.iter().filter(|(_, value)| !value.is_empty()) {
        out.push(separator);
        out.push_str(key);
        out.push('=');
        out.push_str(&encode(value));
        separator = '&';
    }
    out
}

/// An element ID that is the same after each update, so that morphing keeps focus and open details.
/// A hash, because names are of any length and content, and IDs must be unique.
pub(super) fn element_id(prefix: &str, names: &[&str]) -> String {
    let bytes = names.iter().flat_map(|name| name.bytes().chain([0]));
    format!("{prefix}-{:016x}", bytes.fold(FNV_OFFSET, fnv1a))
}

/// The start value of 64-bit FNV-1a.
pub(super) const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// A step of 64-bit FNV-1a: a name for a content, not a protection against forgery.
pub(super) const fn fnv1a(hash: u64, byte: u8) -> u64 {
    (hash ^ byte as u64).wrapping_mul(0x0000_0100_0000_01b3)
}

#[cfg(test)]
mod tests {
    use super::{element_id, encode, with_query};

    #[test]
    fn names_cannot_leave_their_place_in_an_address() {
        assert_eq!(encode("a/b?c#d e\"é"), "a%2Fb%3Fc%23d%20e%22%C3%A9");
        assert_eq!(with_query("/t", &[("a", "x&y"), ("b", ""), ("c", "1")]), "/t?a=x%26y&c=1");
    }

    #[test]
    fn element_ids_tell_names_apart() {
        assert_ne!(element_id("s", &["ab", "c"]), element_id("s", &["a", "bc"]));
    }
}
