//! Results of `resources/read` and `prompts/get` in the form of a tool result, for models that can
//! only call tools (TOOL-14).

use serde_json::json;

use super::block::{ListForm, ResultKind, message_blocks, string, text_block};
use super::notice::{list_of, words};
use super::text::line;
use crate::message::Raw;
use crate::protocol::meta::{RESOURCE, RESULT};

/// Media types of images that models read. A client may pass an image block to a model that rejects
/// the whole conversation because of another type.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Characters of a role, and of a URI or media type in a heading.
const MAX_HEADING_CHARS: usize = 300;

/// Converts the result of a read or a prompt; a result of another kind stays as it is. Texts and
/// images become blocks of their own, other binary contents are embedded. The other members of a
/// content, such as its URI, are in the `_meta` of its block, and those of the result in its own.
///
/// ```
/// use trunkline::content::{ResultKind, to_tool_result};
/// use trunkline::message::Raw;
///
/// let read = r#"{"contents":[{"uri":"x://a","text":"Hello"}]}"#;
/// let result = to_tool_result(ResultKind::Resource, &Raw::from_text(read).unwrap());
/// assert_eq!(
///     result.text(),
///     r#"{"content":[{"type":"text","text":"Hello","_meta":{"io.trunkline/resource":{"uri":"x://a"}}}]}"#
/// );
/// ```
#[must_use]
pub fn to_tool_result(kind: ResultKind, result: &Raw) -> Raw {
    let (blocks, form) = match kind {
        ResultKind::Resource => (contents_blocks(result), ListForm::Contents),
        ResultKind::Prompt => (prompt_blocks(result), ListForm::Messages),
        ResultKind::ToolCall | ResultKind::Completion | ResultKind::Other => return result.clone(),
    };
    let content = Raw::empty_object().append_members(&[("content", &Raw::from_items(&blocks))]);
    match result_meta(result, form) {
        Some(meta) => content.append_members(&[("_meta", &meta)]),
        None => content,
    }
}

/// The `_meta` of the server with the other members of its result. In the result of a tool they
/// could mean something else, such as `structuredContent`.
fn result_meta(result: &Raw, form: ListForm) -> Option<Raw> {
    let meta = result.get("_meta").filter(Raw::is_object);
    let rest = result.without(form.key());
    let rest = if meta.is_some() { rest.without("_meta") } else { rest };
    // It says nothing about the content, and each result of revision 2026-07-28 has it.
    let is_complete = string(rest.get("resultType")).is_some_and(|it| it == "complete");
    let rest = if is_complete { rest.without("resultType") } else { rest };
    if !rest.is_object() || rest.members().is_empty() {
        return meta;
    }
    Some(meta.unwrap_or_else(Raw::empty_object).with_unambiguous(RESULT, &rest))
}

fn contents_blocks(result: &Raw) -> Vec<Raw> {
    let items = list_of(ListForm::Contents, result).map(|list| list.items()).unwrap_or_default();
    let mut blocks = Vec::new();
    for item in &items {
        if items.len() > 1 {
            blocks.push(text_block(&heading(item)));
        }
        blocks.extend(item_blocks(item));
    }
    or_note(blocks, "(no contents)")
}

/// Names one of several contents.
fn heading(item: &Raw) -> String {
    let [uri, media_type] = item.get_all(["uri", "mimeType"]);
    let parts = [string(uri), string(media_type)].into_iter().flatten();
    let parts: Vec<_> = parts.map(|part| cut(&part)).filter(|part| !part.is_empty()).collect();
    format!("[resource: {}]", parts.join(", "))
}

/// The text and the binary data of a resource. It should have one of them.
fn item_blocks(item: &Raw) -> Vec<Raw> {
    let [text, blob, media_type] = item.get_all(["text", "blob", "mimeType"]);
    let rest = || item.without("text").without("blob");
    let text = text.filter(|text| !text.is_null());
    let blob = blob.filter(|blob| !blob.is_null());
    if !item.is_object() || (text.is_none() && blob.is_none()) {
        return vec![text_block(&words(item))];
    }
    let mut blocks = Vec::new();
    if let Some(text) = text {
        // A string stays as it is written, also if it cannot be decoded.
        let is_string = text.bytes().starts_with(b"\"");
        let text = if is_string { text } else { Raw::from_string(text.text()) };
        blocks.push(block("text", &[("text", &text), ("_meta", &about(&rest()))]));
    }
    if let Some(blob) = blob {
        let named = media_type.as_ref().and_then(Raw::as_str).unwrap_or_default();
        let kind = binary_kind(&named);
        blocks.push(match (kind, media_type.as_ref()) {
            (Some(kind), Some(media_type)) => {
                let about = about(&rest());
                block(kind, &[("data", &blob), ("mimeType", media_type), ("_meta", &about)])
            }
            _ => block("resource", &[("resource", &item.without("text"))]),
        });
    }
    blocks
}

/// The type of the block for binary data that a model reads.
fn binary_kind(media_type: &str) -> Option<&'static str> {
    let plain = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match &*plain {
        plain if IMAGE_TYPES.contains(&plain) => Some("image"),
        plain if plain.starts_with("audio/") => Some("audio"),
        _ => None,
    }
}

/// The members of a resource besides its content, for programs.
fn about(rest: &Raw) -> Raw {
    Raw::empty_object().append_members(&[(RESOURCE, rest)])
}

fn block(kind: &str, members: &[(&str, &Raw)]) -> Raw {
    Raw::from_value(&json!({ "type": kind })).append_members(members)
}

fn prompt_blocks(result: &Raw) -> Vec<Raw> {
    let mut blocks = Vec::new();
    let description = string(result.get("description")).filter(|it| !it.trim().is_empty());
    blocks.extend(description.map(|text| text_block(&format!("[prompt: {}]", cut(&text)))));
    let messages = list_of(ListForm::Messages, result).map(|list| list.items());
    let messages = messages.unwrap_or_default();
    for message in &messages {
        let role = string(message.get("role")).unwrap_or_else(|| "unknown".to_owned());
        blocks.push(text_block(&format!("[role: {}]", cut(&role))));
        let parts = message_blocks(message);
        blocks.extend(parts.iter().map(|part| match part.is_object() {
            true => part.clone(),
            false => text_block(&words(part)),
        }));
    }
    match messages.is_empty() {
        true => or_note(Vec::new(), "(no messages)"),
        false => blocks,
    }
}

fn or_note(blocks: Vec<Raw>, note: &str) -> Vec<Raw> {
    if blocks.is_empty() { vec![text_block(note)] } else { blocks }
}

fn cut(text: &str) -> String {
    line(&text.chars().take(MAX_HEADING_CHARS).collect::<String>())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn content(kind: ResultKind, result: &str) -> Vec<Value> {
        let result = to_tool_result(kind, &Raw::from_text(result).unwrap()).to_value();
        result["content"].as_array().unwrap().clone()
    }

    #[test]
    fn contents_become_blocks_by_their_media_type() {
        let read =
            |item: &str| content(ResultKind::Resource, &format!(r#"{{"contents":[{item}]}}"#));
        for (media_type, kind) in [
            ("image/png", "image"),
            ("IMAGE/JPEG; q=1", "image"),
            ("audio/wav", "audio"),
            ("image/svg+xml", "resource"),
            ("application/pdf", "resource"),
        ] {
            let item = format!(r#"{{"uri":"x://a","mimeType":"{media_type}","blob":"AAAA"}}"#);
            let blocks = read(&item);
            assert_eq!((blocks.len(), &blocks[0]["type"]), (1, &json!(kind)), "{blocks:?}");
            match kind {
                "resource" => assert_eq!(blocks[0]["resource"]["blob"], "AAAA"),
                _ => {
                    assert_eq!(blocks[0]["data"], "AAAA");
                    assert_eq!(blocks[0]["_meta"]["io.trunkline/resource"]["uri"], "x://a");
                }
            }
        }
        let text = read(r#"{"uri":"x://a","mimeType":"a/b","text":"t","_meta":{"k":1}}"#);
        assert_eq!(text[0]["text"], "t");
        let kept = json!({ "uri": "x://a", "mimeType": "a/b", "_meta": { "k": 1 } });
        assert_eq!(text[0]["_meta"]["io.trunkline/resource"], kept);
        assert_eq!(read(r#"{"uri":"x://a","text":"t","blob":"AAAA"}"#).len(), 2);
    }

    #[test]
    fn several_contents_are_named() {
        let result = r#"{"contents":[{"uri":"x://a\nfake","text":"1"},
            {"uri":"x://b","mimeType":"image/png","blob":"AAAA"}]}"#;
        let texts: Vec<_> = content(ResultKind::Resource, result)
            .iter()
            .map(|it| it["text"].as_str().unwrap_or("-").to_owned())
            .collect();
        assert_eq!(texts, ["[resource: x://a fake]", "1", "[resource: x://b, image/png]", "-"]);
    }

    #[test]
    fn messages_have_their_role_before_them() {
        let result = r#"{"description":"Greets","messages":[
            {"role":"user","content":{"type":"text","text":"Hi"}},
            {"role":"assistant","content":[{"type":"image","data":"AA==","mimeType":"image/png"},"x"]}]}"#;
        let blocks = content(ResultKind::Prompt, result);
        let texts: Vec<_> = blocks.iter().map(|it| it["text"].as_str().unwrap_or("-")).collect();
        assert_eq!(
            texts,
            ["[prompt: Greets]", "[role: user]", "Hi", "[role: assistant]", "-", "x"]
        );
    }

    #[test]
    fn odd_results_lose_nothing_and_gain_no_meaning() {
        for (kind, result, text) in [
            (ResultKind::Resource, r#"{"contents":[]}"#, "(no contents)"),
            (ResultKind::Resource, "{}", "(no contents)"),
            (ResultKind::Resource, r#"{"contents":"all of it"}"#, "all of it"),
            (ResultKind::Resource, r#"{"contents":[7]}"#, "7"),
            (ResultKind::Resource, r#"{"contents":[{"uri":"x"}]}"#, r#"{"uri":"x"}"#),
            (ResultKind::Resource, r#"{"contents":[{"uri":"x","text":[1]}]}"#, "[1]"),
            (ResultKind::Prompt, r#"{"messages":[],"description":"d"}"#, "(no messages)"),
        ] {
            assert_eq!(content(kind, result)[0]["text"], text, "{result}");
        }
        let result = r#"{"contents":[],"isError":true,"structuredContent":{},"ttlMs":5,
            "content":[],"resultType":"task","_meta":{"a":1}}"#;
        let seen = to_tool_result(ResultKind::Resource, &Raw::from_text(result).unwrap());
        let keys: Vec<_> = seen.members().into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["content", "_meta"]);
        let rest = json!({ "isError": true, "structuredContent": {}, "ttlMs": 5, "content": [],
            "resultType": "task" });
        let expected = json!({ "a": 1, "io.trunkline/result": rest });
        assert_eq!(seen.to_value()["_meta"], expected);
    }

    /// Regression: they were lost.
    #[test]
    fn other_members_of_a_result_are_in_its_meta() {
        for (kind, result, meta) in [
            (ResultKind::Resource, r#"{"contents":[],"resultType":"complete"}"#, Value::Null),
            (
                ResultKind::Resource,
                r#"{"contents":[],"extra":7,"_meta":{"io.trunkline/result":"x"}}"#,
                json!({ "io.trunkline/result": { "extra": 7 } }),
            ),
            (
                ResultKind::Resource,
                r#"{"contents":[],"_meta":7}"#,
                json!({ "io.trunkline/result": { "_meta": 7 } }),
            ),
            (
                ResultKind::Prompt,
                r#"{"messages":[],"description":"d","_meta":{"a":1}}"#,
                json!({ "a": 1, "io.trunkline/result": { "description": "d" } }),
            ),
        ] {
            let seen = to_tool_result(kind, &Raw::from_text(result).unwrap()).to_value();
            assert_eq!(seen["_meta"], meta, "{result}");
        }
    }
}
