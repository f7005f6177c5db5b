//! Redacts URLs for display: host and path remain, without user info and query values.

use super::credential::is_like_credential;
use super::{REFERENCE, is_plain};
use crate::config::secret::MASK;

/// A URL for display. Hides user info, query values, the fragment, and path segments that are not
/// plain names. `judged` is the text with references replaced, of the same length.
pub(super) fn shown(text: &str, judged: &str) -> String {
    let Some((scheme, rest)) = judged.split_once("://") else { return MASK.to_owned() };
    let is_scheme = |it: char| it.is_ascii_alphanumeric() || "+-.".contains(it);
    if scheme.is_empty() || !scheme.chars().all(is_scheme) {
        return MASK.to_owned();
    }
    let start = scheme.len() + "://".len();
    let place_start = start + user_length(rest);
    let place_end =
        judged[place_start..].find(['?', '#']).map_or(judged.len(), |at| place_start + at);
    let user = if place_start > start { "***@" } else { "" };
    let place = place(&text[place_start..place_end], &judged[place_start..place_end]);
    format!("{}{user}{place}{}", &text[..start], query(&judged[place_end..]))
}

/// The secret parts of a URL: user info, the password alone, and query values.
pub(super) fn secret_parts(text: &str) -> Vec<&str> {
    let Some((_, rest)) = text.split_once("://") else { return Vec::new() };
    let length = user_length(rest);
    let (user, rest) = (rest[..length].trim_end_matches('@'), &rest[length..]);
    let password = user.split_once(':').map(|(_, password)| password);
    let query = rest.split_once(['?', '#']).map_or("", |(_, query)| query);
    let values =
        query.split(['&', '#']).map(|it| it.split_once('=').map_or(it, |(_, value)| value));
    [user].into_iter().chain(password).chain(values).filter(|part| !part.is_empty()).collect()
}

/// Length of the user info, including its `@`. A password may contain a slash.
fn user_length(rest: &str) -> usize {
    let authority = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    if let Some(at) = rest[..authority].rfind('@') {
        return at + 1;
    }
    let before_slash = &rest[..authority];
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let has_password = !before_slash.starts_with('[')
        && before_slash.split_once(':').is_some_and(|(_, port)| !is_port(port));
    if has_password { rest.rfind('@').map_or(0, |at| at + 1) } else { 0 }
}

/// Host and path.
fn place(text: &str, judged: &str) -> String {
    let mut shown = String::new();
    let mut start = 0;
    for (index, segment) in judged.split_inclusive('/').enumerate() {
        let name = segment.trim_end_matches('/');
        let harmless = if index == 0 { is_host(name) } else { is_name(name) };
        let part = &text[start..start + segment.len()];
        shown += if harmless { part } else { MASK };
        if !harmless {
            shown += &segment[name.len()..];
        }
        start += segment.len();
    }
    shown
}

fn is_host(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() => (host, port),
        _ => (text, ""),
    };
    let in_host = |it: char| it.is_alphanumeric() || "-._[]:".contains(it);
    port.bytes().all(|byte| byte.is_ascii_digit() || byte == REFERENCE || byte == b']')
        && host.chars().all(in_host)
        && (text.starts_with('[') || !host.contains(':'))
}

fn is_name(text: &str) -> bool {
    let plain = |it: char| it.is_alphanumeric() || "-_.@~+:".contains(it);
    text.chars().all(plain) && !is_like_credential(text)
}

/// The query with names and without values, and with a masked fragment.
fn query(text: &str) -> String {
    let (query, fragment) = text.split_once('#').map_or((text, None), |(q, f)| (q, Some(f)));
    let pairs = query.trim_start_matches('?').split('&').map(|pair| match pair.split_once('=') {
        Some((name, "")) if is_plain(name) => format!("{name}="),
        Some((name, _)) if is_plain(name) => format!("{name}={MASK}"),
        _ => MASK.to_owned(),
    });
    let pairs = pairs.collect::<Vec<_>>().join("&");
    let query = if query.is_empty() { String::new() } else { format!("?{pairs}") };
    query + if fragment.is_some() { "#***" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::super::{RedactionInput, argument};

    #[test]
    fn masked_urls_keep_scheme_host_and_path() {
        for (text, shown) in [
            ("https://example.com/mcp", "https://example.com/mcp"),
            ("http://[::1]:80/mcp", "http://[::1]:80/mcp"),
            ("http://h:${PORT}/x", "http://h:${PORT}/x"),
            (
                "https://server.smithery.ai/@smithery-ai/x",
                "https://server.smithery.ai/@smithery-ai/x",
            ),
            ("https://me:pw@host/p?a=1&api_key=abc", "https://***@host/p?a=***&api_key=***"),
            ("https://${U}:pw@host/p", "https://***@host/p"),
            ("https://host/p#access_token=abc", "https://host/p#***"),
            ("https://host/p?abc", "https://host/p?***"),
            ("https://host/p&api_key=abc", "https://host/***"),
            ("https://host/p%3Fapi_key=abc", "https://host/***"),
            ("https://host/s/abcdefgh12345678/mcp", "https://host/s/***/mcp"),
            ("https://host/3f2b8c1e-5d4a-4e6f-9b7a-0c1d2e3f4a5b/x", "https://host/***/x"),
            ("postgres://u:a/b@host/db", "postgres://***@host/db"),
            ("http://me:pass", "http://***"),
            ("https://[::1]:pass/mcp", "https://***/mcp"),
            ("${BASE}/mcp", "${BASE}/mcp"),
        ] {
            assert_eq!(argument(&RedactionInput::of_text(text)), shown, "{text}");
        }
    }
}
