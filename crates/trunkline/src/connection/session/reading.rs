//! Lines that are no messages: what can still be read from them.

use bytes::Bytes;

use crate::message::{Malformed, Message};

/// The request that a line seems to answer, and why it does not.
pub(super) fn unreadable(line: &Bytes, malformed: Malformed) -> Option<(u64, &'static str)> {
    let (id, problem) = match malformed {
        Malformed::NotRpc(id) => (id?, "the answer is not a JSON-RPC message"),
        Malformed::TooDeep(id) => (id?, "the answer is nested deeper than 512 levels"),
        Malformed::NotJson => (Message::garbled_answer(line)?, "the answer is not UTF-8"),
    };
    Some((id.as_number()?, problem))
}

/// What may be a message on a line that begins with something else: a program wrote half a line
/// before it spoke.
pub(super) fn after_noise(line: &Bytes) -> Option<Bytes> {
    let start = memchr::memchr(b'{', line).filter(|start| *start > 0)?;
    Some(line.slice(start..))
}
