//! Matches the requests on a stream with their responses.

use std::collections::HashMap;

use bytes::Bytes;
use trunkline::message::{Id, Message, ParseError, Raw};

/// Text of an error response after a panic in the gateway.
const PANIC: &[u8] = b"because of a defect";

/// The number of requests per ID.
#[derive(Debug, Default)]
pub(super) struct Requests {
    counts: HashMap<Id, usize>,
    /// Whether the client cancelled a request, which needs no response then.
    takes_back: bool,
}

impl Requests {
    /// Collects the requests in lines of a client, as far as they can be parsed.
    pub(super) fn in_lines(lines: &[u8]) -> Self {
        let mut requests = Self::default();
        for line in lines.split(|byte| *byte == b'\n') {
            requests.add(line.trim_ascii());
        }
        requests
    }

    fn add(&mut self, message: &[u8]) {
        let id = match Message::read(&Bytes::copy_from_slice(message)) {
            Ok(Message::Request(request)) => Some(request.id),
            Ok(Message::Notification(notification)) => {
                self.takes_back |= &*notification.method == "notifications/cancelled";
                None
            }
            Ok(Message::Response(_)) | Err(ParseError::NotJson) => None,
            Err(ParseError::NotRpc(id) | ParseError::TooDeep(id)) => id,
        };
        if let Some(id) = id {
            *self.counts.entry(id.normalized()).or_default() += 1;
        }
    }

    /// Checks lines with the responses to these requests.
    pub(super) fn check(&self, lines: &[u8]) {
        let mut answered: HashMap<Id, usize> = HashMap::new();
        let mut lines = lines.split(|byte| *byte == b'\n').peekable();
        while let Some(line) = lines.next() {
            if lines.peek().is_none() {
                assert!(line.is_empty(), "the last line is not over: {}", shown(line));
                break;
            }
            if let Some(id) = response_id(line) {
                *answered.entry(id).or_default() += 1;
            }
        }
        for (id, count) in &answered {
            let asked = self.counts.get(id).copied().unwrap_or(0);
            assert!(*count <= asked, "{id:?} was answered {count} times and asked {asked} times");
        }
        for (id, asked) in &self.counts {
            let count = answered.get(id).copied().unwrap_or(0);
            assert!(count == *asked || self.takes_back, "{id:?}: {count} answers to {asked}");
        }
    }
}

/// The ID of a response, if the message is one and has an ID.
pub(super) fn response_id(message: &[u8]) -> Option<Id> {
    assert!(memchr::memmem::find(message, PANIC).is_none(), "a panic: {}", shown(message));
    let raw = Raw::read(&Bytes::copy_from_slice(message));
    let raw = raw.unwrap_or_else(|_| panic!("not JSON: {}", shown(message)));
    assert_eq!(raw.get("jsonrpc").as_ref().and_then(Raw::as_str).as_deref(), Some("2.0"), "{raw}");
    let is_response = raw.get("result").is_some() || raw.get("error").is_some();
    assert!(is_response || raw.get("method").is_some(), "no message: {raw}");
    let id = raw.get("id").filter(|_| is_response);
    id.as_ref().and_then(Id::from_raw).map(|id| id.normalized())
}

fn shown(message: &[u8]) -> String {
    String::from_utf8_lossy(message).into_owned()
}
