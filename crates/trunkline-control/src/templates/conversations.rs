//! Conversations and their toggles.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::address::{element_id, encode};
use super::format::{count, counted};
use super::layout::Nonce;
use super::part::empty;
use super::text::{label, name};
use crate::types::{Conversation, Project};

/// The kind of item that a switch of a conversation turns on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SwitchKind {
    /// A server with all it has.
    Server,
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
}

impl SwitchKind {
    fn key(self) -> &'static str {
        match self {
            Self::Server => "servers",
            Self::Tool => "tools",
            Self::Prompt => "prompts",
        }
    }
}

/// A change of a conversation, from the form field `switch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Switch {
    /// The kind of the item.
    pub(crate) kind: SwitchKind,
    /// Its name.
    pub(crate) name: String,
    /// The new state.
    pub(crate) is_on: bool,
}

/// Reads the form field `switch`: `servers:off:name`, `tools:on:name`, `prompts:off:name`.
pub(crate) fn parse_switch(text: &str) -> Option<Switch> {
    let (kind, rest) = text.split_once(':')?;
    let (state, name) = rest.split_once(':')?;
    let kind = match kind {
        "servers" => SwitchKind::Server,
        "tools" => SwitchKind::Tool,
        "prompts" => SwitchKind::Prompt,
        _ => return None,
    };
    let is_on = match state {
        "on" => true,
        "off" => false,
        _ => return None,
    };
    Some(Switch { kind, name: name.to_owned(), is_on })
}

/// A conversation with all items that have a switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConversationPage<'a> {
    /// The conversation.
    pub(crate) conversation: &'a Conversation,
    /// All servers of the project.
    pub(crate) servers: &'a [String],
    /// All tools of the project, by server: the names that clients see.
    pub(crate) tools: &'a BTreeMap<String, Vec<String>>,
    /// All prompts of the project.
    pub(crate) prompts: &'a [String],
}

/// The conversations of all projects, and a form for a new one.
pub(crate) fn conversations(
    nonce: Nonce<'_>,
    projects: &[Project],
    conversations: &[Conversation],
) -> Markup {
    html! {
        div.head { h1 { "Conversations" } p.muted { "Switch servers, tools and prompts off where they are not needed." } }
        (new_conversation(nonce, projects))
        (conversation_list(nonce, projects, conversations))
    }
}

/// The conversations. Fragment: `/fragments/conversations`; replaces `#conversations`.
pub(crate) fn conversation_list(
    nonce: Nonce<'_>,
    projects: &[Project],
    conversations: &[Conversation],
) -> Markup {
    html! {
        section #conversations aria-label="Conversations" hx-get="/fragments/conversations"
            hx-trigger="conversations from:#events throttle:250ms" hx-swap="outerMorph" hx-nonce=(nonce)
        {
            @if conversations.is_empty() {
                (empty("No conversations", "Name one above, and give the same name in the client."))
            } @else {
                table {
                    thead { tr { @for column in ["Conversation", "Project", "Switched off"] { th scope="col" { (column) } } } }
                    tbody { @for conversation in conversations { (row(projects, conversation)) } }
                }
            }
        }
    }
}

/// `POST /conversations` with `project` and `name`; answers with `HX-Redirect`, or 303 without scripts.
fn new_conversation(nonce: Nonce<'_>, projects: &[Project]) -> Markup {
    html! {
        form.filters method="post" action="/conversations" hx-post="/conversations" hx-swap="none" hx-nonce=(nonce) {
            label.filter.wide {
                span { "New conversation" }
                input type="text" name="name" required maxlength="100" autocomplete="off" placeholder="Name";
            }
            label.filter {
                span { "Project" }
                select name="project" {
                    @for project in projects { option value=(project.id) { (label(&project.directory)) } }
                }
            }
            button { "Add" }
        }
    }
}

/// The address of a conversation below a path; the toggles of a project have no name.
/// The address of a conversation; without a name, of the whole project.
pub(crate) fn conversation_address(project: &str, name: &str) -> String {
    let (project, name) = (project.to_owned(), name.to_owned());
    address("/conversations", &Conversation { project, name, ..Conversation::default() })
}

fn address(path: &str, conversation: &Conversation) -> String {
    let project = encode(&conversation.project);
    match conversation.name.as_str() {
        "" => format!("{path}/{project}"),
        name => format!("{path}/{project}/{}", encode(name)),
    }
}

fn title(conversation: &Conversation) -> Markup {
    match conversation.name.as_str() {
        "" => html! { "Whole project" },
        text => name(text),
    }
}

fn row(projects: &[Project], conversation: &Conversation) -> Markup {
    let project = projects.iter().find(|project| project.id == conversation.project);
    let directory = project.map_or(conversation.project.as_str(), |project| &project.directory);
    html! {
        tr id=(element_id("conversation", &[&conversation.project, &conversation.name])) {
            th scope="row" { a href=(address("/conversations", conversation)) { (title(conversation)) } }
            td.path data-label="Project" { (name(directory)) }
            td data-label="Switched off" { (switched_off(conversation)) }
        }
    }
}

fn switched_off(conversation: &Conversation) -> Markup {
    let off =
        |switches: &BTreeMap<String, bool>| switches.values().filter(|is_on| !**is_on).count();
    let counts = [
        (off(&conversation.servers), "server"),
        (off(&conversation.tools), "tool"),
        (off(&conversation.prompts), "prompt"),
    ];
    let texts: Vec<_> =
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, noun)| counted(*n, noun)).collect();
    html! {
        @if texts.is_empty() { span.muted { "Nothing" } } @else { (texts.join(", ")) }
    }
}

/// One conversation. Fragment: `/fragments/conversations/{project}/{name}`; replaces `#conversation`.
///
/// The switches are buttons, not checkboxes: morphing sets attributes, and a checkbox that was clicked once no longer
/// follows its attribute.
pub(crate) fn conversation(nonce: Nonce<'_>, page: &ConversationPage<'_>) -> Markup {
    let conversation = page.conversation;
    let post = address("/conversations", conversation);
    html! {
        section #conversation hx-get=(address("/fragments/conversations", conversation))
            hx-trigger="conversations from:#events throttle:250ms" hx-swap="outerMorph" hx-nonce=(nonce)
        {
            p.crumbs { a href="/conversations" { "Conversations" } " / " (name(&conversation.project)) }
            div.head { h1 { (title(conversation)) } p.muted { "Off: " (switched_off(conversation)) } }
            form method="post" action=(post) hx-post=(post) hx-target="#conversation" hx-swap="outerMorph" hx-nonce=(nonce) {
                (group(SwitchKind::Server, "Servers", page.servers, &conversation.servers))
                (tool_groups(page))
                (group(SwitchKind::Prompt, "Prompts", page.prompts, &conversation.prompts))
            }
        }
    }
}

fn group(
    kind: SwitchKind,
    title: &str,
    names: &[String],
    switches: &BTreeMap<String, bool>,
) -> Markup {
    html! {
        section.group {
            header.bar { h2 { (title) } span.muted { (names.len()) } }
            @if names.is_empty() { p.muted { "None" } }
            (switch_list(kind, names, switches))
        }
    }
}

fn tool_groups(page: &ConversationPage<'_>) -> Markup {
    let switches = &page.conversation.tools;
    let is_off = |name: &String| switches.get(name) == Some(&false);
    html! {
        section.group {
            header.bar { h2 { "Tools" } span.muted { (count(page.tools.values().map(Vec::len).sum::<usize>() as u64)) } }
            @for (server, tools) in page.tools {
                @let off = tools.iter().filter(|name| is_off(name)).count();
                details id=(element_id("tools-of", &[server])) {
                    summary {
                        span.strong { (name(server)) } " " span.muted { (counted(tools.len(), "tool")) @if off > 0 { ", " (off) " off" } }
                    }
                    (switch_list(SwitchKind::Tool, tools, switches))
                }
            }
        }
    }
}

fn switch_list(kind: SwitchKind, names: &[String], switches: &BTreeMap<String, bool>) -> Markup {
    html! {
        ul.switches {
            @for text in names {
                @let is_on = switches.get(text).copied().unwrap_or(true);
                li { (switch(kind, text, is_on)) }
            }
        }
    }
}

fn switch(kind: SwitchKind, text: &str, is_on: bool) -> Markup {
    let target = if is_on { "off" } else { "on" };
    let value = format!("{}:{target}:{text}", kind.key());
    html! {
        button.switch id=(element_id(kind.key(), &[text])) type="submit" role="switch" name="switch" value=(value)
            aria-checked=(is_on)
        {
            span.knob aria-hidden="true" {}
            span { (name(text)) }
            span.state aria-hidden="true" { @if is_on { "On" } @else { "Off" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Switch, SwitchKind, parse_switch};

    #[test]
    fn names_of_switches_may_hold_colons() {
        let expected = Switch { kind: SwitchKind::Tool, name: "a:b".to_owned(), is_on: false };
        assert_eq!(parse_switch("tools:off:a:b"), Some(expected));
        for text in ["", "tools", "tools:maybe:x", "other:on:x"] {
            assert_eq!(parse_switch(text), None, "{text}");
        }
    }
}
