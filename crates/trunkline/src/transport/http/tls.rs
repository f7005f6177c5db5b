//! TLS of connections to servers, with the certificates of the system and those of the options.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;
use tokio_rustls::TlsConnector;

use crate::error::{Error, ErrorKind};

/// The ALPN protocol: the only version of HTTP that the client speaks.
const PROTOCOL: &[u8] = b"http/1.1";

/// TLS that is set up for the first connection that needs it: reading the certificates of the system
/// takes milliseconds. Clones share it.
#[derive(Clone)]
pub(super) struct LazyTls(Arc<OnceCell<TlsConnector>>);

impl LazyTls {
    /// TLS that also trusts these certificates in PEM. With any, it is set up at once, so that one that
    /// cannot be used is reported.
    pub(super) fn new(extra_roots: &[Vec<u8>]) -> Result<Self, Error> {
        let roots = certificates(extra_roots)?;
        let connector = match roots.is_empty() {
            true => OnceCell::new(),
            false => OnceCell::new_with(Some(connector(roots)?)),
        };
        Ok(Self(Arc::new(connector)))
    }

    /// The connector. Sets it up on another thread, because it reads files.
    pub(super) async fn connector(&self) -> Result<&TlsConnector, Error> {
        let set_up = async || {
            let connector = spawn_blocking(|| connector(Vec::new())).await;
            connector.map_err(|error| unusable(error.to_string()))?
        };
        self.0.get_or_try_init(set_up).await
    }
}

fn connector(roots: Vec<CertificateDer<'static>>) -> Result<TlsConnector, Error> {
    config(roots).map(|config| TlsConnector::from(Arc::new(config)))
}

fn unusable(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::UnusableValue, message)
}

fn config(roots: Vec<CertificateDer<'static>>) -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
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
