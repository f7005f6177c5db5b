//! Access to the control API and the page: the owner alone, by a token or by the session of a browser.
//!
//! The local machine is no reason to let anyone in: other users share it, and every page that the user visits can
//! send requests to it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, Method, Uri};
use trunkline_gateway::{check_host_and_origin, digest_of, new_token};

/// How long a login link can be used.
pub(crate) const PAGE_LINK_LIFETIME: Duration = Duration::from_secs(10 * 60);

/// How long a session lasts without requests.
const SESSION_IDLE: Duration = Duration::from_secs(12 * 60 * 60);

/// Links and sessions that are kept; the oldest are forgotten.
const MAX_CREDENTIALS: usize = 64;

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// `Host` or `Origin` names another machine.
    ForeignHost(&'static str),
    /// There is neither a valid token nor a session.
    NoLogin,
    /// A page of another origin sent it with the session of the user.
    CrossSite,
}

/// The token of the owner, login links and sessions.
pub(crate) struct ControlAccess {
    /// The digest of the token.
    token: String,
    /// Names of hosts beside those of the local machine.
    hosts: Vec<String>,
    /// The name of the cookie. Cookies do not depend on the port, so each process has another.
    cookie: String,
    links: Mutex<Vec<Credential>>,
    sessions: Mutex<Vec<Credential>>,
}

/// The digest of a secret, and when it was used last.
struct Credential {
    digest: String,
    used: Instant,
}

impl ControlAccess {
    pub(crate) fn new(token: &str, hosts: Vec<String>) -> Self {
        let id: String =
            digest_of(&new_token()).chars().filter(char::is_ascii_alphanumeric).collect();
        let id = id.get(id.len().saturating_sub(8)..).unwrap_or_default();
        Self {
            token: digest_of(token),
            hosts,
            cookie: format!("trunkline-{id}"),
            links: Mutex::default(),
            sessions: Mutex::default(),
        }
    }

    /// A secret that opens one session.
    pub(crate) fn new_link(&self) -> String {
        add(&self.links, PAGE_LINK_LIFETIME)
    }

    /// Exchanges the secret of a link for the cookie of a session; `None` if it is unknown, was used, or is too
    /// old.
    pub(crate) fn open_session(&self, link: &str) -> Option<String> {
        let digest = digest_of(link);
        let mut links = kept(&self.links, PAGE_LINK_LIFETIME);
        let index = links.iter().position(|it| it.digest == digest)?;
        links.remove(index);
        drop(links);
        let secret = add(&self.sessions, SESSION_IDLE);
        Some(format!("{}={secret}; HttpOnly; SameSite=Strict; Path=/", self.cookie))
    }

    /// Checks a request.
    pub(crate) fn check(
        &self,
        method: &Method,
        headers: &HeaderMap,
        address: &Uri,
    ) -> Result<(), Refusal> {
        self.check_host(headers, address)?;
        if let Some(token) = bearer(headers) {
            return if digest_of(token) == self.token { Ok(()) } else { Err(Refusal::NoLogin) };
        }
        if !self.has_session(headers) {
            return Err(Refusal::NoLogin);
        }
        let is_read = matches!(*method, Method::GET | Method::HEAD);
        if is_read || is_same_origin(headers) { Ok(()) } else { Err(Refusal::CrossSite) }
    }

    /// Checks against DNS rebinding.
    pub(crate) fn check_host(&self, headers: &HeaderMap, address: &Uri) -> Result<(), Refusal> {
        check_host_and_origin((headers, address), &self.hosts, &[]).map_err(Refusal::ForeignHost)
    }

    fn has_session(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = cookies.flat_map(|value| value.split(';')).filter_map(|it| it.split_once('='));
        // Another program on this machine may have set a cookie with this name for another path.
        let secrets = pairs.filter(|(name, _)| name.trim() == self.cookie).take(MAX_CREDENTIALS);
        let digests: Vec<_> = secrets.map(|(_, secret)| digest_of(secret.trim())).collect();
        let mut sessions = kept(&self.sessions, SESSION_IDLE);
        match sessions.iter_mut().find(|it| digests.contains(&it.digest)) {
            Some(session) => {
                session.used = Instant::now();
                true
            }
            None => false,
        }
    }
}

/// Whether a page of this origin sent the request. A page at another port of this machine is the same site, and the
/// browser sends the cookie with its requests.
fn is_same_origin(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    match text("sec-fetch-site") {
        Some(site) => site == "same-origin",
        // Older browsers send the origin with every request that changes something.
        None => {
            let host = text(HOST.as_str()).unwrap_or_default();
            let origin = text(ORIGIN.as_str()).unwrap_or_default();
            let origin = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            !host.is_empty() && origin == Some(host)
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// Adds a new secret.
fn add(list: &Mutex<Vec<Credential>>, lifetime: Duration) -> String {
    let secret = new_token();
    let mut list = kept(list, lifetime);
    if list.len() >= MAX_CREDENTIALS {
        list.remove(0);
    }
    list.push(Credential { digest: digest_of(&secret), used: Instant::now() });
    secret
}

/// The list without expired entries.
fn kept(list: &Mutex<Vec<Credential>>, lifetime: Duration) -> MutexGuard<'_, Vec<Credential>> {
    let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
    list.retain(|it| it.used.elapsed() < lifetime);
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let own = [("host", "127.0.0.1:7420")];
        let all = own.iter().chain(pairs);
        all.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn check(
        access: &ControlAccess,
        method: &Method,
        pairs: &[(&'static str, &str)],
    ) -> Result<(), Refusal> {
        access.check(method, &headers(pairs), &"/api/v1/servers".parse().unwrap())
    }

    #[test]
    fn the_token_opens_everything_and_nothing_else_does() {
        let access = ControlAccess::new("secret", Vec::new());
        assert_eq!(check(&access, &Method::POST, &[("authorization", "Bearer secret")]), Ok(()));
        for pairs in [vec![], vec![("authorization", "Bearer other")], vec![("cookie", "a=b")]] {
            assert_eq!(check(&access, &Method::GET, &pairs), Err(Refusal::NoLogin));
        }
        let foreign =
            headers(&[("origin", "https://example.com"), ("authorization", "Bearer secret")]);
        let refused = access.check(&Method::GET, &foreign, &"/".parse().unwrap());
        assert!(matches!(refused, Err(Refusal::ForeignHost(_))));
    }

    #[test]
    fn a_link_opens_one_session() {
        let access = ControlAccess::new("secret", Vec::new());
        let link = access.new_link();
        let cookie = access.open_session(&link).unwrap();
        assert!(cookie.ends_with("; HttpOnly; SameSite=Strict; Path=/"), "{cookie}");
        assert_eq!(access.open_session(&link), None);
        assert_eq!(access.open_session(""), None);
        let (cookie, _) = cookie.split_once(';').unwrap();
        let own = ("cookie", cookie);
        assert_eq!(check(&access, &Method::GET, &[own]), Ok(()));
        let other = ControlAccess::new("secret", Vec::new());
        assert_eq!(check(&other, &Method::GET, &[own]), Err(Refusal::NoLogin));
    }

    /// A page of another program on this machine is the same site.
    #[test]
    fn a_page_of_another_origin_cannot_change_anything() {
        let access = ControlAccess::new("secret", Vec::new());
        let cookie = access.open_session(&access.new_link()).unwrap();
        let own = ("cookie", cookie.split(';').next().unwrap());
        let post = |pairs: &[(&'static str, &str)]| {
            check(&access, &Method::POST, &[&[own], pairs].concat())
        };
        assert_eq!(post(&[("sec-fetch-site", "same-origin")]), Ok(()));
        assert_eq!(post(&[("origin", "http://127.0.0.1:7420")]), Ok(()));
        for pairs in [
            vec![],
            vec![("sec-fetch-site", "same-site")],
            vec![("sec-fetch-site", "cross-site")],
            vec![("sec-fetch-site", "none")],
            vec![("origin", "http://127.0.0.1:3000")],
            vec![("origin", "http://127.0.0.1:7420"), ("sec-fetch-site", "same-site")],
        ] {
            assert_eq!(post(&pairs), Err(Refusal::CrossSite), "{pairs:?}");
        }
    }
}
