//! Addresses in a result, as its reader knows them.

use super::block::string;
use crate::message::Raw;

/// A result with the addresses of resources in it as callers know them, so that they can follow
/// them: of links, of resources in blocks and in messages of prompts, and of what was read.
///
/// `exposed` says what callers call an address of the server, if not as the server does. Every other
/// byte stays.
///
/// ```
/// use trunkline::content::with_addresses;
/// use trunkline::message::Raw;
///
/// let result = r#"{"content": [ {"type":"resource_link","uri":"x://a"}, {"type":"text","text":"x://a"} ]}"#;
/// let result = Raw::from_text(result).unwrap();
/// let known = with_addresses(&result, &|uri| Some(format!("trunkline://s/{uri}")));
/// assert_eq!(
///     known.text(),
///     r#"{"content": [ {"type":"resource_link","uri":"trunkline://s/x://a"}, {"type":"text","text":"x://a"} ]}"#
/// );
/// assert_eq!(with_addresses(&result, &|_| None), result);
/// ```
#[must_use]
pub fn with_addresses(result: &Raw, exposed: &dyn Fn(&str) -> Option<String>) -> Raw {
    let edit = |written: Raw| {
        let known = exposed(&written.as_str()?)?;
        Some((written, Raw::from_string(&known)))
    };
    let edits: Vec<_> = addresses(result).into_iter().filter_map(edit).collect();
    if edits.is_empty() { result.clone() } else { result.with_parts(&edits) }
}

/// Every address in a result, as it is written there.
fn addresses(result: &Raw) -> Vec<Raw> {
    let [content, contents, messages] = result.get_all(["content", "contents", "messages"]);
    let items = |list: Option<Raw>| list.map(|list| list.items()).unwrap_or_default();
    let mut found: Vec<Raw> = items(content).iter().filter_map(of_block).collect();
    found.extend(items(contents).iter().filter_map(|item| item.get("uri")));
    for message in items(messages) {
        let Some(content) = message.get("content") else { continue };
        found.extend(of_block(&content));
        found.extend(content.items().iter().filter_map(of_block));
    }
    found
}

fn of_block(block: &Raw) -> Option<Raw> {
    let [kind, uri, resource] = block.get_all(["type", "uri", "resource"]);
    match &*string(kind)? {
        "resource_link" => uri,
        "resource" => resource?.get("uri"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_change_and_only_where_they_have_to() {
        let result = r#"{ "messages" : [ {"content": {"type":"resource","resource":{ "uri" : "x:\/\/a", "text":"x://a" }}},
            {"content":[{"type":"resource_link","uri":"x://b"},{"type":"resource_link","uri":7}]} ],
            "contents":[{"uri":"x://a","n":1.0}], "content":[{"type":"x","uri":"x://a"},3],
            "structuredContent":{"uri":"x://a"} }"#;
        let known = |uri: &str| (uri == "x://a").then(|| "known".to_owned());
        let expected = result.replacen(r#""x:\/\/a""#, r#""known""#, 1).replacen(
            r#"[{"uri":"x://a""#,
            r#"[{"uri":"known""#,
            1,
        );
        assert_eq!(with_addresses(&Raw::from_text(result).unwrap(), &known).text(), expected);
    }

    #[test]
    fn what_is_no_result_stays() {
        for result in ["7", "[]", r#"{"content":{}}"#, r#"{"messages":[1,{}],"contents":"x"}"#] {
            let result = Raw::from_text(result).unwrap();
            assert_eq!(with_addresses(&result, &|_| Some(String::new())), result);
        }
    }
}
