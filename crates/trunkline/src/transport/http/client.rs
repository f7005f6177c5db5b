//! The HTTP client that all remote servers share: TLS, proxies, name resolution, pooled
//! connections.
//!
//! It is built on hyper directly. A call over HTTP costs 139,000 instructions with it and 174,000
//! with `reqwest`, and it can limit informational responses and name the step that failed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{HeaderMap, HeaderValue};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

use super::address_guard::AddressGuard;
use super::connector::Connector;
use super::gateways::{GatewayIds, ReachableGateways, record};
use super::proxy::{Proxies, ProxyMatcher};
use crate::auth::RequestAuth;
use crate::config::{CHAIN_HEADER, Chain, LoopError};
use crate::error::{Error, ErrorKind};
use crate::principal::RequestPath;

/// Lifetime of an idle connection: less than the 60 s after which common load balancers close it,
/// so that a request does not use a connection that is just being closed.
const IDLE_CONNECTION: Duration = Duration::from_secs(30);

/// The ALPN protocol: the only version of HTTP that the client speaks.
const PROTOCOL: &[u8] = b"http/1.1";

/// Limit on the bytes of response headers, and size of one read: far more than common servers and
/// proxies allow.
pub(in crate::transport) const MAX_HEAD_BYTES: usize = 256 * 1024;

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
///
/// Creating one reads the certificates of the system, which takes milliseconds: a host creates one.
#[derive(Clone)]
pub(crate) struct HttpClient {
    shared: Arc<ClientShared>,
    /// Authorizes the requests to the server of this client.
    auth: Option<Arc<dyn RequestAuth>>,
    /// The gateways behind the server of this client.
    gateways: Option<Arc<GatewayIds>>,
}

struct ClientShared {
    pool: Pool,
    connector: Connector,
    detours: Arc<ProxyMatcher>,
    root_certificates_hint: Option<Box<str>>,
    process: Option<ClientProcess>,
}

/// The process that sends requests, for the chain header.
#[derive(Clone)]
pub(crate) struct ClientProcess {
    pub(crate) chain: Chain,
    pub(crate) gateways: ReachableGateways,
}

/// Pool of reusable connections.
pub(in crate::transport) type Pool = Client<Connector, Full<Bytes>>;

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
        let tls = Arc::new(tls(&options.extra_root_certificates)?);
        let connector = Connector::new(tls, Arc::clone(&detours), options.connect_timeout);
        let pool = pool(connector.clone());
        let root_certificates_hint = options.root_certificates_hint.clone();
        let shared = ClientShared { pool, connector, detours, root_certificates_hint, process };
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
            pool: pool(connector.clone()),
            connector,
            detours: Arc::clone(&self.shared.detours),
            root_certificates_hint: self.shared.root_certificates_hint.clone(),
            process: None,
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
    pub(in crate::transport) fn pool(&self) -> &Pool {
        &self.shared.pool
    }

    /// The proxies.
    pub(in crate::transport) fn detours(&self) -> &ProxyMatcher {
        &self.shared.detours
    }

    /// The chain header of a request: the processes that it came through, and this one.
    pub(in crate::transport) fn chain(&self, path: &RequestPath) -> Option<HeaderValue> {
        let process = self.shared.process.as_ref()?;
        HeaderValue::from_str(&process.chain.request_header(path)).ok()
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

fn pool(connector: Connector) -> Pool {
    Client::builder(TokioExecutor::new())
        .pool_idle_timeout(IDLE_CONNECTION)
        .pool_timer(TokioTimer::new())
        // The `Host` header is part of the headers of the server, which are built once.
        .set_host(false)
        .http1_max_buf_size(MAX_HEAD_BYTES)
        .build(connector)
}

fn unusable(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::UnusableValue, message)
}

fn tls(extra_roots: &[Vec<u8>]) -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let roots = certificates(extra_roots)?;
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(format!("TLS cannot be set up: {error}")))?;
    let mut config = match verifier(roots, provider)? {
        Some(verifier) => {
            let dangerous = builder.dangerous();
            let trusting = dangerous.with_custom_certificate_verifier(Arc::new(verifier));
            trusting.with_no_client_auth()
        }
        None => builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth(),
    };
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(config)
}

/// The certificate verifier; `None` on a system without certificates, where `http` URLs still work.
fn verifier(
    roots: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
) -> Result<Option<Verifier>, Error> {
    let has_roots = !roots.is_empty();
    match Verifier::new_with_extra_roots(roots, provider) {
        Ok(verifier) => Ok(Some(verifier)),
        Err(error) if has_roots => {
            Err(unusable(format!("an extra root certificate cannot be used: {error}")))
        }
        Err(_) => Ok(None),
    }
}

fn certificates(texts: &[Vec<u8>]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let mut found = Vec::new();
    for text in texts {
        let before = found.len();
        for certificate in CertificateDer::pem_slice_iter(text) {
            found.push(certificate.map_err(|_| bad_certificate())?);
        }
        if found.len() == before {
            return Err(bad_certificate());
        }
    }
    Ok(found)
}

fn bad_certificate() -> Error {
    unusable("an extra root certificate is not PEM")
        .with_hint("a PEM file begins with `-----BEGIN CERTIFICATE-----`")
}

#[cfg(test)]
mod tests {
    use super::*;

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
