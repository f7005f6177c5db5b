//! Elements that several parts share.

use maud::{Markup, html};

use super::text::shown_line;

/// The meaning of the colour of a badge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Good,
    Wait,
    Bad,
    Off,
}

impl Tone {
    fn class(self) -> &'static str {
        match self {
            Self::Good => "badge good",
            Self::Wait => "badge wait",
            Self::Bad => "badge bad",
            Self::Off => "badge off",
        }
    }
}

/// A word with a colour.
pub(super) fn badge(tone: Tone, word: &str) -> Markup {
    html! { span class=(tone.class()) { (shown_line(word)) } }
}

/// A choice of a filter; the first option is "all".
pub(super) fn filter(name: &str, label: &str, chosen: &str, options: &[String]) -> Markup {
    html! {
        label.filter {
            span { (label) }
            select name=(name) {
                option value="" { "All" }
                @for option in options {
                    option value=(option) selected[option == chosen] { (super::text::label(option)) }
                }
                // A choice that has no rows any more stays visible, or the list would look unfiltered.
                @if !chosen.is_empty() && !options.iter().any(|option| option == chosen) {
                    option value=(chosen) selected { (super::text::label(chosen)) }
                }
            }
        }
    }
}

/// The text of a list without rows.
pub(super) fn empty(title: &str, advice: &str) -> Markup {
    html! { div.empty { p.strong { (title) } p.muted { (advice) } } }
}
