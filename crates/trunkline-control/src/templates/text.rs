//! Text from servers, made safe to read: maud escapes the HTML, this module invisible characters.

use std::fmt::Write as _;

use maud::{Markup, html};

/// Characters of a name in a table. Longer names are cut: 10 kB of name would push the page aside.
const NAME_CHARS: usize = 80;

/// Characters of a name in a tooltip, which browsers cut themselves somewhere after that.
const TITLE_CHARS: usize = 600;

/// Replaces characters that are invisible or that reorder text by their code points, as in `\u{202e}`.
/// Line feeds and tabs stay.
pub(crate) fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if is_deceptive(character) {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{{{:x}}}", u32::from(character));
        } else {
            out.push(character);
        }
    }
    out
}

/// Like [`shown`], for text of one line: also replaces line feeds and tabs.
pub(super) fn shown_line(text: &str) -> String {
    shown(text).replace('\n', "\\u{a}").replace('\t', "\\u{9}")
}

/// Whether a character is invisible, moves the cursor or changes the direction of its neighbours.
fn is_deceptive(character: char) -> bool {
    if matches!(character, '\n' | '\t') {
        return false;
    }
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{3164}' | '\u{ffa0}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// The first characters of a text, and how many are missing.
pub(super) fn cut(text: &str, max_chars: usize) -> (&str, usize) {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => {
            let (head, tail) = text.split_at_checked(end).unwrap_or((text, ""));
            (head, tail.chars().count())
        }
        None => (text, 0),
    }
}

/// A name in a table or a heading: one line, cut, the rest in its tooltip.
pub(super) fn name(text: &str) -> Markup {
    let (head, missing) = cut(text, NAME_CHARS);
    if missing == 0 {
        return html! { (shown_line(head)) };
    }
    let (title, _) = cut(text, TITLE_CHARS);
    html! {
        span title=(shown_line(title)) { (shown_line(head)) "…" }
    }
}

/// A name whose rest can be opened.
pub(super) fn full_name(text: &str) -> Markup {
    let (head, missing) = cut(text, NAME_CHARS);
    if missing == 0 {
        return html! { (shown_line(head)) };
    }
    html! {
        (shown_line(head)) "…"
        details.long { summary { (missing) " more characters" } p { (shown_line(text)) } }
    }
}

/// A name in an attribute, such as a label: one line, cut.
pub(super) fn label(text: &str) -> String {
    let (head, missing) = cut(text, NAME_CHARS);
    let mut out = shown_line(head);
    if missing > 0 {
        out.push('…');
    }
    out
}

/// A text of any length, its first line visible, the rest to open.
pub(super) fn prose(text: &str, visible_chars: usize) -> Markup {
    let first = text.trim().lines().next().unwrap_or_default();
    let (head, missing) = cut(first, visible_chars);
    if missing == 0 && first.len() == text.trim().len() {
        return with_code(head);
    }
    html! {
        details.prose {
            summary { (shown(head)) @if missing > 0 { "…" } }
            p.text { (with_code(text.trim())) }
        }
    }
}

/// A text whose parts in backquotes are code, as messages and descriptions have them. No other markup is read.
pub(super) fn with_code(text: &str) -> Markup {
    let text = shown(text);
    // A text with an odd number of backquotes does not use them in pairs.
    if !text.matches('`').count().is_multiple_of(2) || text.contains("``") {
        return html! { (text) };
    }
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{cut, full_name, name, prose, shown, shown_line, with_code};

    #[test]
    fn backquotes_in_pairs_are_code() {
        assert_eq!(with_code("run `a` now").into_string(), "run <code>a</code> now");
        assert_eq!(with_code("it`s").into_string(), "it`s");
        assert_eq!(with_code("```x```").into_string(), "```x```");
        assert_eq!(with_code("`<b>`").into_string(), "<code>&lt;b&gt;</code>");
    }

    #[test]
    fn invisible_characters_are_shown_by_code_point() {
        assert_eq!(shown("a\u{202e}b\u{7}c\u{200b}"), "a\\u{202e}b\\u{7}c\\u{200b}");
        assert_eq!(shown("Zürich 日本 🚀\n\tx"), "Zürich 日本 🚀\n\tx");
        assert_eq!(shown("\u{e0041}\u{2066}\r"), "\\u{e0041}\\u{2066}\\u{d}");
        assert_eq!(shown_line("a\nb"), "a\\u{a}b");
    }

    #[test]
    fn texts_are_cut_at_characters() {
        assert_eq!(cut("äöü", 2), ("äö", 1));
        assert_eq!(cut("äöü", 3), ("äöü", 0));
        let long = "ü".repeat(10_000);
        assert!(name(&long).into_string().len() < 2_000);
        assert!(full_name(&long).into_string().contains("9920 more characters"));
    }

    #[test]
    fn html_is_escaped() {
        let html = prose("<img src=x onerror=alert(1)>\n\"><script>", 80).into_string();
        assert!(!html.contains("<img") && !html.contains("<script"), "{html}");
    }
}
