//! Bearer tokens, stored as digests.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::sync::watch;

use super::scope::Scope;

/// Prefix of every token, so that people and secret scanners recognise one.
const PREFIX: &str = "trunkline_";

/// Random bytes of a token: too many to guess.
const LENGTH: usize = 32;

/// Tokens by their digests.
type KnownToken = BTreeMap<String, Token>;

/// The accepted tokens, by their digests. Clones share the same set.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    known: Arc<watch::Sender<KnownToken>>,
    /// Whether a token is required, even if the set is empty now.
    are_needed: bool,
}

/// The name and the limits of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The name of the token.
    pub name: String,
    /// The limits of requests with this token.
    pub scope: Scope,
}

impl Tokens {
    /// Accepts the token with this digest.
    pub fn insert(&mut self, digest: impl Into<String>, token: Token) {
        self.are_needed = true;
        self.known.send_modify(|known| drop(known.insert(digest.into(), token)));
    }

    /// Replaces the accepted tokens, also in all clones. If tokens are required they stay required:
    /// without any, every request is refused.
    pub fn replace(&self, others: &Self) {
        let others = others.known.borrow().clone();
        self.known.send_replace(others);
    }

    /// Whether there never were any tokens, so that none is required.
    pub fn is_empty(&self) -> bool {
        !self.are_needed
    }

    /// Looks up a token. Only digests are compared, so that the time it takes reveals nothing about
    /// a token.
    pub(crate) fn find(&self, token: &str) -> Option<Token> {
        self.known.borrow().get(&digest_of(token)).cloned()
    }

    /// Looks up a token, and returns a lease that ends when the token is revoked or changed.
    pub(crate) fn pass(&self, token: &str) -> Option<TokenLease> {
        let digest = digest_of(token);
        let token = self.known.borrow().get(&digest).cloned()?;
        Some(TokenLease { digest, token, known: self.known.subscribe() })
    }
}

/// A token that authorized a request, with the set it belongs to.
#[derive(Clone, Debug)]
pub(crate) struct TokenLease {
    digest: String,
    token: Token,
    known: watch::Receiver<KnownToken>,
}

impl TokenLease {
    /// Waits until the token is revoked or its name or scope changes.
    pub(crate) async fn lost(&self) {
        let mut known = self.known.clone();
        let _ = known.wait_for(|known| known.get(&self.digest) != Some(&self.token)).await;
    }
}

/// Creates a token. It is shown once; only its digest is stored.
pub fn new_token() -> String {
    let mut bytes = [0; LENGTH];
    SystemRandom::new().fill(&mut bytes).expect("invariant: the system has randomness");
    format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
}

/// The digest of a token, in the form that is stored.
pub fn digest_of(token: &str) -> String {
    let digest = digest(&SHA256, token.as_bytes());
    format!("sha256:{}", URL_SAFE_NO_PAD.encode(digest.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_its_digest_alone() {
        let (token, other) = (new_token(), new_token());
        assert_ne!(token, other);
        let mut tokens = Tokens::default();
        let known = Token { name: "ann".to_owned(), scope: Scope::default() };
        tokens.insert(digest_of(&token), known.clone());
        assert_eq!(tokens.find(&token), Some(known));
        assert_eq!(tokens.find(&other), None);
        assert_eq!(tokens.find(&digest_of(&token)), None);
        assert!(!format!("{tokens:?}").contains(&token));
    }

    #[test]
    fn removal_of_the_last_token_rejects_all_requests() {
        let token = new_token();
        let mut tokens = Tokens::default();
        assert!(tokens.is_empty());
        tokens.insert(digest_of(&token), Token { name: "ann".to_owned(), scope: Scope::default() });
        let shared = tokens.clone();
        tokens.replace(&Tokens::default());
        assert_eq!(shared.find(&token), None);
        assert!(!shared.is_empty());
    }
}
