//! The URL of a server, parsed once: for display and joining, and in the form that is sent.

use std::sync::Arc;
use std::{fmt, iter};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Uri;
use hyper::header::HeaderValue;
use percent_encoding::percent_decode_str;
use url::{Position, Url};

use crate::config::is_like_credential;

/// The URL of a request. Cheap to clone; `Debug` prints only its origin.
#[derive(Clone)]
pub(in crate::transport) struct ServerUrl(Arc<UrlForms>);

#[derive(Clone)]
struct UrlForms {
    url: Url,
    /// Without user, password and fragment, which proxies must not see.
    uri: Uri,
    /// Path and query alone.
    target: Uri,
    /// Scheme, host and port.
    server: Arc<str>,
    host: HeaderValue,
    credentials: Option<HeaderValue>,
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Address").field(&origin(self.url())).finish()
    }
}

impl ServerUrl {
    /// Wraps a URL, if it is an HTTP URL that can be sent.
    pub(in crate::transport) fn new(url: Url) -> Option<Self> {
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return None;
        }
        let authority = &url[Position::BeforeHost..Position::AfterPort];
        let path = &url[Position::BeforePath..Position::AfterQuery];
        let server = format!("{}://{authority}", url.scheme());
        let uri = Uri::try_from(format!("{server}{path}")).ok()?;
        let target = Uri::try_from(path).ok()?;
        let host = HeaderValue::from_str(authority).ok()?;
        let credentials = credentials(&url);
        let server = server.into();
        Some(Self(Arc::new(UrlForms { url, uri, target, server, host, credentials })))
    }

    /// Resolves a reference that the server sent, relative to this URL. A URL of the same origin
    /// without a user inherits the credentials: servers do not repeat them.
    pub(in crate::transport) fn join(&self, reference: &str) -> Option<Self> {
        let next = Self::new(self.url().join(reference).ok()?)?;
        if next.credentials().is_some() || !self.is_same_origin(&next) {
            return Some(next);
        }
        let mut forms = Arc::unwrap_or_clone(next.0);
        forms.credentials = self.credentials().cloned();
        Some(Self(Arc::new(forms)))
    }

    /// The URL as it was written.
    pub(in crate::transport) fn url(&self) -> &Url {
        &self.0.url
    }

    /// The URL as it is sent to a proxy.
    pub(in crate::transport) fn uri(&self) -> &Uri {
        &self.0.uri
    }

    /// The request target as it is sent to the server: path and query.
    pub(in crate::transport) fn target(&self) -> &Uri {
        &self.0.target
    }

    /// Scheme, host and port of the server.
    pub(in crate::transport) fn server(&self) -> &Arc<str> {
        &self.0.server
    }

    /// Host and port, as in the `Host` header.
    pub(in crate::transport) fn host(&self) -> &HeaderValue {
        &self.0.host
    }

    /// User and password, as in the `Authorization` header.
    pub(in crate::transport) fn credentials(&self) -> Option<&HeaderValue> {
        self.0.credentials.as_ref()
    }

    /// Secrets of a URL that was written out: user and password, the query, and path segments that
    /// look like a credential; in all forms in which the server received them.
    pub(in crate::transport) fn secrets(&self) -> Vec<String> {
        let url = self.url();
        let values: Vec<_> = url.query_pairs().map(|(_, value)| value.into_owned()).collect();
        let credentials = self.credentials().and_then(|header| header.to_str().ok());
        let token = credentials.and_then(|text| text.split(' ').nth(1));
        let path = url.path_segments().into_iter().flatten().filter(|it| is_like_credential(it));
        let written = [Some(url.username()), url.password(), url.query(), token];
        let written = written.into_iter().flatten().chain(path);
        let mut secrets: Vec<_> = written.flat_map(|it| [it.to_owned(), decoded(it)]).collect();
        secrets.extend(values);
        secrets
    }

    /// Secrets of a resolved reference, in all forms in which the server may have received it: it
    /// may be any part of the URL, or all of it. The origin is shown anyway.
    pub(in crate::transport) fn forms_of(&self, filled_in: &str) -> Vec<String> {
        let origin = origin(self.url());
        let parts = filled_in.split(['/', '?', '&', '=', '@', '#']);
        let told = iter::once(filled_in).chain(parts).filter(|it| !origin.contains(it));
        told.flat_map(|it| [it.to_owned(), decoded(it), self.as_sent(it)]).collect()
    }

    /// The text as it is sent when it is part of the path.
    fn as_sent(&self, text: &str) -> String {
        let mut url = self.url().clone();
        url.set_path(text);
        url.path().trim_start_matches('/').to_owned()
    }

    /// Whether both URLs have the same origin, which may receive the same headers.
    pub(in crate::transport) fn is_same_origin(&self, other: &Self) -> bool {
        self.url().origin() == other.url().origin()
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn credentials(url: &Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let mut plain: Vec<u8> = percent_decode_str(url.username()).collect();
    plain.push(b':');
    plain.extend(percent_decode_str(url.password().unwrap_or_default()));
    let mut header = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(plain))).ok()?;
    header.set_sensitive(true);
    Some(header)
}

/// The part of a URL that can be shown: scheme, host and port. The path may contain a token, as
/// user and query may.
pub(in crate::transport) fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(url: &str) -> ServerUrl {
        ServerUrl::new(Url::parse(url).unwrap()).unwrap()
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let same = |one: &str, other: &str| address(one).is_same_origin(&address(other));
        assert!(same("https://a.example/x", "https://a.example:443/y?z"));
        assert!(same("http://A.example", "http://u:p@a.example:80/"));
        assert!(!same("https://a.example", "http://a.example"));
        assert!(!same("https://a.example", "https://a.example:8443"));
        assert!(!same("https://a.example", "https://b.a.example"));
        assert!(!same("https://a.example", "https://a.example.evil.example"));
    }

    #[test]
    fn request_target_has_no_credentials_or_fragment() {
        let address = address("https://me:p%40ss@A.example:8443/a%20b?c=|d#e");
        assert_eq!(address.uri(), "https://a.example:8443/a%20b?c=|d");
        assert_eq!(address.host(), "a.example:8443");
        // `me:p@ss`
        assert_eq!(address.credentials().unwrap(), "Basic bWU6cEBzcw==");
        assert_eq!(format!("{address:?}"), r#"Address("https://a.example:8443")"#);
    }

    #[test]
    fn default_port_is_omitted() {
        for (written, uri, host) in [
            ("http://a.example:80", "http://a.example/", "a.example"),
            ("https://[::1]:443/x", "https://[::1]/x", "[::1]"),
            ("http://[::1]:8080/", "http://[::1]:8080/", "[::1]:8080"),
        ] {
            let address = address(written);
            assert_eq!(
                (address.uri().to_string().as_str(), address.host().as_bytes()),
                (uri, host.as_bytes())
            );
            assert_eq!(address.credentials(), None);
        }
    }

    #[test]
    fn non_http_urls_are_rejected() {
        for other in ["ftp://a.example/", "file:///a", "mailto:a@b.example"] {
            assert!(ServerUrl::new(Url::parse(other).unwrap()).is_none(), "{other}");
        }
        assert!(address("https://a.example/x/y").join("javascript:0").is_none());
        assert_eq!(address("https://a.example/x/y").join("../z").unwrap().url().path(), "/z");
    }

    #[test]
    fn a_user_is_the_same_at_the_same_server_and_nowhere_else() {
        let from = address("http://me:p%40ss@a.example/mcp");
        let to = |reference: &str| {
            let next = from.join(reference).unwrap();
            next.credentials().map(|it| it.to_str().unwrap().to_owned())
        };
        // `me:p@ss`
        let same = Some("Basic bWU6cEBzcw==".to_owned());
        for reference in ["/mcp/", "mcp/", "//a.example/x", "http://a.example:80/mcp/"] {
            assert_eq!(to(reference), same, "{reference}");
            let twice = from.join(reference).unwrap().join("http://a.example/end").unwrap();
            assert_eq!(twice.credentials(), from.credentials(), "{reference}");
        }
        // `you:`
        assert_eq!(to("http://you@a.example/mcp/").as_deref(), Some("Basic eW91Og=="));
        for other in ["https://a.example/", "http://a.example:81/", "//b.example/mcp"] {
            assert_eq!(to(other), None, "{other}");
        }
    }
}
