//! Errors for input that is not a JSON-RPC message.

use bytes::Bytes;
use trunkline::message::{Id, MAX_ID_BYTES, ParseError, Raw, RpcError};

use super::errors::{not_json, not_rpc, too_deep};

/// The error to respond with, and the request ID if it could be read.
pub(crate) fn parse_error(bytes: &Bytes, malformed: ParseError) -> (Option<Id>, RpcError) {
    match (Raw::read(bytes), malformed) {
        (Ok(raw), ParseError::NotRpc(id)) => (id, not_rpc(problem(&raw))),
        (Ok(_), ParseError::TooDeep(id)) => (id, too_deep()),
        (Ok(_), ParseError::NotJson) => (None, not_json("not JSON")),
        (Err(error), _) => (None, not_json(&error.to_string())),
    }
}

/// The reason why a value is not a JSON-RPC message.
fn problem(raw: &Raw) -> &'static str {
    if raw.text().starts_with('[') {
        return "batches are not supported: send one message at a time";
    }
    if !raw.is_object() {
        return "a message is a JSON object";
    }
    let [id, method] = raw.get_all(["id", "method"]);
    let members = raw.members();
    let is_double = |key: &str| members.iter().filter(|(name, _)| name == key).count() > 1;
    if ["id", "method", "params", "result", "error"].into_iter().any(is_double) {
        return "a duplicate member";
    }
    let is_string = |raw: &Raw| raw.as_str().is_some();
    let is_long = |raw: &Raw| raw.bytes().len() > MAX_ID_BYTES;
    match (method, id) {
        (None, _) => "`method` is missing",
        (Some(method), _) if is_long(&method) => "`method` is longer than 1024 bytes",
        (Some(_), Some(id)) if is_long(&id) => "`id` is longer than 1024 bytes",
        (Some(method), _) if !is_string(&method) => "`method` must be a string",
        (Some(_), Some(id)) if Id::from_raw(&id).is_none() => "`id` must be a string or an integer",
        (Some(_), _) => "it has a `method`, and a `result` or an `error` as well",
    }
}
