//! Errors of edits, with the place in the text.

use std::fmt;

use super::text;

/// The reason for which an edit is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EditErrorKind {
    /// The text is not valid in its format.
    Syntax,
    /// An object of the text has a key twice.
    DuplicateKey,
    /// A value on the key path is neither an object nor null.
    WrongType,
    /// The text is valid, but written in a way that cannot be edited without rewriting more of it.
    Unsupported,
    /// The entry cannot be written in this format.
    InvalidEntry,
    /// The edit would have changed other values.
    Verification,
}

/// A place in a text. Both numbers start at 1; columns are characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextLocation {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// An edit that was refused. The text is as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditError {
    kind: EditErrorKind,
    message: String,
    location: Option<TextLocation>,
}

impl EditError {
    /// The reason.
    pub fn kind(&self) -> EditErrorKind {
        self.kind
    }

    /// The message without the place.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The place in the text.
    pub fn location(&self) -> Option<TextLocation> {
        self.location
    }

    pub(crate) fn new(kind: EditErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), location: None }
    }

    /// Adds the place of a byte offset.
    pub(crate) fn at(mut self, text: &str, offset: usize) -> Self {
        let offset = text.floor_char_boundary(offset);
        let before = text::before(text, offset);
        let line = before.matches('\n').count() + 1;
        let column = text::after(before, text::line_start(text, offset)).chars().count() + 1;
        self.location = Some(TextLocation { line, column });
        self
    }

    pub(crate) fn syntax(text: &str, offset: usize, message: impl Into<String>) -> Self {
        Self::new(EditErrorKind::Syntax, message).at(text, offset)
    }

    pub(crate) fn duplicate_key(text: &str, offset: usize, key: &str) -> Self {
        let message = format!("the key {key:?} is there twice; remove one of the two");
        Self::new(EditErrorKind::DuplicateKey, message).at(text, offset)
    }

    pub(crate) fn unsupported(text: &str, offset: usize, message: impl Into<String>) -> Self {
        Self::new(EditErrorKind::Unsupported, message).at(text, offset)
    }

    pub(crate) fn wrong_type(text: &str, offset: usize, key: &str, expected: &str) -> Self {
        let subject = if key.is_empty() { "the file".to_owned() } else { format!("{key:?}") };
        let message = format!("{subject} is not {expected}");
        Self::new(EditErrorKind::WrongType, message).at(text, offset)
    }
}

impl fmt::Display for EditError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(TextLocation { line, column }) = self.location {
            write!(formatter, "line {line}, column {column}: ")?;
        }
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for EditError {}
