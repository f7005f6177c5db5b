//! Makes a call, shows its progress and prints its result.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use trunkline::call::{ArtifactDir, CallError, CallErrorKind, CallOptions, Outcome as Called};
use trunkline::config::{Trust, escape_control};
use trunkline::connection::{
    CallHandler, Connection, HandlerFuture, MAX_MESSAGE_BYTES, ServerRequest,
};
use trunkline::content::{
    ArtifactLimits, BlockError, ResultKind, UnusableBlock, artifacts, unusable_blocks,
};
use trunkline::message::{Notification, Raw};
use trunkline::name::ServerName;

use super::command_host::CommandHost;
use super::elicitation::UserInput;
use super::resolve::TimeLimit;
use super::resource_links::with_readable_links;
use crate::arguments::{Format, TimeoutArguments, quoted};
use crate::environment::ProcessEnv;
use crate::output::exit::{Failure, FailureKind, Outcome};
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::settings::{Settings, Verbosity};
use crate::typed::reject_repeated_keys;

/// Characters of a progress message from the server: it shares a line with ours.
const MAX_PROGRESS: usize = 60;

/// What to do about binary content that cannot be decoded.
const AS_JSON: &str = "`--format json` prints it as it is";

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// Images of one result that are shown in the terminal.
const MAX_IMAGES: usize = 10;

/// Shows progress and log messages of a call.
pub(crate) struct ProgressPrinter<'t> {
    pub(crate) terminal: &'t Terminal,
    /// The current activity.
    pub(crate) doing: String,
    /// The name shown with log messages.
    pub(crate) speaker: String,
    pub(crate) verbosity: Verbosity,
    /// The server's connection, which knows the secrets to mask.
    pub(crate) connection: Option<Arc<Connection>>,
    /// Answers to server requests.
    pub(crate) input: UserInput,
}

impl ProgressPrinter<'_> {
    /// Masks the server's secrets in a text.
    fn masked(&self, text: &str) -> String {
        match &self.connection {
            Some(connection) => connection.masked(text),
            None => text.to_owned(),
        }
    }

    fn show(&self, progress: &str) {
        self.terminal.progress(&format!("{}…{progress}", self.doing));
    }
}

impl CallHandler for ProgressPrinter<'_> {
    fn on_notification(&self, notification: &Notification) {
        let Some(params) = &notification.params else { return };
        match &*notification.method {
            "notifications/progress" => self.show(&progress_text(params, |text| self.masked(text))),
            "notifications/message" if self.verbosity == Verbosity::Verbose => {
                self.terminal.clear_progress();
                let line = self.masked(&log_line(params));
                self.terminal.say_verbatim(&format!("[{}] {line}", self.speaker));
            }
            _ => {}
        }
    }

    fn on_server_request(&self, request: ServerRequest) -> HandlerFuture<'_> {
        Box::pin(self.input.answer(request, &self.speaker, self.terminal))
    }
}

/// The progress of a call: ` 3 of 10: reading`.
fn progress_text(params: &Raw, masked: impl Fn(&str) -> String) -> String {
    let [done, total, message] = params.get_all(["progress", "total", "message"]);
    let mut text = done.map_or(String::new(), |done| format!(" {}", escape_control(done.text())));
    if let Some(total) = total.filter(|total| !total.is_null()) {
        text += &format!(" of {}", escape_control(total.text()));
    }
    if let Some(message) = message.as_ref().and_then(Raw::as_str) {
        let message = masked(&message);
        let line = message.lines().next().unwrap_or_default();
        let short: String = escape_control(line).chars().take(MAX_PROGRESS).collect();
        text += &format!(": {short}");
    }
    text
}

/// A log message as one line.
fn log_line(params: &Raw) -> String {
    let [level, data] = params.get_all(["level", "data"]);
    let text = |raw: &Raw| match raw.as_str() {
        Some(text) => escape_control(&text),
        None => escape_control(raw.text()),
    };
    let level = level.as_ref().map_or_else(|| "log".to_owned(), text);
    format!("{level}: {}\n", data.as_ref().map(text).unwrap_or_default())
}

/// A call to make and print.
pub(crate) struct CallRunner<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) environment: &'a ProcessEnv,
    pub(crate) bounds: &'a TimeoutArguments,
    /// The time limit of the command; the call gets the rest of it.
    pub(crate) time: TimeLimit,
    pub(crate) hosted: &'a CommandHost,
    /// The server of the call.
    pub(crate) server: &'a ServerName,
    /// The activity to show as progress.
    pub(crate) doing: String,
    /// Answers to server requests.
    pub(crate) input: &'a UserInput,
    /// The tool whose arguments are validated before they are sent.
    pub(crate) check: Option<ArgumentCheck<'a>>,
}

/// The validation of the arguments of a tool.
pub(crate) struct ArgumentCheck<'a> {
    pub(crate) tool: &'a str,
    /// How the arguments could be written, if they do not fit.
    pub(crate) hint: Option<String>,
}

impl CallRunner<'_> {
    /// Makes the call with progress, and prints its result.
    pub(crate) async fn run(
        self,
        terminal: &mut Terminal,
        call: impl AsyncFnOnce(CallOptions<'_>) -> Result<Called, CallError>,
    ) -> Result<Outcome> {
        let folder = self.bounds.artifacts.clone().map(ArtifactDir::new);
        let verbosity = self.settings.verbosity;
        let input = self.input.clone();
        let (doing, speaker) = (self.doing.clone(), self.speaker());
        let connection = self.hosted.host.servers().get(self.server.as_str());
        let watcher = ProgressPrinter { terminal, doing, speaker, verbosity, connection, input };
        watcher.show("");
        let options = CallOptions {
            handler: &watcher,
            timeout: self.time.limit,
            since: Some(self.time.since),
            checks_arguments: self.check.is_some(),
            artifacts: folder.as_ref(),
            ..CallOptions::default()
        };
        let called = call(options).await;
        terminal.clear_progress();
        let called = called.map_err(|error| self.failure(error))?;
        let kept = (self.environment, self.bounds.artifacts.as_deref());
        let called = with_readable_links(called, self.hosted, kept).await;
        terminal.print(&printed(&called, self.settings.format))?;
        if self.settings.format == Format::Text {
            self.show_images(&called, terminal)?;
        }
        self.report_missing(&called, terminal);
        let are_saved = self.report_saved_files(&called, terminal);
        Ok(match (called.is_error, are_saved) {
            (true, _) => Outcome::ToolFailed,
            (false, true) => Outcome::Good,
            (false, false) => Outcome::Bad,
        })
    }

    /// The error of the call. For invalid arguments, it names the command that prints the schema.
    fn failure(&self, error: CallError) -> Failure {
        let is_schema_hint = error.kind() == CallErrorKind::BadArguments && error.hint().is_none();
        let failure = Failure::from(error).of(self.server);
        if !is_schema_hint {
            return failure;
        }
        let tool = quoted(self.check.as_ref().map(|it| it.tool).unwrap_or_default());
        let hint = self.check.as_ref().and_then(|it| it.hint.as_ref());
        let hint = hint.map(|hint| format!("{hint}; ")).unwrap_or_default();
        let (config, (before, after)) =
            (self.settings.written_config(), self.settings.written_server());
        failure.with_hint(format!(
            "{hint}`trunkline tool{config}{before} {tool}{after}` shows its arguments; `--no-check` sends them anyway"
        ))
    }

    /// The name shown with log messages.
    fn speaker(&self) -> String {
        let name = escape_control(self.server.as_str());
        let server = self.hosted.loaded.config.server(self.server.as_str());
        match server.is_some_and(|it| it.trust == Trust::Untrusted) {
            true => format!("{name}, untrusted"),
            false => name,
        }
    }

    /// Shows the images of a result, and says how to save the other binary parts.
    fn show_images(&self, called: &Called, terminal: &mut Terminal) -> Result<()> {
        if self.bounds.artifacts.is_some() {
            return Ok(());
        }
        let server = self.hosted.loaded.config.server(self.server.as_str());
        let is_trusted = server.is_some_and(|it| it.trust == Trust::Trusted);
        let (mut shown, mut others) = (0, 0);
        for artifact in artifacts(called.kind(), &called.result, ArtifactLimits::default()) {
            // An image of an untrusted server is not given to the decoders of the terminal.
            let is_shown =
                is_trusted && shown < MAX_IMAGES && terminal.print_image(&artifact.bytes)?;
            *(if is_shown { &mut shown } else { &mut others }) += 1;
        }
        for block in unusable_blocks(called.kind(), &called.result, ArtifactLimits::default()) {
            match &block.reason {
                BlockError::TooMany => others += 1,
                reason => {
                    let block = described(&block);
                    terminal.warn(&format!("{block} cannot be decoded: {reason}\n  {AS_JSON}"));
                }
            }
        }
        let (parts, verb, them) = match others {
            0 => return Ok(()),
            1 => ("1 binary part".to_owned(), "is", "it as a file"),
            count => (format!("{count} binary parts"), "are", "them as files"),
        };
        terminal.tell(&format!(
            "{parts} of the result {verb} not shown; `--artifacts DIRECTORY` saves {them}\n"
        ));
        Ok(())
    }

    /// Reports that a result was truncated, with the key that raises the limit.
    fn report_missing(&self, called: &Called, terminal: &Terminal) {
        if called.missing > 0 {
            let server = escape_control(self.server.as_str());
            let config = self.hosted.loaded.config.server(self.server.as_str());
            let limit = config.map_or(0, |it| it.behaviour.max_result_bytes);
            let step = match self.settings.server {
                // It has no entry.
                Some(_) => {
                    format!(
                        "`trunkline add {server} …` writes it to a file, where `maxResultBytes` can be set"
                    )
                }
                None => format!("set `maxResultBytes` of server `{server}` to more"),
            };
            terminal.warn(&format!(
                "{} bytes of the result are missing: the limit is {}\n  {step}, at most {MAX_MESSAGE_BYTES}",
                called.missing,
                binary_size(limit)
            ));
        }
    }

    /// Reports which binary parts of the result were saved, and returns whether all were. In the result of a tool
    /// call, saved parts are links already.
    fn report_saved_files(&self, called: &Called, terminal: &Terminal) -> bool {
        let Some(folder) = &self.bounds.artifacts else { return true };
        let limits = ArtifactLimits::default();
        let (mut are_saved, mut excess) = (true, 0);
        // Those that were saved are links, so that the others look as if they were within the limits.
        let is_full = self.saved_links(called, folder) >= limits.count;
        for artifact in artifacts(called.kind(), &called.result, limits) {
            let path = folder.join(artifact.suggested_name);
            let shown = escape_control(&path.to_string_lossy());
            match self.environment.has_file(&path) {
                true => terminal.say(&format!("kept {shown}\n")),
                false if is_full => excess += 1,
                false => {
                    are_saved = false;
                    terminal.say(&format!(
                        "error: {shown} could not be written: check that its folder can be created and written to\n"
                    ));
                }
            }
        }
        for block in unusable_blocks(called.kind(), &called.result, limits) {
            if block.reason == BlockError::TooMany {
                excess += 1;
                continue;
            }
            are_saved = false;
            let (block, reason) = (described(&block), &block.reason);
            terminal.say(&format!("error: {block} could not be saved: {reason}\n  {AS_JSON}\n"));
        }
        if excess > 0 {
            terminal.say(&too_many(excess, limits));
        }
        are_saved && excess == 0
    }

    /// The number of blocks that are links to files in the directory.
    fn saved_links(&self, called: &Called, folder: &Path) -> usize {
        let content = |it: &Raw| {
            it.get("content")
                .into_iter()
                .flat_map(|it| match it.is_object() {
                    true => vec![it],
                    false => it.items(),
                })
                .collect::<Vec<_>>()
        };
        let messages = called.result.get("messages").map(|it| it.items()).unwrap_or_default();
        let blocks = messages.iter().flat_map(content).chain(content(&called.result));
        let is_saved = |block: &Raw| {
            let name = block.get("size").and(block.get("name"));
            let name = name.as_ref().and_then(Raw::as_str);
            name.is_some_and(|name| self.environment.has_file(&folder.join(&*name)))
        };
        blocks.filter(is_saved).count()
    }
}

/// The error for binary parts beyond the limits.
fn too_many(count: usize, limits: ArtifactLimits) -> String {
    let (parts, them) = match count {
        1 => ("1 binary part".to_owned(), "it"),
        count => (format!("{count} binary parts"), "them"),
    };
    format!(
        "error: {parts} of the result could not be saved: the limit is {} files and {} for one result\n  \
         `--format json` prints {them}; a tool that takes pages or ranges returns less at once\n",
        limits.count,
        binary_size(u64::try_from(limits.total_bytes).unwrap_or(u64::MAX)),
    )
}

/// A number of bytes in the largest unit that has a whole number of them.
fn binary_size(bytes: u64) -> String {
    match bytes {
        it if it > 0 && it % MIB == 0 => format!("{} MiB", it / MIB),
        it if it > 0 && it % KIB == 0 => format!("{} KiB", it / KIB),
        it => format!("{it} bytes"),
    }
}

/// A binary block for messages: `an image (image/png) of the result`.
fn described(block: &UnusableBlock) -> String {
    let kind = match (&*block.kind, &block.uri) {
        ("image", _) => "an image".to_owned(),
        ("audio", _) => "audio".to_owned(),
        (_, Some(uri)) => format!("the resource `{}`", escape_control(uri)),
        (_, None) => "a resource".to_owned(),
    };
    let media_type = block.media_type.as_deref().map(escape_control);
    format!("{kind} ({}) of the result", media_type.as_deref().unwrap_or("unknown type"))
}

fn printed(called: &Called, format: Format) -> String {
    match format {
        Format::Raw => format!("{}\n", called.result),
        Format::Json => report::indented(&called.result),
        // One value per line, so a message would look like a value.
        Format::Text if completes_nothing(called) => String::new(),
        Format::Text => text_of(called),
    }
}

fn completes_nothing(called: &Called) -> bool {
    let values = called.result.get("completion").and_then(|completion| completion.get("values"));
    called.kind() == ResultKind::Completion && values.is_none_or(|it| it.items().is_empty())
}

/// The content of a result as text.
pub(crate) fn text_of(called: &Called) -> String {
    let text = called.text();
    let lines: Vec<_> = text.split('\n').map(printed_line).collect();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    lines.join("\n") + end
}

/// A line without characters that a terminal would act on. Tabs, and a carriage return at its end, are part of many
/// files.
fn printed_line(line: &str) -> String {
    let (line, end) = line.strip_suffix('\r').map_or((line, ""), |line| (line, "\r"));
    let columns: Vec<_> = line.split('\t').map(escape_control).collect();
    columns.join("\t") + end
}

/// `NAME=VALUE` pairs as an object, in their order; `value` converts each value.
pub(crate) fn pairs(arguments: &[String], value: fn(&str) -> Raw) -> Result<Raw> {
    let bad = |message: String| Failure::new(FailureKind::Usage, message);
    let (mut pairs, mut names) = (Raw::from_value(&serde_json::json!({})), HashSet::new());
    for argument in arguments {
        let pair = argument.split_once('=').filter(|(name, _)| !name.is_empty());
        let Some((name, text)) = pair else {
            let argument = escape_control(argument);
            bail!(bad(format!("an argument is written as `name=value`, and not as `{argument}`")));
        };
        let (value, shown) = (value(text), escape_control(name));
        if !names.insert(name) {
            bail!(bad(format!("`{shown}=…` is given twice")).with_hint("leave one out"));
        }
        reject_repeated_keys(&value, &format!("`{shown}=…`"))?;
        pairs = pairs.with(name, &value);
    }
    Ok(pairs)
}
