//! The result of a tool call.

use maud::{Markup, html};
use serde_json::Value;

use super::format::{latency, size};
use super::part::{Tone, badge};
use super::text::{cut, full_name, name, shown, shown_line};
use crate::types::CallResult;

/// Characters of a text that are shown.
const MAX_TEXT_CHARS: usize = 100_000;

/// Bytes of an image or a sound, as base64. More would be a page of its own.
const MAX_MEDIA_BYTES: usize = 8_000_000;

/// Content blocks that are shown.
const MAX_BLOCKS: usize = 100;

/// Formats that browsers decode and that hold no scripts. SVG is not one of them.
const IMAGES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];
const SOUNDS: &[&str] = &["audio/wav", "audio/mp3", "audio/mpeg", "audio/ogg"];

/// The result of a call with its request. Response of `POST /call`; replaces the content of `#call-result`.
pub(crate) fn call_result(call: &CallResult) -> Markup {
    let is_error = call
        .result
        .as_ref()
        .is_some_and(|result| result.get("isError") == Some(&Value::Bool(true)));
    html! {
        div.group.result {
            header.bar {
                h2 { "Result" }
                @match (&call.error, is_error) {
                    (Some(_), _) => (badge(Tone::Bad, "No result")),
                    (None, true) => (badge(Tone::Bad, "Tool error")),
                    (None, false) => (badge(Tone::Good, "OK")),
                }
                span.muted { (latency(call.duration_ms)) }
            }
            @if let Some(error) = &call.error { p.problem.text { (shown(error)) } }
            @if is_error { p.problem { "The tool ran and reported an error:" } }
            @if let Some(result) = &call.result { (content(result)) }
            details #call-sent open { summary { "Sent exactly" } (json(&call.sent)) }
        }
    }
}

fn content(result: &Value) -> Markup {
    let blocks = result.get("content").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    html! {
        @for content in blocks.iter().take(MAX_BLOCKS) { div.block { (block(content)) } }
        @if blocks.len() > MAX_BLOCKS { p.muted { (blocks.len() - MAX_BLOCKS) " more content blocks are not shown." } }
        @if let Some(value) = result.get("structuredContent") {
            div.block { p.kind { "Structured content" } (json(value)) }
        }
        @if blocks.is_empty() && result.get("structuredContent").is_none() { p.muted { "The result is empty." } }
        details #call-json { summary { "Result as JSON" } (json(result)) }
    }
}

fn block(content: &Value) -> Markup {
    let text = |key: &str| content.get(key).and_then(Value::as_str).unwrap_or_default();
    match text("type") {
        "text" => html! { p.kind { "Text" } (text_or_json(text("text"))) },
        "image" => media(text("mimeType"), text("data")),
        "audio" => media(text("mimeType"), text("data")),
        "resource_link" => resource_link(content),
        "resource" => resource(content.get("resource").unwrap_or(&Value::Null)),
        _ => html! { p.kind { "Unknown content" } (json(content)) },
    }
}

/// A text; JSON is indented. Markdown stays text, because rendering it would load its links.
fn text_or_json(text: &str) -> Markup {
    let is_short = text.len() <= MAX_TEXT_CHARS;
    let looks_like_json = is_short && text.trim_start().starts_with(['{', '[']);
    match looks_like_json.then(|| serde_json::from_str::<Value>(text)) {
        Some(Ok(value)) => json(&value),
        _ => long_text(text),
    }
}

fn json(value: &Value) -> Markup {
    long_text(&format!("{value:#}"))
}

fn long_text(text: &str) -> Markup {
    let (head, missing) = cut(text, MAX_TEXT_CHARS);
    html! {
        pre tabindex="0" { (shown(head)) }
        @if missing > 0 {
            p.problem { "Cut here: " (super::format::count(missing as u64)) " more characters, of " (size(text.len())) " in all." }
        }
    }
}

/// An image or a sound of a known format, from the result itself; otherwise its type.
fn media(mime_type: &str, data: &str) -> Markup {
    let kind = mime_type.to_ascii_lowercase();
    let is_base64 = data.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
    let is_shown = is_base64 && !data.is_empty() && data.len() <= MAX_MEDIA_BYTES;
    let address = || format!("data:{kind};base64,{data}");
    html! {
        p.kind { (name(mime_type)) " · " (size(data.len() / 4 * 3)) }
        @if is_shown && IMAGES.contains(&kind.as_str()) {
            img src=(address()) alt="Image from the tool";
        } @else if is_shown && SOUNDS.contains(&kind.as_str()) {
            audio controls src=(address()) aria-label="Sound from the tool" {}
        } @else {
            p.muted { "Not shown: the format is not one that is safe to show, or the data is damaged or too large." }
        }
    }
}

fn resource_link(content: &Value) -> Markup {
    let text = |key: &str| content.get(key).and_then(Value::as_str);
    html! {
        p.kind { "Resource link" }
        div.strong { (full_name(text("title").or(text("name")).unwrap_or("without a name"))) }
        @if let Some(description) = text("description") { p.text { (shown(description)) } }
        div { (address(text("uri").unwrap_or_default())) }
        @if let Some(kind) = text("mimeType") { p.muted { (name(kind)) } }
    }
}

/// An address as text, and as a link only where a browser opens a web page and nothing else.
fn address(uri: &str) -> Markup {
    /// Longer addresses are text.
    const MAX_LINK_CHARS: usize = 2_000;
    let lower: String = uri.chars().take(8).flat_map(char::to_lowercase).collect();
    let is_web = lower.starts_with("https://") || lower.starts_with("http://");
    let is_plain = uri.len() <= MAX_LINK_CHARS && shown_line(uri) == uri;
    html! {
        span.path { (full_name(uri)) }
        @if is_web && is_plain && !is_local(uri) {
            " " a href=(uri) rel="noreferrer noopener" target="_blank" { "Open in a new tab" }
        }
    }
}

/// Whether an address may be one of this machine. A program that listens there would receive the cookie of the page,
/// because cookies do not depend on the port.
fn is_local(uri: &str) -> bool {
    let rest = uri.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = host.trim_start_matches('[').to_ascii_lowercase();
    // Names and spellings of addresses are many: only a name with a dot and a letter at its end leads elsewhere.
    let name = host.split([':', ']']).next().unwrap_or_default().trim_end_matches('.');
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_name = name.contains('.')
        && last.bytes().all(|byte| byte.is_ascii_alphabetic())
        && !last.is_empty();
    !is_name || last == "localhost" || host.contains('%')
}

fn resource(resource: &Value) -> Markup {
    let text = |key: &str| resource.get(key).and_then(Value::as_str);
    html! {
        p.kind { "Embedded resource" }
        div { (address(text("uri").unwrap_or_default())) }
        @match (text("text"), text("blob")) {
            (Some(content), _) => {
                @if let Some(kind) = text("mimeType") { p.muted { (name(kind)) } }
                (text_or_json(content))
            },
            (None, Some(blob)) => (media(text("mimeType").unwrap_or("unknown format"), blob)),
            (None, None) => p.muted { "The resource is empty." },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::call_result;
    use crate::types::CallResult;

    #[test]
    fn no_link_leads_to_this_machine() {
        for uri in [
            "http://127.0.0.1:9777/x",
            "http://localhost:1/",
            "http://a.localhost",
            "http://[::1]:80/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://user@127.0.0.1/",
            "http://host/",
            "http://example.com@localhost:3/",
            "http://127.0.0.1\\@example.com/",
        ] {
            assert!(super::is_local(uri), "{uri}");
        }
        assert!(!super::is_local("https://example.com/a") && !super::is_local("http://a.b.org:80"));
    }

    fn html(content: &Value) -> String {
        let result = Some(json!({"content": [content]}));
        let call = CallResult { sent: json!({}), result, error: None, duration_ms: 1.0 };
        let html = call_result(&call).into_string();
        // The JSON of the result is at the end and has everything as text.
        html.split("Result as JSON").next().unwrap().to_owned()
    }

    #[test]
    fn only_known_formats_become_media() {
        let image = |mime: &str, data: &str| {
            html(&json!({"type": "image", "mimeType": mime, "data": data}))
        };
        assert!(image("image/PNG", "AAAA").contains("src=\"data:image/png;base64,AAAA\""));
        for (mime, data) in [
            ("image/svg+xml", "AAAA"),
            ("text/html", "AAAA"),
            ("image/png", "A\"A"),
            ("image/png,", "AA"),
        ] {
            assert!(!image(mime, data).contains("<img"), "{mime} {data}");
        }
    }

    #[test]
    fn only_web_addresses_become_links() {
        let link = |uri: &str| html(&json!({"type": "resource_link", "name": "x", "uri": uri}));
        assert!(link("https://example.com/a").contains("rel=\"noreferrer noopener\""));
        for uri in [
            "javascript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            " https://x",
            "https://a\u{202e}b",
        ] {
            assert!(!link(uri).contains("<a "), "{uri}");
        }
    }

    #[test]
    fn long_texts_are_cut_with_a_note() {
        let html = html(&json!({"type": "text", "text": "x".repeat(100_007)}));
        assert!(html.contains("7 more characters"));
    }

    #[test]
    fn json_texts_are_indented_and_markup_is_text() {
        assert!(html(&json!({"type": "text", "text": "{\"a\":1}"})).contains("&quot;a&quot;: 1"));
        assert!(!html(&json!({"type": "text", "text": "<script>"})).contains("<script"));
    }
}
