//! A gateway that requires one of two tokens.

use serde_json::Value;
use trunkline_gateway::{GatewayOptions, Scope, Token, Tokens, digest_of};

use super::gateway::TestGateway;

pub(crate) const ANN: (&str, &str) = ("Authorization", "Bearer token-of-ann");

pub(crate) const BOB: (&str, &str) = ("Authorization", "Bearer token-of-bob");

/// A gateway with two tokens.
pub(crate) async fn gateway(servers: &Value) -> TestGateway {
    let options = GatewayOptions { tokens: known_tokens(), ..GatewayOptions::default() };
    TestGateway::with(servers, options).await
}

/// The tokens of Ann and Bob.
pub(crate) fn known_tokens() -> Tokens {
    let mut tokens = Tokens::default();
    for (name, token) in [("ann", "token-of-ann"), ("bob", "token-of-bob")] {
        let known = Token { name: name.to_owned(), scope: Scope::default() };
        tokens.insert(digest_of(token), known);
    }
    tokens
}
