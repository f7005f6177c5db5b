//! Metadata documents: of the protected resource (RFC 9728) and of its authorization server (RFC 8414).

use serde::Deserialize;
use url::Url;

use crate::error::{Error, ErrorKind};

/// The metadata of a server as a protected resource.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResourceMetadata {
    pub(super) resource: String,
    pub(super) authorization_servers: Vec<String>,
    pub(super) scopes_supported: Option<Vec<Box<str>>>,
    pub(super) dpop_bound_access_tokens_required: bool,
}

impl ResourceMetadata {
    /// Checks that the document is about this server: the same origin, and a path that contains its
    /// path. Tokens for another resource must not be requested here.
    pub(super) fn check(&self, server: &Url) -> Result<(), Error> {
        let is_about = Url::parse(&self.resource).is_ok_and(|resource| {
            let within = resource.path().trim_end_matches('/');
            let rest = server.path().strip_prefix(within);
            resource.origin() == server.origin()
                && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        if is_about {
            return Ok(());
        }
        let message = "its metadata describes another resource than this server, so that a token \
                       for it would be for that one";
        Err(Error::new(ErrorKind::ProtocolViolation, message)
            .with_hint("check the address; if it is right, tell the operator of the server"))
    }
}

/// The metadata of an authorization server.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ServerMetadata {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: Option<Url>,
    pub(super) token_endpoint: Option<Url>,
    pub(super) registration_endpoint: Option<Url>,
    pub(super) revocation_endpoint: Option<Url>,
    pub(super) device_authorization_endpoint: Option<Url>,
    pub(super) scopes_supported: Option<Vec<Box<str>>>,
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<Box<str>>>,
    pub(super) code_challenge_methods_supported: Option<Vec<Box<str>>>,
    #[serde(default)]
    pub(super) client_id_metadata_document_supported: bool,
    #[serde(default)]
    pub(super) authorization_response_iss_parameter_supported: bool,
    pub(super) dpop_signing_alg_values_supported: Option<Vec<Box<str>>>,
    /// Whether there is no document, and the endpoints are the usual ones of 2025-03-26.
    #[serde(skip)]
    pub(super) is_assumed: bool,
}

impl ServerMetadata {
    /// The endpoints of a server of 2025-03-26 without metadata.
    pub(super) fn assumed(server: &Url) -> Self {
        let endpoint = |path: &str| server.join(path).ok();
        Self {
            issuer: server.origin().ascii_serialization(),
            authorization_endpoint: endpoint("/authorize"),
            token_endpoint: endpoint("/token"),
            registration_endpoint: endpoint("/register"),
            revocation_endpoint: None,
            device_authorization_endpoint: None,
            scopes_supported: None,
            token_endpoint_auth_methods_supported: None,
            code_challenge_methods_supported: None,
            client_id_metadata_document_supported: false,
            authorization_response_iss_parameter_supported: false,
            dpop_signing_alg_values_supported: None,
            is_assumed: true,
        }
    }

    /// Checks that the document is that of the issuer that it was requested for, character by
    /// character: another one could pass off its endpoints as the issuer's.
    pub(super) fn check_issuer(&self, issuer: &str) -> Result<(), Error> {
        if self.issuer == issuer {
            return Ok(());
        }
        let message = "the metadata of its authorization server names another issuer than the one \
                       that the server refers to";
        Err(Error::new(ErrorKind::ProtocolViolation, message).with_hint(
            "a slash at the end counts; its operator can correct it, or `oauth.metadataUrl` can \
             name the metadata",
        ))
    }

    /// Checks that codes are protected by PKCE, without which a stolen code can be used.
    pub(super) fn check_pkce(&self) -> Result<(), Error> {
        let methods = self.code_challenge_methods_supported.iter().flatten();
        if self.is_assumed || methods.into_iter().any(|method| &**method == "S256") {
            return Ok(());
        }
        let message = "its authorization server does not support PKCE with S256, so that a stolen \
                       code could be used";
        Err(Error::new(ErrorKind::ProtocolViolation, message)
            .with_hint("its operator has to enable it, and to list it in the metadata"))
    }

    /// Checks that proofs with the algorithm of this client are accepted, if it says which are.
    pub(super) fn check_dpop(&self) -> Result<(), Error> {
        let algorithms = self.dpop_signing_alg_values_supported.as_ref();
        if algorithms.is_none_or(|all| all.iter().any(|it| &**it == "ES256")) {
            return Ok(());
        }
        let message = "its authorization server accepts no proofs (DPoP) with ES256";
        Err(Error::new(ErrorKind::ProtocolViolation, message)
            .with_hint("its operator has to enable it; or try `\"dpop\": false` in `oauth`"))
    }

    /// An endpoint that is needed.
    pub(super) fn endpoint<'a>(&self, url: Option<&'a Url>, what: &str) -> Result<&'a Url, Error> {
        url.ok_or_else(|| {
            let message = format!("its authorization server has no {what}");
            Error::new(ErrorKind::ProtocolViolation, message)
        })
    }

    /// The endpoint of logins on another device.
    pub(super) fn device_endpoint(&self) -> Result<&Url, Error> {
        self.device_authorization_endpoint.as_ref().ok_or_else(|| {
            let message = "its authorization server does not offer logins on another device";
            Error::new(ErrorKind::Unauthorized, message).with_hint("log in with a browser instead")
        })
    }

    /// Whether clients authenticate with this method. Without a list it is HTTP Basic.
    pub(super) fn accepts(&self, method: &str) -> bool {
        match &self.token_endpoint_auth_methods_supported {
            Some(methods) => methods.iter().any(|it| &**it == method),
            None => method == "client_secret_basic",
        }
    }

    /// Whether a scope is one of those that it lists.
    pub(super) fn has_scope(&self, scope: &str) -> bool {
        self.scopes_supported.iter().flatten().any(|it| &**it == scope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_has_the_origin_and_contains_the_path() {
        let check = |resource: &str, server: &str| {
            let document =
                ResourceMetadata { resource: resource.to_owned(), ..ResourceMetadata::default() };
            document.check(&Url::parse(server).unwrap()).is_ok()
        };
        assert!(check("https://a.example/mcp", "https://a.example/mcp"));
        assert!(check("https://a.example", "https://a.example/mcp"));
        assert!(check("https://a.example/", "https://a.example/mcp/v1"));
        assert!(check("https://a.example/mcp/", "https://a.example/mcp"));
        assert!(!check("https://a.example/mc", "https://a.example/mcp"));
        assert!(!check("https://b.example/mcp", "https://a.example/mcp"));
        assert!(!check("http://a.example/mcp", "https://a.example/mcp"));
        assert!(!check("", "https://a.example/mcp"));
    }
}
