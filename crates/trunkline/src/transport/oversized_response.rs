//! A line of a server that exceeds the limit: its readable part, and the request that it responds to.

use super::truncation::MessageTruncator;
use super::{InboundEvent, MAX_MESSAGE_BYTES};
use crate::error::{Error, ErrorKind};
use crate::message::{BufferedLine, OversizedLine, Response};

/// Bytes kept of either end of a line that is too long: its ID is near one of them.
const KEPT_BYTES: usize = 1024;

/// The rest of a line that exceeds the limit. It is probably a response, of which a part is useful.
pub(super) struct OversizedResponse {
    head: Vec<u8>,
    tail: Vec<u8>,
    truncator: MessageTruncator,
}

impl OversizedLine for OversizedResponse {
    fn new(limit: usize) -> Self {
        let truncator = MessageTruncator::new(limit);
        Self { head: Vec::new(), tail: Vec::new(), truncator }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.truncator.push(bytes);
        let room = KEPT_BYTES.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(KEPT_BYTES)..]);
        let excess = self.tail.len().saturating_sub(KEPT_BYTES);
        self.tail.drain(..excess);
    }
}

impl OversizedResponse {
    /// The response in the line, with a truncated result, if it is one.
    pub(super) fn answer(self) -> Option<Response> {
        self.truncator.finish()?.answer()
    }

    /// The ID of the request that the line responds to, as far as it can be determined: a numeric
    /// ID before the payload, or after it.
    pub(super) fn id(&self) -> Option<u64> {
        const KEY: &[u8] = b"\"id\":";
        let number = |text: &[u8]| {
            let text = text.trim_ascii_start();
            let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
            std::str::from_utf8(&text[..digits]).ok()?.parse().ok()
        };
        let payload = memchr::memmem::find(&self.head, b"\"result\"").unwrap_or(self.head.len());
        let before = memchr::memmem::find(&self.head[..payload], KEY);
        if let Some(at) = before {
            return number(&self.head[at + KEY.len()..]);
        }
        let after = memchr::memmem::rfind(&self.tail, KEY)?;
        number(&self.tail[after + KEY.len()..])
    }
}

/// The event of a line; `None` if it exceeds the limit and is no response.
pub(super) fn incoming(line: BufferedLine<OversizedResponse>) -> Option<InboundEvent> {
    match line {
        BufferedLine::Whole(line) => Some(InboundEvent::Message(line)),
        BufferedLine::TooLong(oversized) => {
            let megabytes = MAX_MESSAGE_BYTES / 1024 / 1024;
            let message = format!("the answer is longer than {megabytes} MiB");
            let error = Error::new(ErrorKind::TooLarge, message).with_hint("ask for less at once");
            let id = oversized.id();
            let lost = || id.map(|id| InboundEvent::RequestFailed { id, error });
            oversized.answer().map(InboundEvent::Response).or_else(lost)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{BufferedLine, LineBuffer};

    fn oversized(parts: &[&str], limit: usize) -> OversizedResponse {
        let mut buffer = LineBuffer::new(limit);
        let mut lines = Vec::new();
        for part in parts {
            buffer.room().extend_from_slice(part.as_bytes());
            lines.extend(std::iter::from_fn(|| buffer.next_line()));
        }
        match lines.pop() {
            Some(BufferedLine::TooLong(oversized)) => *oversized,
            _ => panic!("the line is not too long"),
        }
    }

    #[test]
    fn the_id_of_a_line_that_arrives_in_parts_is_found() {
        let mut parts = vec![r#"{"jsonrpc":"2.0","id":17,"result":""#];
        let filler = "x".repeat(500);
        parts.extend(std::iter::repeat_n(&*filler, 100));
        parts.push("\"}\n");
        assert_eq!(oversized(&parts, 1000).id(), Some(17));
    }

    #[test]
    fn the_id_of_a_long_line_is_found_at_either_end_and_not_inside() {
        let id = |text: &str| oversized(&[text, "\n"], 10).id();
        assert_eq!(id(r#"{"id": 3 ,"result":{"id":9}}"#), Some(3));
        assert_eq!(id(r#"{"result":{"x":"yyyyyyyyyyyy"},"id":4}"#), Some(4));
        assert_eq!(id(r#"{"method":"notifications/x","params":{}}"#), None);
    }
}
