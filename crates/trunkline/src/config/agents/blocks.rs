//! Where the blocks of YAML in a markdown file are, and what of them may be shown.

use crate::config::redact::is_plain;
use crate::config::source::Span;

/// Keys whose values are ours to show.
const SHOWN: &[&str] = &["name", "tools"];

/// A block of YAML between two lines of `---`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// The line that opens it.
    pub(super) opening: Span,
    /// What is between the lines.
    pub(super) yaml: Span,
    pub(super) is_closed: bool,
    /// Whether nothing but white space stands before it.
    pub(super) is_first: bool,
}

/// Every block that opens an agent.
///
/// A file may start with one. Any other line of `---` may as well be a rule between paragraphs: it
/// opens a block only if a line `name:` follows before the next one. What is fenced as code is text.
pub(super) fn blocks(text: &str) -> Vec<Block> {
    let lines: Vec<Line<'_>> = lines(text).collect();
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

struct Line<'t> {
    start: usize,
    /// Without its line break, and without a byte order mark.
    text: &'t str,
}

impl Line<'_> {
    fn span(&self) -> Span {
        Span::new(self.start, self.start + self.text.trim_end().len())
    }
}

fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut start = 0;
    text.split_inclusive('\n').map(move |whole| {
        let mut line = Line { start, text: whole.trim_end_matches(['\n', '\r']) };
        if start == 0
            && let Some(rest) = line.text.strip_prefix('\u{feff}')
        {
            line = Line { start: '\u{feff}'.len_utf8(), text: rest };
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

/// The block that a line of `---` opens, if it does, and the line after it.
fn block_at(lines: &[Line<'_>], opening: usize, is_first: bool) -> Option<(Block, usize)> {
    let inside = &lines[opening + 1..];
    let closing = inside.iter().position(|line| is_closing(line.text));
    // Without its end a block is as long as its first paragraph.
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
    let block = Block {
        opening: opening_line.span(),
        yaml: Span::new(start, end),
        is_closed: closing.is_some(),
        is_first,
    };
    Some((block, opening + 1 + length + usize::from(closing.is_some())))
}

/// What must not be shown of an agent file: everything but markers, keys, names and patterns.
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
            _ if continues && is_ours && is_pattern(line.text) => {}
            Some(key) if !continues => {
                is_ours = SHOWN.contains(&key);
                let value = line.start + key.len() + 1;
                if !is_ours && value < end {
                    hidden.push(Span::new(value, end));
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

/// Whether a line below `tools` is a pattern, alone or with a switch, and nothing more.
fn is_pattern(line: &str) -> bool {
    match line.rsplit_once(':') {
        None => true,
        Some((_, value)) => matches!(value.trim(), "true" | "false"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        blocks(text).iter().map(|block| &text[block.yaml.range()]).collect()
    }

    #[test]
    fn blocks_are_told_from_rules_and_from_code() {
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
}
