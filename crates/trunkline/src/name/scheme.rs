//! Parses the scheme of a URI.

/// Whether a scheme is `http` or `https`. Clients may fetch such a URI themselves, and a link with
/// it need not refer to a resource of a server.
pub(crate) fn is_web(scheme: &str) -> bool {
    matches!(scheme, "http" | "https")
}

/// The scheme of a URI, in lower case, if it has one (RFC 3986).
pub(crate) fn scheme(uri: &str) -> Option<String> {
    let (scheme, _) = uri.split_once(':')?;
    let is_scheme = scheme.starts_with(|it: char| it.is_ascii_alphabetic())
        && scheme.chars().all(|it| it.is_ascii_alphanumeric() || "+-.".contains(it));
    is_scheme.then(|| scheme.to_ascii_lowercase())
}
