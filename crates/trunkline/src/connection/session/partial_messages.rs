//! Recovers the usable part of truncated or malformed messages.

use bytes::Bytes;

use super::RequestOutcome;
use crate::error::{Error, ErrorKind};
use crate::message::{Message, ParseError, Raw, RpcError};

/// Whether results of a method may be truncated while they are read, because they are truncated to
/// a limit anyway. A partial list or server description would pass for a complete one.
pub(super) fn is_cuttable(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read")
}

/// Rejects a truncated result unless its method allows truncation.
pub(super) fn whole_or_cuttable(
    outcome: Result<Raw, RpcError>,
    is_cuttable: bool,
) -> RequestOutcome {
    match outcome {
        Ok(result) if result.missing() > 0 && !is_cuttable => {
            let message = "the answer is longer than 16 MiB";
            Err(Error::new(ErrorKind::TooLarge, message).with_hint("ask for less at once").into())
        }
        outcome => outcome.map_err(Into::into),
    }
}

/// The request that a malformed line seems to respond to, and the problem with the line.
pub(super) fn unreadable(line: &Bytes, malformed: ParseError) -> Option<(u64, &'static str)> {
    let (id, problem) = match malformed {
        ParseError::NotRpc(id) => (id?, "the answer is not a JSON-RPC message"),
        ParseError::TooDeep(id) => (id?, "the answer is nested deeper than 512 levels"),
        ParseError::NotJson => (Message::partial_response(line)?, "the answer is not UTF-8"),
    };
    Some((id.as_number()?, problem))
}

/// The part of a line that may be a message, after text that a program wrote without a line break.
pub(super) fn after_noise(line: &Bytes) -> Option<Bytes> {
    let start = memchr::memchr(b'{', line).filter(|start| *start > 0)?;
    Some(line.slice(start..))
}
