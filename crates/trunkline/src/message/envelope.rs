//! The envelope of a message: what kind it is, whose answer it is, and its payload as it came.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;

use super::raw::Raw;
#[cfg(doc)]
use super::reader::MAX_DEPTH;
use crate::protocol::code;

/// Bytes of an id. Clients count or make UUIDs; an id is kept for as long as its request goes on, and
/// goes back with every answer.
pub const MAX_ID_BYTES: usize = 1024;

/// Bytes of a method. Those of the protocol have fewer than 50.
const MAX_METHOD_BYTES: usize = 1024;

/// The id of a request: an integer or a string, kept as it was written, in bytes of its own.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Id(Raw);

impl Id {
    /// An id of our own.
    pub fn number(number: u64) -> Self {
        Self(Raw::from_number(number))
    }

    /// The number, if it is one of the kind we make.
    pub fn as_number(&self) -> Option<u64> {
        self.0.as_u64()
    }

    /// The id as JSON.
    pub fn raw(&self) -> &Raw {
        &self.0
    }

    /// The same id in its plainest spelling, to find a request by: whoever speaks of it again may write
    /// it with other escapes.
    #[must_use]
    pub fn normalized(&self) -> Self {
        match self.0.as_str() {
            Some(Cow::Owned(text)) => Self(Raw::from_string(&text)),
            _ => self.clone(),
        }
    }

    /// An id as it was written, if it can be one and is no longer than [`MAX_ID_BYTES`].
    pub fn from_raw(raw: &Raw) -> Option<Self> {
        let text = &**raw.bytes();
        if text.len() > MAX_ID_BYTES {
            return None;
        }
        // Of any size: nobody calculates with it.
        let digits = text.strip_prefix(b"-").unwrap_or(text);
        let is_integer = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        (is_integer || text.starts_with(b"\"")).then(|| Self(raw.detached()))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// One JSON-RPC message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Something is asked.
    Request(Request),
    /// Something is told.
    Notification(Notification),
    /// Something asked is answered.
    Response(Response),
}

/// A message that asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What the answer is told by.
    pub id: Id,
    /// What is asked.
    pub method: Box<str>,
    /// With what.
    pub params: Option<Raw>,
}

/// A message that tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// What is told.
    pub method: Box<str>,
    /// With what.
    pub params: Option<Raw>,
}

/// A message that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The id of the request.
    pub id: Id,
    /// The result, or the error.
    pub outcome: Result<Raw, RpcError>,
}

/// Longest error of a server, in bytes. Those of real servers have a few hundred; some carry a trace.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// What is left of the message of a longer one, in bytes: more than anybody reads.
const MAX_CUT_MESSAGE_BYTES: usize = 4 * 1024;

/// The error of a JSON-RPC answer, as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcError(Raw);

impl RpcError {
    /// An error of our own.
    pub fn new(code: i64, message: &str) -> Self {
        Self(Raw::from_value(&serde_json::json!({ "code": code, "message": message })))
    }

    /// The error within its bound, under a code that every client can read. What was cut is said in its
    /// message.
    #[must_use]
    pub(crate) fn bounded(self) -> Self {
        let error = match self.0.get("code") {
            Some(code) if code.text().parse::<i64>().is_err() => {
                self.with_code(code::INTERNAL_ERROR)
            }
            _ => self,
        };
        let size = error.0.bytes().len();
        if size <= MAX_ERROR_BYTES {
            return error;
        }
        let message = error.message();
        let head = message.get(..message.floor_char_boundary(MAX_CUT_MESSAGE_BYTES));
        let message = head.unwrap_or(&message);
        let message = format!("{message} [cut: this error had {size} bytes]");
        let cut = Self::new(error.code(), &message);
        match error.0.get("data").filter(|data| data.bytes().len() <= MAX_ERROR_BYTES / 2) {
            Some(data) => cut.with_data(&data),
            None => cut,
        }
    }

    /// An error as it came, if it is one.
    pub(crate) fn from_raw(raw: Raw) -> Option<Self> {
        raw.is_object().then_some(Self(raw))
    }

    /// The same error with data for programs.
    #[must_use]
    pub fn with_data(&self, data: &Raw) -> Self {
        Self(self.0.with("data", data))
    }

    /// The same error, as something makes it.
    pub(crate) fn map(self, change: impl FnOnce(Raw) -> Raw) -> Self {
        Self(change(self.0))
    }

    /// The same error under another code.
    #[must_use]
    pub fn with_code(&self, code: i64) -> Self {
        Self(self.0.with("code", &Raw::from_value(&code.into())))
    }

    /// Its code; zero if it has none that is a number.
    pub fn code(&self) -> i64 {
        self.0.get("code").and_then(|code| code.text().parse().ok()).unwrap_or(0)
    }

    /// What it says; empty if it says nothing. What is no text is said as it was written.
    pub fn message(&self) -> String {
        let message = self.0.get("message").filter(|message| !message.is_null());
        message.map_or_else(String::new, |message| {
            message.as_str().map_or_else(|| message.text().to_owned(), Cow::into_owned)
        })
    }

    /// The error as JSON.
    pub fn raw(&self) -> &Raw {
        &self.0
    }
}

/// Why bytes are not a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// Not JSON at all: noise.
    NotJson,
    /// JSON, and not a JSON-RPC message; with the id it names, if it does.
    NotRpc(Option<Id>),
    /// JSON, and nested deeper than [`MAX_DEPTH`]; with the id it names, if it does.
    TooDeep(Option<Id>),
}

impl Message {
    /// Reads one message; its payload shares the bytes, unless it is a small part of them.
    pub fn read(bytes: &Bytes) -> Result<Self, ParseError> {
        let (envelope, is_too_deep) = Raw::read_message(bytes).ok_or(ParseError::NotJson)?;
        if is_too_deep {
            return Err(ParseError::TooDeep(envelope.get("id").as_ref().and_then(Id::from_raw)));
        }
        let keys = ["id", "method", "params", "result", "error"];
        let Ok([said_id, method, params, result, error]) = envelope.get_all_once(keys) else {
            return Err(not_json_rpc(&envelope));
        };
        let payload = |payload: Option<Raw>| payload.map(|it| it.detached_from(bytes.len()));
        let [params, result, error] = [params, result, error].map(payload);
        let has_id = said_id.is_some();
        let id = said_id.as_ref().and_then(Id::from_raw);
        match (method.filter(|method| !method.is_null()), result, error) {
            (Some(method), None, None) => {
                let method = method.as_str().filter(|method| method.len() <= MAX_METHOD_BYTES);
                let method = method.ok_or_else(|| not_json_rpc(&envelope))?.into();
                match (id, has_id) {
                    (Some(id), _) => Ok(Self::Request(Request { id, method, params })),
                    (None, false) => Ok(Self::Notification(Notification { method, params })),
                    (None, true) => Err(ParseError::NotRpc(None)),
                }
            }
            (None, Some(result), None) => response(id, Ok(result)),
            (None, None, Some(error)) if error.is_object() => response(id, Err(RpcError(error))),
            _ => Err(ParseError::NotRpc(id)),
        }
    }

    /// The request that something answers which would be a message if it were UTF-8.
    pub(crate) fn partial_response(bytes: &Bytes) -> Option<Id> {
        let Cow::Owned(text) = String::from_utf8_lossy(bytes) else { return None };
        match Self::read(&text.into()) {
            Ok(Self::Response(Response { id, .. })) => Some(id),
            _ => None,
        }
    }

    /// The message as one line of JSON, without the line break.
    pub fn write(&self) -> Bytes {
        match self {
            Self::Request(Request { id, method, params }) => {
                EnvelopeWriter::of_method(Some(id.raw().bytes()), method, params.as_ref())
            }
            Self::Notification(Notification { method, params }) => {
                EnvelopeWriter::of_method(None, method, params.as_ref())
            }
            Self::Response(Response { id, outcome }) => {
                let (key, payload) = match outcome {
                    Ok(result) => ("result", result),
                    Err(error) => ("error", error.raw()),
                };
                let (id, payload) = (id.raw().bytes(), payload.bytes());
                let mut line = EnvelopeWriter::with_room(id.len() + payload.len() + key.len() + 10);
                line.push("id", id);
                line.push(key, payload);
                line.finish()
            }
        }
    }

    /// A request of our own as one line of JSON, without the line break.
    pub(crate) fn write_request(id: u64, method: &str, params: Option<&Raw>) -> Bytes {
        EnvelopeWriter::of_method(Some(id.to_string().as_bytes()), method, params)
    }
}

fn response(id: Option<Id>, outcome: Result<Raw, RpcError>) -> Result<Message, ParseError> {
    let id = id.ok_or(ParseError::NotRpc(None))?;
    Ok(Message::Response(Response { id, outcome }))
}

/// What an envelope is that cannot be read, with the id in it, so that whoever waits for it hears of
/// it.
fn not_json_rpc(envelope: &Raw) -> ParseError {
    ParseError::NotRpc(envelope.get("id").as_ref().and_then(Id::from_raw))
}

/// An envelope that is being written. Payloads go in as they are, but for line breaks, which would
/// end the message early: outside of strings they are white space, inside they cannot occur.
struct EnvelopeWriter(Vec<u8>);

/// What every message begins with.
const HEAD: &[u8] = br#"{"jsonrpc":"2.0""#;

impl EnvelopeWriter {
    /// A line with room for this much beside its head and its end. If it is filled to the last, sharing
    /// it costs nothing.
    fn with_room(room: usize) -> Self {
        let mut text = Vec::with_capacity(HEAD.len() + room + 1);
        text.extend_from_slice(HEAD);
        Self(text)
    }

    /// A message that says a method.
    fn of_method(id: Option<&[u8]>, method: &str, params: Option<&Raw>) -> Bytes {
        let room = id.map_or(0, |id| id.len() + r#","id":"#.len())
            + (method.len() + r#","method":"""#.len())
            + params.map_or(0, |params| params.bytes().len() + r#","params":"#.len());
        let mut line = Self::with_room(room);
        if let Some(id) = id {
            line.push("id", id);
        }
        line.0.extend_from_slice(br#","method":"#);
        serde_json::to_writer(&mut line.0, method).expect("invariant: a text can be written");
        if let Some(params) = params {
            line.push("params", params.bytes());
        }
        line.finish()
    }

    fn push(&mut self, key: &str, value: &[u8]) {
        for part in [",\"", key, "\":"] {
            self.0.extend_from_slice(part.as_bytes());
        }
        let start = self.0.len();
        self.0.extend_from_slice(value);
        without_breaks(&mut self.0[start..]);
    }

    fn finish(mut self) -> Bytes {
        self.0.push(b'}');
        self.0.into()
    }
}

/// JSON on one line, with spaces in the place of line breaks. It is not copied where it has none.
pub fn to_single_line(json: Bytes) -> Bytes {
    match memchr::memchr2(b'\n', b'\r', &json) {
        None => json,
        Some(_) => {
            let mut line = Vec::from(json);
            without_breaks(&mut line);
            line.into()
        }
    }
}

/// Makes one line of JSON by putting spaces in the place of line breaks.
fn without_breaks(json: &mut [u8]) {
    // Nearly always there is none, and looking for it is cheap.
    let mut rest = json;
    while let Some(place) = memchr::memchr2(b'\n', b'\r', rest) {
        rest[place] = b' ';
        rest = &mut rest[place + 1..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_kept_as_written_and_found_however_they_are_written() {
        let id = |text: &str| Id::from_raw(&Raw::from_text(text).unwrap()).unwrap();
        assert_ne!(id(r#""\u0041b""#), id(r#""Ab""#));
        assert_eq!(id(r#""\u0041b""#).normalized(), id(r#""Ab""#).normalized());
        assert_eq!(id(r#""a\/b""#).normalized(), id(r#""a/b""#).normalized());
        assert_eq!(id(r#""\"""#).normalized(), id(r#""\u0022""#).normalized());
        assert_ne!(id(r#""1""#).normalized(), id("1").normalized());
        // Half a character is nothing but itself.
        assert_ne!(id(r#""\ud800""#).normalized(), id(r#""\ud801""#).normalized());
    }

    #[test]
    fn an_answer_that_is_not_utf_8_still_says_what_it_answers() {
        let garbled = |bytes: &'static [u8]| Message::partial_response(&Bytes::from_static(bytes));
        assert_eq!(garbled(b"{\"id\":7,\"result\":{\"text\":\"\xff\"}}"), Some(Id::number(7)));
        assert_eq!(garbled(b"{\"id\":7,\"method\":\"\xff\"}"), None);
        assert_eq!(garbled(b"{\"id\":7,\"result\":{}]"), None);
        assert_eq!(garbled(b"\xff"), None);
    }

    fn read(text: &str) -> Result<Message, ParseError> {
        Message::read(&Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn every_kind_of_message_is_told_apart() {
        let request = read(r#"{"jsonrpc":"2.0","id":"x","method":"ping"}"#).unwrap();
        assert!(
            matches!(request, Message::Request(ref request) if request.id.to_string() == "\"x\"")
        );
        let told =
            read(r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"a":1}}"#).unwrap();
        assert!(matches!(told, Message::Notification(_)));
        let answer = read(r#"{"jsonrpc":"2.0","id":1,"result":null}"#).unwrap();
        assert!(matches!(answer, Message::Response(Response { outcome: Ok(_), .. })));
        let Message::Response(failed) =
            read(r#"{"id":1,"error":{"code":-32601,"message":"no"},"jsonrpc":"2.0"}"#).unwrap()
        else {
            panic!("not a response")
        };
        let error = failed.outcome.unwrap_err();
        assert_eq!((error.code(), error.message()), (code::METHOD_NOT_FOUND, "no".to_owned()));
    }

    #[test]
    fn ids_are_echoed_to_the_letter() {
        let huge = "340282366920938463463374607431768211457000";
        for id in ["0", "-7", "9007199254740993", huge, "\"a\\u0062\"", "\"\""] {
            let Ok(Message::Request(request)) = read(&format!(r#"{{"id":{id},"method":"m"}}"#))
            else {
                panic!("{id}")
            };
            let answer = Response { id: request.id, outcome: Ok(Raw::from_text("{}").unwrap()) };
            let text = Message::Response(answer).write();
            assert_eq!(
                &*text,
                format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#).as_bytes()
            );
        }
    }

    #[test]
    fn what_is_no_message_says_whose_answer_it_might_have_been() {
        assert_eq!(read("starting up…"), Err(ParseError::NotJson));
        assert_eq!(read("[]"), Err(ParseError::NotRpc(None)));
        assert_eq!(read("17"), Err(ParseError::NotRpc(None)));
        assert_eq!(read(r#"{"id":null,"method":"m"}"#), Err(ParseError::NotRpc(None)));
        for id in ["1.5", "1e3", "true", "{}"] {
            let text = format!(r#"{{"id":{id},"result":{{}}}}"#);
            assert_eq!(read(&text), Err(ParseError::NotRpc(None)), "{text}");
        }
        assert_eq!(read(r#"{"id":3}"#), Err(ParseError::NotRpc(Some(Id::number(3)))));
        for error in ["3", "null", "\"no\""] {
            let text = format!(r#"{{"id":3,"error":{error}}}"#);
            assert_eq!(read(&text), Err(ParseError::NotRpc(Some(Id::number(3)))), "{text}");
        }
        assert_eq!(
            read(r#"{"id":3,"result":{},"error":{}}"#),
            Err(ParseError::NotRpc(Some(Id::number(3))))
        );
        assert_eq!(
            read(r#"{"id":3,"method":5,"result":{}}"#),
            Err(ParseError::NotRpc(Some(Id::number(3))))
        );
    }

    #[test]
    fn an_id_is_bounded_and_keeps_nothing_else_in_memory() {
        let beside = "x".repeat(100_000);
        let text = format!(r#"{{"id":"i","method":"m","params":{{"a":1}},"x":"{beside}"}}"#);
        let bytes = Bytes::from(text);
        let Ok(Message::Request(request)) = Message::read(&bytes) else { panic!("no request") };
        let is_part = |part: &Raw| bytes.as_ptr_range().contains(&part.bytes().as_ptr());
        assert!(!is_part(request.id.raw()) && !is_part(&request.params.clone().unwrap()));
        assert_eq!(request.params.unwrap().get("a").unwrap().text(), "1");
        for (length, is_id) in [(MAX_ID_BYTES - 2, true), (MAX_ID_BYTES - 1, false)] {
            let text = format!(r#"{{"id":"{}","method":"m"}}"#, "i".repeat(length));
            assert_eq!(read(&text).is_ok(), is_id, "{length}");
            let text = format!(r#"{{"id":"{}","result":{{}}}}"#, "i".repeat(length));
            assert_eq!(read(&text).is_ok(), is_id, "{length}");
        }
    }

    #[test]
    fn what_is_nested_too_deep_still_says_what_it_answers() {
        use super::super::reader::MAX_DEPTH;
        let nested = |depth: usize, (open, close): (&str, &str)| {
            let value = open.repeat(depth) + "1" + &close.repeat(depth);
            read(&format!(r#"{{"id":3,"result":{{"x":{value}}}}}"#))
        };
        for pair in [("[", "]"), (r#"{"a":"#, "}")] {
            assert!(nested(MAX_DEPTH - 10, pair).is_ok());
            let too_deep = Err(ParseError::TooDeep(Some(Id::number(3))));
            assert_eq!(nested(MAX_DEPTH + 1, pair), too_deep);
            assert_eq!(nested(1_000_000, pair), too_deep);
        }
        assert_eq!(read(&"[".repeat(1_000_000)), Err(ParseError::NotJson));
    }

    #[test]
    fn line_breaks_in_a_payload_do_not_end_the_message() {
        let params = Raw::from_text("{\n \"a\":\r\n \"x\\ny\" }").unwrap();
        let message = Notification { method: "m".into(), params: Some(params) };
        let line = Message::Notification(message.clone()).write();
        assert!(!line.contains(&b'\n') && !line.contains(&b'\r'));
        let Ok(Message::Notification(again)) = Message::read(&line) else { panic!() };
        assert_eq!(again.params.unwrap().get("a").unwrap().as_str().unwrap(), "x\ny");
    }

    /// Errors are bounded like results, and say that they were cut; their codes are numbers.
    #[test]
    fn errors_of_any_size_and_code_are_bounded() {
        let bounded = |text: &str| RpcError(Raw::from_text(text).unwrap()).bounded();
        let usual = r#"{"code": -32602 ,"message":"no","data":{"a":1e400}}"#;
        assert_eq!(bounded(usual).raw().text(), usual);
        for code in ["1e999", "99999999999999999999", "1.5", "\"x\"", "[1]"] {
            let error = bounded(&format!(r#"{{"code":{code},"message":"no"}}"#));
            assert_eq!((error.code(), &*error.message()), (code::INTERNAL_ERROR, "no"), "{code}");
        }
        let long = "ä".repeat(MAX_ERROR_BYTES);
        for text in [
            format!(r#"{{"code":7,"message":"{long}"}}"#),
            format!(r#"{{"code":7,"message":"no","data":"{long}"}}"#),
            format!(r#"{{"code":7,"message":"no","more":"{long}","data":{{"a":1}}}}"#),
        ] {
            let error = bounded(&text);
            assert!(error.raw().bytes().len() < MAX_ERROR_BYTES, "it is bounded");
            let said = format!("[cut: this error had {} bytes]", text.len());
            assert!(error.message().ends_with(&said), "{}", error.message());
            assert_eq!(error.code(), 7);
            let has_data = text.contains(r#""data":{"a":1}"#);
            assert_eq!(error.raw().get("data").is_some(), has_data);
        }
    }
}
