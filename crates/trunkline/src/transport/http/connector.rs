//! Opens connections to servers: DNS, TCP, an optional proxy and TLS, within one timeout.

use std::error::Error as StdError;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io, vec};

use hyper::Uri;
use hyper::header::{HeaderMap, HeaderValue, USER_AGENT};
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::Intercept;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;
use tower_service::Service;

use super::address_guard::AddressGuard;
use super::fair_reader::FairReader;
use super::proxy::ProxyMatcher;
use super::tls::LazyTls;

/// Idle time before TCP keepalive probes. A listening stream is silent for hours, and would not
/// notice a lost network.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// The `User-Agent` for servers and proxies.
pub(in crate::transport) const OUR_NAME: HeaderValue =
    HeaderValue::from_static(concat!("trunkline/", env!("CARGO_PKG_VERSION")));

pub(super) type BoxError = Box<dyn StdError + Send + Sync>;
type ConnectFuture = Pin<Box<dyn Future<Output = Result<TokioIo<HttpStream>, BoxError>> + Send>>;

/// Opens connections. Cheap to clone, because the client clones it for each request.
#[derive(Clone)]
pub(in crate::transport) struct Connector(Arc<ConnectorInner>);

struct ConnectorInner {
    /// Connects to servers.
    direct: DirectConnector,
    /// Connects to proxies, which the user has configured.
    proxies: DirectConnector,
    detours: Arc<ProxyMatcher>,
    patience: Duration,
}

impl Connector {
    /// Creates a connector whose connections take at most `patience`, including proxy and TLS.
    pub(in crate::transport) fn new(
        tls: LazyTls,
        detours: Arc<ProxyMatcher>,
        patience: Duration,
    ) -> Self {
        let direct = DirectConnector { http: tcp(patience, None), tls };
        Self(Arc::new(ConnectorInner { proxies: direct.clone(), direct, detours, patience }))
    }

    /// Connects to the server of a URL.
    pub(super) async fn connect(&self, server: &Uri) -> Result<HttpStream, BoxError> {
        let connected = timeout(self.0.patience, self.0.connect(server.clone())).await;
        connected.unwrap_or_else(|_| Err(ConnectTimeout.into()))
    }

    /// The same connector for URLs that a server names: it connects only to addresses that the guard
    /// admits, which it resolves once. Behind a proxy, the proxy resolves names.
    pub(in crate::transport) fn guarded(&self, guard: AddressGuard) -> Self {
        let ConnectorInner { direct, proxies, detours, patience } = &*self.0;
        let http = tcp(*patience, Some(Arc::new(guard)));
        let direct = DirectConnector { http, tls: direct.tls.clone() };
        let (proxies, detours) = (proxies.clone(), Arc::clone(detours));
        Self(Arc::new(ConnectorInner { direct, proxies, detours, patience: *patience }))
    }
}

fn tcp(patience: Duration, guard: Option<Arc<AddressGuard>>) -> HttpConnector<DnsResolver> {
    let mut http = HttpConnector::new_with_resolver(DnsResolver { guard });
    http.enforce_http(false);
    // Divided among the addresses of a host, so that an unresponsive one leaves time for the next.
    http.set_connect_timeout(Some(patience));
    http.set_keepalive(Some(KEEPALIVE));
    http.set_keepalive_interval(Some(KEEPALIVE));
    http.set_keepalive_retries(Some(3));
    // Without it, small writes wait for acknowledgements that are delayed by 40 ms.
    http.set_nodelay(true);
    http
}

impl ConnectorInner {
    async fn connect(&self, server: Uri) -> Result<HttpStream, BoxError> {
        let Some(proxy) = self.detours.proxy_for(&server) else {
            return self.direct.connect(server).await;
        };
        if server.scheme_str() == Some("https") {
            return self.tunnel(&proxy, server).await;
        }
        let link = self.proxies.connect(proxy.uri().clone()).await?;
        Ok(HttpStream { is_forwarded: true, ..link })
    }

    /// Connects through a tunnelling proxy, which cannot read the bytes.
    async fn tunnel(&self, proxy: &Intercept, server: Uri) -> Result<HttpStream, BoxError> {
        let name = HeaderMap::from_iter([(USER_AGENT, OUR_NAME)]);
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.proxies.clone()).with_headers(name);
        if let Some(credentials) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        let link = tunnel.call(server.clone()).await?;
        self.direct.encrypted(link.into_inner(), &server).await
    }
}

/// Connects to the server or proxy of a URL, with TLS if its scheme requires it.
#[derive(Clone)]
struct DirectConnector {
    http: HttpConnector<DnsResolver>,
    tls: LazyTls,
}

impl DirectConnector {
    async fn connect(&self, address: Uri) -> Result<HttpStream, BoxError> {
        let is_encrypted = match address.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(UnknownScheme.into()),
        };
        let stream = self.http.clone().call(address.clone()).await?.into_inner();
        let link = HttpStream::tls_over(PlainOrTls::Plain(stream));
        if is_encrypted { self.encrypted(link, &address).await } else { Ok(link) }
    }

    async fn encrypted(&self, link: HttpStream, address: &Uri) -> Result<HttpStream, BoxError> {
        let host = address.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned())?;
        let stream = self.tls.connector().await?.connect(name, link).await?;
        Ok(HttpStream::tls_over(PlainOrTls::Encrypted(Box::new(stream))))
    }
}

impl Service<Uri> for DirectConnector {
    type Response = TokioIo<HttpStream>;
    type Error = BoxError;
    type Future = ConnectFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, address: Uri) -> ConnectFuture {
        let direct = self.clone();
        Box::pin(async move { direct.connect(address).await.map(TokioIo::new) })
    }
}

/// An established connection.
pub(in crate::transport) struct HttpStream {
    transport: PlainOrTls,
    /// Whether a forwarding proxy reads the requests, which then need absolute URLs.
    is_forwarded: bool,
    pace: FairReader,
}

impl HttpStream {
    /// Whether a forwarding proxy reads the requests.
    pub(super) fn is_forwarded(&self) -> bool {
        self.is_forwarded
    }

    fn tls_over(transport: PlainOrTls) -> Self {
        Self { transport, is_forwarded: false, pace: FairReader::default() }
    }
}

enum PlainOrTls {
    Plain(TcpStream),
    /// Over a plain connection, or over an encrypted one to a proxy.
    Encrypted(Box<TlsStream<HttpStream>>),
}

impl Connection for HttpStream {
    fn connected(&self) -> Connected {
        Connected::new().proxy(self.is_forwarded)
    }
}

impl AsyncRead for HttpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { transport, pace, .. } = self.get_mut();
        match transport {
            PlainOrTls::Plain(stream) => pace.poll_read(Pin::new(stream), context, buffer),
            PlainOrTls::Encrypted(stream) => pace.poll_read(Pin::new(stream), context, buffer),
        }
    }
}

impl AsyncWrite for HttpStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.transport {
            PlainOrTls::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            PlainOrTls::Encrypted(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.transport {
            PlainOrTls::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            PlainOrTls::Encrypted(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.transport {
            PlainOrTls::Plain(stream) => stream.is_write_vectored(),
            PlainOrTls::Encrypted(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.transport {
            PlainOrTls::Plain(stream) => Pin::new(stream).poll_flush(context),
            PlainOrTls::Encrypted(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.transport {
            PlainOrTls::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            PlainOrTls::Encrypted(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

/// Resolves host names with the system resolver, with distinct error types.
#[derive(Clone)]
struct DnsResolver {
    guard: Option<Arc<AddressGuard>>,
}

impl Service<Name> for DnsResolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let guard = self.guard.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await;
            let addresses: Vec<_> = found.map_err(|_| UnknownHost)?.collect();
            if let Some(guard) = guard {
                // One private address is enough: the name could have the other one the next time.
                let is_admitted = |it: &SocketAddr| guard.admits(name.as_str(), it.ip());
                if !addresses.iter().all(is_admitted) {
                    return Err(PrivateAddress.into());
                }
            }
            Ok(addresses.into_iter())
        })
    }
}

/// The host name resolves to an address that is not admitted.
#[derive(Debug)]
pub(in crate::transport) struct PrivateAddress;

impl fmt::Display for PrivateAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name has an address that is not public")
    }
}

impl StdError for PrivateAddress {}

/// The host name does not resolve.
#[derive(Debug)]
pub(in crate::transport) struct UnknownHost;

impl fmt::Display for UnknownHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name has no address")
    }
}

impl StdError for UnknownHost {}

/// The connection was not established in time.
#[derive(Debug)]
pub(in crate::transport) struct ConnectTimeout;

impl fmt::Display for ConnectTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection took too long")
    }
}

impl StdError for ConnectTimeout {}

/// The proxy URL has a scheme other than HTTP.
#[derive(Debug)]
struct UnknownScheme;

impl fmt::Display for UnknownScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the proxy does not speak HTTP")
    }
}

impl StdError for UnknownScheme {}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    /// Resolves a name with a guard that admits private addresses of `hosts`.
    async fn resolve(name: &str, hosts: &[&str]) -> Result<Vec<IpAddr>, BoxError> {
        let guard = AddressGuard::new(hosts.iter().map(|host| (*host).into()));
        let mut resolver = DnsResolver { guard: Some(Arc::new(guard)) };
        let addresses = resolver.call(name.parse().unwrap()).await?;
        Ok(addresses.map(|address| address.ip()).collect())
    }

    /// A name of a server may have the address of another machine than it seems, and another one at
    /// each lookup. All systems know `localhost`, and addresses are names of themselves.
    #[tokio::test]
    async fn names_with_private_addresses_are_refused_when_they_are_resolved() {
        for name in ["localhost", "127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd00::1"] {
            let error = resolve(name, &["corp.example"]).await.unwrap_err();
            assert!(error.is::<PrivateAddress>(), "{name}: {error}");
        }
        assert!(resolve("localhost", &["localhost"]).await.unwrap()[0].is_loopback());
        assert_eq!(resolve("10.0.0.1", &["10.0.0.1"]).await.unwrap().len(), 1);
        assert!(resolve("169.254.169.254", &["169.254.169.254"]).await.is_err());
        assert_eq!(resolve("1.1.1.1", &[]).await.unwrap().len(), 1);
    }
}
