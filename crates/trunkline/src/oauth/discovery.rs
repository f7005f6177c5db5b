//! Finds the authorization server of a server: its resource metadata first, then the metadata of the
//! authorization server that it names. One request after another, in the order of the specification.

use hyper::StatusCode;
use serde::de::DeserializeOwned;
use tracing::debug;
use url::Url;

use super::challenge::{Challenge, TokenScheme};
use super::metadata::{ResourceMetadata, ServerMetadata};
use crate::config::ResolvedOAuth;
use crate::error::{Error, ErrorKind};
use crate::transport::{GuardedClient, GuardedResponse};

const RESOURCE: &str = "oauth-protected-resource";
const SERVER: &str = "oauth-authorization-server";
const OPENID: &str = "openid-configuration";

/// What is known of a server before a login.
#[derive(Clone, Debug)]
pub(super) struct Discovery {
    /// The resource that tokens are for, as its metadata writes it.
    pub(super) resource: String,
    pub(super) authorization: ServerMetadata,
    /// The scopes of the resource.
    pub(super) scopes: Option<Vec<Box<str>>>,
    /// Whether tokens have to be bound to a key.
    pub(super) needs_dpop: bool,
}

/// Finds the authorization server of a server.
pub(super) async fn discover(
    http: &GuardedClient,
    server: &Url,
    challenge: Option<&Challenge>,
    settings: &ResolvedOAuth,
) -> Result<Discovery, Error> {
    let named = challenge.and_then(|challenge| challenge.resource_metadata.as_deref());
    let metadata = resource_metadata(http, server, named).await?;
    if let Some(metadata) = &metadata {
        metadata.check(server)?;
    }
    let authorization = match (&settings.metadata_url, &metadata) {
        (Some(url), _) => configured_server(http, url).await?,
        (None, Some(metadata)) => named_server(http, metadata).await?,
        (None, None) => server_of_origin(http, server).await?,
    };
    debug!(issuer = authorization.issuer, "authorization server found");
    let is_dpop = challenge.is_some_and(|challenge| challenge.scheme == TokenScheme::Dpop);
    let metadata = metadata.unwrap_or_default();
    let needs_dpop = settings.dpop.unwrap_or(is_dpop || metadata.dpop_bound_access_tokens_required);
    if needs_dpop {
        authorization.check_dpop()?;
    }
    Ok(Discovery {
        resource: match metadata.resource.is_empty() {
            true => canonical(server),
            false => metadata.resource,
        },
        authorization,
        scopes: metadata.scopes_supported,
        needs_dpop,
    })
}

/// The URL of a server as a resource identifier: without a fragment, and without the slash that the URL
/// parser adds to an empty path.
fn canonical(server: &Url) -> String {
    let mut url = server.clone();
    url.set_fragment(None);
    match (url.path(), url.query()) {
        ("/", None) => url.as_str().trim_end_matches('/').to_owned(),
        _ => url.into(),
    }
}

/// The metadata of the resource: where the challenge says, else at the well-known place of its path, else
/// at that of its origin. `None` if there is none.
async fn resource_metadata(
    http: &GuardedClient,
    server: &Url,
    named: Option<&str>,
) -> Result<Option<ResourceMetadata>, Error> {
    if let Some(named) = named {
        let url = server.join(named).map_err(|_| unreadable("the address of its metadata"))?;
        return match document(http, &url).await? {
            Some(metadata) => Ok(Some(metadata)),
            None => Err(unreadable("the metadata that it refers to")),
        };
    }
    let mut places = vec![well_known(server, RESOURCE)];
    if server.path().len() > 1 {
        places.push(well_known(&origin(server), RESOURCE));
    }
    for place in &places {
        if let Some(metadata) = document(http, place).await? {
            return Ok(Some(metadata));
        }
    }
    Ok(None)
}

async fn configured_server(http: &GuardedClient, url: &str) -> Result<ServerMetadata, Error> {
    let bad = || unreadable("`oauth.metadataUrl`");
    let url = Url::parse(url).map_err(|_| bad())?;
    document(http, &url).await?.ok_or_else(bad)
}

/// The authorization server that the resource names.
async fn named_server(
    http: &GuardedClient,
    metadata: &ResourceMetadata,
) -> Result<ServerMetadata, Error> {
    let Some(issuer) = metadata.authorization_servers.first() else {
        return Err(unreadable("the name of its authorization server"));
    };
    let url =
        Url::parse(issuer).map_err(|_| unreadable("the address of its authorization server"))?;
    let Some(found) = server_metadata(http, &url).await? else {
        return Err(unreadable("the metadata of its authorization server"));
    };
    found.check_issuer(issuer)?;
    Ok(found)
}

/// The authorization server of 2025-03-26: that of the server's own origin.
async fn server_of_origin(http: &GuardedClient, server: &Url) -> Result<ServerMetadata, Error> {
    let origin = origin(server);
    let Some(found) = server_metadata(http, &origin).await? else {
        return Ok(ServerMetadata::assumed(&origin));
    };
    let issuer = origin.as_str();
    if found.issuer != issuer {
        found.check_issuer(issuer.trim_end_matches('/'))?;
    }
    Ok(found)
}

async fn server_metadata(
    http: &GuardedClient,
    issuer: &Url,
) -> Result<Option<ServerMetadata>, Error> {
    for place in server_places(issuer) {
        if let Some(found) = document(http, &place).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The places of an authorization server's metadata, in order.
fn server_places(issuer: &Url) -> Vec<Url> {
    let mut places = vec![well_known(issuer, SERVER), well_known(issuer, OPENID)];
    let path = issuer.path().trim_end_matches('/');
    if !path.is_empty() {
        let mut appended = origin(issuer);
        appended.set_path(&format!("{path}/.well-known/{OPENID}"));
        places.push(appended);
    }
    places
}

/// The well-known URL of a document, inserted before the path.
fn well_known(url: &Url, name: &str) -> Url {
    let path = url.path().trim_end_matches('/');
    let mut place = origin(url);
    place.set_path(&format!("/.well-known/{name}{path}"));
    place.set_query(url.query());
    place
}

fn origin(url: &Url) -> Url {
    let mut origin = url.clone();
    origin.set_path("");
    origin.set_query(None);
    origin.set_fragment(None);
    origin
}

/// Reads a document; `None` if there is none at this place.
async fn document<T: DeserializeOwned>(
    http: &GuardedClient,
    url: &Url,
) -> Result<Option<T>, Error> {
    let response = http.get(url).await?;
    match response.status {
        StatusCode::OK => Ok(json(&response)),
        status if status.is_server_error() || status.as_u16() == 429 => Err(busy(&response)),
        _ => Ok(None),
    }
}

/// The JSON of a response. Pages for people, which some servers send with status 200, are none.
fn json<T: DeserializeOwned>(response: &GuardedResponse) -> Option<T> {
    serde_json::from_slice(&response.body).ok()
}

fn busy(response: &GuardedResponse) -> Error {
    let status = response.status;
    let message = format!("the metadata for its login cannot be read: the response was {status}");
    Error::new(ErrorKind::HttpStatus(status.as_u16()), message)
}

fn unreadable(what: &str) -> Error {
    let message = format!("{what} cannot be read, so that nothing is known about its login");
    Error::new(ErrorKind::ProtocolViolation, message)
        .with_hint("check the address of the server; if it is right, tell its operator")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn documents_are_looked_for_before_the_path() {
        let places = |issuer: &str| -> Vec<String> {
            server_places(&url(issuer)).into_iter().map(Into::into).collect()
        };
        let root = [
            "https://a.example/.well-known/oauth-authorization-server",
            "https://a.example/.well-known/openid-configuration",
        ];
        assert_eq!(places("https://a.example"), root);
        let tenant = [
            "https://a.example/.well-known/oauth-authorization-server/t/1",
            "https://a.example/.well-known/openid-configuration/t/1",
            "https://a.example/t/1/.well-known/openid-configuration",
        ];
        assert_eq!(places("https://a.example/t/1/"), tenant);
        let resource = well_known(&url("https://a.example/mcp?x=1"), RESOURCE);
        assert_eq!(
            resource.as_str(),
            "https://a.example/.well-known/oauth-protected-resource/mcp?x=1"
        );
    }

    #[test]
    fn resource_identifier_has_no_slash_that_was_not_written() {
        assert_eq!(canonical(&url("https://a.example")), "https://a.example");
        assert_eq!(canonical(&url("https://a.example/mcp#x")), "https://a.example/mcp");
        assert_eq!(canonical(&url("https://a.example/mcp/")), "https://a.example/mcp/");
    }
}
