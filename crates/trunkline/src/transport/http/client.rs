//! The HTTP client that all remote servers share: TLS, proxies, name resolution, pooled
//! connections.
//!
//! It is built on hyper directly. A call over HTTP costs 139,000 instructions with it and 174,000
//! with `reqwest`, and it can limit informational responses and name the step that failed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{HeaderMap, HeaderValue};

use super::address_guard::AddressGuard;
use super::connector::Connector;
use super::gateways::{GatewayIds, ReachableGateways, record};
use super::pool::HttpConnectionPool;
use super::proxy::{Proxies, ProxyMatcher};
use super::tls::LazyTls;
use crate::auth::RequestAuth;
use crate::config::{CHAIN_HEADER, Chain, LoopError};
use crate::error::Error;
use crate::principal::RequestPath;

/// Limit on the number of response headers, which is the capacity of hyper.
pub(in crate::transport) const MAX_HEADERS: usize = 100;

/// Options of connections to remote servers.
///
/// The environment is not read: a program that supports `HTTPS_PROXY` reads it and passes it in.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Proxies to use.
    pub proxies: Proxies,
    /// Certificates in PEM that are trusted in addition to those of the system. Each entry may
    /// contain several.
    pub extra_root_certificates: Vec<Vec<u8>>,
    /// Hint for error messages on how to add one: `name its file in SSL_CERT_FILE`.
    pub root_certificates_hint: Option<Box<str>>,
    /// Timeout until a connection can be used, including TLS and proxies.
    pub connect_timeout: Duration,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            proxies: Proxies::default(),
            extra_root_certificates: Vec::new(),
            root_certificates_hint: None,
            connect_timeout: Duration::from_secs(10),
        }
    }
}

/// Sends requests. Cheap to clone: clones share their connections.
#[derive(Clone)]
pub(crate) struct HttpClient {
    shared: Arc<ClientShared>,
    /// Authorizes the requests to the server of this client.
    auth: Option<Arc<dyn RequestAuth>>,
    /// The gateways behind the server of this client.
    gateways: Option<Arc<GatewayIds>>,
}

struct ClientShared {
    pool: HttpConnectionPool,
    connector: Connector,
    detours: Arc<ProxyMatcher>,
    root_certificates_hint: Option<Box<str>>,
    process: Option<ClientProcess>,
    /// The chain header of requests that start in this process.
    own_chain: Option<HeaderValue>,
}

/// The process that sends requests, for the chain header.
#[derive(Clone)]
pub(crate) struct ClientProcess {
    pub(crate) chain: Chain,
    pub(crate) gateways: ReachableGateways,
}

impl ClientProcess {
    /// The chain header of a request that came on this path.
    fn header(&self, path: &RequestPath) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.chain.request_header(path)).ok()
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpClient")
    }
}

impl HttpClient {
    /// A client with these options that does not send the chain header.
    #[cfg(test)]
    pub(crate) fn new(options: &HttpOptions) -> Result<Self, Error> {
        Self::of_process(options, None)
    }

    /// Creates a client for a process.
    pub(crate) fn of_process(
        options: &HttpOptions,
        process: Option<ClientProcess>,
    ) -> Result<Self, Error> {
        let detours = Arc::new(ProxyMatcher::new(&options.proxies)?);
        let tls = LazyTls::new(&options.extra_root_certificates)?;
        let connector = Connector::new(tls, Arc::clone(&detours), options.connect_timeout);
        let pool = HttpConnectionPool::new(connector.clone());
        let root_certificates_hint = options.root_certificates_hint.clone();
        let own_chain = process.as_ref().and_then(|it| it.header(&RequestPath::default()));
        let shared =
            ClientShared { pool, connector, detours, root_certificates_hint, process, own_chain };
        Ok(Self { shared: Arc::new(shared), auth: None, gateways: None })
    }

    /// The same client for requests of one server, which this authorizes.
    pub(crate) fn with_auth(self, auth: Option<Arc<dyn RequestAuth>>) -> Self {
        Self { auth, ..self }
    }

    /// A client for URLs that a server names: it reaches only what the guard admits, and sends neither
    /// the chain header nor credentials of the server.
    pub(crate) fn guarded(&self, guard: AddressGuard) -> Self {
        let connector = self.shared.connector.guarded(guard);
        let shared = ClientShared {
            pool: HttpConnectionPool::new(connector.clone()),
            connector,
            detours: Arc::clone(&self.shared.detours),
            root_certificates_hint: self.shared.root_certificates_hint.clone(),
            process: None,
            own_chain: None,
        };
        Self { shared: Arc::new(shared), auth: None, gateways: None }
    }

    /// Authorizes the requests of this client.
    pub(in crate::transport) fn auth(&self) -> Option<&dyn RequestAuth> {
        self.auth.as_deref()
    }

    /// The same client for one server, to record the gateways behind it.
    pub(in crate::transport) fn for_server(self) -> Self {
        let gateways = self.shared.process.as_ref().map(|process| process.gateways.register());
        Self { gateways, ..self }
    }

    /// The connections to all servers.
    pub(super) fn pool(&self) -> &HttpConnectionPool {
        &self.shared.pool
    }

    /// The proxies.
    pub(in crate::transport) fn detours(&self) -> &ProxyMatcher {
        &self.shared.detours
    }

    /// The chain header of a request: the processes that it came through, and this one.
    pub(in crate::transport) fn chain(&self, path: &RequestPath) -> Option<HeaderValue> {
        match *path == RequestPath::default() {
            true => self.shared.own_chain.clone(),
            false => self.shared.process.as_ref()?.header(path),
        }
    }

    /// Records the gateways in a response.
    ///
    /// # Errors
    ///
    /// If this process is one of them.
    pub(in crate::transport) fn note_gateways(&self, headers: &HeaderMap) -> Result<(), LoopError> {
        let (Some(process), Some(server)) = (&self.shared.process, &self.gateways) else {
            return Ok(());
        };
        let header = headers.get(CHAIN_HEADER).and_then(|value| value.to_str().ok());
        record(server, process.chain.gateways_in(header.unwrap_or_default())?);
        Ok(())
    }

    /// Hint for the user on how to trust another certificate authority.
    pub(in crate::transport) fn root_certificates_hint(&self) -> Option<&str> {
        self.shared.root_certificates_hint.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn refusal(options: &HttpOptions) -> Error {
        HttpClient::new(options).unwrap_err()
    }

    #[test]
    fn a_certificate_that_is_none_is_refused() {
        for text in [&b""[..], b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"] {
            let extra_root_certificates = vec![text.to_vec()];
            let error = refusal(&HttpOptions { extra_root_certificates, ..HttpOptions::default() });
            assert_eq!(error.kind(), ErrorKind::UnusableValue, "{error}");
        }
    }
}
