//! Validates the `Mcp-*` headers of a modern request against its body.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderName};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use trunkline::connection::header_arguments;
use trunkline::message::{Raw, RpcError};
use trunkline::protocol::Era;

use super::errors::{header_mismatch, invalid, require_modern};
use super::incoming::{IncomingRequest, claims_modern};

pub(crate) static VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
static METHOD: HeaderName = HeaderName::from_static("mcp-method");
static NAME: HeaderName = HeaderName::from_static("mcp-name");
const PARAMETER: &str = "mcp-param-";

/// Whether a request is of the modern era, by its body or its header.
pub(crate) fn is_modern(headers: &HeaderMap, incoming: &IncomingRequest) -> Result<bool, RpcError> {
    if claims_modern(incoming) {
        return Ok(true);
    }
    match text(headers, &VERSION)? {
        // `initialize` negotiates in the body, so the header is only a proposal.
        _ if &*incoming.method == "initialize" => Ok(false),
        // Versions before 2025-06-18 have no such header.
        None => Ok(false),
        Some(version) if Era::of_version(version) == Some(Era::Legacy) => Ok(false),
        Some(version) => require_modern(version).map(|()| true),
    }
}

/// Fails unless the headers match the body.
pub(crate) fn check(
    headers: &HeaderMap,
    version: &str,
    incoming: &IncomingRequest,
) -> Result<(), RpcError> {
    require(headers, &VERSION, version)?;
    require(headers, &METHOD, &incoming.method)?;
    if let Some(subject) = incoming.subject() {
        require(headers, &NAME, &subject)?;
    }
    // Last, so that a client whose header and body differ gets that error, not an unsupported
    // version.
    require_modern(version)
}

/// Fails unless the `Mcp-Param-*` headers of a call match the arguments that the tool marks with
/// `x-mcp-header`. A request without headers, as over stdio, passes.
pub(crate) fn check_param_headers(incoming: &IncomingRequest, tool: &Raw) -> Result<(), RpcError> {
    let Some(headers) = &incoming.headers else { return Ok(()) };
    let expected = header_arguments(tool, &incoming.params);
    if !expected.is_empty() && incoming.params.get_unique("arguments").is_err() {
        // A server could read another one than the headers repeat.
        return Err(invalid("`arguments` is there more than once"));
    }
    check_parameters(headers, &expected)
}

/// Fails unless exactly the expected arguments are repeated in headers.
fn check_parameters(
    headers: &HeaderMap,
    expected: &[(Box<str>, Option<Box<str>>)],
) -> Result<(), RpcError> {
    for (name, value) in expected {
        let name = format!("{PARAMETER}{}", name.to_ascii_lowercase());
        let name = HeaderName::try_from(&name)
            .map_err(|_| header_mismatch(&format!("{name} cannot be the name of a header")))?;
        match value {
            Some(value) => require(headers, &name, value)?,
            None if headers.contains_key(&name) => {
                return Err(header_mismatch(&format!(
                    "the header {name} is there, its argument is not"
                )));
            }
            None => {}
        }
    }
    Ok(())
}

/// Fails unless the header is present with the value `expected`.
fn require(headers: &HeaderMap, name: &HeaderName, expected: &str) -> Result<(), RpcError> {
    let Some(value) = text(headers, name)? else {
        return Err(header_mismatch(&format!(
            "the header {name} is missing; the body says {expected:?}"
        )));
    };
    // Only names and arguments may contain characters that a header cannot hold.
    let is_parameter = || name.as_str().starts_with(PARAMETER);
    let may_be_encoded = *name == NAME || is_parameter();
    let value = if may_be_encoded { decoded(value)? } else { Cow::Borrowed(value) };
    // Argument values may spell a number differently than the body; names may not.
    let is_number = || is_parameter() && are_same_number(&value, expected);
    if value == expected || is_number() {
        Ok(())
    } else {
        Err(header_mismatch(&format!("the header {name} says {value:?}, the body {expected:?}")))
    }
}

/// Whether two strings are the same integer in any notation.
fn are_same_number(one: &str, other: &str) -> bool {
    let whole = |text: &str| {
        let number: f64 = text.parse().ok()?;
        (number.fract() == 0.0 && text.bytes().all(|it| b"0123456789+-.eE".contains(&it)))
            .then_some(number)
    };
    whole(one).is_some_and(|number| whole(other) == Some(number))
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, RpcError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    // An intermediary may have read the other value.
    if values.next().is_some() {
        return Err(header_mismatch(&format!("the header {name} is there more than once")));
    }
    let text = value.to_str().map(str::trim);
    text.map(Some).map_err(|_| header_mismatch(&format!("the header {name} is not visible ASCII")))
}

/// Decodes `=?base64?…?=`, the form of a value that a header cannot hold as is.
fn decoded(value: &str) -> Result<Cow<'_, str>, RpcError> {
    let Some(encoded) = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="))
    else {
        return Ok(Cow::Borrowed(value));
    };
    let bytes = STANDARD.decode(encoded).ok();
    let decoded = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    decoded
        .map(Cow::Owned)
        .ok_or_else(|| header_mismatch(&format!("{value:?} is not UTF-8 in base64")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded_only_between_exact_markers() {
        assert_eq!(decoded("=?base64?SGVsbG8sIOS4lueVjA==?=").unwrap(), "Hello, 世界");
        assert_eq!(decoded("add").unwrap(), "add");
        assert_eq!(decoded("=?BASE64?YWRk?=").unwrap(), "=?BASE64?YWRk?=");
        assert!(decoded("=?base64?not base64?=").is_err());
        assert!(decoded("=?base64?/w==?=").is_err());
    }

    #[test]
    fn whole_numbers_are_compared_as_numbers() {
        assert!(are_same_number("5", "5.0") && are_same_number("1e2", "100"));
        assert!(!are_same_number("5", "6") && !are_same_number("5.5", "5.5"));
        assert!(!are_same_number("inf", "inf") && !are_same_number("a", "a"));
    }

    #[test]
    fn names_are_not_compared_as_numbers() {
        let headers = [("mcp-name".parse().unwrap(), "5.0".parse().unwrap())].into_iter().collect();
        assert!(require(&headers, &NAME, "5.0").is_ok());
        assert!(require(&headers, &NAME, "5").is_err());
    }

    #[test]
    fn arguments_are_repeated_or_absent_in_both() {
        let mut headers = HeaderMap::new();
        headers.insert("mcp-param-region", "eu".parse().unwrap());
        let expected = |value: Option<&str>| [("Region".into(), value.map(Into::into))];
        assert!(check_parameters(&headers, &expected(Some("eu"))).is_ok());
        assert!(check_parameters(&headers, &expected(Some("us"))).is_err());
        assert!(check_parameters(&headers, &expected(None)).is_err());
        assert!(check_parameters(&HeaderMap::new(), &expected(None)).is_ok());
        assert!(check_parameters(&HeaderMap::new(), &expected(Some("eu"))).is_err());
        headers.append("mcp-param-region", "eu".parse().unwrap());
        assert!(check_parameters(&headers, &expected(Some("eu"))).is_err());
    }
}
