//! Decisions about configuration files that came with a directory.

use maud::{Markup, html};

use super::address::{FNV_OFFSET, element_id, encode, fnv1a, with_query};
use super::format::counted;
use super::layout::Nonce;
use super::part::{Tone, badge, empty};
use super::text::{label, name, shown};
use crate::types::TrustRequest;

/// The requests. Response of `POST /trust/{id}/trust` and `/block`; replaces `#trust`.
///
/// Events do not redraw this part: a request that moves under the pointer could be trusted in place of another one.
/// `trust_changes` offers to reload instead.
pub(crate) fn trust(nonce: Nonce<'_>, requests: &[TrustRequest]) -> Markup {
    let pending = requests.iter().filter(|request| request.state == "pending").count();
    html! {
        section #trust {
            div.head { h1 { "Trust" } p.muted { (counted(pending, "pending decision")) } }
            p.lead {
                "Configuration files in a directory can run any program as you. Trunkline starts their servers only after you trust the file as it is now; a changed file asks again."
            }
            (trust_changes(nonce, trust_revision(requests), requests))
            @if requests.is_empty() {
                (empty("Nothing to decide", "Files that ask for trust appear here."))
            }
            @for request in requests { (card(nonce, request)) }
        }
    }
}

/// A number that differs where the requests or their states differ.
pub(crate) fn trust_revision(requests: &[TrustRequest]) -> u64 {
    let texts = requests.iter().flat_map(|request| [&request.id, &request.state]);
    texts.flat_map(|text| text.bytes().chain([0])).fold(FNV_OFFSET, fnv1a)
}

/// Whether the requests on the page are still the current ones. Fragment: `/fragments/trust-changes?seen=…`, where
/// `seen` is the revision that the page shows; replaces `#trust-changes`.
pub(crate) fn trust_changes(nonce: Nonce<'_>, seen: u64, requests: &[TrustRequest]) -> Markup {
    let address = with_query("/fragments/trust-changes", &[("seen", &seen.to_string())]);
    html! {
        div #trust-changes role="status" hx-get=(address) hx-trigger="trust from:#events throttle:250ms"
            hx-swap="outerMorph" hx-nonce=(nonce)
        {
            @if seen != trust_revision(requests) {
                div.banner { p { "The list has changed. " a href="/trust" { "Show the current requests" } } }
            }
        }
    }
}

fn card(nonce: Nonce<'_>, request: &TrustRequest) -> Markup {
    let is_blocked = request.state == "blocked";
    html! {
        article.group id=(element_id("request", &[&request.id])) {
            header.bar {
                h2.path { (name(&request.file)) }
                @if is_blocked { (badge(Tone::Off, "Blocked")) } @else { (badge(Tone::Wait, "Pending")) }
            }
            p.muted { "Project " (name(&request.project)) " · would run or reach:" }
            dl.commands {
                @for server in &request.servers {
                    dt { (name(&server.name)) }
                    // The whole command, however long: what is not visible here would run all the same.
                    dd { pre tabindex="0" { (shown(&server.runs)) } }
                }
            }
            div.decide {
                (decision(nonce, request, "trust"))
                @if !is_blocked { (decision(nonce, request, "block")) }
                p.muted { "Or on the command line: " code { (shown(&request.command)) } }
            }
        }
    }
}

/// A button that posts to `/trust/{id}/{verb}`.
fn decision(nonce: Nonce<'_>, request: &TrustRequest, verb: &str) -> Markup {
    let address = format!("/trust/{}/{verb}", encode(&request.id));
    let word = if verb == "trust" { "Trust" } else { "Block" };
    html! {
        form method="post" action=(address) hx-post=(address) hx-target="#trust" hx-swap="outerMorph"
            hx-sync="this:drop" hx-nonce=(nonce)
        {
            button id=(element_id(verb, &[&request.id])) aria-label={ (word) " " (label(&request.file)) } { (word) }
        }
    }
}
