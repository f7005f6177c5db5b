//! Short digests of strings, identical on all machines and in all versions.

use ring::digest::{Context, SHA256};

/// Alphabet of a digest. The first character is one of the first 26, because some models require
/// names to start with a letter.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Maximum length of a digest.
pub(super) const MAX_DIGEST: usize = 32;

/// A digest of all parts in their order, with at most [`MAX_DIGEST`] letters.
pub(crate) fn digest(parts: &[&[u8]], letters: usize) -> String {
    let mut context = Context::new(&SHA256);
    for part in parts {
        // With its length, so that different divisions into parts have different digests.
        context.update(&(part.len() as u64).to_le_bytes());
        context.update(part);
    }
    let bytes = context.finish();
    let letter = |(index, byte): (usize, &u8)| {
        let count = if index == 0 { 26 } else { LETTERS.len() };
        char::from(LETTERS[usize::from(*byte) % count])
    };
    bytes.as_ref().iter().take(letters.min(MAX_DIGEST)).enumerate().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_never_change() {
        // If this fails, names that users have stored no longer work.
        assert_eq!(digest(&[b"server", b"tool"], 8), "twwtn5xb");
        assert_eq!(digest(&[b"servert", b"ool"], 8).len(), 8);
        assert_ne!(digest(&[b"servert", b"ool"], 8), digest(&[b"server", b"tool"], 8));
    }
}
