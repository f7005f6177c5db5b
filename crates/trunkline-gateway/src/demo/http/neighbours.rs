//! Only this machine may ask, and no web page of another: what keeps DNS rebinding out.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

pub(super) async fn admit(request: Request, next: Next) -> Response {
    match check(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) => (StatusCode::FORBIDDEN, problem).into_response(),
    }
}

fn check(headers: &HeaderMap) -> Result<(), &'static str> {
    let host = headers.get(HOST).and_then(|value| value.to_str().ok());
    if !host.is_some_and(is_local_host) {
        return Err("the Host header must name a loopback address\n");
    }
    match headers.get(ORIGIN).map(|value| value.to_str().unwrap_or_default()) {
        Some(origin) if !is_local_origin(origin) => {
            Err("the Origin header must name a loopback address, or be left out\n")
        }
        _ => Ok(()),
    }
}

fn is_local_host(host: &str) -> bool {
    host.parse().is_ok_and(|authority: Authority| is_loopback(authority.host()))
}

fn is_local_origin(origin: &str) -> bool {
    let Ok(origin) = origin.parse::<Uri>() else { return false };
    matches!(origin.scheme_str(), Some("http" | "https")) && origin.host().is_some_and(is_loopback)
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || address.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_hosts_are_local_whatever_their_port() {
        for host in
            ["localhost", "LOCALHOST:80", "127.0.0.1:8080", "127.9.9.9", "[::1]:80", "[::1]"]
        {
            assert!(is_local_host(host), "{host}");
        }
    }

    #[test]
    fn other_hosts_are_not_local() {
        for host in [
            "",
            "example.com",
            "localhost.example.com",
            "127.0.0.1.example.com",
            "10.0.0.1:80",
            "0.0.0.0",
            "a b",
        ] {
            assert!(!is_local_host(host), "{host}");
        }
    }

    #[test]
    fn only_web_pages_of_loopback_hosts_are_local() {
        assert!(is_local_origin("http://localhost:3000"));
        assert!(is_local_origin("https://[::1]"));
        for origin in [
            "null",
            "",
            "http://example.com",
            "localhost:3000",
            "file://localhost",
            "http://localhost@example.com",
        ] {
            assert!(!is_local_origin(origin), "{origin}");
        }
    }
}
