//! The servers with their state.

use maud::{Markup, html};

use super::address::{element_id, encode};
use super::format::{count, counted, span};
use super::layout::Nonce;
use super::part::{Tone, badge, empty};
use super::text::{full_name, label, name, shown, shown_line, with_code};
use crate::types::{Project, Server};

/// The servers of all projects. Fragment: `/fragments/servers`; replaces `#servers`.
pub(crate) fn servers(nonce: Nonce<'_>, projects: &[Project], servers: &[Server]) -> Markup {
    html! {
        section #servers hx-get="/fragments/servers" hx-trigger="servers from:#events throttle:250ms"
            hx-swap="outerMorph" hx-nonce=(nonce)
        {
            div.head { h1 { "Servers" } (summary(servers)) }
            @if projects.is_empty() {
                (empty("No project is connected", "Projects appear here when a client connects to Trunkline."))
            }
            @for project in projects {
                (project_servers(nonce, project, servers))
            }
        }
    }
}

fn summary(servers: &[Server]) -> Markup {
    let in_tone = |tone| servers.iter().filter(|server| state(&server.state).0 == tone).count();
    let failed = in_tone(Tone::Bad);
    html! {
        p.muted {
            (counted(servers.len(), "server")) " · " (in_tone(Tone::Good)) " ready"
            @if failed > 0 { " · " (failed) " failed" }
        }
    }
}

fn project_servers(nonce: Nonce<'_>, project: &Project, servers: &[Server]) -> Markup {
    let own: Vec<_> = servers.iter().filter(|server| server.project == project.id).collect();
    html! {
        section.group id=(element_id("project", &[&project.id])) {
            header.bar {
                h2.path { (name(&project.directory)) }
                @if let Some(clients) = project.clients {
                    span.muted { (counted(clients, "client")) " connected" }
                }
            }
            @if let Some(problem) = &project.problem {
                div.banner.bad role="alert" {
                    p.strong { "The files on disk are not in force" }
                    p.text { (with_code(problem)) }
                }
            }
            @if own.is_empty() {
                (empty("No servers", "Add one with `trunkline add`, or to the configuration of the project."))
            } @else {
                (table(nonce, &own))
            }
        }
    }
}

fn table(nonce: Nonce<'_>, servers: &[&Server]) -> Markup {
    html! {
        table.counts {
            thead {
                tr {
                    th scope="col" { "Server" }
                    th scope="col" { "State" }
                    @for column in ["Uptime", "Tools", "Calls", "Failures", "Restarts"] {
                        th.number scope="col" { (column) }
                    }
                    th scope="col" { span.hidden { "Actions" } }
                }
            }
            @for server in servers {
                tbody id=(element_id("server", &[&server.project, &server.name])) {
                    (row(nonce, server))
                    @if has_details(server) {
                        tr.detail { td colspan="8" { (details(server)) } }
                    }
                }
            }
        }
    }
}

fn row(nonce: Nonce<'_>, server: &Server) -> Markup {
    let (tone, word) = state(&server.state);
    let traits = [&server.transport, &server.protocol, &server.share];
    let traits: Vec<_> = traits.into_iter().flatten().map(|text| shown_line(text)).collect();
    html! {
        tr {
            th scope="row" {
                (name(&server.name))
                @if !traits.is_empty() { span.sub { (traits.join(" · ")) } }
            }
            td data-label="State" { (badge(tone, word)) (next_attempt(server)) }
            td.number data-label="Uptime" { (server.uptime_ms.map_or("–".to_owned(), span)) }
            td.number data-label="Tools" { (server.tools.map_or("–".to_owned(), |n| count(n as u64))) }
            td.number data-label="Calls" { (quiet(server.calls)) }
            td.number data-label="Failures" { (alarming(server.failures)) }
            td.number data-label="Restarts" { (alarming(u64::from(server.restarts))) }
            td.actions { (actions(nonce, server)) }
        }
    }
}

fn next_attempt(server: &Server) -> Markup {
    html! {
        @if let Some(ms) = server.next_attempt_ms { span.sub { "tries again in " (span(ms)) } }
        @if let Some(pid) = server.pid { span.sub { "process " (pid) } }
    }
}

/// A number; nothing to see in a zero.
fn quiet(number: u64) -> Markup {
    html! { @if number == 0 { span.muted { "0" } } @else { (count(number)) } }
}

/// A number that should be zero.
fn alarming(number: u64) -> Markup {
    html! { @if number > 0 { span.alarm { (count(number)) } } @else { (quiet(number)) } }
}

/// The colour and the words for a state. Unknown states are shown as they are.
fn state(state: &str) -> (Tone, &str) {
    match state {
        "ready" => (Tone::Good, "Ready"),
        "starting" => (Tone::Wait, "Starting"),
        "stopping" => (Tone::Wait, "Stopping"),
        "needs-login" => (Tone::Wait, "Needs login"),
        "not-trusted" => (Tone::Wait, "Not trusted"),
        "failed" => (Tone::Bad, "Failed"),
        "idle" => (Tone::Off, "Idle"),
        "disabled" => (Tone::Off, "Disabled"),
        "stopped" => (Tone::Off, "Stopped"),
        other => (Tone::Off, other),
    }
}

fn actions(nonce: Nonce<'_>, server: &Server) -> Markup {
    if server.state == "not-trusted" {
        return html! { a.button href="/trust" { "Review" } };
    }
    // A failed server that will be tried again can be stopped from that.
    let has_given_up = server.state == "failed" && server.next_attempt_ms.is_none();
    let is_down = matches!(server.state.as_str(), "stopped" | "idle") || has_given_up;
    html! {
        @if server.is_startable {
            // One form for both, so that the button keeps the focus when the state changes.
            @if is_down { (action(nonce, server, "start")) } @else { (action(nonce, server, "stop")) }
            @if !is_down { (action(nonce, server, "restart")) }
        }
    }
}

/// A button that posts to `/servers/{project}/{name}/{action}`; the response replaces `#servers`.
fn action(nonce: Nonce<'_>, server: &Server, action: &str) -> Markup {
    let address = format!("/servers/{}/{}/{action}", encode(&server.project), encode(&server.name));
    let slot = if action == "restart" { "restart" } else { "power" };
    let word = match action {
        "start" => "Start",
        "stop" => "Stop",
        _ => "Restart",
    };
    let id = element_id(slot, &[&server.project, &server.name]);
    html! {
        form method="post" action=(address) hx-post=(address) hx-target="#servers" hx-swap="outerMorph"
            hx-sync="this:drop" hx-nonce=(nonce)
        {
            button id=(id) aria-label={ (word) " " (label(&server.name)) } { (word) }
        }
    }
}

fn has_details(server: &Server) -> bool {
    server.error.is_some() || server.hint.is_some() || !server.stderr.is_empty()
}

fn details(server: &Server) -> Markup {
    let id = element_id("stderr", &[&server.project, &server.name]);
    html! {
        @if let Some(error) = &server.error { div.problem { (full_name_or_text(error)) } }
        @if let Some(hint) = &server.hint { p { span.strong { "What to do: " } (with_code(hint)) } }
        @if !server.stderr.is_empty() {
            details id=(id) {
                summary { "Standard error, last " (counted(server.stderr.len(), "line")) }
                pre tabindex="0" { @for line in &server.stderr { (shown(line)) "\n" } }
            }
        }
    }
}

/// An error, cut if it is longer than a reader would read.
fn full_name_or_text(error: &str) -> Markup {
    const READABLE_CHARS: usize = 600;
    if error.chars().count() > READABLE_CHARS { full_name(error) } else { with_code(error) }
}
