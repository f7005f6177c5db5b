//! `trunkline call`: makes one call, prints its result, and stops the server again.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::time::timeout;
use trunkline::call::CallOptions;
use trunkline::catalog::ItemKind;
use trunkline::config::{Environment as _, escape_control};
use trunkline::message::Raw;
use trunkline::name::ServerName;
use trunkline::view::View;

use crate::arguments::CallArguments;
use crate::environment::ProcessEnv;
use crate::host::caller::CallerOptions;
use crate::host::command_host::{CommandHost, ProblemDetail, with_host};
use crate::host::elicitation::UserInput;
use crate::host::missing_arguments;
use crate::host::resolve::{NameSearch, ResolvedName, TimeLimit};
use crate::host::run_call::{ArgumentCheck, CallRunner};
use crate::host::tool_name::TypedName;
use crate::output::exit::{Failure, FailureKind, Outcome};
use crate::output::terminal::Terminal;
use crate::roots::RootsSetting;
use crate::settings::Settings;
use crate::typed::{ArgumentSchema, ArgumentWords, object, parse_pair, parse_word};

/// Largest file for an argument.
const MAX_FILE_BYTES: usize = 64 * 1024 * 1024;

/// Reads all arguments from standard input.
const STDIN: &str = "-";

/// The time that servers need to use the roots that they were told.
const ROOTS: Duration = Duration::from_millis(150);

/// How long a server may take to respond to `ping`.
const PING: Duration = Duration::from_secs(2);

pub(crate) fn run(
    arguments: &CallArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    // Mistakes in words are found before a server is started.
    let (_, words) = arguments.split_url();
    let parsed = words.iter().skip(1).map(|word| parse_word(word)).collect::<Result<Vec<_>>>()?;
    let options = arguments.arguments.iter().map(|word| parse_pair(word));
    let options = options.collect::<Result<Vec<_>>>()?;
    ArgumentWords::new([options.clone(), parsed.clone()].concat())?;
    let document = document(arguments, words, terminal)?;
    check_roots(settings, environment)?;
    let time = TimeLimit::new(arguments.bounds.timeout);
    let who = CallerOptions::read(&arguments.who, settings, environment)?;
    with_host(ProblemDetail::Counted, settings, environment, terminal, async |hosted, terminal| {
        let can_ask = terminal.can_ask() && !arguments.yes;
        let input = UserInput { can_ask, roots: Arc::clone(&hosted.roots) };
        hosted.offer_input(&input);
        let server = arguments.server.as_deref();
        let (typed, rest) = TypedName::split(ItemKind::Tool, words, server, hosted);
        if document.is_some() && rest.iter().any(|word| word != STDIN) {
            return Err(two_kinds().into());
        }
        let name = &*typed.within(time).exposed(hosted, &who, terminal).await?;
        let search = NameSearch { hosted, who: &who, name, server: None, time };
        let ResolvedName { caller, view, server } = search.named(ItemKind::Tool, terminal).await?;
        let tool = caller.tool(name).map_err(Failure::from)?;
        let schema = schema_of(&view, name);
        let (given, hint) = match document {
            Some(document) => (document, None),
            None => {
                // The words before are the name of the tool.
                let rest = parsed.get(parsed.len() - rest.len()..).unwrap_or_default();
                let words = ArgumentWords::new([&options[..], rest].concat())?;
                let given = of_words(&words, &schema, (arguments, environment), terminal).await?;
                (given, words.text_hint(&schema))
            }
        };
        check_texts(arguments, &schema, &given)?;
        time.bound(wait_for_roots(hosted, &server)).await;
        let shown = CallRunner {
            settings,
            environment,
            bounds: &arguments.bounds,
            time,
            hosted,
            server: &server,
            doing: format!("calling {}", escape_control(name)),
            input: &input,
            check: (!arguments.no_check).then_some(ArgumentCheck { tool: name, hint }),
        };
        shown
            .run(terminal, async |options: CallOptions<'_>| tool.call(given).options(options).await)
            .await
    })
}

/// The error for `--root` without a directory.
fn check_roots(settings: &Settings, environment: &ProcessEnv) -> Result<()> {
    let RootsSetting::Given(roots) = &settings.roots else { return Ok(()) };
    let Some(root) = roots.iter().find(|root| !environment.is_directory(root)) else {
        return Ok(());
    };
    let message = format!("there is no directory {}", escape_control(&root.to_string_lossy()));
    let failure = Failure::new(FailureKind::Usage, message);
    Err(failure.with_hint("give `--root` a directory that servers may use").into())
}

/// The arguments that words say. Required ones that are missing are asked for.
async fn of_words(
    words: &ArgumentWords,
    schema: &ArgumentSchema,
    (arguments, environment): (&CallArguments, &ProcessEnv),
    terminal: &mut Terminal,
) -> Result<Raw> {
    let read = |file: &str| read_file(environment, file);
    let given = words.for_tool(schema, !arguments.no_check, &read)?;
    match arguments.yes || arguments.no_check {
        true => Ok(given),
        false => missing_arguments::ask(given, schema, terminal).await,
    }
}

/// Waits until a server that asks for roots as it starts uses them. It does not say when; the check of a directory
/// takes it a moment after the response. If it fails to start, the call says why.
async fn wait_for_roots(hosted: &CommandHost, server: &ServerName) {
    if hosted.roots.of(server).await.is_empty() {
        return;
    }
    let Some(connection) = hosted.host.servers().get(server.as_str()) else { return };
    if connection.connect().await.is_err() {
        return;
    }
    // A server that responds has read that the handshake is complete, and has asked if it asks at all.
    let _ = timeout(PING, connection.request("ping", None)).await;
    if hosted.roots.were_requested(server) {
        tokio::time::sleep(ROOTS).await;
    }
}

/// The arguments as one JSON document, if they are given so.
fn document(
    arguments: &CallArguments,
    words: &[String],
    terminal: &mut Terminal,
) -> Result<Option<Raw>> {
    let is_stdin = words.len() > 1 && words.last().is_some_and(|word| word == STDIN);
    let has_pairs =
        !arguments.arguments.is_empty() || words.iter().skip(1).any(|it| it.contains('='));
    if has_pairs && (is_stdin || arguments.json.is_some()) || is_stdin && arguments.json.is_some() {
        return Err(two_kinds().into());
    }
    match &arguments.json {
        Some(text) => object(text, "`--json`").map(Some),
        None if is_stdin => object(&terminal.read_input()?, "standard input").map(Some),
        None => Ok(None),
    }
}

fn two_kinds() -> Failure {
    let message =
        "give the arguments one by one, with `--json`, or on standard input: not two of these";
    Failure::new(FailureKind::Usage, message.to_owned())
}

fn schema_of(view: &View, name: &str) -> ArgumentSchema {
    match view.catalog().get(ItemKind::Tool, name) {
        Some(entry) => ArgumentSchema::of(entry.definition()),
        None => ArgumentSchema::of(&Raw::empty_object()),
    }
}

/// The error for texts that do not fit `format` or `pattern`. Everything else of the schema is validated with the call.
fn check_texts(arguments: &CallArguments, schema: &ArgumentSchema, given: &Raw) -> Result<()> {
    let problems = schema.text_problems(&given.to_value());
    if arguments.no_check || problems.is_empty() {
        return Ok(());
    }
    let message = format!("the arguments do not fit the tool: {}", problems.join("; "));
    let failure = Failure::new(FailureKind::BadArguments, message);
    Err(failure.with_hint("`--no-check` sends them anyway").into())
}

/// The content of a file for an argument.
fn read_file(environment: &ProcessEnv, file: &str) -> Result<String> {
    let shown = escape_control(file);
    let bad = |problem: String| {
        Failure::new(FailureKind::BadArguments, problem)
            .with_hint("`key=@file` sends the content of a file; for a text that begins with `@`, write `key:='\"@…\"'`")
    };
    let path = environment.working_directory().join(file);
    let bytes = environment
        .read(&path)
        .map_err(|error| bad(format!("the file `{shown}` cannot be read: {error}")))?;
    if bytes.len() > MAX_FILE_BYTES {
        let limit = MAX_FILE_BYTES / 1024 / 1024;
        return Err(bad(format!("the file `{shown}` is larger than {limit} MiB")).into());
    }
    let text = String::from_utf8(bytes);
    Ok(text.map_err(|_| bad(format!("the file `{shown}` is not UTF-8 text")))?)
}
