//! Messages that are not whole: what can still be read from them.

use bytes::Bytes;

use super::RequestOutcome;
use crate::error::{Error, ErrorKind};
use crate::message::{Message, ParseError, Raw, RpcError};

/// Whether the results of a method are cut to a bound, and so may be cut while they are read. A part of a
/// list, or of what a server says about itself, would pass for the whole.
pub(super) fn is_cuttable(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read")
}

/// An answer, unless a part of its result is missing that cannot be done without.
pub(super) fn whole_or_cuttable(
    outcome: Result<Raw, RpcError>,
    is_cuttable: bool,
) -> RequestOutcome {
    match outcome {
        Ok(result) if result.missing() > 0 && !is_cuttable => {
            let message = "the answer is longer than 16 MiB";
            Err(Error::new(ErrorKind::TooLarge, message).with_hint("ask for less at once"))
        }
        outcome => Ok(outcome),
    }
}

/// The request that a line seems to answer, and why it does not.
pub(super) fn unreadable(line: &Bytes, malformed: ParseError) -> Option<(u64, &'static str)> {
    let (id, problem) = match malformed {
        ParseError::NotRpc(id) => (id?, "the answer is not a JSON-RPC message"),
        ParseError::TooDeep(id) => (id?, "the answer is nested deeper than 512 levels"),
        ParseError::NotJson => (Message::partial_response(line)?, "the answer is not UTF-8"),
    };
    Some((id.as_number()?, problem))
}

/// What may be a message on a line that begins with something else: a program wrote half a line
/// before it spoke.
pub(super) fn after_noise(line: &Bytes) -> Option<Bytes> {
    let start = memchr::memchr(b'{', line).filter(|start| *start > 0)?;
    Some(line.slice(start..))
}
