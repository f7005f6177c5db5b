//! Incremental decoder for server-sent events.
//!
//! Decoder crates buffer whole events. This one limits their bytes while they arrive, keeps the readable
//! part of a message over the limit, passes data on without a copy, and commits an event ID only with
//! its event, so that a resumed stream repeats an event that was cut off.
//!
//! It does not use `LineBuffer`: a line is only a part of an event, and may end in a lone CR.

use std::mem;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use memchr::{memchr, memchr2};

use crate::message::Response;
use crate::transport::truncation::{MessageTruncator, TruncatedMessage};

/// Limit on the bytes of an event ID: it is returned in a header, and servers limit those. For the
/// same reason it must not contain control characters.
const MAX_ID_BYTES: usize = 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// An event with data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// The event type; empty if it has none.
    pub(crate) name: Bytes,
    pub(crate) data: Bytes,
    /// Bytes that were removed from a message that was too long.
    pub(crate) missing: usize,
}

impl SseEvent {
    /// The response in it, if its result was truncated.
    pub(crate) fn short_answer(self) -> Option<Response> {
        TruncatedMessage { line: self.data, missing: self.missing }.answer()
    }

    /// Whether its data is a message. Other events, such as `ping`, are ignored.
    pub(crate) fn is_message(&self) -> bool {
        self.name.is_empty() || self.name == "message"
    }
}

/// An event exceeds the size limit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EventTooLarge;

/// Decodes bytes into events. The last event ID and the `retry` delay outlive a connection; see
/// [`restart`](Self::restart).
#[derive(Debug)]
pub(crate) struct SseDecoder {
    limit: usize,
    /// Received bytes that have not been decoded.
    buffer: BytesMut,
    /// Length of the part of the buffer that contains no line end.
    searched: usize,
    /// The last line ended in CR: a following LF belongs to the same line end.
    is_after_return: bool,
    is_first_line: bool,
    name: Bytes,
    data: Option<Bytes>,
    /// Truncates the data of an event that exceeds the limit.
    truncator: Option<MessageTruncator>,
    /// Whether the current line goes to the truncator.
    is_in_long_line: bool,
    /// The ID of the current event. It takes effect once the event is complete: otherwise an event
    /// that broke off would never be sent again.
    pending_id: Option<Bytes>,
    last_id: Bytes,
    retry: Option<Duration>,
}

impl SseDecoder {
    /// Decodes events of up to `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            buffer: BytesMut::new(),
            searched: 0,
            is_after_return: false,
            is_first_line: true,
            name: Bytes::new(),
            data: None,
            truncator: None,
            is_in_long_line: false,
            pending_id: None,
            last_id: Bytes::new(),
            retry: None,
        }
    }

    /// Adds received bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete event.
    pub(crate) fn next(&mut self) -> Result<Option<SseEvent>, EventTooLarge> {
        loop {
            if self.is_in_long_line && !self.end_long_line()? {
                return Ok(None);
            }
            let Some(line) = self.take_line()? else { return Ok(None) };
            if let Some(event) = self.read_line(&line)? {
                return Ok(Some(event));
            }
        }
    }

    /// Whether the current event is incomplete and exceeds the limit.
    pub(crate) fn is_shortening(&self) -> bool {
        self.truncator.is_some()
    }

    /// Discards an incomplete event, for a new connection.
    pub(crate) fn restart(&mut self) {
        let fresh = Self::new(self.limit);
        let old = mem::replace(self, fresh);
        self.last_id = old.last_id;
        self.retry = old.retry;
    }

    /// The ID of the last event that has one.
    pub(crate) fn last_id(&self) -> Option<&Bytes> {
        (!self.last_id.is_empty()).then_some(&self.last_id)
    }

    /// The delay that the server requests before a reconnect.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    fn take_line(&mut self) -> Result<Option<Bytes>, EventTooLarge> {
        if !self.buffer.is_empty() && mem::take(&mut self.is_after_return) {
            let skipped = usize::from(self.buffer[0] == b'\n');
            self.buffer.advance(skipped);
        }
        let Some(offset) = memchr2(b'\n', b'\r', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            if self.within_limit(self.searched).is_err() {
                self.begin_long_line()?;
            }
            return Ok(None);
        };
        let mut line = self.buffer.split_to(self.searched + offset).freeze();
        self.searched = 0;
        self.is_after_return = self.buffer.get_u8() == b'\r';
        if mem::take(&mut self.is_first_line) && line.starts_with(BYTE_ORDER_MARK) {
            line.advance(BYTE_ORDER_MARK.len());
        }
        Ok(Some(line))
    }

    fn within_limit(&self, added: usize) -> Result<(), EventTooLarge> {
        let held = self.data.as_ref().map_or(0, Bytes::len);
        if held + added > self.limit { Err(EventTooLarge) } else { Ok(()) }
    }

    fn read_line(&mut self, line: &Bytes) -> Result<Option<SseEvent>, EventTooLarge> {
        if line.is_empty() {
            return self.finish_event();
        }
        let colon = memchr(b':', line).unwrap_or(line.len());
        let mut value = line.slice((colon + 1).min(line.len())..);
        if value.starts_with(b" ") {
            value.advance(1);
        }
        match &line[..colon] {
            b"data" => self.add_data(value)?,
            b"event" => self.name = value,
            b"id" => self.set_id(&value),
            b"retry" => self.set_retry(&value),
            _ => {}
        }
        Ok(None)
    }

    /// Passes a line of data that is too long to the truncator, after all data before it.
    fn begin_long_line(&mut self) -> Result<(), EventTooLarge> {
        let line = self.buffer.split().freeze();
        self.searched = 0;
        let mut value = match line.strip_prefix(b"data:") {
            Some(value) => line.slice_ref(value),
            None => return Err(EventTooLarge),
        };
        if value.starts_with(b" ") {
            value.advance(1);
        }
        self.shorten(&value)?;
        self.is_in_long_line = true;
        Ok(())
    }

    /// Continues such a line. Returns whether it is complete.
    fn end_long_line(&mut self) -> Result<bool, EventTooLarge> {
        let end = memchr2(b'\n', b'\r', &self.buffer);
        let part = self.buffer.split_to(end.unwrap_or(self.buffer.len()));
        if let Some(truncator) = &mut self.truncator {
            truncator.push(&part);
            if truncator.is_broken() {
                return Err(EventTooLarge);
            }
        }
        if end.is_some() {
            self.is_after_return = self.buffer.get_u8() == b'\r';
            self.is_in_long_line = false;
        }
        Ok(end.is_some())
    }

    /// Passes data to the truncator of this event.
    fn shorten(&mut self, value: &[u8]) -> Result<(), EventTooLarge> {
        let limit = self.limit;
        let is_first = self.truncator.is_none() && self.data.is_none();
        let truncator = self.truncator.get_or_insert_with(|| MessageTruncator::new(limit));
        if let Some(before) = self.data.take() {
            truncator.push(&before);
        }
        if !is_first {
            truncator.push(b"\n");
        }
        truncator.push(value);
        if truncator.is_broken() { Err(EventTooLarge) } else { Ok(()) }
    }

    fn add_data(&mut self, value: Bytes) -> Result<(), EventTooLarge> {
        if self.is_shortening() || self.within_limit(value.len()).is_err() {
            return self.shorten(&value);
        }
        self.data = Some(match self.data.take() {
            // Nearly every message is one line, which is not copied.
            None => value,
            Some(before) => {
                let mut joined = BytesMut::from(before);
                joined.extend_from_slice(b"\n");
                joined.extend_from_slice(&value);
                joined.freeze()
            }
        });
        Ok(())
    }

    fn set_id(&mut self, value: &Bytes) {
        if value.len() <= MAX_ID_BYTES && !value.iter().any(u8::is_ascii_control) {
            self.pending_id = Some(Bytes::copy_from_slice(value));
        }
    }

    fn set_retry(&mut self, value: &[u8]) {
        let digits = value.iter().all(u8::is_ascii_digit).then_some(value);
        let milliseconds = digits.and_then(|digits| str::from_utf8(digits).ok()?.parse().ok());
        self.retry = milliseconds.map(Duration::from_millis).or(self.retry);
    }

    fn finish_event(&mut self) -> Result<Option<SseEvent>, EventTooLarge> {
        if let Some(id) = self.pending_id.take() {
            self.last_id = id;
        }
        let name = mem::take(&mut self.name);
        if let Some(truncator) = self.truncator.take() {
            let TruncatedMessage { line: data, missing } =
                truncator.finish().ok_or(EventTooLarge)?;
            return Ok(Some(SseEvent { name, data, missing }));
        }
        let data = self.data.take().filter(|data| !data.is_empty());
        Ok(data.map(|data| SseEvent { name, data, missing: 0 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(decoder: &mut SseDecoder) -> Vec<(String, String)> {
        let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).unwrap();
        let mut events = Vec::new();
        while let Some(event) = decoder.next().unwrap() {
            events.push((text(&event.name), text(&event.data)));
        }
        events
    }

    fn decode(stream: &str) -> Vec<(String, String)> {
        let mut decoder = SseDecoder::new(1000);
        decoder.push(stream.as_bytes());
        all(&mut decoder)
    }

    fn event(name: &str, data: &str) -> (String, String) {
        (name.to_owned(), data.to_owned())
    }

    #[test]
    fn every_kind_of_line_end_ends_a_line() {
        for end in ["\n", "\r\n", "\r"] {
            let stream = "event: a\ndata: 1\ndata: 2\n\ndata:3\n\n".replace('\n', end);
            assert_eq!(decode(&stream), [event("a", "1\n2"), event("", "3")], "{end:?}");
        }
    }

    #[test]
    fn it_does_not_matter_where_a_stream_is_cut() {
        let stream = "\u{feff}: hello\r\nid: 1\r\nevent: message\r\ndata: {\"a\":\r\ndata: 1}\r\n\
                      \r\nretry: 50\rid: 2\rdata: é\r\rdata\n\n: end\n\ndata: x\n\n";
        let whole = decode(stream);
        let expected = [event("message", "{\"a\":\n1}"), event("", "é"), event("", "x")];
        assert_eq!(whole, expected);
        for cut in 0..=stream.len() {
            let mut decoder = SseDecoder::new(1000);
            let mut events = Vec::new();
            for part in [&stream.as_bytes()[..cut], &stream.as_bytes()[cut..]] {
                decoder.push(part);
                events.extend(all(&mut decoder));
            }
            assert_eq!(events, expected, "cut at {cut}");
            assert_eq!(decoder.last_id().unwrap(), "2");
            assert_eq!(decoder.retry(), Some(Duration::from_millis(50)));
        }
    }

    #[test]
    fn a_stream_may_come_byte_by_byte() {
        let mut decoder = SseDecoder::new(1000);
        let mut events = Vec::new();
        for byte in b"data: a\r\n\r\ndata: b\r\n\r\n" {
            decoder.push(&[*byte]);
            events.extend(all(&mut decoder));
        }
        assert_eq!(events, [event("", "a"), event("", "b")]);
    }

    #[test]
    fn one_space_after_the_colon_is_not_part_of_the_value() {
        assert_eq!(decode("data:  a \n\n"), [event("", " a ")]);
        assert_eq!(decode("data:a\n\n"), [event("", "a")]);
        assert_eq!(decode("datax: a\ndata\n\n"), []);
    }

    #[test]
    fn an_id_counts_once_its_event_is_complete() {
        let mut decoder = SseDecoder::new(1000);
        decoder.push(b"id: 1\ndata:\n\nid: 2\ndata: half");
        assert_eq!(all(&mut decoder), [], "an event without data only carries an id");
        assert_eq!(decoder.last_id().unwrap(), "1");
        decoder.restart();
        assert_eq!(decoder.last_id().unwrap(), "1");
        decoder.push(b"data: again\n\n");
        assert_eq!(all(&mut decoder), [event("", "again")]);
        decoder.push(b"id\n\n");
        assert_eq!((all(&mut decoder), decoder.last_id()), (vec![], None), "an empty id resets");
    }

    #[test]
    fn ids_and_delays_that_cannot_be_used_are_ignored() {
        let mut decoder = SseDecoder::new(10_000);
        decoder.push(
            format!("id: 1\nid: {}\nid: a\0b\nid: a\tb\nretry: 5\n", "x".repeat(2000)).as_bytes(),
        );
        decoder.push(b"retry: -1\nretry: soon\nretry: 99999999999999999999999\nretry:\n\n");
        assert_eq!(all(&mut decoder), []);
        assert_eq!(decoder.last_id().unwrap(), "1");
        assert_eq!(decoder.retry(), Some(Duration::from_millis(5)));
    }

    #[test]
    fn an_event_that_is_too_large_is_noticed_before_it_is_complete() {
        let mut decoder = SseDecoder::new(20);
        decoder.push(b"data: 12345678901234567890");
        assert_eq!(decoder.next(), Err(EventTooLarge));
        let mut decoder = SseDecoder::new(20);
        decoder.push("data: 123456\n".repeat(4).as_bytes());
        assert_eq!(decoder.next(), Err(EventTooLarge));
    }
}
