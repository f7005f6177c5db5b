//! What answers a request: a result in its server's words with what is added at its end, or an error.
//! A result may be long, so that it is put together only where it is written.

use bytes::Bytes;
use trunkline::message::{Id, Raw, RpcError, on_one_line};

use crate::protocol;

/// The answer to a request.
pub(crate) type Answer = Result<Reply, RpcError>;

/// A result on its way to a client.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    result: Raw,
    /// Members at its end, which the result does not have.
    added: Vec<Added>,
}

/// A member that is added to results.
pub(crate) type Added = (&'static str, &'static Raw);

impl Reply {
    pub(crate) fn new(result: Raw, added: Vec<Added>) -> Self {
        Self { result, added }
    }

    /// The result as one value.
    pub(crate) fn into_raw(self) -> Raw {
        self.result.with_new(&self.added)
    }

    /// The message that answers a request with it, in parts. The longest is the result's own bytes.
    fn parts(&self, id: &Id) -> [Bytes; 3] {
        let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#);
        let (inside, end) = self.result.halves();
        let mut tail = Vec::with_capacity(256);
        // Nothing can be added to what is no object.
        let added = self.added.iter().filter(|_| self.result.is_object());
        for (place, (key, value)) in added.enumerate() {
            let is_first = place == 0 && self.result.is_empty();
            let parts = [if is_first { "\"" } else { ",\"" }, key, "\":", value.text()];
            parts.iter().for_each(|part| tail.extend_from_slice(part.as_bytes()));
        }
        tail.extend_from_slice(&end);
        tail.push(b'}');
        [head.into(), inside, tail.into()]
    }
}

impl From<Raw> for Reply {
    fn from(result: Raw) -> Self {
        Self { result, added: Vec::new() }
    }
}

/// A message on one line, in parts: what is long in it is not copied.
#[derive(Clone, Debug)]
pub(crate) struct LineParts([Bytes; 3]);

impl LineParts {
    /// The line that answers a request.
    pub(crate) fn of(id: &Id, answer: Answer) -> Self {
        Self(response_in_parts(id, answer).map(on_one_line))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Bytes> {
        self.0.iter()
    }

    /// Its bytes.
    pub(crate) fn len(&self) -> usize {
        self.iter().map(Bytes::len).sum()
    }
}

impl From<Bytes> for LineParts {
    /// A message that is on one line already.
    fn from(line: Bytes) -> Self {
        Self([line, Bytes::new(), Bytes::new()])
    }
}

/// The message that answers a request, on one line.
pub(crate) fn response(id: &Id, answer: Answer) -> Bytes {
    LineParts::of(id, answer).0.concat().into()
}

/// The message that answers a request, in parts that need not be on one line.
pub(crate) fn response_in_parts(id: &Id, answer: Answer) -> [Bytes; 3] {
    match answer {
        Ok(reply) => reply.parts(id),
        Err(error) => [protocol::response(id, Err(error)), Bytes::new(), Bytes::new()],
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    static ONE: LazyLock<Raw> = LazyLock::new(|| Raw::from_number(1));

    #[test]
    fn the_parts_of_a_message_are_the_message() {
        for text in ["{}", "{ }", r#"{"a":[]}"#, "{ \"a\" : 1\r\n }", "[]", "null"] {
            for count in 0..3 {
                let added = ["b", "c"].into_iter().map(|key| (key, &*ONE)).take(count).collect();
                let reply = Reply::new(Raw::from_text(text).unwrap(), added);
                let id = Id::number(7);
                let line = response(&id, Ok(reply.clone()));
                assert_eq!(line, protocol::response(&id, Ok(reply.into_raw())), "{text}");
            }
        }
    }
}
