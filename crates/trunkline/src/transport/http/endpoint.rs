//! The URL and headers of a remote server. `Debug` prints only the origin.

use std::fmt;
use std::sync::Arc;

use hyper::header::{ACCEPT, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use url::Url;

use super::connector::OUR_NAME;
use super::url::{ServerUrl, origin};
use crate::auth::RequestAuth;
use crate::config::{ResolvedRemote, Secret};
use crate::error::{Error, ErrorKind};
use crate::transport::mask::SecretMask;

/// Headers that frame the body. Only the HTTP client may set them.
const FRAMING: &[&str] = &["connection", "content-length", "transfer-encoding"];

/// Capacity for the usual headers besides the configured ones, so that the map does not grow for
/// every request.
const MORE_HEADERS: usize = 10;

/// Shorter values are not redacted: they are no secrets, and occur in ordinary words.
const SHORTEST_SECRET: usize = 4;

/// The URL of a server and the headers configured for it.
#[derive(Clone)]
pub(crate) struct HttpEndpoint {
    pub(in crate::transport) address: ServerUrl,
    configured: HeaderMap,
    /// The resolved values of references in either.
    filled_in: Vec<Secret>,
    /// Authorizes requests with credentials that are not configured.
    auth: Option<Arc<dyn RequestAuth>>,
}

impl fmt::Debug for HttpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HttpEndpoint").field(&origin(self.address.url())).finish()
    }
}

impl HttpEndpoint {
    /// Parses the URL and the headers.
    pub(crate) fn new(remote: &ResolvedRemote) -> Result<Self, Error> {
        let address = Url::parse(remote.url.expose()).ok().and_then(ServerUrl::new);
        let address =
            address.ok_or_else(|| unusable("the address is not an HTTP address".to_owned()))?;
        let mut configured = HeaderMap::new();
        for (name, value) in &remote.headers {
            configured.append(header_name(name)?, header_value(name, value)?);
        }
        Ok(Self { address, configured, filled_in: remote.filled_in.clone(), auth: None })
    }

    /// The same endpoint with credentials that change: they are masked as they are at the time.
    pub(crate) fn with_auth(self, auth: Option<Arc<dyn RequestAuth>>) -> Self {
        Self { auth, ..self }
    }

    /// The URL of the server.
    pub(crate) fn url(&self) -> &Url {
        self.address.url()
    }

    /// Whether credentials are configured: this header, or a user in the URL.
    pub(crate) fn has_credentials(&self, header: &HeaderName) -> bool {
        self.configured.contains_key(header) || self.address.credentials().is_some()
    }

    /// Headers of every request: the configured ones, with defaults added.
    pub(in crate::transport) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(self.configured.len() + MORE_HEADERS);
        headers.extend(self.configured.clone());
        headers.entry(HOST).or_insert_with(|| self.address.host().clone());
        headers.entry(USER_AGENT).or_insert(OUR_NAME);
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        headers
    }

    /// Redacts the secrets that the server received from a text of the server.
    pub(in crate::transport) fn redacted(&self, text: &str) -> String {
        self.mask().masked(text)
    }

    /// The mask for those secrets.
    fn mask(&self) -> SecretMask {
        SecretMask::new(self.secrets().into_iter().map(Secret::new), SHORTEST_SECRET)
    }

    pub(in crate::transport) fn secrets(&self) -> Vec<String> {
        let mut secrets = Vec::new();
        for value in self.configured.values() {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            secrets.extend(value.split_whitespace().map(str::to_owned));
            secrets.push(value);
        }
        secrets.extend(self.address.secrets());
        secrets.extend(self.filled_in.iter().flat_map(|it| self.address.forms_of(it.expose())));
        let changing = self.auth.iter().flat_map(|auth| auth.secrets());
        secrets.extend(changing.map(|secret| secret.expose().to_owned()));
        secrets.retain(|secret| !secret.eq_ignore_ascii_case("bearer"));
        secrets
    }
}

fn unusable(message: String) -> Error {
    Error::new(ErrorKind::UnusableValue, message)
}

fn header_name(name: &str) -> Result<HeaderName, Error> {
    let header = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| unusable(format!("`{name}` is not the name of a header")))?;
    if FRAMING.contains(&header.as_str()) {
        return Err(unusable(format!("the header `{name}` cannot be configured"))
            .with_hint("remove it: the client sets it"));
    }
    Ok(header)
}

fn header_value(name: &str, value: &Secret) -> Result<HeaderValue, Error> {
    let mut header = HeaderValue::from_bytes(value.expose().as_bytes())
        .map_err(|_| unusable(format!("the value of the header `{name}` cannot be sent")))?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;

    use super::*;
    use crate::config::{self, RemoteTransport, ResolvedTransport, Resolver};

    fn target(url: &str, headers: &[(&str, &str)]) -> Result<HttpEndpoint, Error> {
        let header = |(name, value): &(&str, &str)| ((*name).into(), Secret::new(*value));
        HttpEndpoint::new(&ResolvedRemote {
            url: Secret::new(url),
            headers: headers.iter().map(header).collect(),
            protocol: RemoteTransport::Streamable,
            oauth: None,
            headers_command: None,
            filled_in: Vec::new(),
        })
    }

    /// An endpoint with this configuration, in which every reference has the same value.
    fn filled(entry: &str, value: &'static str) -> HttpEndpoint {
        struct Vault(&'static str);

        impl Resolver for Vault {
            fn variable(&self, _: &str) -> Option<Secret> {
                Some(Secret::new(self.0))
            }

            fn file(&self, _: &Path) -> io::Result<Secret> {
                Err(io::ErrorKind::NotFound.into())
            }
        }

        let text = format!(r#"{{ "mcpServers": {{ "s": {entry} }} }}"#);
        let config = config::parse("test", text).config;
        match config::resolve(config.server("s").unwrap(), &Vault(value)).unwrap() {
            ResolvedTransport::Remote(remote) => HttpEndpoint::new(&remote).unwrap(),
            ResolvedTransport::Stdio(_) => panic!("it is at an address"),
        }
    }

    #[test]
    fn nothing_of_a_target_but_its_origin_is_printed() {
        let target =
            target("https://me:hunter1@a.example/hunter2?key=hunter3", &[("X-Key", "hunter4")]);
        let printed = format!("{:?}", target.unwrap());
        assert_eq!(printed, r#"HttpEndpoint("https://a.example")"#);
    }

    #[test]
    fn default_headers_are_sent_unless_configured() {
        let headers = target("https://a.example:8443/x", &[]).unwrap().headers();
        assert_eq!(headers["host"], "a.example:8443");
        assert!(headers["user-agent"].to_str().unwrap().starts_with("trunkline/"));
        assert_eq!(headers["accept"], "*/*");
        let configured = [("Host", "b.example"), ("User-Agent", "me"), ("Accept", "text/plain")];
        let headers = target("https://a.example/", &configured).unwrap().headers();
        for (name, value) in configured {
            assert_eq!(headers.get_all(name).iter().collect::<Vec<_>>(), [value]);
        }
    }

    #[test]
    fn secrets_echoed_by_a_server_are_masked() {
        let headers = [("Authorization", "Bearer hunter22"), ("X-Level", "9")];
        let target = target("https://a.example/?key=sesame", &headers).unwrap();
        let with_password = self::target("https://me:p%40ssword@a.example/", &[]).unwrap();
        assert_eq!(
            with_password.redacted("p%40ssword, p@ssword, Basic bWU6cEBzc3dvcmQ="),
            "***, ***, Basic ***"
        );
        assert_eq!(
            target.redacted("Bearer hunter22, 9, hunter22, ?key=sesame, sesame: no bearer"),
            "***, 9, ***, ?***, ***: no bearer"
        );
    }

    #[test]
    fn resolved_values_are_masked_everywhere() {
        let said = "POST /open sesame/x, /open%20sesame/x, no open here";
        for entry in [
            r#"{ "url": "http://a.example/${TOKEN}/mcp" }"#,
            r#"{ "url": "http://${TOKEN}@a.example/mcp" }"#,
            r#"{ "url": "http://a.example/mcp?key=${TOKEN}" }"#,
            r#"{ "url": "http://a.example/mcp", "headers": { "X-Key": "v1=${TOKEN}" } }"#,
        ] {
            for value in ["open sesame", "open%20sesame"] {
                let shown = filled(entry, value).redacted(said);
                assert_eq!(shown, "POST /***/x, /***/x, no open here", "{entry} {value}");
            }
        }
        let target = filled(r#"{ "url": "${ADDRESS}" }"#, "http://a.example/s3same/mcp?x=hunter2");
        let said = "no mcp for POST /s3same/mcp?x=hunter2 at http://a.example, s3same hunter2";
        assert_eq!(
            target.redacted(said),
            "no mcp for POST /***/mcp?*** at http://a.example, *** ***"
        );
        assert_eq!(filled(r#"{ "url": "http://a.example/${V}/" }"#, "v1").redacted("v1"), "v1");
    }

    #[test]
    fn userinfo_and_likely_credentials_in_a_path_are_masked() {
        let target = target("http://some%20one@a.example/x/ghp_0123/mcp", &[]).unwrap();
        assert_eq!(
            target.redacted("some one, some%20one: no POST /x/ghp_0123/mcp"),
            "***, ***: no POST /x/***/mcp"
        );
    }

    #[test]
    fn headers_that_cannot_be_sent_are_refused_by_name() {
        for (name, value) in [("a b", "x"), ("X-Key", "hunter2\n"), ("Content-Length", "5")] {
            let error = target("https://a.example/", &[(name, value)]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnusableValue);
            assert!(error.to_string().contains(name), "{error}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
        assert!(target("not an address", &[]).is_err());
    }
}
