//! Replaces the upstream URIs in a result with exposed ones.

use crate::item::app_links;
use crate::message::Raw;

/// Maximum depth of results inside results, such as that of a task. The protocol has no deeper
/// ones.
const MAX_NESTING: usize = 2;

/// Replaces the URIs of resources in a result with exposed ones, so that callers can follow them:
/// in links, in resources of blocks and of prompt messages, in the contents of a read, in links to
/// MCP Apps views, and in messages of server requests. Also works on the parameters of
/// `sampling/createMessage`, which have the same structure.
///
/// `exposed` returns the exposed form of an upstream URI, if it differs. Every other byte stays.
///
/// ```
/// use trunkline::content::rewrite_uris;
/// use trunkline::message::Raw;
///
/// let result = r#"{"content": [ {"type":"resource_link","uri":"x://a"}, {"type":"text","text":"x://a"} ]}"#;
/// let result = Raw::from_text(result).unwrap();
/// let known = rewrite_uris(&result, &|uri| Some(format!("trunkline://s/{uri}")));
/// assert_eq!(
///     known.text(),
/// r#"{"content": [ {"type":"resource_link","uri":"trunkline://s/x://a"}, {"type":"text","text":"x://a"} ]}"#
/// );
/// assert_eq!(rewrite_uris(&result, &|_| None), result);
/// ```
#[must_use]
pub fn rewrite_uris(result: &Raw, exposed: &dyn Fn(&str) -> Option<String>) -> Raw {
    let edit = |written: Raw| {
        let known = exposed(&written.as_str()?)?;
        Some((written, Raw::from_string(&known)))
    };
    let edits: Vec<_> = uris(result).into_iter().filter_map(edit).collect();
    if edits.is_empty() { result.clone() } else { result.replace_slices(&edits) }
}

/// All URIs in a result, as slices of it. Includes duplicate keys, because parsers disagree on
/// which of them counts.
fn uris(result: &Raw) -> Vec<Raw> {
    let mut found = Vec::new();
    of_result(result, MAX_NESTING, &mut found);
    found
}

fn of_result(result: &Raw, depth: usize, found: &mut Vec<Raw>) {
    let keys = ["content", "contents", "messages", "result", "inputRequests"];
    for (number, value) in result.get_alike(keys) {
        match number {
            0 => of_blocks(&value, depth, found),
            1 => value.items().iter().for_each(|item| of_key(item, "uri", found)),
            2 => {
                let messages = value.items();
                let contents = messages.iter().flat_map(|message| message.get_alike(["content"]));
                contents.for_each(|(_, content)| of_blocks(&content, depth, found));
            }
            // The result of a task.
            3 if depth > 0 => of_result(&value, depth - 1, found),
            // Input requests; those for sampling contain messages.
            4 if depth > 0 => {
                let requests = value.members();
                let params = requests.iter().flat_map(|(_, request)| request.get_alike(["params"]));
                params.for_each(|(_, params)| of_result(&params, depth - 1, found));
            }
            _ => {}
        }
    }
    found.extend(app_links(result));
}

/// The URIs in one block, or in a list of blocks.
fn of_blocks(content: &Raw, depth: usize, found: &mut Vec<Raw>) {
    of_block(content, depth, found);
    content.items().iter().for_each(|block| of_block(block, depth, found));
}

fn of_block(block: &Raw, depth: usize, found: &mut Vec<Raw>) {
    let kinds = block.get_alike(["type"]);
    let is_of = |kind: &str| kinds.iter().any(|(_, it)| it.as_str().as_deref() == Some(kind));
    if is_of("resource_link") {
        of_key(block, "uri", found);
    }
    if is_of("resource") {
        let resources = block.get_alike(["resource"]);
        resources.iter().for_each(|(_, resource)| of_key(resource, "uri", found));
    }
    if is_of("tool_result") && depth > 0 {
        let contents = block.get_alike(["content"]);
        contents.iter().for_each(|(_, content)| of_blocks(content, depth - 1, found));
    }
}

fn of_key(object: &Raw, key: &str, found: &mut Vec<Raw>) {
    found.extend(object.get_alike([key]).into_iter().map(|(_, value)| value));
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
        assert_eq!(rewrite_uris(&Raw::from_text(result).unwrap(), &known).text(), expected);
    }

    /// Parsers disagree on which of two duplicate keys counts, so the URIs of both are found.
    #[test]
    fn addresses_are_found_wherever_a_reader_may_find_them() {
        let link = r#"{"type":"resource_link","uri":"x://a"}"#;
        for result in [
            format!(r#"{{"content":[{link}],"content":[]}}"#),
            format!(r#"{{"Content":[{link}]}}"#),
            r#"{"content":[{"type":"resource_link","type":"text","uri":"x://a"}]}"#.to_owned(),
            r#"{"content":[{"type":"resource_link","uri":"x://a","uri":"x://b"}]}"#.to_owned(),
            r#"{"content":[{"type":"resource","resource":{"URI":"x://a"}}]}"#.to_owned(),
            r#"{"_meta":{"ui":{"resourceUri":"x://a"},"ui/resourceUri":"x://a"}}"#.to_owned(),
            r#"{"_meta":{"ui":{"resourceUri":"x://a","resourceUri":"x://b"},"ui":{}},"_meta":{}}"#
                .to_owned(),
            format!(r#"{{"taskId":"1","result":{{"content":[{link}]}}}}"#),
            format!(
                r#"{{"inputRequests":{{"1":{{"method":"sampling/createMessage","params":{{"messages":[{{"content":[{link}]}}]}}}}}}}}"#
            ),
            format!(
                r#"{{"messages":[{{"content":{{"type":"tool_result","content":[{link}]}}}}]}}"#
            ),
        ] {
            let known = |uri: &str| (uri == "x://a").then(|| "known".to_owned());
            let result = Raw::from_text(&result).unwrap();
            let expected = result.text().replace("x://a", "known");
            assert_eq!(rewrite_uris(&result, &known).text(), expected);
        }
    }

    #[test]
    fn non_result_is_kept() {
        for result in ["7", "[]", r#"{"content":{}}"#, r#"{"messages":[1,{}],"contents":"x"}"#] {
            let result = Raw::from_text(result).unwrap();
            assert_eq!(rewrite_uris(&result, &|_| Some(String::new())), result);
        }
    }
}
