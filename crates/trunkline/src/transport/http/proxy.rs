//! Selects the proxy for a URL, and its credentials.

use std::fmt;
use std::net::IpAddr;

use hyper::Uri;
use hyper::header::HeaderValue;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use url::{ParseError, Url};

use crate::config::Secret;
use crate::error::{Error, ErrorKind};

/// Proxies by URL scheme. Their URLs may contain passwords.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    /// The proxy for `http` URLs.
    pub http: Option<Secret>,
    /// The proxy for `https` URLs.
    pub https: Option<Secret>,
    /// Hosts that are reached directly, in the format of the variable `NO_PROXY`.
    pub no_proxy: Option<Box<str>>,
    /// Whether `localhost` and loopback addresses use the proxies too. By default they do not, as
    /// in Go and in browsers: a proxy on another machine would connect to itself.
    pub for_loopback: bool,
}

/// Matches URLs to proxies.
pub(in crate::transport) struct ProxyMatcher {
    matcher: Matcher,
    /// Whether any proxy is configured, to skip matching otherwise.
    exist: bool,
    for_loopback: bool,
}

impl fmt::Debug for ProxyMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyMatcher").field("exist", &self.exist).finish_non_exhaustive()
    }
}

impl ProxyMatcher {
    /// Creates the matcher; fails if a proxy URL is invalid.
    pub(in crate::transport) fn new(proxies: &Proxies) -> Result<Self, Error> {
        let mut builder = Matcher::builder();
        if let Some(address) = &proxies.http {
            builder = builder.http(proxy_address(address, "http")?);
        }
        if let Some(address) = &proxies.https {
            builder = builder.https(proxy_address(address, "https")?);
        }
        let exceptions = proxies.no_proxy.as_deref().unwrap_or_default();
        let exist = proxies.http.is_some() || proxies.https.is_some();
        let for_loopback = proxies.for_loopback;
        Ok(Self { matcher: builder.no(exceptions).build(), exist, for_loopback })
    }

    /// The proxy for a URL.
    pub(in crate::transport) fn proxy_for(&self, address: &Uri) -> Option<Intercept> {
        let is_direct =
            !self.exist || (!self.for_loopback && address.host().is_some_and(is_loopback));
        if is_direct { None } else { self.matcher.intercept(address) }
    }

    /// Credentials for a forwarding proxy, sent with each request to a URL. A tunnelling proxy
    /// receives them when the tunnel is opened.
    pub(in crate::transport) fn credentials(&self, address: &Uri) -> Option<HeaderValue> {
        if address.scheme_str() != Some("http") {
            return None;
        }
        self.proxy_for(address)?.basic_auth().cloned()
    }
}

/// Whether a host is this machine: `localhost`, a name below it (RFC 6761), or a loopback address.
fn is_loopback(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// The URL of a proxy, which is often written without a scheme.
fn proxy_address(address: &Secret, purpose: &str) -> Result<String, Error> {
    let written = address.expose();
    let url = match Url::parse(written) {
        Ok(url) if url.has_host() => Ok(url),
        // Without a scheme, `host:8080` parses with `host` as the scheme.
        Ok(_) | Err(ParseError::RelativeUrlWithoutBase) => Url::parse(&format!("http://{written}")),
        Err(error) => Err(error),
    };
    match url {
        Ok(url) if url.has_host() && is_known(url.scheme()) => Ok(url.into()),
        _ => Err(bad_proxy(purpose)),
    }
}

/// Whether a scheme is one of proxies. SOCKS is recognized but not supported: servers behind such a
/// proxy are unreachable, others are not affected.
fn is_known(scheme: &str) -> bool {
    matches!(scheme, "http" | "https" | "socks4" | "socks4a" | "socks5" | "socks5h")
}

/// The URL is not quoted: it may contain a password.
fn bad_proxy(purpose: &str) -> Error {
    let message = format!("the proxy for {purpose} addresses is not an address itself");
    Error::new(ErrorKind::UnusableValue, message).with_hint("write it as `http://host:port`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy_before(proxy: &str, no_proxy: &str, address: &'static str) -> Option<String> {
        let proxies = Proxies {
            http: Some(Secret::new(proxy)),
            https: None,
            no_proxy: Some(no_proxy.into()),
            for_loopback: false,
        };
        let found = ProxyMatcher::new(&proxies).unwrap().proxy_for(&Uri::from_static(address));
        found.map(|proxy| proxy.uri().to_string())
    }

    #[test]
    fn a_proxy_may_be_written_without_its_scheme() {
        for written in ["proxy:8080", "http://proxy:8080", "http://me:pw@proxy:8080/x"] {
            let found = proxy_before(written, "", "http://a.example/");
            assert_eq!(found.as_deref(), Some("http://proxy:8080/"), "{written}");
        }
        let found = proxy_before("127.0.0.1:8080", "", "http://a.example/");
        assert_eq!(found.as_deref(), Some("http://127.0.0.1:8080/"));
    }

    #[test]
    fn hosts_domains_and_networks_can_be_excepted() {
        let exceptions = "a.example, .b.example, 10.0.0.0/8, ::1";
        for address in [
            "http://a.example/",
            "http://x.a.example:81/",
            "http://b.example/",
            "http://10.1.2.3/",
            "http://[::1]:80/",
            // The proxy is for `http` only.
            "https://c.example/",
        ] {
            assert_eq!(proxy_before("proxy", exceptions, address), None, "{address}");
        }
        for address in ["http://aa.example/", "http://11.0.0.1/", "http://c.example/"] {
            assert!(proxy_before("proxy", exceptions, address).is_some(), "{address}");
        }
        assert_eq!(proxy_before("proxy", "*", "http://a.example/"), None);
    }

    /// Regression: with `HTTP_PROXY` and without `NO_PROXY`, a server at 127.0.0.1 was requested
    /// through the proxy.
    #[test]
    fn this_machine_is_reached_without_a_proxy_unless_it_is_configured() {
        let addresses = [
            "http://127.0.0.1:9999/mcp",
            "http://127.8.8.8/",
            "http://localhost:81/",
            "http://LOCALHOST./",
            "http://a.localhost/",
            "http://[::1]:80/",
            "http://[::ffff:127.0.0.1]/",
        ];
        for address in addresses {
            assert_eq!(proxy_before("proxy", "", address), None, "{address}");
            let http = Some(Secret::new("proxy"));
            let proxies = Proxies { http, for_loopback: true, ..Proxies::default() };
            let matcher = ProxyMatcher::new(&proxies).unwrap();
            assert!(matcher.proxy_for(&Uri::from_static(address)).is_some(), "{address}");
        }
        for address in ["http://localhost.example/", "http://128.0.0.1/", "http://10.0.0.1/"] {
            assert!(proxy_before("proxy", "", address).is_some(), "{address}");
        }
    }

    #[test]
    fn only_a_forwarding_proxy_gets_credentials_per_request() {
        let proxy = || Some(Secret::new("http://me:p%40ss@proxy:8080"));
        let no_proxy = Some("b.example".into());
        let proxies = Proxies { http: proxy(), https: proxy(), no_proxy, ..Proxies::default() };
        let detours = ProxyMatcher::new(&proxies).unwrap();
        let told = |address| detours.credentials(&Uri::from_static(address));
        // `me:p@ss`
        assert_eq!(told("http://a.example/").unwrap(), "Basic bWU6cEBzcw==");
        assert!(told("http://a.example/").unwrap().is_sensitive());
        assert_eq!(told("https://a.example/"), None);
        assert_eq!(told("http://b.example/"), None);
    }

    #[test]
    fn invalid_proxy_url_is_rejected_without_its_password() {
        for written in ["http://me:hunter2@:70000/", "ftp://me:hunter2@proxy", "http://"] {
            let https = Some(Secret::new(written));
            let error = ProxyMatcher::new(&Proxies { https, ..Proxies::default() }).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnusableValue, "{written}");
            assert!(
                error.to_string().contains("https") && !format!("{error:?}").contains("hunter2")
            );
        }
    }
}
