//! Who may ask: tokens, of which only digests are known.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::scope::Scope;

/// What every token begins with, so that people and scanners recognise one.
const PREFIX: &str = "trunkline_";

/// Random bytes of a token: more than anybody can try.
const LENGTH: usize = 32;

/// The tokens that are accepted, by their digests.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    known: BTreeMap<String, Token>,
}

/// What is known of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is called by.
    pub name: String,
    /// What its bearer may see, at most.
    pub scope: Scope,
}

impl Tokens {
    /// Accepts the token of a digest.
    pub fn insert(&mut self, digest: impl Into<String>, token: Token) {
        self.known.insert(digest.into(), token);
    }

    /// Whether nobody needs a token.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// What is known of the token that somebody bears. Only digests are compared: how long that
    /// takes says nothing about a token.
    pub(crate) fn find(&self, token: &str) -> Option<&Token> {
        self.known.get(&digest_of(token))
    }
}

/// A new token. It is shown once; its digest is what is kept.
pub fn new_token() -> String {
    let mut bytes = [0; LENGTH];
    SystemRandom::new().fill(&mut bytes).expect("invariant: the system has randomness");
    format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
}

/// The digest of a token, as it is kept.
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
        assert_eq!(tokens.find(&token), Some(&known));
        assert_eq!(tokens.find(&other), None);
        assert_eq!(tokens.find(&digest_of(&token)), None);
        assert!(!format!("{tokens:?}").contains(&token));
    }
}
