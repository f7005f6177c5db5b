//! Seals state that clients store for the gateway, so that no client can read, change or forge it.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::time::Instant;

/// Bytes of the expiry time.
const TIME: usize = 8;

/// Seals and opens text with a key that only this gateway has.
pub(crate) struct StateCodec {
    key: LessSafeKey,
    nonces: hmac::Key,
    /// Creation time of the key. Expiry is counted from it on the monotonic clock: the key lives no
    /// longer than its process, and the wall clock may be changed at any time.
    made: Instant,
}

/// The purpose and owner of a sealed text, which have to match when it is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SealContext<'u> {
    /// The purpose.
    pub(crate) purpose: &'u str,
    /// The owner.
    pub(crate) owner: &'u str,
}

/// The reason why a sealed text does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenError {
    /// Not sealed by this gateway, or for another purpose or owner.
    Foreign,
    /// Expired.
    Late,
}

impl StateCodec {
    /// Creates a codec with a random key.
    pub(crate) fn new() -> Self {
        let mut bytes = [0; 64];
        SystemRandom::new().fill(&mut bytes).expect("invariant: the system has randomness");
        let key = UnboundKey::new(&CHACHA20_POLY1305, &bytes[..32]);
        let key = LessSafeKey::new(key.expect("invariant: the key has the right length"));
        let nonces = hmac::Key::new(hmac::HMAC_SHA256, &bytes[32..]);
        Self { key, nonces, made: Instant::now() }
    }

    /// Seals a text, with or without an expiry. The result is deterministic, so that clients can
    /// compare sealed values.
    pub(crate) fn seal(
        &self,
        text: &str,
        uses: SealContext<'_>,
        holds: Option<Duration>,
    ) -> String {
        // Rounded up to whole seconds: before that, the table that holds the sealed ID decides on
        // expiry.
        let now = self.made.elapsed();
        let until =
            holds.map_or(u64::MAX, |holds| now.saturating_add(holds).as_secs().saturating_add(1));
        let associated = associated(uses);
        // Derived from all inputs: different texts never share a nonce, and no counter is needed.
        let mut context = hmac::Context::with_key(&self.nonces);
        for part in [&associated, &until.to_be_bytes()[..], text.as_bytes()] {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        let tag = context.sign();
        let mut nonce = [0; NONCE_LEN];
        nonce.copy_from_slice(&tag.as_ref()[..NONCE_LEN]);
        let mut sealed = [&until.to_be_bytes()[..], text.as_bytes()].concat();
        let aad = Aad::from(&associated);
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut sealed)
            .expect("invariant: texts are short enough to be sealed");
        URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat())
    }

    /// Opens a sealed text with a matching context that has not expired.
    pub(crate) fn open(&self, sealed: &str, uses: SealContext<'_>) -> Result<String, OpenError> {
        self.open_at(sealed, uses, self.made.elapsed())
    }

    /// Opens a sealed text at a given age of the key.
    fn open_at(
        &self,
        sealed: &str,
        uses: SealContext<'_>,
        age: Duration,
    ) -> Result<String, OpenError> {
        let (until, text) = self.unsealed(sealed, uses).ok_or(OpenError::Foreign)?;
        if age.as_secs() <= until { Ok(text) } else { Err(OpenError::Late) }
    }

    /// The text and its expiry.
    fn unsealed(&self, sealed: &str, uses: SealContext<'_>) -> Option<(u64, String)> {
        let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let associated = associated(uses);
        let opened = self.key.open_in_place(nonce, Aad::from(&associated), &mut sealed).ok()?;
        let (until, text) = opened.split_at_checked(TIME)?;
        let until = u64::from_be_bytes(until.try_into().ok()?);
        Some((until, String::from_utf8(text.to_vec()).ok()?))
    }
}

/// A random ID that cannot be guessed.
pub(crate) fn random_id() -> String {
    let mut bytes = [0; 24];
    SystemRandom::new().fill(&mut bytes).expect("invariant: the system has randomness");
    URL_SAFE_NO_PAD.encode(bytes)
}

fn associated(SealContext { purpose, owner }: SealContext<'_>) -> Vec<u8> {
    [&(purpose.len() as u64).to_be_bytes()[..], purpose.as_bytes(), owner.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const USES: SealContext<'_> = SealContext { purpose: "task", owner: "ann" };

    const FOREIGN: Result<String, OpenError> = Err(OpenError::Foreign);

    #[test]
    fn sealed_state_opens_only_for_its_purpose() {
        let codec = StateCodec::new();
        let sealed = codec.seal("words 7", USES, None);
        assert_eq!(codec.open(&sealed, USES).unwrap(), "words 7");
        assert_eq!(sealed, codec.seal("words 7", USES, None));
        assert_eq!(codec.open(&sealed, SealContext { owner: "bob", ..USES }), FOREIGN);
        assert_eq!(codec.open(&sealed, SealContext { purpose: "call", ..USES }), FOREIGN);
        assert_eq!(StateCodec::new().open(&sealed, USES), FOREIGN);
        // The boundary between purpose and owner is authenticated.
        assert_eq!(codec.open(&sealed, SealContext { purpose: "tas", owner: "kann" }), FOREIGN);
    }

    #[test]
    fn nothing_that_was_changed_opens() {
        let codec = StateCodec::new();
        let sealed = codec.seal("words 7", USES, None);
        for place in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(codec.open(&changed, USES), FOREIGN, "{place}");
        }
        for text in ["", "A", "not base64 at all!", sealed.get(..20).unwrap()] {
            assert_eq!(codec.open(text, USES), FOREIGN, "{text}");
        }
    }

    #[test]
    fn a_seal_holds_for_its_time() {
        let codec = StateCodec::new();
        let age = codec.made.elapsed();
        let sealed = codec.seal("x", USES, Some(Duration::from_secs(60)));
        assert_eq!(codec.open(&sealed, USES).unwrap(), "x");
        // It may have been sealed at the end of a second.
        let in_time = age + Duration::from_secs(60);
        assert_eq!(codec.open_at(&sealed, USES, in_time).unwrap(), "x");
        let late = codec.made.elapsed() + Duration::from_secs(62);
        assert_eq!(codec.open_at(&sealed, USES, late), Err(OpenError::Late));
        let endless = codec.seal("x", USES, Some(Duration::MAX));
        assert_eq!(codec.open_at(&endless, USES, late).unwrap(), "x");
    }
}
