//! Codes of JSON-RPC errors, under the names the specifications give them.

/// The text is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The JSON is not a request.
pub const INVALID_REQUEST: i64 = -32600;
/// Nobody knows the method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters are wrong, or what they name does not exist.
pub const INVALID_PARAMS: i64 = -32602;
/// Something went wrong inside.
pub const INTERNAL_ERROR: i64 = -32603;
/// A header contradicts the body.
pub const HEADER_MISMATCH: i64 = -32020;
/// The client did not declare a capability that is needed.
pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
/// The protocol version is not spoken here.
pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
