//! JSON-RPC messages with raw payloads: the envelope is read, the rest passes byte for byte.
//!
//! ```
//! use trunkline::message::{Message, Raw};
//!
//! let Ok(Message::Response(response)) = Message::read(
//!     &r#"{"jsonrpc":"2.0","id":7,"result":{"big":12345678901234567890,"content":[]}}"#.into(),
//! ) else { panic!() };
//! assert_eq!(response.id.to_string(), "7");
//! // Shallow access, and edits that leave every other byte alone.
//! let result = response.outcome.unwrap();
//! assert_eq!(result.get("big").unwrap().text(), "12345678901234567890");
//! let edited = result.with("content", &Raw::from_text("null").unwrap());
//! assert_eq!(edited.text(), r#"{"big":12345678901234567890,"content":null}"#);
//! ```

mod outline;
mod reader;
mod scan;
mod problem;
mod raw;
mod alike;
mod envelope;

pub use envelope::{
    Id, MAX_ID_BYTES, Malformed, Message, Notification, Request, Response, RpcError, on_one_line,
};
pub use problem::{Ambiguous, NotJson};
pub use raw::Raw;
pub use reader::MAX_DEPTH;
