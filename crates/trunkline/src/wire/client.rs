//! The HTTP client that all remote servers share: TLS, proxies, names, pooled connections.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{ClientBuilder, NoProxy, Proxy, redirect};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

use crate::config::Secret;
use crate::error::{Error, ErrorKind};

/// How long a connection nobody uses is kept: less than the 60 s after which common load balancers
/// close it, so that a request does not meet a connection that is just going away.
const IDLE_CONNECTION: Duration = Duration::from_secs(30);

/// How long a connection is silent before the other side is asked whether it is there. A stream that
/// is listened to is silent for hours, and would not notice that a network is gone.
const KEEPALIVE: Duration = Duration::from_secs(30);

const USER_AGENT: &str = concat!("trunkline/", env!("CARGO_PKG_VERSION"));

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

/// Proxies, by what they are for. Their addresses may hold passwords.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    /// The proxy for `http` addresses.
    pub http: Option<Secret>,
    /// The proxy for `https` addresses.
    pub https: Option<Secret>,
    /// Hosts that are reached without one, in the form of the variable `NO_PROXY`.
    pub no_proxy: Option<Box<str>>,
}

/// Sends requests. Cheap to clone: clones share their connections.
///
/// Making one reads the certificates of the system, which takes milliseconds: a host makes one.
#[derive(Clone)]
pub(crate) struct HttpClient {
    pub(super) inner: reqwest::Client,
    /// Whether a server that cannot be reached may be one that a proxy cannot reach.
    pub(super) has_proxies: bool,
    /// How the user can trust another authority.
    pub(super) root_certificates_hint: Option<Box<str>>,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpClient")
    }
}

impl HttpClient {
    /// A client as the options say.
    pub(crate) fn new(options: &HttpOptions) -> Result<Self, Error> {
        let builder = ClientBuilder::new()
            .tls_backend_preconfigured(tls(&options.extra_root_certificates)?)
            .dns_resolver(Arc::new(SystemNames))
            .connect_timeout(options.connect_timeout)
            .pool_idle_timeout(IDLE_CONNECTION)
            .tcp_keepalive(KEEPALIVE)
            .tcp_keepalive_interval(KEEPALIVE)
            .tcp_keepalive_retries(3)
            // Without it, small writes wait for acknowledgements that are delayed by 40 ms.
            .tcp_nodelay(true)
            // Followed in `request.rs`, where headers stay within their origin.
            .redirect(redirect::Policy::none())
            .referer(false)
            .user_agent(USER_AGENT)
            .no_proxy();
        let builder = with_proxies(builder, &options.proxies)?;
        let inner = builder.build().map_err(|_| unusable("the HTTP client cannot be set up"))?;
        let has_proxies = options.proxies.http.is_some() || options.proxies.https.is_some();
        let root_certificates_hint = options.root_certificates_hint.clone();
        Ok(Self { inner, has_proxies, root_certificates_hint })
    }
}

fn unusable(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::UnusableValue, message)
}

fn with_proxies(mut builder: ClientBuilder, proxies: &Proxies) -> Result<ClientBuilder, Error> {
    let exceptions = proxies.no_proxy.as_deref().and_then(NoProxy::from_string);
    if let Some(address) = &proxies.http {
        let proxy = Proxy::http(address.expose()).map_err(|_| bad_proxy("http"))?;
        builder = builder.proxy(proxy.no_proxy(exceptions.clone()));
    }
    if let Some(address) = &proxies.https {
        let proxy = Proxy::https(address.expose()).map_err(|_| bad_proxy("https"))?;
        builder = builder.proxy(proxy.no_proxy(exceptions));
    }
    Ok(builder)
}

/// The address is not quoted: it may hold a password.
fn bad_proxy(scheme: &str) -> Error {
    unusable(format!("the proxy for {scheme} addresses is not an address itself"))
        .with_hint("write it as `http://host:port`")
}

fn tls(extra_roots: &[Vec<u8>]) -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let roots = certificates(extra_roots)?;
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(format!("TLS cannot be set up: {error}")))?;
    let Some(verifier) = verifier(roots, provider)? else {
        return Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
    };
    let dangerous = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    Ok(dangerous.with_no_client_auth())
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

/// Looks names up as the system does, with an error that can be told from others.
struct SystemNames;

impl Resolve for SystemNames {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await;
            let addresses: Vec<_> = found.map_err(|_| UnknownHost)?.collect();
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// A name has no address.
#[derive(Debug)]
pub(super) struct UnknownHost;

impl fmt::Display for UnknownHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name has no address")
    }
}

impl StdError for UnknownHost {}

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

    #[test]
    fn a_proxy_that_is_none_is_refused_without_its_password() {
        let https = Some(Secret::new("http://me:hunter2@:70000/"));
        let proxies = Proxies { https, ..Proxies::default() };
        let options = HttpOptions { proxies, ..HttpOptions::default() };
        let error = refusal(&options);
        assert!(!format!("{error:?}{options:?}").contains("hunter2"));
        assert!(error.to_string().contains("https"), "{error}");
    }
}
