//! What the headers say must be what the body says.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderValue};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::demo::answer::tool_name;
use crate::demo::message::{Code, Failure, Request};
use crate::demo::protocol::{self, Era};

const VERSION: &str = "MCP-Protocol-Version";
const METHOD: &str = "Mcp-Method";
const NAME: &str = "Mcp-Name";

/// Decides what a request speaks, from its headers and its body.
pub(super) fn admit(headers: &HeaderMap, request: &Request) -> Result<Era, Failure> {
    if !is_modern(headers, request)? {
        return Ok(Era::Legacy);
    }
    let version = protocol::declared_version(request)?;
    require(headers, VERSION, version)?;
    require(headers, METHOD, &request.method)?;
    if let ("tools/call", Some(name)) = (&*request.method, tool_name(request)) {
        require(headers, NAME, name)?;
    }
    // Last, so that a client that contradicts itself is told so rather than sent to another version.
    protocol::require_supported(version)?;
    Ok(Era::Modern)
}

fn is_modern(headers: &HeaderMap, request: &Request) -> Result<bool, Failure> {
    if protocol::claims_modern(request) {
        return Ok(true);
    }
    match text(headers, VERSION)? {
        // The body negotiates, so whatever version the header holds is only a proposal.
        _ if &*request.method == "initialize" => Ok(false),
        // Versions before 2025-06-18 had no such header.
        None => Ok(false),
        Some(version) if protocol::is_legacy(version) => Ok(false),
        Some(version) => protocol::require_supported(version).map(|()| true),
    }
}

/// Fails unless the header is there and says `expected`.
fn require(headers: &HeaderMap, name: &str, expected: &str) -> Result<(), Failure> {
    let Some(value) = text(headers, name)? else {
        return Err(mismatch(format!("the header {name} is missing; the body says {expected:?}")));
    };
    // Only names may hold what a header cannot.
    let value = if name == NAME { decode(value)? } else { Cow::Borrowed(value) };
    if value == expected {
        Ok(())
    } else {
        Err(mismatch(format!("the header {name} says {value:?}, the body {expected:?}")))
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Failure> {
    let read = |value: &'a HeaderValue| {
        value.to_str().map_err(|_| mismatch(format!("the header {name} is not visible ASCII")))
    };
    headers.get(name).map(read).transpose()
}

/// Undoes `=?base64?…?=`, the form of a value that a header cannot hold as it is.
fn decode(value: &str) -> Result<Cow<'_, str>, Failure> {
    let Some(encoded) = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="))
    else {
        return Ok(Cow::Borrowed(value));
    };
    let bytes = STANDARD.decode(encoded).ok();
    let decoded = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.map(Cow::Owned).ok_or_else(|| mismatch(format!("{value:?} is not UTF-8 in base64")))
}

fn mismatch(message: String) -> Failure {
    Failure::new(Code::HeaderMismatch, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_decoded_only_between_exact_markers() {
        assert_eq!(decode("=?base64?SGVsbG8sIOS4lueVjA==?=").unwrap(), "Hello, 世界");
        assert_eq!(decode("add").unwrap(), "add");
        assert_eq!(decode("=?BASE64?YWRk?=").unwrap(), "=?BASE64?YWRk?=");
        assert!(decode("=?base64?not base64?=").is_err());
        assert!(decode("=?base64?/w==?=").is_err());
    }
}
