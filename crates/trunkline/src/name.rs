//! Names of servers, bundles and agents, and exposed names: joins, sanitises, shortens and
//! disambiguates them.

mod digest;
mod scheme;
mod namespace;
mod exposed;
mod pattern;
mod spelling;
mod uri;

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

pub(crate) use digest::digest;
pub use exposed::{AdjustmentReason, AssignedName, ExposedName, NameAdjustment, NameRequest};
pub use namespace::{NameOptions, Namespaces};
pub(crate) use pattern::CharacterPairs;
pub use pattern::{InvalidPattern, NamePattern};
pub(crate) use scheme::{is_web, scheme};
pub(crate) use spelling::{TemplateForm, UriSpellings, normalised};
pub(crate) use uri::may_be_misread;
pub use uri::{
    MAX_URI_BYTES, QualifyUris, UriRequest, expose_uris, parse_qualified_uri, qualified_uri,
    uri_without_credentials,
};

/// Longest accepted name, in bytes. Long enough for any name that users write, short enough that a
/// pasted file cannot fill a screen with every message about it.
pub const MAX_NAME_BYTES: usize = 256;

/// Names of the tools of the host itself: those of meta mode, and those for resources and prompts.
/// No item of a server gets one of them, in any mode: a client that was shown a tool of the host
/// would otherwise call a server by its name after the mode has changed.
pub const HOST_TOOL_NAMES: [&str; 8] = [
    "trunkline_search",
    "trunkline_describe",
    "trunkline_call",
    "trunkline_servers",
    "trunkline_list_resources",
    "trunkline_read_resource",
    "trunkline_list_prompts",
    "trunkline_get_prompt",
];

/// The reason why a string is not a valid name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidName {
    /// Empty, or only white space.
    Empty,
    /// Longer than [`MAX_NAME_BYTES`].
    TooLong,
    /// Contains a control character.
    ControlCharacter,
}

impl fmt::Display for InvalidName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a name cannot be empty"),
            Self::TooLong => write!(f, "a name cannot be longer than {MAX_NAME_BYTES} bytes"),
            Self::ControlCharacter => f.write_str("a name cannot hold control characters"),
        }
    }
}

impl std::error::Error for InvalidName {}

fn check(text: &str) -> Result<(), InvalidName> {
    if text.trim().is_empty() {
        Err(InvalidName::Empty)
    } else if text.len() > MAX_NAME_BYTES {
        Err(InvalidName::TooLong)
    } else if text.chars().any(char::is_control) {
        Err(InvalidName::ControlCharacter)
    } else {
        Ok(())
    }
}

macro_rules! names {
    ($($(#[$doc:meta])* struct $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Creates a name from a valid string.
            pub fn new(text: &str) -> Result<Self, InvalidName> {
                check(text)?;
                Ok(Self(text.into()))
            }

            /// The name as a string.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    )*};
}

names! {
    /// The name of a server: its key in the configuration. It may contain any characters but
    /// control characters.
    struct ServerName;
    /// The name of a bundle of tools.
    struct BundleName;
    /// The name of an agent.
    struct AgentName;
    /// The name that clients give a conversation: any string, such as the ID of a chat.
    struct ConversationName;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_people_write_are_accepted_as_written() {
        for text in ["context7", "My Server", "größe.v2", &"x".repeat(100)] {
            assert_eq!(ServerName::new(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn empty_long_and_control_names_are_refused() {
        assert_eq!(ServerName::new("  "), Err(InvalidName::Empty));
        assert_eq!(ServerName::new(&"x".repeat(257)), Err(InvalidName::TooLong));
        assert_eq!(ServerName::new("a\u{1b}[2J"), Err(InvalidName::ControlCharacter));
    }
}
