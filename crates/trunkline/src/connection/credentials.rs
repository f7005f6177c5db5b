//! Chooses what authorizes the requests to a remote server: configured headers, a program, a provider of the
//! host, or OAuth.

use std::sync::Arc;

use hyper::header::AUTHORIZATION;
use tokio::time::Instant;

use super::options::ConnectionOptions;
use super::references::resolve_transport;
use crate::auth::{ProviderAuth, RequestAuth};
use crate::config::{
    self, ResolvedOAuth, ResolvedRemote, ResolvedStdio, ResolvedTransport, Server, Transport,
};
use crate::error::{Error, ErrorKind};
use crate::headers_command::by_command;
use crate::oauth::{AuthTarget, ServerAuth};
use crate::transport::{AddressGuard, GuardedClient, HttpClient, HttpEndpoint};

/// What authorizes the requests to a server; `None` if its configured headers do.
pub(super) fn request_auth(
    server: &Server,
    remote: &ResolvedRemote,
    options: &ConnectionOptions,
    endpoint: &HttpEndpoint,
) -> Result<Option<Arc<dyn RequestAuth>>, Error> {
    if let Some(words) = &remote.headers_command {
        let program = ResolvedStdio::of_words(words, server);
        return Ok(Some(by_command(program, options.child().clone())));
    }
    if endpoint.has_credentials(&AUTHORIZATION) {
        return Ok(None);
    }
    if let Some(id) = &server.auth_provider {
        let provider = options.auth_provider(id);
        let provider = provider.ok_or_else(|| config::unknown_provider(server, id))?;
        return Ok(Some(Arc::new(ProviderAuth::new(server.name.clone(), provider))));
    }
    let auth = oauth(server, remote, options, endpoint)?;
    Ok(auth.map(|auth| Arc::new(auth) as Arc<dyn RequestAuth>))
}

/// The OAuth login of a server; `None` if it is disabled, or if the host has no logins.
pub(super) fn oauth(
    server: &Server,
    remote: &ResolvedRemote,
    options: &ConnectionOptions,
    endpoint: &HttpEndpoint,
) -> Result<Option<ServerAuth>, Error> {
    let (Some(oauth), Some(settings)) = (options.oauth(), &remote.oauth) else { return Ok(None) };
    let target = AuthTarget {
        server: server.name.clone(),
        url: endpoint.url().clone(),
        http: guarded(&options.client()?, endpoint, settings),
        settings: settings.clone(),
        resolve: resolver(server.clone(), options.clone()),
    };
    Ok(Some(oauth.server_auth(target)))
}

/// A client for the URLs that the server names. The hosts that the user has configured may be private.
fn guarded(
    client: &HttpClient,
    endpoint: &HttpEndpoint,
    settings: &ResolvedOAuth,
) -> GuardedClient {
    let urls = [
        Some(endpoint.url().as_str()),
        settings.metadata_url.as_deref(),
        settings.identity_provider.as_ref().map(|it| &*it.token_url),
    ];
    let host = |url: &str| url::Url::parse(url).ok()?.host_str().map(Into::into);
    let configured = urls.into_iter().flatten().filter_map(host);
    let hosts = configured.chain(settings.private_hosts.iter().cloned());
    GuardedClient::new(client, AddressGuard::new(hosts))
}

/// Resolves the settings again, when a token is requested.
fn resolver(
    server: Server,
    options: ConnectionOptions,
) -> Arc<dyn Fn() -> Result<ResolvedOAuth, Error> + Send + Sync> {
    Arc::new(move || {
        let resolved = config::resolve(&server, &*options.resolver());
        match resolved.map_err(|mut errors| errors.swap_remove(0))? {
            ResolvedTransport::Remote(ResolvedRemote { oauth: Some(settings), .. }) => Ok(settings),
            _ => Err(Error::new(ErrorKind::UnusableValue, "it has no settings of OAuth")),
        }
    })
}

/// The OAuth login of a server, for logins and logouts.
///
/// # Errors
///
/// If the server cannot be logged in to, or its settings cannot be resolved.
pub(crate) async fn login_auth(
    server: &Server,
    options: &ConnectionOptions,
) -> Result<ServerAuth, Error> {
    let Transport::Remote(_) = &server.transport else {
        return Err(no_login(server, "it is a program, which needs no login"));
    };
    let deadline = Instant::now() + server.behaviour.timeouts.connect;
    let resolved = resolve_transport(server, options, deadline).await;
    let ResolvedTransport::Remote(remote) = resolved.map_err(|error| error.of(&server.name))?
    else {
        return Err(no_login(server, "it is a program, which needs no login"));
    };
    let endpoint = HttpEndpoint::new(&remote).map_err(|error| error.of(&server.name))?;
    if remote.headers_command.is_some() {
        return Err(no_login(server, "its credentials come from `headersCommand`"));
    }
    if server.auth_provider.is_some() {
        return Err(no_login(server, "its credentials come from `authProviderId`"));
    }
    if endpoint.has_credentials(&AUTHORIZATION) {
        return Err(no_login(
            server,
            "its credentials are configured in `headers` or in its address",
        ));
    }
    let auth =
        oauth(server, &remote, options, &endpoint).map_err(|error| error.of(&server.name))?;
    auth.ok_or_else(|| no_login(server, "OAuth is switched off for it"))
}

fn no_login(server: &Server, why: &str) -> Error {
    Error::new(ErrorKind::UnusableValue, why).of(&server.name)
}
