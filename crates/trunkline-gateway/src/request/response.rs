//! Responses to requests: an upstream result with members appended or removed, or an error. A result can be
//! large, so it is serialized without copying it.

use std::pin::Pin;

use bytes::Bytes;
use trunkline::message::{Id, Raw, RpcError, to_single_line};

use super::errors;

/// Limit in bytes on responses that wait for clients to reconnect: one budget for those that
/// sessions missed, and another one for parked calls.
pub(crate) const MAX_KEPT_OF_ALL: usize = 256 * 1024 * 1024;

/// The result of a request, or its error.
pub(crate) type RpcResult = Result<ResultBody, RpcError>;

/// A request that is being handled.
pub(crate) type RpcFuture = Pin<Box<dyn Future<Output = RpcResult> + Send>>;

/// Messages up to this size are serialized in one buffer.
const COPIED_BYTES: usize = 16 * 1024;

/// A result to be sent to a client.
#[derive(Clone, Debug)]
pub(crate) struct ResultBody {
    result: Raw,
    change: ResultChange,
}

/// The difference between a result of a server and the one for the client.
#[derive(Clone, Debug)]
enum ResultChange {
    /// Members to append. The result does not have them.
    Added(ExtraMembers),
    /// Keys of members to remove.
    Removed(Vec<&'static str>),
}

/// Members that are appended to a result.
pub(crate) type ExtraMembers = [Option<(&'static str, &'static Raw)>; 4];

impl ResultBody {
    pub(crate) fn new(result: Raw, added: ExtraMembers) -> Self {
        Self { result, change: ResultChange::Added(added) }
    }

    /// A result without some of its members.
    pub(crate) fn without(result: Raw, keys: Vec<&'static str>) -> Self {
        Self { result, change: ResultChange::Removed(keys) }
    }

    /// The result as the client gets it, as one value.
    pub(crate) fn into_raw(self) -> Raw {
        match self.change {
            ResultChange::Added(added) => {
                self.result.append_members(&added.into_iter().flatten().collect::<Vec<_>>())
            }
            ResultChange::Removed(keys) => {
                keys.iter().fold(self.result, |result, key| result.without(key))
            }
        }
    }

    /// The result before it is changed.
    pub(crate) fn result(&self) -> &Raw {
        &self.result
    }

    /// Length of the result in bytes, before it is changed.
    pub(crate) fn len(&self) -> usize {
        self.result.bytes().len()
    }

    /// The response message in parts. A short one is all in the first part; otherwise the second
    /// part is bytes of the result itself, not copied.
    fn parts(&self, id: &Id) -> [Bytes; 3] {
        const BEFORE_ID: &[u8] = br#"{"jsonrpc":"2.0","id":"#;
        const AFTER_ID: &[u8] = br#","result":"#;
        let (before, inside, end) = self.result_in_parts();
        let id = id.raw().bytes();
        let head = BEFORE_ID.len() + id.len() + AFTER_ID.len() + before.len();
        let tail = self.added_bytes() + end.len() + 1;
        let is_short = inside.len() <= COPIED_BYTES;
        let room = if is_short { head + inside.len() + tail } else { head };
        let mut text = Vec::with_capacity(room);
        for part in [BEFORE_ID, id, AFTER_ID, &before] {
            text.extend_from_slice(part);
        }
        if is_short {
            text.extend_from_slice(&inside);
            self.push_tail(&end, &mut text);
            return [text.into(), Bytes::new(), Bytes::new()];
        }
        let mut last = Vec::with_capacity(tail);
        self.push_tail(&end, &mut last);
        [text.into(), inside, last.into()]
    }

    /// The result around its longest part: removed members are rarely in the middle. Members are appended
    /// before the last part.
    fn result_in_parts(&self) -> (Bytes, Bytes, Bytes) {
        let ResultChange::Removed(keys) = &self.change else {
            let (inside, end) = self.result.split_tail();
            return (Bytes::new(), inside, end);
        };
        let slices = self.result.slices_without(keys);
        let longest = (0..slices.len()).max_by_key(|at| slices[*at].len()).unwrap_or(0);
        let (before, rest) = slices.split_at(longest);
        let (inside, after) = rest
            .split_first()
            .map_or((Bytes::new(), rest), |(inside, after)| (inside.clone(), after));
        (before.concat().into(), inside, after.concat().into())
    }

    /// The members to append: none if the result is not an object.
    fn added(&self) -> impl Iterator<Item = (&'static str, &'static Raw)> {
        let added = match &self.change {
            ResultChange::Added(added) => *added,
            ResultChange::Removed(_) => ExtraMembers::default(),
        };
        added.into_iter().flatten().filter(|_| self.result.is_object())
    }

    /// Their length in bytes, each with a comma before it.
    fn added_bytes(&self) -> usize {
        self.added().map(|(key, value)| key.len() + value.bytes().len() + 4).sum()
    }

    /// Writes the appended members and the end of the message.
    fn push_tail(&self, end: &[u8], text: &mut Vec<u8>) {
        let mut comma: &[u8] = if self.result.is_empty() { b"" } else { b"," };
        for (key, value) in self.added() {
            for part in [comma, b"\"", key.as_bytes(), b"\":", value.bytes()] {
                text.extend_from_slice(part);
            }
            comma = b",";
        }
        text.extend_from_slice(end);
        text.push(b'}');
    }
}

impl From<Raw> for ResultBody {
    fn from(result: Raw) -> Self {
        Self::new(result, ExtraMembers::default())
    }
}

/// A message on one line, in parts, so that long content is not copied.
#[derive(Clone, Debug)]
pub(crate) struct ResponseLine([Bytes; 3]);

impl ResponseLine {
    /// The response to a request as one line.
    pub(crate) fn of(id: &Id, answer: RpcResult) -> Self {
        Self(response_in_parts(id, answer).map(to_single_line))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Bytes> {
        self.0.iter()
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.iter().map(Bytes::len).sum()
    }
}

impl From<Bytes> for ResponseLine {
    /// A message that is one line already.
    fn from(line: Bytes) -> Self {
        Self([line, Bytes::new(), Bytes::new()])
    }
}

/// Serializes a response on one line.
pub(crate) fn response(id: &Id, answer: RpcResult) -> Bytes {
    ResponseLine::of(id, answer).0.concat().into()
}

/// Serializes a response in parts, which may contain line breaks.
pub(crate) fn response_in_parts(id: &Id, answer: RpcResult) -> [Bytes; 3] {
    match answer {
        Ok(reply) => reply.parts(id),
        Err(error) => [errors::response(id, Err(error)), Bytes::new(), Bytes::new()],
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    static ONE: LazyLock<Raw> = LazyLock::new(|| Raw::from_number(1));

    #[test]
    fn the_parts_of_a_message_are_the_message() {
        let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(COPIED_BYTES));
        for text in ["{}", "{ }", r#"{"a":[]}"#, "{ \"a\" : 1\r\n }", "[]", "null", &long] {
            for added in [[None; 4], [Some(("b", &*ONE)), None, None, Some(("c", &*ONE))]] {
                let reply = ResultBody::new(Raw::from_text(text).unwrap(), added);
                let id = Id::number(7);
                let line = response(&id, Ok(reply.clone()));
                assert_eq!(line, errors::response(&id, Ok(reply.into_raw())), "{text}");
            }
        }
    }

    #[test]
    fn removed_members_are_cut_out_wherever_they_are() {
        let long = format!(r#""a":"{}""#, "x".repeat(COPIED_BYTES));
        let id = Id::number(7);
        for text in [
            "{}",
            "[]",
            r#"{"b":1}"#,
            r#"{"b":1,"c":2}"#,
            r#"{ "a" : 1 , "b":2, "d":3,"c" : 4 }"#,
            &format!(r#"{{"b":1,{long}}}"#),
            &format!(r#"{{{long},"b":1}}"#),
            &format!(r#"{{ "b":1 , {long}, "c": 2,{long} }}"#),
        ] {
            for keys in [vec![], vec!["b"], vec!["b", "c"]] {
                let reply = ResultBody::without(Raw::from_text(text).unwrap(), keys);
                let line = response(&id, Ok(reply.clone()));
                assert_eq!(line, errors::response(&id, Ok(reply.into_raw())), "{text}");
            }
        }
    }

    #[test]
    fn long_content_is_not_copied() {
        let long = format!(r#"{{"b":1,"a":"{}"}}"#, "x".repeat(COPIED_BYTES));
        let result = Raw::from_text(&long).unwrap();
        let place = result.bytes().as_ptr_range();
        let [_, inside, _] = ResultBody::without(result, vec!["b"]).parts(&Id::number(7));
        assert!(place.contains(&inside.as_ptr()) && inside.len() > COPIED_BYTES);
    }
}
