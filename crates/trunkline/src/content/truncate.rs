//! Truncates results to their size limit, visibly and at character boundaries (CALL-5).

use std::collections::HashSet;

use super::block::{ContentBlock, ListForm, ResultKind, is_list, text_block};
use super::text::{described, described_without_size};
use crate::message::Raw;

/// Smallest limit that is applied; below it there is no space for the note on missing content.
const MIN_BOUND: usize = 1024;

/// Bytes reserved for the note on missing content.
const ROOM_FOR_NOTE: usize = 256;

/// Longest URI that the note repeats, in bytes.
const MAX_ADDRESS: usize = 100;

/// Placeholder for a required URI.
const NO_ADDRESS: &str = "about:blank";

/// A result within its size limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TruncatedResult {
    /// The result.
    pub result: Raw,
    /// Number of bytes removed.
    pub missing: usize,
}

/// Truncates a result that exceeds its limit. It remains a result of its kind, with a block,
/// message or resource at its end that reports the missing bytes.
///
/// Items are kept in order while they fit; the first text beyond the limit is cut. Parts that
/// cannot be cut, such as structured content, are dropped if they do not fit. `isError` is always
/// kept, as are other small members.
///
/// ```
/// use trunkline::content::{ResultKind, truncate};
/// use trunkline::message::Raw;
///
/// let long = "ä".repeat(10_000);
/// let result = format!(r#"{{"content":[{{"type":"text","text":"{long}"}}],"isError":false}}"#);
/// let capped = truncate(ResultKind::ToolCall, &Raw::from_text(&result).unwrap(), 2_000);
/// assert!(capped.result.text().len() <= 2_000);
/// assert!(capped.result.text().contains("bytes are missing]"));
/// ```
pub fn truncate(kind: ResultKind, result: &Raw, max_bytes: usize) -> TruncatedResult {
    truncate_again(kind, (result, 0), max_bytes)
}

/// Truncates a result from which `missing` bytes were removed already.
pub(crate) fn truncate_again(
    kind: ResultKind,
    (result, missing): (&Raw, usize),
    max_bytes: usize,
) -> TruncatedResult {
    let max_bytes = max_bytes.max(MIN_BOUND);
    let size = result.bytes().len().saturating_add(missing);
    if size <= max_bytes && missing == 0 {
        return TruncatedResult { result: result.clone(), missing: 0 };
    }
    // A result of another kind gets the form of a tool result.
    let (form, items) = match kind.form() {
        Some(form) => (form, kind.items(result).into_iter().map(|it| named(form, it)).collect()),
        None => (ListForm::Content, Vec::new()),
    };
    let structured = result.get("structuredContent").filter(|_| form == ListForm::Content);
    let around = around(result, form, max_bytes / 2);
    let entry = |value: &Raw| value.bytes().len() + r#","structuredContent":"#.len();
    // Small structured content is not dropped because of a long text.
    let small = structured.as_ref().map(entry).filter(|size| *size <= max_bytes / 8);
    let reserved = small.unwrap_or(0);
    let room = max_bytes - around.bytes().len() - ROOM_FOR_NOTE;
    let mut cutter = Truncator { form, room: room.saturating_sub(reserved) };
    let mut kept = cutter.items(&items);
    let mut cut = around.with(form.key(), &Raw::from_items(&kept));
    let room = cutter.room + reserved;
    if let Some(structured) = structured.filter(|value| entry(value) <= room) {
        cut = cut.with("structuredContent", &structured);
    }
    // Above zero: the limit is smaller than the size, unless bytes were missing before.
    let missing = size.saturating_sub(cut.bytes().len()).max(missing);
    let words = format!("[cut at `maxResultBytes`: {missing} of {size} bytes are missing]");
    kept.push(note(form, &items, &words));
    TruncatedResult { result: cut.with(form.key(), &Raw::from_items(&kept)), missing }
}

/// A truncated result without the note at the end of its list.
pub(crate) fn without_note(kind: ResultKind, result: &Raw) -> Raw {
    let Some(form) = kind.form() else { return result.clone() };
    let mut items = kind.items(result);
    items.pop();
    result.with(form.key(), &Raw::from_items(&items))
}

/// Returns a result without its list and structured content, and without large other members.
fn around(result: &Raw, form: ListForm, max_bytes: usize) -> Raw {
    let empty = Raw::from_items(&[]);
    let around = result.with(form.key(), &empty).without("structuredContent");
    if around.bytes().len() <= max_bytes {
        return around;
    }
    let mut seen = HashSet::from([form.key().to_owned(), "structuredContent".to_owned()]);
    // For duplicate keys, the last value counts.
    let members = result.members().into_iter().rev();
    let mut members: Vec<_> = members.filter(|(key, _)| seen.insert(key.clone())).collect();
    // `isError` comes first, then the smallest members.
    members.sort_by_key(|(key, value)| (key != "isError", value.bytes().len()));
    let mut text = format!("{{{}:[]", Raw::from_string(form.key()));
    for (key, value) in members {
        let member = format!(",{}:{value}", Raw::from_string(&key));
        if text.len() + member.len() < max_bytes {
            text.push_str(&member);
        }
    }
    text.push('}');
    Raw::from_text(&text).expect("invariant: members are JSON")
}

/// An item in which bytes that were left out while it was read are named.
fn named(form: ListForm, item: Raw) -> Raw {
    match form {
        ListForm::Content => named_block(&item).unwrap_or(item),
        ListForm::Contents => match (named_block(&item), item.get("uri")) {
            (Some(words), Some(uri)) => words.get("text").map_or(item, |it| resource_of(&uri, &it)),
            _ => item,
        },
        ListForm::Messages => match item.get("content") {
            Some(list) if is_list(&list) => {
                let blocks = list.items().into_iter().map(|it| named_block(&it).unwrap_or(it));
                item.with("content", &Raw::from_items(&blocks.collect::<Vec<_>>()))
            }
            Some(block) => named_block(&block).map_or(item.clone(), |it| item.with("content", &it)),
            None => item,
        },
    }
}

/// The name of a block without its bytes.
fn named_block(block: &Raw) -> Option<Raw> {
    match ContentBlock::of(block) {
        ContentBlock::Binary(binary) if binary.data.text() == "\"\"" => {
            Some(text_block(&format!("{} left out", described_without_size(&binary))))
        }
        _ => None,
    }
}

/// What says that something is missing, as an item of its list.
fn note(form: ListForm, items: &[Raw], words: &str) -> Raw {
    match form {
        ListForm::Content => text_block(words),
        ListForm::Messages => Raw::from_value(&serde_json::json!({ "role": "user" }))
            .with("content", &text_block(words)),
        ListForm::Contents => {
            let mut addresses = items.iter().rev().filter_map(|item| item.get("uri"));
            let address = addresses.find(|uri| uri.bytes().len() <= MAX_ADDRESS);
            resource(&address.unwrap_or_else(|| Raw::from_string(NO_ADDRESS)), words)
        }
    }
}

/// Creates a text resource with a URI.
fn resource(address: &Raw, words: &str) -> Raw {
    resource_of(address, &Raw::from_string(words))
}

fn resource_of(address: &Raw, text: &Raw) -> Raw {
    let empty = Raw::from_value(&serde_json::json!({}));
    empty.with("uri", address).with("text", text)
}

/// Keeps items while they fit.
struct Truncator {
    form: ListForm,
    room: usize,
}

impl Truncator {
    fn items(&mut self, items: &[Raw]) -> Vec<Raw> {
        let mut kept = Vec::new();
        for item in items {
            let size = item.bytes().len() + 1;
            if size <= self.room {
                self.room -= size;
                kept.push(item.clone());
                continue;
            }
            let shorter = self.shorter(item).filter(|it| it.bytes().len() < self.room);
            let left = shorter.as_ref().map_or(0, |it| it.bytes().len());
            self.room -= (left + 1).min(self.room);
            kept.extend(shorter);
        }
        kept
    }

    /// Truncates an item to the space that is left.
    fn shorter(&self, item: &Raw) -> Option<Raw> {
        match self.form {
            ListForm::Messages => self.shorter_message(item),
            ListForm::Content | ListForm::Contents => self.shorter_block(item),
        }
    }

    fn shorter_message(&self, message: &Raw) -> Option<Raw> {
        let content = message.get("content")?;
        let frame = message.with("content", &Raw::from_items(&[]));
        let room = self.room.checked_sub(frame.bytes().len() + 1)?;
        let mut within = Self { form: ListForm::Content, room };
        let cut = match is_list(&content) {
            true => Raw::from_items(&within.items(&content.items())),
            false => within.shorter_block(&content)?,
        };
        Some(message.with("content", &cut))
    }

    fn shorter_block(&self, block: &Raw) -> Option<Raw> {
        match ContentBlock::of(block) {
            ContentBlock::Text(text, resource) => {
                let text = text.as_str()?;
                // Without the text both are small, regardless of its size.
                let empty = Raw::from_string("");
                let resource = resource.map(|it| it.with("text", &empty));
                let frame = match &resource {
                    Some(resource) => block.with("resource", resource),
                    None => block.with("text", &empty),
                };
                let room = self.room.checked_sub(frame.bytes().len() + 2)?;
                let cut = Raw::from_string(head(&text, room));
                Some(match resource {
                    Some(resource) => frame.with("resource", &resource.with("text", &cut)),
                    None => frame.with("text", &cut),
                })
            }
            ContentBlock::Binary(binary) => {
                let words = format!("{} left out", described(&binary));
                Some(match self.form {
                    ListForm::Contents => resource(&block.get("uri")?, &words),
                    ListForm::Content | ListForm::Messages => text_block(&words),
                })
            }
            ContentBlock::Address(_) | ContentBlock::Other(_) => None,
        }
    }
}

/// Returns the longest start of a text that fits into `room` bytes as JSON.
fn head(text: &str, room: usize) -> &str {
    let mut used = 0;
    for (at, character) in text.char_indices() {
        used += match character {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\0'..='\u{1f}' => 6,
            other => other.len_utf8(),
        };
        if used > room {
            return text.get(..at).unwrap_or(text);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(length: usize) -> serde_json::Value {
        serde_json::json!({ "type": "text", "text": "é\n".repeat(length / 3) })
    }

    #[test]
    fn a_result_within_its_bound_is_not_touched() {
        let result = Raw::from_text(r#"{ "content" : [ ] , "x":1.0}"#).unwrap();
        let expected = TruncatedResult { result: result.clone(), missing: 0 };
        assert_eq!(truncate(ResultKind::ToolCall, &result, 5 * 1024 * 1024), expected);
    }

    #[test]
    fn bytes_that_were_left_out_before_are_named() {
        let image = serde_json::json!({ "type": "image", "mimeType": "image/png", "data": "" });
        let read = serde_json::json!({ "uri": "x://a", "mimeType": "image/png", "blob": "" });
        let said = serde_json::json!({ "role": "user", "content": image });
        for (kind, result, place) in [
            (ResultKind::ToolCall, serde_json::json!({ "content": [image] }), "/content/0/text"),
            (ResultKind::Resource, serde_json::json!({ "contents": [read] }), "/contents/0/text"),
            (
                ResultKind::Prompt,
                serde_json::json!({ "messages": [said] }),
                "/messages/0/content/text",
            ),
        ] {
            let cut =
                truncate_again(kind, (&Raw::from_value(&result), 100), 5000).result.to_value();
            let words = cut.pointer(place).and_then(|it| it.as_str()).unwrap_or_default();
            assert!(words.ends_with(": image/png] left out"), "{cut}");
        }
    }

    #[test]
    fn fitting_text_is_kept_and_truncation_is_noted() {
        let result = serde_json::json!({
            "content": [
                text(900),
                { "type": "image", "mimeType": "image/png", "data": "A".repeat(9000) },
                { "type": "resource", "resource": { "uri": "x://a", "text": "y".repeat(9000) } },
                text(900),
            ],
            "structuredContent": { "big": "z".repeat(9000) },
            "isError": true,
        });
        let TruncatedResult { result, missing } =
            truncate(ResultKind::ToolCall, &Raw::from_value(&result), 4000);
        assert!(result.bytes().len() <= 4000 && missing > 20_000);
        let blocks = result.get("content").unwrap().items();
        assert!(blocks[1].text().contains("[image: image/png, 6750 bytes] left out"));
        assert_eq!(blocks[2].get("resource").unwrap().get("uri").unwrap().text(), r#""x://a""#);
        assert!(
            blocks
                .last()
                .unwrap()
                .text()
                .contains(&format!("[cut at `maxResultBytes`: {missing} of "))
        );
        assert!(super::super::is_error(&result));
        assert!(result.get("structuredContent").is_none());
    }

    #[test]
    fn a_small_structured_content_stays_beside_a_text_that_takes_all_room() {
        let result = serde_json::json!({
            "content": [{ "type": "text", "text": "x".repeat(9000) }],
            "structuredContent": { "a": 1 },
        });
        let capped = truncate(ResultKind::ToolCall, &Raw::from_value(&result), 2000);
        assert_eq!(capped.result.get("structuredContent").unwrap().text(), r#"{"a":1}"#);
        assert!(capped.result.bytes().len() <= 2000);
    }

    #[test]
    fn structured_content_that_fits_stays_beside_text_that_does_not() {
        let result = serde_json::json!({ "content": [text(60), { "type": "image", "data": "A".repeat(9000) }],
            "structuredContent": { "a": 1 }, "_meta": { "k": 1 } });
        let result = truncate(ResultKind::ToolCall, &Raw::from_value(&result), 4000).result;
        assert_eq!(result.get("structuredContent").unwrap().text(), r#"{"a":1}"#);
        assert_eq!(result.get("_meta").unwrap().text(), r#"{"k":1}"#);
    }

    /// Seen: a prompt that was too large became a tool result, without its small messages.
    #[test]
    fn a_prompt_stays_a_prompt() {
        let message = |text: String| serde_json::json!({ "role": "user", "content": { "type": "text", "text": text } });
        let many = serde_json::json!({ "role": "assistant", "content": [{ "type": "text", "text": "z".repeat(9000) }] });
        let result = serde_json::json!({ "description": "d", "messages": [message("small".to_owned()), message("x".repeat(9000)), many] });
        let TruncatedResult { result, missing } =
            truncate(ResultKind::Prompt, &Raw::from_value(&result), 4000);
        let messages = result.get("messages").unwrap().items();
        assert_eq!(messages[0], Raw::from_value(&message("small".to_owned())));
        assert!(messages[1].text().contains("xxx") && missing > 9000);
        assert!(
            messages.last().unwrap().get("content").unwrap().text().contains("bytes are missing]")
        );
        assert_eq!(result.get("description").unwrap().text(), r#""d""#);
        assert!(result.get("content").is_none());
    }

    /// Seen: `isError` and all small members were lost without a list, or with a large `_meta`.
    #[test]
    fn small_content_is_kept_beside_truncated_content() {
        let large = "x".repeat(9000);
        for result in [
            serde_json::json!({ "structuredContent": { "a": large }, "isError": true, "extra": 1 }),
            serde_json::json!({ "_meta": { "a": large }, "content": [], "isError": true, "extra": 1 }),
            serde_json::json!({ "unknown": large, "isError": true, "extra": 1 }),
        ] {
            let TruncatedResult { result, missing } =
                truncate(ResultKind::ToolCall, &Raw::from_value(&result), 4000);
            assert!(super::super::is_error(&result) && missing >= 9000, "{result}");
            assert_eq!(result.get("extra").unwrap().text(), "1");
            assert!(result.get("content").unwrap().text().contains("bytes are missing]"));
        }
    }

    #[test]
    fn truncated_resource_keeps_its_uri() {
        for content in [
            serde_json::json!({ "uri": "x://a", "text": "y".repeat(9000) }),
            serde_json::json!({ "uri": "x://a", "blob": "A".repeat(9000) }),
        ] {
            let result = Raw::from_value(&serde_json::json!({ "contents": [content] }));
            let contents = truncate(ResultKind::Resource, &result, 2000)
                .result
                .get("contents")
                .unwrap()
                .items();
            assert_eq!(contents.len(), 2);
            for item in contents {
                assert_eq!(item.get("uri").unwrap().text(), r#""x://a""#);
                assert!(item.get("text").is_some() && item.get("type").is_none());
            }
        }
    }

    fn item(form: ListForm, text: &str, kind: usize) -> serde_json::Value {
        let block = match kind {
            0 | 1 => serde_json::json!({ "type": "text", "text": text }),
            2 => serde_json::json!({ "type": "image", "data": text, "mimeType": text }),
            3 => {
                serde_json::json!({ "type": "resource", "resource": { "uri": "u", "text": text } })
            }
            _ => serde_json::json!({ "type": text }),
        };
        match (form, kind) {
            (ListForm::Content, _) => block,
            (ListForm::Messages, 1) => serde_json::json!({ "role": "user", "content": [block] }),
            (ListForm::Messages, _) => serde_json::json!({ "role": "user", "content": block }),
            (ListForm::Contents, 0..=2) => serde_json::json!({ "uri": "u", "text": text }),
            (ListForm::Contents, _) => serde_json::json!({ "uri": text, "blob": text }),
        }
    }

    /// Whether an item has the members that its list form requires.
    fn is_item(form: ListForm, item: &Raw) -> bool {
        match form {
            ListForm::Content => item.get("type").is_some(),
            ListForm::Contents => {
                item.get("uri").is_some()
                    && (item.get("text").is_some() || item.get("blob").is_some())
            }
            ListForm::Messages => item.get("role").is_some() && item.get("content").is_some(),
        }
    }

    proptest! {
        #[test]
        fn the_bound_and_the_form_hold_for_any_result(
            form in prop_oneof![Just(ListForm::Content), Just(ListForm::Contents), Just(ListForm::Messages)],
            items in proptest::collection::vec(("\\PC{0,20}", 0..200_usize, 0..5_usize), 0..12),
            (meta, bound) in (0..3000_usize, 0..4000_usize),
            is_error in any::<bool>(),
        ) {
            let items: Vec<_> = items.iter().map(|(text, times, kind)| item(form, &text.repeat(*times), *kind)).collect();
            let result = serde_json::json!({ form.key(): items, "_meta": "m".repeat(meta), "structuredContent": "s".repeat(meta), "isError": is_error });
            let result = Raw::from_value(&result);
            let kind = match form {
                ListForm::Content => ResultKind::ToolCall,
                ListForm::Contents => ResultKind::Resource,
                ListForm::Messages => ResultKind::Prompt,
            };
            let TruncatedResult { result: cut, missing } = truncate(kind, &result, bound);
            prop_assert!(cut.bytes().len() <= bound.max(MIN_BOUND), "{} {}", cut.bytes().len(), bound);
            prop_assert!(Raw::from_text(cut.text()).is_ok());
            prop_assert_eq!(missing == 0, cut == result);
            prop_assert_eq!(cut == result, result.bytes().len() <= bound.max(MIN_BOUND));
            prop_assert_eq!(super::super::is_error(&cut), is_error);
            let list = cut.get(form.key()).unwrap();
            prop_assert!(is_list(&list) && list.items().iter().all(|it| is_item(form, it)), "{}", cut);
        }
    }
}
