//! Results within their bound: cut where it can be seen, never inside a character (CALL-5).

use super::block::{Block, blocks, text_block};
use super::text::described;
use crate::message::Raw;

/// Smallest bound that is kept to; below it there is no room to say what is missing.
const MIN_BOUND: usize = 1024;

/// Room kept for saying what is missing.
const ROOM_FOR_NOTE: usize = 256;

/// A result within its bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capped {
    /// The result.
    pub result: Raw,
    /// How many of its bytes are missing.
    pub missing: usize,
}

/// Cuts a result that is larger than it may be.
///
/// Blocks are kept in their order while there is room; the text that goes over is cut, and says how
/// much is missing. Structured content cannot be cut: it is left out if it does not fit.
///
/// ```
/// use trunkline::content::capped;
/// use trunkline::message::Raw;
///
/// let long = "ä".repeat(10_000);
/// let result = format!(r#"{{"content":[{{"type":"text","text":"{long}"}}],"isError":false}}"#);
/// let capped = capped(&Raw::from_text(&result).unwrap(), 2_000);
/// assert!(capped.result.text().len() <= 2_000);
/// assert!(capped.result.text().contains("bytes are missing]"));
/// ```
pub fn capped(result: &Raw, max_bytes: usize) -> Capped {
    let max_bytes = max_bytes.max(MIN_BOUND);
    let size = result.bytes().len();
    if size <= max_bytes {
        return Capped { result: result.clone(), missing: 0 };
    }
    let Some((key, blocks)) = blocks(result) else { return unreadable(size) };
    let structured = result.get("structuredContent");
    let mut around = result.with(key, &Raw::from_items(&[])).without("structuredContent");
    if around.bytes().len() > max_bytes / 2 {
        around = essentials(result, key);
    }
    let entry = |value: &Raw| value.bytes().len() + r#","structuredContent":"#.len();
    // A small one is not dropped because a text is long.
    let small = structured.as_ref().map(entry).filter(|size| *size <= max_bytes / 8);
    let reserved = small.unwrap_or(0);
    let room = max_bytes - around.bytes().len() - ROOM_FOR_NOTE;
    let mut cutter = Cutter { room: room.saturating_sub(reserved), missing: 0 };
    let mut kept = cutter.blocks(&blocks);
    let structured = structured.filter(|value| {
        let fits = entry(value) <= cutter.room + reserved;
        cutter.missing += if fits { 0 } else { value.bytes().len() };
        fits
    });
    let missing = cutter.missing;
    kept.push(text_block(&format!("[cut: {missing} of {size} bytes are missing]")));
    let mut result = around.with(key, &Raw::from_items(&kept));
    if let Some(structured) = structured {
        result = result.with("structuredContent", &structured);
    }
    Capped { result, missing }
}

/// What stands for a result that is too large and of no known form.
fn unreadable(size: usize) -> Capped {
    let note = text_block(&format!("[cut: {size} of {size} bytes are missing]"));
    let result = Raw::from_value(&serde_json::json!({})).with("content", &Raw::from_items(&[note]));
    Capped { result, missing: size }
}

/// A result without anything but what says how it went.
fn essentials(result: &Raw, key: &str) -> Raw {
    let empty = Raw::from_value(&serde_json::json!({})).with(key, &Raw::from_items(&[]));
    match result.get("isError").filter(|value| value.as_bool().is_some()) {
        Some(is_error) => empty.with("isError", &is_error),
        None => empty,
    }
}

/// Takes blocks while there is room.
struct Cutter {
    room: usize,
    missing: usize,
}

impl Cutter {
    fn blocks(&mut self, blocks: &[Raw]) -> Vec<Raw> {
        let mut kept = Vec::new();
        for block in blocks {
            let size = block.bytes().len() + 1;
            if size <= self.room {
                self.room -= size;
                kept.push(block.clone());
                continue;
            }
            let shorter = self.shorter(block).filter(|it| it.bytes().len() < self.room);
            let left = shorter.as_ref().map_or(0, |it| it.bytes().len());
            self.missing += block.bytes().len().saturating_sub(left);
            self.room -= (left + 1).min(self.room);
            kept.extend(shorter);
        }
        kept
    }

    /// As much of a block as there is room for.
    fn shorter(&self, block: &Raw) -> Option<Raw> {
        match Block::of(block) {
            Block::Text(text, resource) => {
                let text = text.as_str()?;
                // Without the text both are small, however large it is.
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
            Block::Binary(binary) => Some(text_block(&format!("{} left out", described(&binary)))),
            Block::Address(_) | Block::Other(_) => None,
        }
    }
}

/// The start of a text that takes no more than so many bytes as JSON.
fn head(text: &str, room: usize) -> &str {
    let mut used = 0;
    for (at, character) in text.char_indices() {
        used += match character {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\0'..='\u{1f}' => 6,
            other => other.len_utf8(),
        };
        if used > room {
            return &text[..at];
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
        let expected = Capped { result: result.clone(), missing: 0 };
        assert_eq!(capped(&result, 5 * 1024 * 1024), expected);
    }

    #[test]
    fn what_fits_stays_and_what_does_not_is_said() {
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
        let Capped { result, missing } = capped(&Raw::from_value(&result), 4000);
        assert!(result.bytes().len() <= 4000 && missing > 20_000);
        let blocks = result.get("content").unwrap().items();
        assert!(blocks[1].text().contains("[image: image/png, 6750 bytes] left out"));
        assert_eq!(blocks[2].get("resource").unwrap().get("uri").unwrap().text(), r#""x://a""#);
        assert!(blocks.last().unwrap().text().contains(&format!("[cut: {missing} of ")));
        assert!(super::super::is_error(&result));
        assert!(result.get("structuredContent").is_none());
    }

    #[test]
    fn a_small_structured_content_stays_beside_a_text_that_takes_all_room() {
        let result = serde_json::json!({
            "content": [{ "type": "text", "text": "x".repeat(9000) }],
            "structuredContent": { "a": 1 },
        });
        let capped = capped(&Raw::from_value(&result), 2000);
        assert_eq!(capped.result.get("structuredContent").unwrap().text(), r#"{"a":1}"#);
        assert!(capped.result.bytes().len() <= 2000);
    }

    #[test]
    fn structured_content_that_fits_stays_beside_text_that_does_not() {
        let result = serde_json::json!({ "content": [text(60), { "type": "image", "data": "A".repeat(9000) }],
            "structuredContent": { "a": 1 }, "_meta": { "k": 1 } });
        let result = capped(&Raw::from_value(&result), 4000).result;
        assert_eq!(result.get("structuredContent").unwrap().text(), r#"{"a":1}"#);
        assert_eq!(result.get("_meta").unwrap().text(), r#"{"k":1}"#);
    }

    proptest! {
        #[test]
        fn the_bound_holds_for_any_result(
            blocks in proptest::collection::vec(("\\PC{0,20}", 0..200_usize, 0..5_usize), 0..12),
            meta in 0..3000_usize,
            bound in 0..4000_usize,
        ) {
            let block = |(text, times, kind): &(String, usize, usize)| {
                let text = text.repeat(*times);
                match kind {
                    0 | 1 => serde_json::json!({ "type": "text", "text": text }),
                    2 => serde_json::json!({ "type": "image", "data": text, "mimeType": text }),
                    3 => serde_json::json!({ "type": "resource", "resource": { "uri": "u", "text": text } }),
                    _ => serde_json::json!({ "type": text }),
                }
            };
            let blocks: Vec<_> = blocks.iter().map(block).collect();
            let result = serde_json::json!({ "content": blocks, "_meta": "m".repeat(meta), "structuredContent": "s".repeat(meta) });
            let result = Raw::from_value(&result);
            let Capped { result: cut, missing } = capped(&result, bound);
            prop_assert!(cut.bytes().len() <= bound.max(MIN_BOUND), "{} {}", cut.bytes().len(), bound);
            prop_assert!(Raw::from_text(cut.text()).is_ok());
            prop_assert_eq!(missing == 0 && cut == result, result.bytes().len() <= bound.max(MIN_BOUND));
        }
    }
}
