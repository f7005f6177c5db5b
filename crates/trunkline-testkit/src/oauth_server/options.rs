//! Features that an OAuth server has from its start.

use std::time::Duration;

use super::misbehaviour::Misbehaviour;

/// Use of DPoP (RFC 9449) by both servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DpopMode {
    /// Issues tokens with DPoP to clients that send a proof; accepts bearer tokens too.
    Offered,
    /// The MCP server accepts only tokens with DPoP.
    Required,
    /// The same, and both servers require nonces.
    Nonce,
}

/// Options of an OAuth server. By default it offers registration, device flow and rotating refresh
/// tokens, on the port of the MCP server, without DPoP and client metadata documents.
#[derive(Debug, Clone, Default)]
pub struct OAuthServerOptions {
    flags: Vec<String>,
}

impl OAuthServerOptions {
    /// The default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The lifetime of access tokens, in whole seconds; otherwise an hour.
    #[must_use]
    pub fn with_access_token_lifetime(self, lifetime: Duration) -> Self {
        self.with_value("access-token-lifetime", &lifetime.as_secs().to_string())
    }

    /// The lifetime of refresh tokens, in whole seconds; otherwise a day.
    #[must_use]
    pub fn with_refresh_token_lifetime(self, lifetime: Duration) -> Self {
        self.with_value("refresh-token-lifetime", &lifetime.as_secs().to_string())
    }

    /// Use of DPoP.
    #[must_use]
    pub fn with_dpop(self, mode: DpopMode) -> Self {
        let mode = match mode {
            DpopMode::Offered => "offered",
            DpopMode::Required => "required",
            DpopMode::Nonce => "nonce",
        };
        self.with_value("dpop", mode)
    }

    /// Offers client metadata documents.
    #[must_use]
    pub fn with_client_metadata_documents(self) -> Self {
        self.with_flag("client-metadata-documents")
    }

    /// Runs the authorization server on another port than the MCP server.
    #[must_use]
    pub fn with_separate_authorization_server(self) -> Self {
        self.with_flag("separate-authorization-server")
    }

    /// Adds a misbehaviour.
    #[must_use]
    pub fn with_misbehaviour(self, misbehaviour: Misbehaviour) -> Self {
        self.with_value("misbehave", &misbehaviour.name())
    }

    /// Offers no dynamic client registration.
    #[must_use]
    pub fn without_registration(self) -> Self {
        self.with_flag("no-registration")
    }

    /// Offers no device flow.
    #[must_use]
    pub fn without_device_flow(self) -> Self {
        self.with_flag("no-device-flow")
    }

    /// Issues no refresh tokens.
    #[must_use]
    pub fn without_refresh_tokens(self) -> Self {
        self.with_flag("no-refresh-tokens")
    }

    /// Keeps a refresh token valid when it is used.
    #[must_use]
    pub fn without_rotation(self) -> Self {
        self.with_flag("no-rotation")
    }

    /// The flags of the script.
    pub(super) fn flags(&self) -> &[String] {
        &self.flags
    }

    fn with_value(mut self, name: &str, value: &str) -> Self {
        self.flags.push(format!("--{name}={value}"));
        self
    }

    fn with_flag(mut self, name: &str) -> Self {
        self.flags.push(format!("--{name}"));
        self
    }
}
