//! What must hold for any bytes of clients and servers, on messages that are nearly right.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use trunkline_testkit::exchanges::{check_answer, check_request};

/// Lines of clients.
const REQUESTS: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"words_shout","arguments":{"text":"a"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    r#"{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"progressToken":1}}}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"words_p"},"argument":{"name":"a","value":"b"}}}"#,
    r#"{"jsonrpc":"2.0","id":4,"method":"resources/read","params":{"uri":"trunkline://words/x://a%2525b"}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#,
    r#"{"jsonrpc":"2.0","id":5,"result":{}}"#,
];

/// Answers of servers, in the parts that [`check_answer`] takes.
const ANSWERS: &[&str] = &[
    r#"r{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"a","version":"1"},"instructions":"b"}"#,
    r#"r{"tools":[{"name":"t","description":"a","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}}],"nextCursor":"x"}"#,
    r#"r{"content":[{"type":"text","text":"a"},{"type":"resource_link","uri":"x://r"}],"structuredContent":{"a":1},"isError":false}"#,
    r#"e{"code":-32602,"message":"no","data":{"uri":"x://r"}}"#,
    r#"m{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"a"}}"#,
    r#"r{"resultType":"input_required","requestState":"s","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"b","requestedSchema":{}}}}}"#,
    "sevent: message\nid: 1\nretry: 0\ndata: {}\n\n",
    "h\u{1}",
    "",
];

/// What hostile messages are made of.
const TOKENS: &[&str] = &[
    "ö",
    "\u{2028}",
    "😀",
    "\\ud800",
    "\\u0000",
    "\u{1b}[31m",
    "\u{202e}",
    "\u{e0041}",
    "1e999",
    "-1",
    "99999999999999999999",
    "null",
    "{}",
    "[]",
    "\"",
    "\\",
    "}",
    "]",
    ",",
    ":",
    " ",
    "\n",
    "%",
    "%25",
    "../",
    "trunkline://",
    "_meta",
    "_META",
    "tools/call",
    "words_",
    "[[[[[[[[",
];

/// A text with some of its parts replaced.
fn mutated(text: &str, edits: &[(Index, usize, &str)]) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    for (place, length, token) in edits {
        let start = place.index(characters.len() + 1);
        let end = (start + length).min(characters.len());
        characters.splice(start..end, token.chars());
    }
    characters.into_iter().collect()
}

fn edits() -> impl Strategy<Value = Vec<(Index, usize, &'static str)>> {
    vec((any::<Index>(), 0..12_usize, select(TOKENS)), 0..5)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_request_is_answered_once(lines in vec((select(REQUESTS), edits()), 1..4)) {
        let lines: Vec<_> = lines.iter().map(|(line, edits)| mutated(line, edits)).collect();
        check_request(lines.join("\n").as_bytes());
        check_request(lines.first().map_or(&[], |line| line.as_bytes()));
    }

    #[test]
    fn any_answer_of_a_server_leaves_others_theirs(parts in vec((select(ANSWERS), edits()), 0..4)) {
        let parts: Vec<_> =
            parts.iter().map(|(part, edits)| mutated(part, edits).into_bytes()).collect();
        check_answer(&parts.join(&0xff));
    }
}
