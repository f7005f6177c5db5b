//! Validates `Host` and `Origin` against DNS rebinding: by default, only names of the local machine
//! and pages from it are allowed.

use std::net::{IpAddr, SocketAddrV4};

use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri};

/// Rejects a request if its `Host` is neither the local machine nor one of `hosts`, or its `Origin`
/// is neither the local machine nor one of `origins`. Every header value and the request target
/// have to pass, because an intermediary may use another one than we do.
///
/// # Errors
///
/// Returns the text of the response.
pub fn check(
    (headers, target): (&HeaderMap, &Uri),
    hosts: &[String],
    origins: &[String],
) -> Result<(), &'static str> {
    let mut named = headers.get_all(HOST).iter();
    let host = named.next().and_then(|value| value.to_str().ok());
    if named.next().is_some() || !host.is_some_and(|host| is_ours(host, hosts)) {
        return Err("the Host header must name this machine, or a host that is allowed\n");
    }
    if target.authority().is_some_and(|authority| !is_ours(authority.as_str(), hosts)) {
        return Err("the address asked for must name this machine, or a host that is allowed\n");
    }
    let mut named = headers.get_all(ORIGIN).iter();
    match named.all(|origin| is_known_origin(origin.to_str().unwrap_or_default(), origins)) {
        true => Ok(()),
        false => Err("the Origin header must name this machine, or an origin that is allowed\n"),
    }
}

fn is_ours(host: &str, hosts: &[String]) -> bool {
    // What most clients send, without taking the name apart.
    if host.parse().is_ok_and(|address: SocketAddrV4| address.ip().is_loopback()) {
        return true;
    }
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

/// Whether a host is the local machine.
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
            check((&headers, &"/mcp".parse().unwrap()), &hosts, &origins).is_ok()
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
            "[::1%1]:80",
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
        for others in ["example.com", "localhost"] {
            assert!(!is_let_in(&[("host", "localhost"), ("host", others)]), "{others}");
        }
    }

    #[test]
    fn absolute_request_target_must_name_this_host() {
        let hosts = ["tools.example:8443".into()];
        let headers = HeaderMap::from_iter([(HOST, "localhost".parse().unwrap())]);
        for (target, is_let_in) in [
            ("http://localhost/mcp", true),
            ("http://127.0.0.1:7420/mcp", true),
            ("http://tools.example:8443/mcp", true),
            ("http://example.com/mcp", false),
            ("http://localhost@example.com/mcp", false),
        ] {
            let found = check((&headers, &target.parse().unwrap()), &hosts, &[]);
            assert_eq!(found.is_ok(), is_let_in, "{target}");
        }
    }
}
