//! JSON-RPC messages: the envelope is parsed, the payload is passed on byte for byte.
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

mod index;
mod reader;
mod scan;
mod invalid;
mod raw;
mod duplicate_keys;
mod envelope;
mod line_buffer;

pub use envelope::{
    Id, MAX_ID_BYTES, Message, Notification, ParseError, Request, Response, RpcError,
    to_single_line,
};
pub use invalid::{DuplicateMember, InvalidJson};
pub use line_buffer::{BufferedLine, DiscardedLine, LineBuffer, OversizedLine};
pub use raw::Raw;
pub use reader::MAX_DEPTH;
