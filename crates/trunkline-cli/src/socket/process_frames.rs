//! The lines in which the service relays a process to a command: what it writes, and why it ended. Messages to the
//! process are sent as they are.

use std::io;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use trunkline::error::{Error, ErrorKind};

/// The last byte of each line: white space before it is part of the content.
const LAST: u8 = b'.';

/// The first byte of each kind of line.
const OUTPUT: u8 = b'1';
const ERRORS: u8 = b'2';
const UNFINISHED_ERRORS: u8 = b'3';
const END: u8 = b'0';

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProcessFrame {
    /// A line of its standard output, without the line break.
    Output(Bytes),
    /// A part of its standard error, which ends with a line break if it is the end of a line.
    Errors(Bytes),
    /// It cannot be used any more.
    End(ProcessEnd),
}

/// Why a process cannot be used any more.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProcessEnd {
    kind: EndKind,
    message: String,
    hint: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum EndKind {
    Exited,
    StartFailed,
    ProtocolViolation,
    TooLarge,
}

impl From<&Error> for ProcessEnd {
    fn from(error: &Error) -> Self {
        let kind = match error.kind() {
            ErrorKind::StartFailed => EndKind::StartFailed,
            ErrorKind::ProtocolViolation => EndKind::ProtocolViolation,
            ErrorKind::TooLarge => EndKind::TooLarge,
            _ => EndKind::Exited,
        };
        let hint = error.hint().map(str::to_owned);
        Self { kind, message: error.message().to_owned(), hint }
    }
}

impl From<ProcessEnd> for Error {
    fn from(end: ProcessEnd) -> Self {
        let kind = match end.kind {
            EndKind::Exited => ErrorKind::Exited,
            EndKind::StartFailed => ErrorKind::StartFailed,
            EndKind::ProtocolViolation => ErrorKind::ProtocolViolation,
            EndKind::TooLarge => ErrorKind::TooLarge,
        };
        let error = Self::new(kind, end.message);
        match end.hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

/// The line for a line of standard output, with its line break.
pub(crate) fn output_frame(line: &[u8]) -> Vec<u8> {
    frame(OUTPUT, line)
}

/// The lines for a part of standard error.
pub(crate) fn error_frames(part: &[u8]) -> Vec<u8> {
    let lines = part.split_inclusive(|byte| *byte == b'\n');
    let frames = lines.map(|line| match line.strip_suffix(b"\n") {
        Some(line) => frame(ERRORS, line),
        None => frame(UNFINISHED_ERRORS, line),
    });
    frames.flatten().collect()
}

/// The last line.
pub(crate) fn end_frame(error: &Error) -> io::Result<Vec<u8>> {
    Ok(frame(END, &serde_json::to_vec(&ProcessEnd::from(error))?))
}

fn frame(kind: u8, content: &[u8]) -> Vec<u8> {
    [&[kind], content, &[LAST, b'\n']].concat()
}

/// Reads a line; `None` if it is not one of these.
pub(crate) fn parse_frame(line: &Bytes) -> Option<ProcessFrame> {
    let (kind, content) = (*line.first()?, line.slice(1..).strip_suffix(&[LAST])?.len());
    let content = line.slice(1..=content);
    Some(match kind {
        OUTPUT => ProcessFrame::Output(content),
        ERRORS => ProcessFrame::Errors([&*content, b"\n"].concat().into()),
        UNFINISHED_ERRORS => ProcessFrame::Errors(content),
        END => ProcessFrame::End(serde_json::from_slice(&content).ok()?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(lines: &[u8]) -> Vec<ProcessFrame> {
        let lines = lines.split_inclusive(|byte| *byte == b'\n');
        // As the reader of lines does.
        let line = |line: &[u8]| Bytes::copy_from_slice(line.trim_ascii());
        lines.map(|it| parse_frame(&line(it)).unwrap()).collect()
    }

    #[test]
    fn what_a_process_writes_is_read_as_it_was() {
        assert_eq!(frames(&output_frame(b"0{}")), [ProcessFrame::Output("0{}".into())]);
        let errors = ["one \n", "\n", " tw "].map(|part| ProcessFrame::Errors(part.into()));
        assert_eq!(frames(&error_frames(b"one \n\n tw ")), errors);
        for other in ["{}", "1", "2x", ""] {
            assert_eq!(parse_frame(&other.into()), None, "{other}");
        }
    }

    #[test]
    fn the_end_keeps_its_kind() {
        let kinds = [ErrorKind::Exited, ErrorKind::StartFailed, ErrorKind::ProtocolViolation];
        for kind in kinds.into_iter().chain([ErrorKind::TooLarge]) {
            let error = Error::new(kind, "it\nended").with_hint("start it");
            let [ProcessFrame::End(end)] = &frames(&end_frame(&error).unwrap())[..] else {
                panic!()
            };
            assert_eq!(Error::from(end.clone()), error);
        }
    }
}
