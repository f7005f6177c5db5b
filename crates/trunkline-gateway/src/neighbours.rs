//! Only this machine may ask, under its own name, and no web page of another: what keeps DNS
//! rebinding out. More can be allowed, one by one.

use std::net::IpAddr;

use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri};

/// Refuses a request under a name that is neither this machine's nor one of `hosts`, and one of a
/// page that is neither of this machine nor one of `origins`.
pub(crate) fn check(
    headers: &HeaderMap,
    hosts: &[String],
    origins: &[String],
) -> Result<(), &'static str> {
    let host = headers.get(HOST).and_then(|value| value.to_str().ok());
    if !host.is_some_and(|host| is_ours(host, hosts)) {
        return Err("the Host header must name this machine, or a host that is allowed\n");
    }
    let mut named = headers.get_all(ORIGIN).iter();
    match named.all(|origin| is_known_origin(origin.to_str().unwrap_or_default(), origins)) {
        true => Ok(()),
        false => Err("the Origin header must name this machine, or an origin that is allowed\n"),
    }
}

fn is_ours(host: &str, hosts: &[String]) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let is_named = |name: &String| {
        name.eq_ignore_ascii_case(authority.as_str()) || name.eq_ignore_ascii_case(authority.host())
    };
    is_loopback(authority.host()) || hosts.iter().any(is_named)
}

fn is_known_origin(origin: &str, origins: &[String]) -> bool {
    if origins.iter().any(|known| known.eq_ignore_ascii_case(origin)) {
        return true;
    }
    let Ok(origin) = origin.parse::<Uri>() else { return false };
    matches!(origin.scheme_str(), Some("http" | "https")) && origin.host().is_some_and(is_loopback)
}

/// Whether a host is this machine, seen from itself.
fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || address.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_and_origin_are_checked_each_by_itself() {
        let (hosts, origins) = (["tools.example:8443".into()], ["https://app.example".into()]);
        let is_let_in = |pairs: &[(&'static str, &str)]| {
            let pairs = pairs.iter().map(|(name, value)| (*name, value.parse().unwrap()));
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(name, value);
            }
            check(&headers, &hosts, &origins).is_ok()
        };
        for host in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:8080",
            "127.9.9.9",
            "[::1]:80",
            "[::1]",
            "tools.example:8443",
        ] {
            assert!(is_let_in(&[("host", host)]), "{host}");
        }
        for host in [
            "",
            "example.com",
            "localhost.example.com",
            "127.0.0.1.example.com",
            "10.0.0.1:80",
            "0.0.0.0",
            "a b",
        ] {
            assert!(!is_let_in(&[("host", host)]), "{host}");
        }
        assert!(!is_let_in(&[]));
        for origin in ["http://localhost:3000", "https://[::1]", "https://app.example"] {
            assert!(is_let_in(&[("host", "localhost"), ("origin", origin)]), "{origin}");
        }
        for origin in [
            "null",
            "",
            "http://example.com",
            "localhost:3000",
            "file://localhost",
            "http://localhost@example.com",
        ] {
            assert!(!is_let_in(&[("host", "localhost"), ("origin", origin)]), "{origin}");
        }
        let (own, other) = (("origin", "http://localhost"), ("origin", "http://example.com"));
        assert!(!is_let_in(&[("host", "localhost"), own, other]));
    }
}
