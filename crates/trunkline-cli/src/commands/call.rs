//! `trunkline call`: one call, its result, and nothing left behind.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value, json};
use trunkline::config::printable;
use trunkline::message::Raw;

use super::tools::find;
use crate::arguments::{CallArguments, Format};
use crate::environment::Environment;
use crate::exit::Outcome;
use crate::servers::{failure_text, with_servers};
use crate::settings::Settings;
use crate::terminal::Terminal;

pub(crate) fn run(
    arguments: &CallArguments,
    settings: &Settings,
    environment: &Arc<Environment>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let params = params(arguments, terminal)?;
    with_servers(settings, environment, terminal, async |servers, terminal| {
        let connection = find(servers, &arguments.server)?;
        terminal.progress(&format!("calling {}…", printable(&arguments.tool)));
        let answer = connection.request("tools/call", Some(params)).await;
        terminal.clear_progress();
        match answer {
            Err(error) => {
                terminal.say(&failure_text(&error));
                Ok(Outcome::Bad)
            }
            Ok(Err(error)) => {
                let message = printable(&error.message());
                terminal.say(&format!("error: the server says: {message} ({})\n", error.code()));
                Ok(Outcome::Bad)
            }
            Ok(Ok(result)) => show(&result, settings.format, terminal),
        }
    })
}

fn show(result: &Raw, format: Format, terminal: &mut Terminal) -> Result<Outcome> {
    match format {
        Format::Json => terminal.print(&format!("{result}\n"))?,
        Format::Text => terminal.print(&text_of(result))?,
    }
    let failed = result.get("isError").and_then(|flag| flag.as_bool()) == Some(true);
    Ok(if failed { Outcome::Bad } else { Outcome::Good })
}

/// What a result says, for people: its texts, and what else there is by kind.
pub(super) fn text_of(result: &Raw) -> String {
    let blocks = result.get("content").map(|content| content.items()).unwrap_or_default();
    let texts: Vec<_> = blocks.iter().map(block_text).collect();
    match texts.as_slice() {
        [] => "(no output)\n".to_owned(),
        texts => texts.join("\n") + "\n",
    }
}

fn block_text(block: &Raw) -> String {
    let [kind, text] = block.get_all(["type", "text"]);
    match text.as_ref().and_then(Raw::as_str) {
        Some(text) => text.lines().map(printable).collect::<Vec<_>>().join("\n"),
        None => {
            let kind = kind.as_ref().and_then(Raw::as_str).map(|kind| printable(&kind));
            format!("[{}]", kind.unwrap_or_else(|| "something else".to_owned()))
        }
    }
}

/// The parameters of the call.
fn params(arguments: &CallArguments, terminal: &mut Terminal) -> Result<Raw> {
    let given = match (&arguments.json, &arguments.input) {
        (Some(text), _) => object(text).context("`--json` is not a JSON object")?,
        (None, Some(_)) => {
            object(&terminal.read_input()?).context("standard input is not a JSON object")?
        }
        (None, None) => Raw::from_value(&Value::Object(pairs(&arguments.arguments)?)),
    };
    let params = Raw::from_value(&json!({ "name": arguments.tool }));
    Ok(params.with("arguments", &given))
}

fn object(text: &str) -> Result<Raw> {
    let raw = Raw::from_text(text)?;
    if !raw.is_object() {
        bail!("it is JSON, and not an object");
    }
    Ok(raw)
}

/// `NAME=VALUE` pairs as an object; values that are JSON are taken as that.
fn pairs(arguments: &[String]) -> Result<Map<String, Value>> {
    let pair = |argument: &String| {
        let Some((name, value)) = argument.split_once('=') else {
            bail!("`--arg` needs a name and a value, as in `--arg name=value`");
        };
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        Ok((name.to_owned(), value))
    };
    arguments.iter().map(pair).collect()
}
