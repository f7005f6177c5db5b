//! JSON-RPC error codes, under the names of the specifications.

/// The text is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The JSON is not a valid request.
pub const INVALID_REQUEST: i64 = -32600;
/// The method does not exist.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters are invalid, or name something that does not exist.
pub const INVALID_PARAMS: i64 = -32602;
/// An internal error.
pub const INTERNAL_ERROR: i64 = -32603;
/// A header contradicts the body.
pub const HEADER_MISMATCH: i64 = -32020;
/// The client did not declare a capability that the request needs.
pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
/// The protocol version is not supported.
pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
/// The user has to visit a URL before the request can succeed (2025-11-25).
pub const URL_ELICITATION_REQUIRED: i64 = -32042;
