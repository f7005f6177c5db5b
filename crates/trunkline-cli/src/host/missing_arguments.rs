//! Asks on a terminal for the arguments that a tool or prompt needs and that were not given.

use anyhow::Result;
use serde_json::Value;
use trunkline::config::escape_control;
use trunkline::message::Raw;

use crate::output::terminal::Terminal;
use crate::typed::ArgumentSchema;

/// Characters of a description beside a question.
const MAX_DESCRIPTION: usize = 120;

/// Adds the missing arguments, if the user can be asked. Elsewhere the validation of the arguments names them.
pub(crate) async fn ask(given: Raw, schema: &ArgumentSchema, terminal: &Terminal) -> Result<Raw> {
    let mut given = given;
    if !terminal.can_ask() {
        return Ok(given);
    }
    for name in schema.required() {
        if given.get(name).is_some() {
            continue;
        }
        let answer = terminal.ask_line_async(&question(name, schema)).await?;
        given = given.with(name, &schema.typed(name, answer.trim_end_matches(['\r', '\n'])));
    }
    Ok(given)
}

/// The question for an argument: `text (string): The text to shout`.
fn question(name: &str, schema: &ArgumentSchema) -> String {
    let types = schema.type_names(name);
    let types = if types.is_empty() { String::new() } else { format!(" ({})", types.join(" or ")) };
    let description =
        schema.argument(name).and_then(|it| it.get("description")).and_then(Value::as_str);
    let line = description.and_then(|text| text.lines().find(|line| !line.trim().is_empty()));
    let line: String = line.unwrap_or_default().chars().take(MAX_DESCRIPTION).collect();
    let help = if line.is_empty() { String::new() } else { format!("{}\n", escape_control(&line)) };
    format!("{help}{}{types}: ", escape_control(name))
}
