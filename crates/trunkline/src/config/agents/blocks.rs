//! Finds the YAML frontmatter blocks in a markdown file, and the spans of it that are sensitive.

#![expect(
    clippy::string_slice,
    reason = "a parser of its own text: every offset comes from this text, and fuzzing covers it"
)]

use crate::config::redact::{is_like_credential, is_plain};
use crate::config::source::Span;

/// Keys whose values may be shown.
const SHOWN: &[&str] = &["name", "tools"];

/// Separators between patterns on one line.
const SIGNS: [char; 5] = [',', '[', ']', '{', '}'];

/// A block of YAML between two `---` lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrontmatterBlock {
    /// The opening `---` line.
    pub(super) opening: Span,
    /// The content between the two lines.
    pub(super) yaml: Span,
    pub(super) is_closed: bool,
    /// Whether only white space precedes it.
    pub(super) is_first: bool,
}

/// Returns every block that defines an agent.
///
/// A file may start with one. Any other `---` line may be a thematic break: it opens a block only
/// if a `name:` line follows before the next `---`. Fenced code is skipped.
pub(super) fn blocks(text: &str) -> Vec<FrontmatterBlock> {
    let lines: Vec<MarkdownLine<'_>> = lines(text).collect();
    let mut blocks = Vec::new();
    let mut fence: Option<&str> = None;
    let mut is_first = true;
    let mut index = 0;
    while index < lines.len() {
        let line = &lines[index];
        index += 1;
        if let Some(mark) = fence {
            fence = Some(mark).filter(|mark| !line.text.trim_start().starts_with(mark));
            continue;
        }
        fence = ["```", "~~~"].into_iter().find(|mark| line.text.trim_start().starts_with(mark));
        if is_marker(line.text)
            && let Some((block, next)) = block_at(&lines, index - 1, is_first)
        {
            blocks.push(block);
            index = next;
        }
        is_first = is_first && line.text.trim().is_empty();
    }
    blocks
}

struct MarkdownLine<'t> {
    start: usize,
    /// Without line break and byte order mark.
    text: &'t str,
}

impl MarkdownLine<'_> {
    fn span(&self) -> Span {
        Span::new(self.start, self.start + self.text.trim_end().len())
    }
}

fn lines(text: &str) -> impl Iterator<Item = MarkdownLine<'_>> {
    let mut start = 0;
    text.split_inclusive('\n').map(move |whole| {
        let mut line = MarkdownLine { start, text: whole.trim_end_matches(['\n', '\r']) };
        if start == 0
            && let Some(rest) = line.text.strip_prefix('\u{feff}')
        {
            line = MarkdownLine { start: '\u{feff}'.len_utf8(), text: rest };
        }
        start += whole.len();
        line
    })
}

fn is_marker(line: &str) -> bool {
    line.trim_end() == "---"
}

fn is_closing(line: &str) -> bool {
    is_marker(line) || line.trim_end() == "..."
}

/// Returns the block that a `---` line opens, if any, and the index of the line after it.
fn block_at(
    lines: &[MarkdownLine<'_>],
    opening: usize,
    is_first: bool,
) -> Option<(FrontmatterBlock, usize)> {
    let inside = &lines[opening + 1..];
    let closing = inside.iter().position(|line| is_closing(line.text));
    // An unclosed block ends with its first paragraph.
    let paragraph = || inside.iter().position(|line| line.text.trim().is_empty());
    let length = closing.or_else(paragraph).unwrap_or(inside.len());
    let has_name = inside[..length].iter().any(|line| line.text.starts_with("name:"));
    if !is_first && !has_name {
        return None;
    }
    let opening_line = &lines[opening];
    let start = inside.first().map_or(opening_line.span().end(), |line| line.start);
    let last = inside[..length].last();
    let end = last.map_or(start, |line| line.start + line.text.len());
    let block = FrontmatterBlock {
        opening: opening_line.span(),
        yaml: Span::new(start, end),
        is_closed: closing.is_some(),
        is_first,
    };
    Some((block, opening + 1 + length + usize::from(closing.is_some())))
}

/// Returns the spans of an agent file that must not be shown: all but markers, keys, names and
/// patterns.
pub(super) fn sensitive_spans(text: &str) -> Vec<Span> {
    let mut hidden = Vec::new();
    let mut is_ours = false;
    for line in lines(text) {
        let end = line.start + line.text.len();
        if is_marker(line.text) || line.text.trim().is_empty() {
            is_ours = false;
            continue;
        }
        let continues = line.text.starts_with([' ', '\t', '-']);
        let key = line.text.split_once(':').map(|(key, _)| key).filter(|key| is_plain(key));
        match key {
            _ if continues && is_ours && harmless_length(line.text) == line.text.len() => {}
            Some(key) if !continues => {
                let value = &line.text[key.len() + 1..];
                let shown = if SHOWN.contains(&key) { harmless_length(value) } else { 0 };
                // A line after a hidden value may continue that value.
                is_ours = SHOWN.contains(&key) && shown == value.len();
                if shown < value.len() {
                    hidden.push(Span::new(end - (value.len() - shown), end));
                }
            }
            _ => {
                is_ours = false;
                hidden.push(Span::new(line.start, end));
            }
        }
    }
    hidden
}

/// Returns the length of the prefix of a `name` or `tools` value that is known to be harmless:
/// names, patterns and patterns with a boolean. The prefix ends at a possible credential, a value
/// that is not a boolean, or a comment.
fn harmless_length(line: &str) -> usize {
    let end = comment(line).unwrap_or(line.len());
    let mut start = 0;
    for piece in line[..end].split_inclusive(SIGNS) {
        let body = piece.trim_end_matches(SIGNS);
        let (pattern, switch) = body.split_at_checked(switch_start(body)).unwrap_or((body, ""));
        if is_like_credential(pattern.trim()) {
            return start;
        }
        if !matches!(switch.trim().trim_matches(['"', '\'']), "" | "true" | "false") {
            return start + pattern.len();
        }
        start += piece.len();
    }
    end
}

/// Returns the offset of the value of a pattern in a map; the end if there is none.
fn switch_start(piece: &str) -> usize {
    let mut colons = piece.match_indices(':').map(|(at, _)| at + 1);
    // The colon in `://` of a URI pattern does not end the pattern.
    let is_end = |after: &usize| !piece[*after..].starts_with("//");
    colons.find(is_end).unwrap_or(piece.len())
}

fn comment(line: &str) -> Option<usize> {
    let mut signs = line.match_indices('#').map(|(at, _)| at);
    signs.find(|at| line[..*at].chars().next_back().is_none_or(char::is_whitespace))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test that panics fails")]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        blocks(text).iter().map(|block| &text[block.yaml.range()]).collect()
    }

    #[test]
    fn blocks_are_distinguished_from_rules_and_code() {
        let text = "\u{feff}\n---\na: 1\n---\nText\n\n---\n\nMore: text\n\n---\nname: b\n---\n\
                    ```\n---\nname: c\n---\n```\n---\nname: d\n...\n";
        assert_eq!(found(text), ["a: 1", "name: b", "name: d"]);
        assert_eq!(found("Text\n---\nNote: x\n---\n"), Vec::<&str>::new());
        assert_eq!(found(""), Vec::<&str>::new());
    }

    #[test]
    fn line_breaks_of_windows_make_no_difference() {
        assert_eq!(
            found("---\r\nname: a\r\ntools: [b]\r\n---\r\nText\r\n"),
            ["name: a\r\ntools: [b]"]
        );
    }

    #[test]
    fn a_block_without_end_is_its_first_paragraph() {
        let text = "---\nname: a\n\nText\n";
        assert_eq!(found(text), ["name: a"]);
        assert!(!blocks(text)[0].is_closed);
        assert!(!blocks("---")[0].is_closed);
        assert_eq!(blocks("Text\n---\n").len(), 0);
    }

    #[test]
    fn only_keys_names_and_patterns_may_be_shown() {
        let text = "---\nname: a\ntools:\n  - b\n- c\n  d_*: false\n  K: sesame\nenv:\n  K: sesame\nx y\n---\nsesame\n";
        let mut shown = text.to_owned();
        for span in sensitive_spans(text).iter().rev() {
            shown.replace_range(span.range(), "#");
        }
        assert_eq!(
            shown,
            "---\nname: a\ntools:\n  - b\n- c\n  d_*: false\n#\nenv:\n#\n#\n---\n#\n"
        );
    }

    /// SEC-2: a map on one line hides its values like one on several lines.
    #[test]
    fn invalid_switches_and_likely_credentials_are_masked() {
        for (line, expected) in [
            ("tools: {a: sk-abcdefSECRET123}", "tools: {a:#"),
            ("tools: {a: true, b: sesame, c: false}", "tools: {a: true, b:#"),
            ("tools: {\"a\":\"x,sesame\"}", "tools: {\"a\":#"),
            ("tools: {a: 'sesame\n  sesame'}", "tools: {a:#\n#"),
            ("tools: [a, sk-abcdefSECRET123, b]", "tools: [a,#"),
            ("tools: a_*, !b # sesame", "tools: a_*, !b #"),
            ("tools:\n  - ghp_abcdefgh\n  - b", "tools:\n#\n#"),
            ("name: sk-abcdefSECRET123", "name:#"),
            ("tools: {a_*: true, \"!b\": \"false\"}", "tools: {a_*: true, \"!b\": \"false\"}"),
            ("tools: [docs_docs://{x}, '*', b]", "tools: [docs_docs://{x}, '*', b]"),
        ] {
            let mut shown = line.to_owned();
            for span in sensitive_spans(line).iter().rev() {
                shown.replace_range(span.range(), "#");
            }
            assert_eq!(shown, expected, "{line}");
        }
    }
}
