//! The list of tools.

use maud::{Markup, html};

use super::address::{element_id, with_query};
use super::format::{count, counted};
use super::layout::Nonce;
use super::part::{Tone, badge, empty, filter};
use super::text::{name, prose, with_code};
use crate::types::{HiddenReason, Project, Tool};

/// Rows of a page: as many as a browser draws without delay.
pub(crate) const PAGE_ROWS: usize = 100;

/// Which tools to list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// All.
    #[default]
    All,
    /// Those that callers see.
    Visible,
    /// Those that a rule hides.
    Hidden,
}

impl Visibility {
    /// The value of the query parameter `visibility`; anything unknown is `All`.
    pub(crate) fn from_query(text: &str) -> Self {
        match text {
            "visible" => Self::Visible,
            "hidden" => Self::Hidden,
            _ => Self::All,
        }
    }

    fn query(self) -> &'static str {
        match self {
            Self::All => "",
            Self::Visible => "visible",
            Self::Hidden => "hidden",
        }
    }
}

/// The query of `/tools`. Empty texts are no restriction.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolQuery {
    /// ID of the project.
    pub(crate) project: String,
    /// Name of the server.
    pub(crate) server: String,
    /// Words to find.
    pub(crate) search: String,
    /// Whether hidden tools are listed.
    pub(crate) visibility: Visibility,
    /// From 0.
    pub(crate) page: usize,
}

impl ToolQuery {
    fn address(&self, path: &str, page: usize) -> String {
        let page = if page == 0 { String::new() } else { page.to_string() };
        let parameters = [
            ("project", self.project.as_str()),
            ("server", &self.server),
            ("search", &self.search),
            ("visibility", self.visibility.query()),
            ("page", &page),
        ];
        with_query(path, &parameters)
    }
}

/// A page of tools.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToolPage<'a> {
    /// The query that found them.
    pub(crate) query: &'a ToolQuery,
    /// Projects to choose from.
    pub(crate) projects: &'a [Project],
    /// Servers to choose from.
    pub(crate) servers: &'a [String],
    /// The tools of this page.
    pub(crate) tools: &'a [Tool],
    /// Tools on all pages.
    pub(crate) total: usize,
}

/// The tools with their filters.
pub(crate) fn tools(nonce: Nonce<'_>, page: &ToolPage<'_>) -> Markup {
    html! {
        div.head { h1 { "Tools" } }
        (search(nonce, page))
        (tool_list(nonce, page))
    }
}

/// The filters stay outside of the part that reloads, so that typing is never disturbed.
fn search(nonce: Nonce<'_>, page: &ToolPage<'_>) -> Markup {
    let query = page.query;
    let visibility = ["visible".to_owned(), "hidden".to_owned()];
    let ids: Vec<_> = page.projects.iter().map(|project| project.id.clone()).collect();
    html! {
        form #tool-filters.filters role="search" method="get" action="/tools" hx-get="/tools" hx-select="#tools"
            hx-target="#tools" hx-swap="outerMorph" hx-replace-url="true" hx-sync="replace"
            hx-trigger=r##"submit, change from:"#tool-filters select", input delay:250ms from:#tool-search"##
            hx-nonce=(nonce)
        {
            label.filter.wide {
                span { "Search" }
                input #tool-search type="search" name="search" value=(query.search) autocomplete="off"
                    placeholder="Name or description";
            }
            @if ids.len() > 1 { (filter("project", "Project", &query.project, &ids)) }
            (filter("server", "Server", &query.server, page.servers))
            (filter("visibility", "Visibility", query.visibility.query(), &visibility))
            noscript { button { "Search" } }
        }
    }
}

/// The tools. Fragment: `/fragments/tools` with the query of `/tools`; replaces `#tools`.
pub(crate) fn tool_list(nonce: Nonce<'_>, page: &ToolPage<'_>) -> Markup {
    let query = page.query;
    html! {
        section #tools aria-label="Tools" hx-get=(query.address("/fragments/tools", query.page))
            hx-trigger="tools from:#events throttle:250ms" hx-swap="outerMorph" hx-nonce=(nonce)
        {
            @if page.tools.is_empty() {
                (empty("No tools", "Nothing matches the filters, or no server has started yet."))
            } @else {
                (table(page.tools))
                (pages(page))
            }
        }
    }
}

fn table(tools: &[Tool]) -> Markup {
    html! {
        table.tools {
            thead {
                tr {
                    th scope="col" { "Tool" }
                    th scope="col" { "Server" }
                    th scope="col" { "Description" }
                    th.number scope="col" { "Tokens" }
                }
            }
            tbody { @for tool in tools { (row(tool)) } }
        }
    }
}

/// The address of a tool. A query, because `..` in a path would be another address.
fn tool_address(tool: &Tool) -> String {
    let parameters =
        [("project", tool.project.as_str()), ("server", &tool.server), ("name", &tool.name)];
    with_query("/tool", &parameters)
}

fn row(tool: &Tool) -> Markup {
    const VISIBLE_CHARS: usize = 110;
    html! {
        tr id=(element_id("tool", &[&tool.project, &tool.server, &tool.name])) {
            th scope="row" {
                a href=(tool_address(tool)) { (name(&tool.name)) }
                @if let Some(title) = &tool.title { span.sub { (name(title)) } }
            }
            td data-label="Server" { (name(&tool.server)) }
            td data-label="Description" {
                @match &tool.description {
                    Some(text) => (prose(text, VISIBLE_CHARS)),
                    None => span.muted { "No description" },
                }
                @if !tool.is_visible { (hidden(&tool.reasons)) }
            }
            td.number data-label="Tokens" { (tool.tokens.map_or("–".to_owned(), |n| count(n as u64))) }
        }
    }
}

/// Why a tool is hidden, and the change that shows it.
pub(super) fn hidden(reasons: &[HiddenReason]) -> Markup {
    html! {
        div.reasons {
            (badge(Tone::Off, "Hidden"))
            ul {
                @for reason in reasons {
                    li {
                        code { (name(&reason.rule)) } " · " (with_code(&reason.reason))
                        @if let Some(remedy) = &reason.remedy { span { " → " (with_code(remedy)) } }
                    }
                }
            }
        }
    }
}

fn pages(page: &ToolPage<'_>) -> Markup {
    let query = page.query;
    let first = query.page * PAGE_ROWS;
    let last = first + page.tools.len();
    html! {
        nav.pages aria-label="Pages" {
            span.muted { (count(first as u64 + 1)) "–" (count(last as u64)) " of " (counted(page.total, "tool")) }
            @if query.page > 0 {
                a.button rel="prev" href=(query.address("/tools", query.page - 1)) { "Previous" }
            }
            @if last < page.total {
                a.button rel="next" href=(query.address("/tools", query.page + 1)) { "Next" }
            }
        }
    }
}
