//! The frame of each page: head, navigation, and the one event stream that its parts listen to.

use maud::{DOCTYPE, Markup, html};

use super::assets::{HTMX, HX_CSP, HX_SSE, SCRIPT, STYLE};

/// The nonce of a response. Each response needs its own, also each fragment: hx-csp removes the nonce of the page
/// from fragments as stolen, and accepts the one in the `Content-Security-Policy` header of the fragment instead.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nonce<'a>(pub(crate) &'a str);

impl maud::Render for Nonce<'_> {
    fn render_to(&self, buffer: &mut String) {
        self.0.render_to(buffer);
    }
}

/// The value of `Content-Security-Policy` for a page or a fragment.
pub(crate) fn content_security_policy(nonce: Nonce<'_>) -> String {
    format!(
        "default-src 'none'; script-src 'self' 'nonce-{}'; style-src 'self'; img-src 'self' data: blob:; \
         media-src data: blob:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; \
         require-trusted-types-for 'script'; trusted-types htmx",
        nonce.0
    )
}

/// The sections of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    /// `/servers`
    Servers,
    /// `/tools`
    Tools,
    /// `/calls`
    Calls,
    /// `/conversations`
    Conversations,
    /// `/trust`
    Trust,
}

impl Section {
    const ALL: [Self; 5] =
        [Self::Servers, Self::Tools, Self::Calls, Self::Conversations, Self::Trust];

    fn title(self) -> &'static str {
        match self {
            Self::Servers => "Servers",
            Self::Tools => "Tools",
            Self::Calls => "Calls",
            Self::Conversations => "Conversations",
            Self::Trust => "Trust",
        }
    }

    fn address(self) -> &'static str {
        match self {
            Self::Servers => "/servers",
            Self::Tools => "/tools",
            Self::Calls => "/calls",
            Self::Conversations => "/conversations",
            Self::Trust => "/trust",
        }
    }
}

/// The content of the frame of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageFrame<'a> {
    /// The nonce of this response.
    pub(crate) nonce: Nonce<'a>,
    /// The title of the window, without the name of the program.
    pub(crate) title: &'a str,
    /// The section to mark in the navigation.
    pub(crate) section: Option<Section>,
    /// Configuration files that wait for a decision.
    pub(crate) pending_decisions: usize,
}

/// `prefix`: without `data-hx-`, there is one spelling to inject instead of two. `morphIgnore`: an update from the
/// server would close the details that the reader opened. `history`: the pages themselves are the history.
const HTMX_CONFIG: &str = r#"{"extensions":"hx-csp,sse","includeIndicatorCSS":false,"prefix":"","history":"reload","morphIgnore":["data-htmx-powered","open"]}"#;

/// Where htmx shows a response with an error status, instead of in place of the part that asked.
const ERROR_TARGET: &str = "target:#notice swap:innerHTML select:.banner";

/// A whole page around its body.
pub(crate) fn layout(frame: &PageFrame<'_>, body: &Markup) -> Markup {
    let nonce = frame.nonce;
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                (head(frame.title))
                meta name="htmx-config" content=(HTMX_CONFIG);
                @for script in [&HTMX, &HX_CSP, &HX_SSE, &SCRIPT] {
                    script src=(script.address()) nonce=(nonce) {}
                }
            }
            body "hx-status:4xx:inherited"=(ERROR_TARGET) "hx-status:5xx:inherited"=(ERROR_TARGET)
                hx-nonce=(nonce)
            {
                a.skip href="#main" { "Skip to content" }
                header.top {
                    a.brand href="/servers" { "Trunkline" }
                    (navigation(frame))
                    span #live role="status" data-state="static" {}
                }
                div #events hidden "hx-sse:connect"="/api/v1/events" hx-swap="none" hx-nonce=(nonce) {}
                main #main tabindex="-1" {
                    div #notice role="alert" {}
                    (body)
                }
            }
        }
    }
}

/// The metadata of every page. `data:,` keeps browsers from asking for `/favicon.ico`.
pub(super) fn head(title: &str) -> Markup {
    html! {
        meta charset="utf-8";
        meta name="viewport" content="width=device-width, initial-scale=1";
        meta name="color-scheme" content="light dark";
        meta name="referrer" content="no-referrer";
        title { (super::text::label(title)) " · Trunkline" }
        link rel="icon" href="data:,";
        link rel="stylesheet" href=(STYLE.address());
    }
}

fn navigation(frame: &PageFrame<'_>) -> Markup {
    html! {
        nav aria-label="Sections" {
            @for section in Section::ALL {
                a href=(section.address()) aria-current=[(frame.section == Some(section)).then_some("page")] {
                    (section.title())
                    @if section == Section::Trust {
                        (trust_count(frame.nonce, frame.pending_decisions))
                    }
                }
            }
        }
    }
}

/// The number of pending decisions in the navigation. Fragment: `/fragments/trust-count`.
pub(crate) fn trust_count(nonce: Nonce<'_>, pending_decisions: usize) -> Markup {
    html! {
        span #trust-count hx-get="/fragments/trust-count" hx-trigger="trust from:#events throttle:250ms"
            hx-swap="outerMorph" hx-nonce=(nonce)
        {
            @if pending_decisions > 0 {
                " "
                span.count { (pending_decisions) span.hidden { " pending" } }
            }
        }
    }
}
