//! `trunkline call`: one call, its result, and nothing left behind.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value, json};
use trunkline::config::printable;
use trunkline::connection::{Ask, Attendant};
use trunkline::message::{Notification, Raw};

use super::tools::find;
use crate::arguments::{CallArguments, Format};
use crate::environment::Environment;
use crate::exit::Outcome;
use crate::servers::{failure_text, with_servers};
use crate::settings::{Settings, Verbosity};
use crate::terminal::Terminal;

/// Characters of a server's words about its progress: they share a line with ours.
const MAX_PROGRESS: usize = 60;

pub(crate) fn run(
    arguments: &CallArguments,
    settings: &Settings,
    environment: &Arc<Environment>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let params = params(arguments, terminal)?;
    with_servers(settings, environment, terminal, async |servers, terminal| {
        let connection = find(servers, &arguments.server)?;
        let tool = printable(&arguments.tool);
        terminal.progress(&format!("starting {}…", printable(&arguments.server)));
        let answer = match connection.connect().await {
            Ok(()) => {
                let caller = Watcher { terminal, tool: &tool, verbosity: settings.verbosity };
                caller.show("");
                connection.converse(Ask::new("tools/call", Some(params)), &caller).await
            }
            Err(error) => Err(error),
        };
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

/// Somebody who watches a call.
struct Watcher<'t> {
    terminal: &'t Terminal,
    tool: &'t str,
    verbosity: Verbosity,
}

impl Watcher<'_> {
    fn show(&self, progress: &str) {
        self.terminal.progress(&format!("calling {}…{progress}", self.tool));
    }
}

impl Attendant for Watcher<'_> {
    fn told(&self, notification: &Notification) {
        let Some(params) = &notification.params else { return };
        match &*notification.method {
            "notifications/progress" => self.show(&progress_text(params)),
            "notifications/message" if self.verbosity == Verbosity::Verbose => {
                self.terminal.clear_progress();
                self.terminal.say(&log_line(params));
            }
            _ => {}
        }
    }
}

/// How far a call is, as its server says: ` 3 of 10: reading`.
fn progress_text(params: &Raw) -> String {
    let [done, total, message] = params.get_all(["progress", "total", "message"]);
    let mut text = done.map_or(String::new(), |done| format!(" {}", printable(done.text())));
    if let Some(total) = total.filter(|total| !total.is_null()) {
        text += &format!(" of {}", printable(total.text()));
    }
    if let Some(message) = message.as_ref().and_then(Raw::as_str) {
        let line = message.lines().next().unwrap_or_default();
        let short: String = printable(line).chars().take(MAX_PROGRESS).collect();
        text += &format!(": {short}");
    }
    text
}

/// A line of the server's log.
fn log_line(params: &Raw) -> String {
    let [level, data] = params.get_all(["level", "data"]);
    let text = |raw: &Raw| match raw.as_str() {
        Some(text) => printable(&text),
        None => printable(raw.text()),
    };
    let level = level.as_ref().map_or_else(|| "log".to_owned(), text);
    format!("{level}: {}\n", data.as_ref().map(text).unwrap_or_default())
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
