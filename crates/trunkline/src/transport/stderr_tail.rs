//! The last lines of a server's standard error, kept for error messages.
//!
//! It does not use `LineBuffer`, which returns whole lines: it keeps the head of each line, and shows a
//! line before its end.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::mpsc;

use super::mask::{SecretMask, TextEnd};
use crate::config::{MASK, Secret, is_hidden};

/// Lines kept per server: enough for a stack trace, few enough for a table.
const MAX_LINES: usize = 20;

/// Lines before the shown ones, in which a secret may begin.
const LINES_BEFORE: usize = 4;

/// Bytes shown of one line.
const MAX_LINE_BYTES: usize = 400;

/// Bytes kept of one line: secrets in it get shorter once they are masked.
const MAX_KEPT_BYTES: usize = 2 * MAX_LINE_BYTES;

/// The last lines: limited, printable, and without the secrets that the server received. Clones
/// share the lines.
#[derive(Clone, Default)]
pub(crate) struct StderrTail {
    inner: Arc<Mutex<TailInner>>,
}

#[derive(Default)]
struct TailInner {
    /// Unmasked: a secret may continue in the next line.
    lines: VecDeque<StderrLine>,
    unfinished: Vec<u8>,
    /// Whether the unfinished line exceeded the bytes that are kept.
    is_cut: bool,
    mask: Arc<SecretMask>,
    /// Receives a copy of what arrives, as far as it keeps up.
    copies: Option<mpsc::Sender<Bytes>>,
    /// Cached output, until more bytes arrive.
    shown: Option<Vec<String>>,
}

/// A line as it was received.
struct StderrLine {
    text: String,
    is_cut: bool,
}

impl StderrTail {
    /// A tail in which none of `secrets` appears.
    pub(crate) fn with_secrets(secrets: impl IntoIterator<Item = Secret>) -> Self {
        let mask = Arc::new(SecretMask::with_parts(secrets));
        Self { inner: Arc::new(Mutex::new(TailInner { mask, ..TailInner::default() })) }
    }

    pub(super) fn add(&self, bytes: &[u8]) {
        self.lock().add(bytes);
    }

    /// Sends a copy of what arrives from now on, in place of an earlier receiver.
    pub(super) fn copy_to(&self, receiver: mpsc::Sender<Bytes>) {
        self.lock().copies = Some(receiver);
    }

    /// The lines so far, including the unfinished one.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lock().lines()
    }

    /// Text from the server, safe to display: on one line, with the secrets that it received
    /// redacted.
    pub(super) fn quoted(&self, text: &str) -> String {
        shortened(&self.mask().masked(&visible(text)))
    }

    /// The mask for the secrets that the server received.
    pub(crate) fn mask(&self) -> Arc<SecretMask> {
        Arc::clone(&self.lock().mask)
    }

    fn lock(&self) -> MutexGuard<'_, TailInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TailInner {
    fn add(&mut self, bytes: &[u8]) {
        self.shown = None;
        if let Some(copies) = &self.copies {
            // A receiver that is too slow misses some: standard error must not block the process.
            let _ = copies.try_send(Bytes::copy_from_slice(bytes));
        }
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = MAX_KEPT_BYTES.saturating_sub(self.unfinished.len());
            self.unfinished.extend(part.iter().take(room));
            self.is_cut |= part.len() > room;
            if part.ends_with(b"\n") {
                let line = self.unfinished_line();
                self.unfinished.clear();
                self.is_cut = false;
                if !line.text.is_empty() {
                    self.lines.push_back(line);
                }
                if self.lines.len() > MAX_LINES + LINES_BEFORE {
                    self.lines.pop_front();
                }
            }
        }
    }

    /// The unfinished line, without invisible characters, which could hide a secret.
    fn unfinished_line(&self) -> StderrLine {
        let text = visible(&String::from_utf8_lossy(&self.unfinished));
        StderrLine { text: text.trim_end().to_owned(), is_cut: self.is_cut }
    }

    fn lines(&mut self) -> Vec<String> {
        if let Some(shown) = &self.shown {
            return shown.clone();
        }
        let last = Some(self.unfinished_line()).filter(|line| !line.text.is_empty());
        let has_unfinished = last.is_some();
        let lines: Vec<_> = self.lines.iter().chain(&last).collect();
        let shown = masked_lines(&self.mask, &lines);
        let kept = MAX_LINES + usize::from(has_unfinished);
        let shown: Vec<_> = shown.into_iter().rev().take(kept).rev().collect();
        self.shown = Some(shown.clone());
        shown
    }
}

/// Lines without secrets, including secrets that continue in the next line or beyond a cut.
fn masked_lines(mask: &SecretMask, lines: &[&StderrLine]) -> Vec<String> {
    // After a wrapped line the next one may be indented.
    let joined: String = lines.iter().map(|line| line.text.trim()).collect();
    let across = mask.ranges(&joined, TextEnd::CutOff);
    let mut shown = Vec::with_capacity(lines.len());
    let mut start = 0;
    for line in lines {
        let indent = line.text.len() - line.text.trim_start().len();
        let length = line.text.trim().len();
        let (from, to) = (start, start + length);
        let inside = across.iter().filter(|(first, end)| *first < to && *end > from);
        let moved = |at: usize| at.clamp(from, to) - from + indent;
        let mut ranges: Vec<_> = inside.map(|(first, end)| (moved(*first), moved(*end))).collect();
        let end = if line.is_cut { TextEnd::CutOff } else { TextEnd::Whole };
        ranges.extend(mask.ranges(&line.text, end));
        shown.push(shortened(&with_masks(&line.text, ranges)));
        start = to;
    }
    shown
}

/// Replaces ranges of a text with masks.
fn with_masks(text: &str, mut ranges: Vec<(usize, usize)>) -> String {
    ranges.sort_unstable();
    let mut shown = String::with_capacity(text.len());
    let mut position = 0;
    for (start, end) in ranges {
        if start >= position {
            shown.extend(text.get(position..start));
            shown.push_str(MASK);
        }
        position = position.max(end);
    }
    shown.extend(text.get(position..));
    shown
}

/// Text on one line, without characters that a terminal interprets.
fn visible(text: &str) -> String {
    text.chars().filter(|character| !is_hidden(*character) || *character == '\t').collect()
}

/// The beginning of a text, within the limit of a shown line.
fn shortened(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_LINE_BYTES);
    text.get(..end).unwrap_or_default().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_and_bounded() {
        let tail = StderrTail::default();
        for number in 0..100 {
            tail.add(format!("line {number}\n").as_bytes());
        }
        tail.add("x".repeat(100_000).as_bytes());
        let lines = tail.lines();
        assert_eq!((lines.len(), lines[0].as_str()), (MAX_LINES + 1, "line 80"));
        assert!(lines[MAX_LINES].len() <= MAX_LINE_BYTES);
    }

    #[test]
    fn secrets_and_escapes_do_not_show() {
        let tail = StderrTail::with_secrets([Secret::new("hunter22"), Secret::new("ok")]);
        tail.add(b"token hunter22 is ok \x1b[31mred\n");
        assert_eq!(tail.lines(), ["token *** is ok [31mred"]);
    }

    #[test]
    fn secrets_of_several_lines_do_not_show_line_by_line() {
        let tail = StderrTail::with_secrets([Secret::new(
            "-----BEGIN KEY-----\nMIIEbody\n-----END KEY-----\n",
        )]);
        tail.add(b"-----BEGIN KEY-----\nMIIEbody\n");
        assert_eq!(tail.lines(), ["***", "***"]);
        assert_eq!(tail.quoted("bad key MIIEbody\x1b[2J"), "bad key ***[2J");
    }

    #[test]
    fn escaped_secrets_do_not_show() {
        let tail = StderrTail::with_secrets([Secret::new("hunt/er\"22")]);
        tail.add(br#"{"key":"hunt\/er\"22","again":"\u0068unt/er\u002222"} hunt%2Fer%2222"#);
        assert_eq!(tail.lines(), [r#"{"key":"***","again":"***"} ***"#]);
    }

    #[test]
    fn secrets_that_come_in_pieces_do_not_show() {
        let tail = StderrTail::with_secrets([Secret::new("hunter22hunter22")]);
        tail.add(b"a hunter2");
        assert_eq!(tail.lines(), ["a ***"]);
        tail.add(b"2hunter22 b\n");
        assert_eq!(tail.lines(), ["a *** b"]);
        tail.add(b"c hunter2\n   2hunt\ner22 d\n");
        assert_eq!(tail.lines(), ["a *** b", "c ***", "   ***", "*** d"]);
        // Invisible characters do not hide a secret.
        tail.add(b"hunter\x1b22hunter22\n");
        assert_eq!(tail.lines()[4], "***");
    }

    #[test]
    fn a_secret_that_began_in_a_line_that_is_gone_does_not_show() {
        let tail = StderrTail::with_secrets([Secret::new("hunter22hunter22")]);
        tail.add(b"hunter22\nhunter22\n");
        for number in 1..MAX_LINES {
            tail.add(format!("line {number}\n").as_bytes());
        }
        let lines = tail.lines();
        assert_eq!((lines.len(), lines[0].as_str()), (MAX_LINES, "***"));
    }

    #[test]
    fn no_beginning_of_a_secret_shows_where_a_line_is_cut() {
        let secret = "hunter22hunter22";
        // So many that, once masked, the end of the kept part of the line is shown.
        let line = format!("{} {}", format!("{secret} ").repeat(MAX_KEPT_BYTES / 17), secret);
        for cut in 0..secret.len() {
            let tail = StderrTail::with_secrets([Secret::new(secret)]);
            tail.add(format!("{}{line}\n", "x".repeat(cut)).as_bytes());
            let [shown] = &tail.lines()[..] else { panic!() };
            assert!(!shown.contains("hunt"), "{cut}: {shown}");
        }
    }
}
