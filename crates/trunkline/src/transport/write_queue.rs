//! Messages that wait to be written to a process, in order and within limits.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use bytes::{Buf as _, Bytes};

use crate::transport::{MAX_MESSAGE_BYTES, MessageKind, OutboundMessage};

/// Limit on queued responses to server requests. Further ones to a server that does not read are
/// dropped.
const MAX_RESPONSES: usize = 1024;

/// Queued bytes above which no request is accepted. A working server reads its input.
pub(super) const MAX_BYTES: usize = 64 * 1024 * 1024;

/// Limit on queued bytes, including responses and notifications, which cannot be deferred: one
/// message more. A server that exceeds it does not read.
const MAX_BYTES_OF_ALL: usize = MAX_BYTES + MAX_MESSAGE_BYTES;

/// Slices per write: two for each message, its line and the line break.
const WRITTEN_AT_ONCE: usize = 64;

/// A queued message.
struct QueuedMessage {
    /// The unwritten part of the line; the line break is always unwritten.
    line: Bytes,
    purpose: QueuedKind,
    is_begun: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum QueuedKind {
    Request(u64),
    Response,
    Notification,
}

/// Queue of messages to a process.
#[derive(Default)]
pub(super) struct WriteQueue {
    waiting: VecDeque<QueuedMessage>,
    bytes: usize,
    responses: usize,
    /// Whether a message was rejected because of the byte limit.
    has_overflowed: bool,
}

impl WriteQueue {
    /// Queues a message, unless it is a response to a server that does not read.
    pub(super) fn push(&mut self, message: OutboundMessage) {
        if self.bytes + message.line.len() > MAX_BYTES_OF_ALL {
            self.has_overflowed = true;
            return;
        }
        let purpose = match message.purpose {
            MessageKind::Request { id, .. } => QueuedKind::Request(id),
            MessageKind::Notification { .. } => QueuedKind::Notification,
            MessageKind::Response if self.responses >= MAX_RESPONSES => return,
            MessageKind::Response => QueuedKind::Response,
        };
        self.responses += usize::from(purpose == QueuedKind::Response);
        self.bytes += message.line.len();
        self.waiting.push_back(QueuedMessage { line: message.line, purpose, is_begun: false });
    }

    /// Removes a request, if no part of it has been written. Returns whether it did.
    pub(super) fn remove(&mut self, id: u64) -> bool {
        let is_it = |it: &QueuedMessage| it.purpose == QueuedKind::Request(id) && !it.is_begun;
        let Some(place) = self.waiting.iter().position(is_it) else { return false };
        if let Some(taken) = self.waiting.remove(place) {
            self.bytes -= taken.line.len();
        }
        true
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether no further request should be accepted.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= MAX_BYTES
    }

    /// Whether a message was rejected: the server does not read, and has to be ended.
    pub(super) fn has_overflowed(&self) -> bool {
        self.has_overflowed
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The slices of the next write.
    pub(super) fn slices(&self) -> ([IoSlice<'_>; WRITTEN_AT_ONCE], usize) {
        let mut slices = [IoSlice::new(&[]); WRITTEN_AT_ONCE];
        let mut count = 0;
        for waiting in self.waiting.iter().take(WRITTEN_AT_ONCE / 2) {
            slices[count] = IoSlice::new(&waiting.line);
            slices[count + 1] = IoSlice::new(b"\n");
            count += 2;
        }
        (slices, count)
    }

    /// Removes the bytes that were written.
    pub(super) fn advance(&mut self, mut written: usize) -> io::Result<()> {
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        while let Some(first) = self.waiting.front_mut() {
            if written <= first.line.len() {
                // The line break is written by the next write, if not by this one.
                self.bytes -= written;
                first.line.advance(written);
                first.is_begun |= written > 0;
                break;
            }
            written -= first.line.len() + 1;
            self.bytes -= first.line.len();
            self.responses -= usize::from(first.purpose == QueuedKind::Response);
            self.waiting.pop_front();
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A request with this line.
    pub(in crate::transport) fn request(id: u64, line: &'static str) -> OutboundMessage {
        let (method, name, parameters) = ("m".into(), None, Vec::new());
        let purpose = MessageKind::Request { id, method, name, parameters };
        OutboundMessage::new(Bytes::from_static(line.as_bytes()), purpose)
    }

    /// Writes everything, `at_once` bytes at a time.
    fn written(outbox: &mut WriteQueue, at_once: usize) -> String {
        let mut text = Vec::new();
        while !outbox.is_empty() {
            let (slices, count) = outbox.slices();
            let all: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.to_vec()).collect();
            let part = &all[..at_once.min(all.len())];
            text.extend_from_slice(part);
            let length = part.len();
            outbox.advance(length).unwrap();
        }
        assert_eq!((outbox.bytes, outbox.responses), (0, 0));
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn lines_come_whole_and_in_order_however_they_are_cut() {
        for at_once in 1..12 {
            let mut outbox = WriteQueue::default();
            for (id, line) in [(1, "one"), (2, ""), (3, "three")] {
                outbox.push(request(id, line));
            }
            assert_eq!(written(&mut outbox, at_once), "one\n\nthree\n", "{at_once}");
        }
    }

    #[test]
    fn a_request_is_taken_back_unless_it_is_begun() {
        let mut outbox = WriteQueue::default();
        outbox.push(request(1, "one"));
        outbox.push(request(2, "two"));
        outbox.advance(1).unwrap();
        assert!(!outbox.remove(1));
        assert!(outbox.remove(2));
        assert!(!outbox.remove(2));
        assert_eq!(written(&mut outbox, 99), "ne\n");
    }

    #[test]
    fn a_server_that_asks_and_does_not_read_gets_no_more_answers() {
        let mut outbox = WriteQueue::default();
        for _ in 0..2 * MAX_RESPONSES {
            let line = Bytes::from_static(b"pong");
            outbox.push(OutboundMessage::new(line, MessageKind::Response));
        }
        assert_eq!(written(&mut outbox, 4096).lines().count(), MAX_RESPONSES);
    }

    #[test]
    fn no_more_bytes_wait_than_may() {
        let mut outbox = WriteQueue::default();
        let line = Bytes::from(vec![b'x'; MAX_MESSAGE_BYTES]);
        for number in 0..20 {
            let purpose = match number % 2 {
                0 => MessageKind::Response,
                _ => MessageKind::Notification { method: "notifications/cancelled".into() },
            };
            outbox.push(OutboundMessage::new(line.clone(), purpose));
            assert!(outbox.bytes <= MAX_BYTES_OF_ALL);
        }
        assert!(outbox.is_full() && outbox.has_overflowed());
    }
}
