//! The last lines of a server's standard error, kept for the moment something goes wrong.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::config::{MASK, Secret, is_hidden};

/// Lines kept per server: enough for a stack trace, little enough for a table.
const MAX_LINES: usize = 20;

/// Bytes kept of one line.
const MAX_LINE_BYTES: usize = 400;

/// Shortest secret that is looked for; shorter ones would blot out ordinary words.
const SHORTEST_SECRET: usize = 6;

/// The last lines, bounded, printable, and without the secrets the server was given. Clones are the
/// same lines.
#[derive(Clone, Default)]
pub(crate) struct Tail {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    lines: VecDeque<String>,
    unfinished: Vec<u8>,
    secrets: Vec<Secret>,
}

impl Tail {
    /// Keeps lines in which none of `secrets` may appear.
    pub(crate) fn without(secrets: impl IntoIterator<Item = Secret>) -> Self {
        let mut secrets: Vec<_> = secrets.into_iter().flat_map(|secret| parts(&secret)).collect();
        // Longest first, so that no part of one is left behind by a shorter one.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
        Self { inner: Arc::new(Mutex::new(Inner { secrets, ..Inner::default() })) }
    }

    pub(super) fn add(&self, bytes: &[u8]) {
        self.lock().add(bytes);
    }

    /// The lines so far, the unfinished one included.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lock().lines()
    }

    /// A text of the server as it can be shown: one line, without what the server was given.
    pub(super) fn quoted(&self, text: &str) -> String {
        self.lock().shown(text.as_bytes())
    }

    /// A text of the server without what the server was given, as it is otherwise.
    pub(crate) fn redacted(&self, text: &str) -> String {
        self.lock().redacted(text)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A secret and, if it has several lines or words, each of them: that is how they are printed.
fn parts(secret: &Secret) -> Vec<Secret> {
    let text = secret.expose();
    // `Bearer` and what bears; a script, say, is made of ordinary words.
    let words = text.split_whitespace().filter(|_| text.split_whitespace().count() <= 3);
    let parts = text.lines().chain(words).chain([text]);
    let worth = parts.map(str::trim).filter(|part| part.len() >= SHORTEST_SECRET);
    let worth = worth.filter(|part| !part.eq_ignore_ascii_case("bearer"));
    worth.map(Secret::new).collect()
}

impl Inner {
    fn add(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = (MAX_LINE_BYTES * 2).saturating_sub(self.unfinished.len());
            self.unfinished.extend_from_slice(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") {
                self.finish_line();
            }
        }
    }

    fn finish_line(&mut self) {
        let bytes = std::mem::take(&mut self.unfinished);
        let line = self.shown(&bytes);
        if !line.is_empty() {
            self.lines.push_back(line);
        }
        if self.lines.len() > MAX_LINES {
            self.lines.pop_front();
        }
    }

    fn shown(&self, bytes: &[u8]) -> String {
        let text = self.redacted(&String::from_utf8_lossy(bytes));
        let visible = text.chars().filter(|character| !is_hidden(*character) || *character == '\t');
        let text: String = visible.collect();
        let end = text.floor_char_boundary(MAX_LINE_BYTES);
        text.get(..end).unwrap_or(&text).trim_end().to_owned()
    }

    fn redacted(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            text = text.replace(secret.expose(), MASK);
        }
        text
    }

    fn lines(&self) -> Vec<String> {
        let last = self.shown(&self.unfinished);
        self.lines.iter().cloned().chain((!last.is_empty()).then_some(last)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_and_bounded() {
        let tail = Tail::default();
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
        let tail = Tail::without([Secret::new("hunter22"), Secret::new("ok")]);
        tail.add(b"token hunter22 is ok \x1b[31mred\n");
        assert_eq!(tail.lines(), ["token *** is ok [31mred"]);
    }

    #[test]
    fn secrets_of_several_lines_do_not_show_line_by_line() {
        let tail =
            Tail::without([Secret::new("-----BEGIN KEY-----\nMIIEbody\n-----END KEY-----\n")]);
        tail.add(b"-----BEGIN KEY-----\nMIIEbody\n");
        assert_eq!(tail.lines(), ["***", "***"]);
        assert_eq!(tail.quoted("bad key MIIEbody\x1b[2J"), "bad key ***[2J");
    }
}
