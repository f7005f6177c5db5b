//! The HTTP client that all remote servers share: TLS, proxies, names, pooled connections.

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

use super::connector::Connector;
use super::gateways::{GatewayIds, ReachableGateways, record};
use super::proxy::{Proxies, ProxyMatcher};
use crate::config::{CHAIN_HEADER, Chain, LoopError};
use crate::error::{Error, ErrorKind};
use crate::principal::RequestPath;

/// How long a connection nobody uses is kept: less than the 60 s after which common load balancers
/// close it, so that a request does not meet a connection that is just going away.
const IDLE_CONNECTION: Duration = Duration::from_secs(30);

/// What is agreed on in TLS: the only version of HTTP the client speaks.
const PROTOCOL: &[u8] = b"http/1.1";

/// Bytes that the head of an answer has at most, and that are read at once: far more than servers and
/// proxies of others allow.
pub(in crate::transport) const MAX_HEAD_BYTES: usize = 256 * 1024;

/// Headers that an answer has at most, which is what hyper has room for.
pub(in crate::transport) const MAX_HEADERS: usize = 100;

/// How servers at HTTP addresses are reached.
///
/// Nothing is looked up: a program that wants to follow `HTTPS_PROXY` reads it and passes it in.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Proxies on the way.
    pub proxies: Proxies,
    /// Certificates, as PEM, that are trusted beside those of the system. Each text may hold many.
    pub extra_root_certificates: Vec<Vec<u8>>,
    /// How the user can add to them, for the message: `name its file in SSL_CERT_FILE`.
    pub root_certificates_hint: Option<Box<str>>,
    /// How long a connection may take until it can be used, TLS and proxies included.
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
/// Making one reads the certificates of the system, which takes milliseconds: a host makes one.
#[derive(Clone)]
pub(crate) struct HttpClient {
    shared: Arc<ClientShared>,
    /// The gateways behind the server it is for.
    gateways: Option<Arc<GatewayIds>>,
}

struct ClientShared {
    pool: Pool,
    detours: Arc<ProxyMatcher>,
    root_certificates_hint: Option<Box<str>>,
    process: Option<ClientProcess>,
}

/// The process that sends requests, which gateways are told.
#[derive(Clone)]
pub(crate) struct ClientProcess {
    pub(crate) chain: Chain,
    pub(crate) gateways: ReachableGateways,
}

/// Connections that are used again.
pub(in crate::transport) type Pool = Client<Connector, Full<Bytes>>;

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpClient")
    }
}

impl HttpClient {
    /// A client as the options say, which does not say which process it is.
    #[cfg(test)]
    pub(crate) fn new(options: &HttpOptions) -> Result<Self, Error> {
        Self::of_process(options, None)
    }

    /// A client as the options say, for a process.
    pub(crate) fn of_process(
        options: &HttpOptions,
        process: Option<ClientProcess>,
    ) -> Result<Self, Error> {
        let detours = Arc::new(ProxyMatcher::new(&options.proxies)?);
        let tls = tls(&options.extra_root_certificates)?;
        let connector = Connector::new(tls, Arc::clone(&detours), options.connect_timeout);
        let pool = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_CONNECTION)
            .pool_timer(TokioTimer::new())
            // It is among the headers: made once for each server, not for each request.
            .set_host(false)
            .http1_max_buf_size(MAX_HEAD_BYTES)
            .build(connector);
        let root_certificates_hint = options.root_certificates_hint.clone();
        let shared = ClientShared { pool, detours, root_certificates_hint, process };
        Ok(Self { shared: Arc::new(shared), gateways: None })
    }

    /// The same client for one server, to note the gateways behind it.
    pub(in crate::transport) fn for_server(self) -> Self {
        let gateways = self.shared.process.as_ref().map(|process| process.gateways.register());
        Self { gateways, ..self }
    }

    /// The connections to all servers.
    pub(in crate::transport) fn pool(&self) -> &Pool {
        &self.shared.pool
    }

    /// The proxies on the way.
    pub(in crate::transport) fn detours(&self) -> &ProxyMatcher {
        &self.shared.detours
    }

    /// The processes that a request comes through, this one included, as a header says it.
    pub(in crate::transport) fn chain(&self, path: &RequestPath) -> Option<HeaderValue> {
        let process = self.shared.process.as_ref()?;
        HeaderValue::from_str(&process.chain.request_header(path)).ok()
    }

    /// Notes the gateways that a response leads to.
    ///
    /// # Errors
    ///
    /// When this process is one of them.
    pub(in crate::transport) fn note_gateways(&self, headers: &HeaderMap) -> Result<(), LoopError> {
        let (Some(process), Some(server)) = (&self.shared.process, &self.gateways) else {
            return Ok(());
        };
        let header = headers.get(CHAIN_HEADER).and_then(|value| value.to_str().ok());
        record(server, process.chain.gateways_in(header.unwrap_or_default())?);
        Ok(())
    }

    /// How the user can trust another authority.
    pub(in crate::transport) fn root_certificates_hint(&self) -> Option<&str> {
        self.shared.root_certificates_hint.as_deref()
    }
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

/// What decides whom to trust; nothing on a system without certificates, where `http` addresses
/// can be used all the same.
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
