//! Pages and notices for errors.

use maud::{DOCTYPE, Markup, html};

use super::layout::head;
use super::text::{shown, with_code};

/// The page of a browser without a session.
pub(crate) fn login_required() -> Markup {
    plain_page(
        "Sign in",
        &html! {
            h1 { "Sign in from the command line" }
            p { "This page shows and starts programs on this computer, so it opens only with a link that Trunkline prints for you:" }
            pre { "trunkline page" }
            p.muted { "The link works once and for this browser." }
        },
    )
}

/// A page for an error. `detail` has the advice.
pub(crate) fn error(status: u16, title: &str, detail: &str) -> Markup {
    plain_page(
        title,
        &html! {
            p.status { (status) }
            h1 { (shown(title)) }
            p.text { (with_code(detail)) }
            p { a href="/servers" { "Back to the servers" } }
        },
    )
}

/// The body of a response with an error status to a request of htmx; the page shows it above its content.
pub(crate) fn error_notice(title: &str, detail: &str) -> Markup {
    html! {
        div.banner.bad { p.strong { (shown(title)) } p.text { (with_code(detail)) } }
    }
}

/// A page without scripts and navigation.
fn plain_page(title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head { (head(title)) }
            body { main #main.plain { p.brand { "Trunkline" } (body) } }
        }
    }
}
