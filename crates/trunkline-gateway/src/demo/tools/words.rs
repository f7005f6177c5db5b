//! Tools for text.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Arguments, Output, Tool, object_schema};

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "count_words",
        expects: EXPECTED_TEXT,
        describe: describe_count_words,
        run: count_words,
    },
    Tool { name: "shout", expects: EXPECTED_TEXT, describe: describe_shout, run: shout },
    Tool {
        name: "remember",
        expects: "`text`, a string of at most 1000 characters, and nothing else",
        describe: describe_remember,
        run: remember,
    },
];

const EXPECTED_TEXT: &str = "`text`, a string, and nothing else";

/// Texts that are kept before the oldest is dropped, so that a demo left running does not grow.
const MOST_KEPT: usize = 100;

/// Limit of a text that is kept, in characters, for the same reason.
const LONGEST_KEPT: usize = 1000;

/// Per process, not per connection: over HTTP every call may have its own connection.
static KEPT: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextArgument {
    text: String,
}

fn describe_count_words() -> Value {
    let count = json!({ "type": "integer", "minimum": 0 });
    json!({
        "title": "Count words",
        "description": "Count the words and the characters of a text.",
        "inputSchema": object_schema(&["text"], &text_property("The text to count in.")),
        "outputSchema": object_schema(
            &["words", "characters"],
            &json!({ "words": count, "characters": count }),
        ),
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    })
}

fn count_words(arguments: Arguments) -> Result<Output, String> {
    let TextArgument { text } = arguments.read()?;
    let words = text.split_whitespace().count();
    let characters = text.chars().count();
    Ok(Output::structured(json!({ "words": words, "characters": characters })))
}

/// Has no annotations on purpose: a client must assume the worst of such a tool.
fn describe_shout() -> Value {
    json!({
        "title": "Shout",
        "description": "Give a text back in capital letters.",
        "inputSchema": object_schema(&["text"], &text_property("The text to shout.")),
    })
}

fn shout(arguments: Arguments) -> Result<Output, String> {
    let TextArgument { text } = arguments.read()?;
    Ok(Output::text(text.to_uppercase()))
}

fn describe_remember() -> Value {
    let mut property = text_property("The text to keep.");
    property["text"]["maxLength"] = LONGEST_KEPT.into();
    json!({
        "title": "Remember",
        "description": "Keep a text in memory until the server ends, and say how many are kept. \
                        After 100 texts the oldest is forgotten.",
        "inputSchema": object_schema(&["text"], &property),
        "annotations": { "readOnlyHint": false, "openWorldHint": false },
    })
}

fn remember(arguments: Arguments) -> Result<Output, String> {
    let TextArgument { text } = arguments.read()?;
    let length = text.chars().count();
    if length > LONGEST_KEPT {
        return Err(format!("the text has {length} characters"));
    }
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.len() == MOST_KEPT {
        kept.pop_front();
    }
    kept.push_back(text);
    Ok(Output::text(kept.len().to_string()))
}

fn text_property(description: &str) -> Value {
    json!({ "text": { "type": "string", "description": description } })
}
