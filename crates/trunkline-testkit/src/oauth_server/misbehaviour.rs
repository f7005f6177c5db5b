//! Kinds of broken and hostile answers that an OAuth server can give.

use serde::Serialize;

/// A broken or hostile answer. `servers/oauth/misbehaviour.mjs` implements them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Misbehaviour {
    /// The metadata names no PKCE method.
    NoPkce,
    /// The metadata names only the PKCE method `plain`.
    PlainPkce,
    /// The issuer in the metadata is another one.
    WrongIssuer,
    /// The metadata has no issuer.
    NoIssuer,
    /// The authorization response has no `iss`, although the metadata announces it.
    MissingIss,
    /// The authorization response has the `iss` of another issuer.
    WrongIss,
    /// The same, and the metadata does not announce `iss`.
    UnadvertisedWrongIss,
    /// The authorization response has another `state`.
    WrongState,
    /// The protected resource metadata is for another resource.
    ResourceMismatch,
    /// All endpoints in the metadata are at a link-local address.
    LinkLocalEndpoints,
    /// All endpoints in the metadata are `file:` URLs.
    FileEndpoints,
    /// The authorization server is at a link-local address.
    LinkLocalAuthorizationServer,
    /// The authorization server is a `file:` URL.
    FileAuthorizationServer,
    /// The challenge names protected resource metadata at a link-local address.
    LinkLocalResourceMetadata,
    /// The challenge names protected resource metadata at a `file:` URL.
    FileResourceMetadata,
    /// The challenge does not name the protected resource metadata.
    NoChallengeMetadata,
    /// The metadata redirects to valid metadata on the same server.
    MetadataRedirect,
    /// The metadata redirects to a link-local address.
    MetadataRedirectLinkLocal,
    /// The protected resource metadata redirects to a link-local address.
    ResourceMetadataRedirectLinkLocal,
    /// The token endpoint redirects to `/stolen`, and the method and body with it (307). The
    /// statistics count requests that arrive there as `stolen`.
    TokenRedirect,
    /// The metadata is larger than 10 MiB.
    HugeMetadata,
    /// The protected resource metadata is larger than 10 MiB.
    HugeResourceMetadata,
    /// The metadata takes two minutes.
    SlowMetadata,
    /// The protected resource metadata takes two minutes.
    SlowResourceMetadata,
    /// The metadata is a web page.
    HtmlMetadata,
}

impl Misbehaviour {
    /// All of them.
    pub const ALL: [Self; 25] = [
        Self::NoPkce,
        Self::PlainPkce,
        Self::WrongIssuer,
        Self::NoIssuer,
        Self::MissingIss,
        Self::WrongIss,
        Self::UnadvertisedWrongIss,
        Self::WrongState,
        Self::ResourceMismatch,
        Self::LinkLocalEndpoints,
        Self::FileEndpoints,
        Self::LinkLocalAuthorizationServer,
        Self::FileAuthorizationServer,
        Self::LinkLocalResourceMetadata,
        Self::FileResourceMetadata,
        Self::NoChallengeMetadata,
        Self::MetadataRedirect,
        Self::MetadataRedirectLinkLocal,
        Self::ResourceMetadataRedirectLinkLocal,
        Self::TokenRedirect,
        Self::HugeMetadata,
        Self::HugeResourceMetadata,
        Self::SlowMetadata,
        Self::SlowResourceMetadata,
        Self::HtmlMetadata,
    ];

    /// The name on the command line.
    pub(super) fn name(self) -> String {
        let name = serde_json::to_value(self).expect("invariant: a unit variant is JSON");
        name.as_str().expect("invariant: a unit variant is a string").to_owned()
    }
}
