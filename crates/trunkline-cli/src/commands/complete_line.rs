//! `trunkline complete-line`: prints the words that can follow on a command line, for the scripts of `completions`.
//!
//! Starts no server: items are those of the cache on disk. Problems are not reported, since a shell would show them in
//! the middle of a line.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use clap::{Arg, Command as ClapCommand, CommandFactory as _};
use serde_json::Value;
use trunkline::catalog::ItemKind;
use trunkline::config::{DiscoveredFiles, LoadedConfig};
use trunkline::name::{AgentName, ServerName};
use trunkline::policy::CallerSpec;
use trunkline::view::View;
use trunkline_hosts::hosts::{AiHost, HOSTS};

use crate::arguments::{Arguments, CompleteLineArguments};
use crate::config::load::{Agents, load_waiting};
use crate::environment::ProcessEnv;
use crate::host::command_host::runtime;
use crate::host::host_builder::{builder, with_cache};
use crate::output::exit::Outcome;
use crate::output::terminal::Terminal;
use crate::settings::Settings;
use crate::typed::ArgumentSchema;

pub(crate) fn run(
    arguments: &CompleteLineArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let words = split(&arguments.line);
    let line = CommandLine::parse(&words);
    let candidates = line.candidates(settings, environment);
    let is_match = |word: &String| word.starts_with(line.current);
    let mut found: Vec<String> = candidates.into_iter().filter(is_match).collect();
    found.sort();
    found.dedup();
    // A name with a line break would look like two.
    found.retain(|word| !word.contains(char::is_control));
    terminal.print(&found.iter().map(|word| format!("{word}\n")).collect::<String>())?;
    Ok(Outcome::Good)
}

/// The words of a line; the last one is the word at the cursor, which may be empty.
fn split(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for sign in line.chars() {
        match (sign, quote) {
            (sign, Some(open)) if sign == open => quote = None,
            ('"' | '\'', None) => quote = Some(sign),
            (' ' | '\t', None) => words.push(String::new()),
            (sign, _) => words.last_mut().map(|word| word.push(sign)).unwrap_or_default(),
        }
    }
    let last = words.pop().unwrap_or_default();
    words.retain(|word| !word.is_empty());
    words.push(last);
    words
}

/// A command line up to the cursor.
struct CommandLine<'l> {
    command: ClapCommand,
    /// The names of the subcommands.
    path: Vec<String>,
    /// The file of `--config`.
    config: Option<&'l str>,
    /// The words after the subcommand that are no options.
    positional: Vec<&'l str>,
    /// The option whose value is at the cursor.
    option: Option<Arg>,
    /// The word at the cursor.
    current: &'l str,
}

impl<'l> CommandLine<'l> {
    fn parse(words: &'l [String]) -> Self {
        let (mut command, mut path) = (Arguments::command(), Vec::new());
        command.build();
        let (mut positional, mut option, mut config) = (Vec::new(), None::<Arg>, None);
        let current = words.last().map(String::as_str).unwrap_or_default();
        let before = words.len().saturating_sub(1);
        for word in words.iter().take(before).skip(1).map(String::as_str) {
            if let Some(option) = option.take() {
                if option.get_long() == Some("config") {
                    config = Some(word);
                }
                continue;
            }
            if word.starts_with('-') {
                option = value_option(&command, word);
            } else if let Some(found) =
                command.find_subcommand(word).cloned().filter(|_| positional.is_empty())
            {
                path.push(found.get_name().to_owned());
                command = found;
            } else {
                positional.push(word);
            }
        }
        Self { command, path, config, positional, option, current }
    }

    fn candidates(&self, settings: &Settings, environment: &Arc<ProcessEnv>) -> Vec<String> {
        if let Some(option) = &self.option {
            return self.values_of(option, settings, environment);
        }
        if self.current.starts_with('-') {
            let shown = self.command.get_arguments().filter(|it| !it.is_hide_set());
            return shown.filter_map(|it| it.get_long()).map(|long| format!("--{long}")).collect();
        }
        let subcommands: Vec<String> = self
            .command
            .get_subcommands()
            .filter(|it| !it.is_hide_set())
            .map(|it| it.get_name().to_owned())
            .collect();
        if !subcommands.is_empty() && self.positional.is_empty() {
            return subcommands;
        }
        self.items(settings, environment)
    }

    /// The values of an option.
    fn values_of(
        &self,
        option: &Arg,
        settings: &Settings,
        environment: &Arc<ProcessEnv>,
    ) -> Vec<String> {
        let possible = option.get_possible_values();
        if !possible.is_empty() {
            return possible.iter().map(|it| it.get_name().to_owned()).collect();
        }
        let Some(known) = KnownItems::load(self.config, settings, environment) else {
            return Vec::new();
        };
        match option.get_long() {
            Some("server" | "off") => known.servers(),
            Some("agent") => known.agents.keys().map(AgentName::to_string).collect(),
            Some("bundle") => {
                known.loaded.config.bundles().map(|(name, _)| name.to_string()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Servers, items, arguments and hosts, by the command.
    fn items(&self, settings: &Settings, environment: &Arc<ProcessEnv>) -> Vec<String> {
        let command = self.path.first().map(String::as_str).unwrap_or_default();
        if matches!(command, "import" | "install" | "uninstall") {
            return HOSTS.iter().map(AiHost::id).map(str::to_owned).collect();
        }
        let values = self.command.get_positionals().flat_map(Arg::get_possible_values);
        let values: Vec<String> = values.map(|it| it.get_name().to_owned()).collect();
        if !values.is_empty() {
            return values;
        }
        let Some(known) = KnownItems::load(self.config, settings, environment) else {
            return Vec::new();
        };
        match command {
            "tools" | "prompts" | "resources" | "login" | "logout" | "restart" | "logs"
            | "remove" => known.servers(),
            "call" | "tool" => known.words(ItemKind::Tool, &self.positional, self.current),
            "prompt" => known.words(ItemKind::Prompt, &self.positional, self.current),
            "read" if self.positional.is_empty() => known.names(ItemKind::Resource),
            "complete" => known.completable(&self.positional, self.current),
            "explain" => [known.names(ItemKind::Tool), known.names(ItemKind::Prompt)].concat(),
            "enable" | "disable" => {
                [known.servers(), known.names(ItemKind::Tool), known.names(ItemKind::Prompt)]
                    .concat()
            }
            _ => Vec::new(),
        }
    }
}

/// The option of a word, if its value is the next word.
fn value_option(command: &ClapCommand, word: &str) -> Option<Arg> {
    let name = word.trim_start_matches('-');
    let is_long = word.starts_with("--");
    let mut all = command.get_arguments();
    let found = all.find(|it| match is_long {
        true => it.get_long() == Some(name),
        false => it.get_short().is_some_and(|short| name.starts_with(short)),
    })?;
    found.get_action().takes_values().then(|| found.clone())
}

/// The configuration, and the items that are known without starting a server.
struct KnownItems {
    loaded: LoadedConfig,
    agents: Agents,
    view: Option<View>,
}

impl KnownItems {
    fn load(
        config: Option<&str>,
        settings: &Settings,
        environment: &Arc<ProcessEnv>,
    ) -> Option<Self> {
        let mut options = settings.load_options(environment, config.map(PathBuf::from));
        // Only names are read, also of a file that is not trusted.
        options.discovered = DiscoveredFiles::Run;
        let (loaded, agents) = load_waiting(environment, options).ok()?;
        let builder = with_cache(builder(environment), settings, environment);
        let builder = builder.cache_all_lists().start_lazily();
        let builder = builder.config(loaded.clone()).agents(agents.clone()).allow_errors();
        let view = runtime().ok()?.block_on(async {
            let host = builder.start().await.ok()?;
            host.view(CallerSpec::default()).ok()
        });
        Some(Self { loaded, agents, view })
    }

    fn servers(&self) -> Vec<String> {
        self.loaded.config.servers().map(|server| server.name.to_string()).collect()
    }

    fn names(&self, kind: ItemKind) -> Vec<String> {
        let entries = self.view.iter().flat_map(|view| view.entries(kind));
        entries.map(|entry| entry.exposed().to_owned()).collect()
    }

    /// The words of `call`: a tool, or a server and its tool, and then the arguments.
    fn words(&self, kind: ItemKind, before: &[&str], current: &str) -> Vec<String> {
        let is_server =
            |word: &str| ServerName::new(word).is_ok() && self.loaded.config.server(word).is_some();
        match before {
            [] => [self.names(kind), self.servers()].concat(),
            [server] if is_server(server) => self.own_names(kind, server),
            [server, name, given @ ..] if is_server(server) => self.arguments(
                |it| it.server().name.as_str() == *server && it.name() == *name,
                kind,
                given,
                current,
            ),
            [name, given @ ..] => self.arguments(
                |it| it.exposed() == *name || it.name() == *name,
                kind,
                given,
                current,
            ),
        }
    }

    /// The words of `complete`: those of `prompt`, or a resource template.
    fn completable(&self, before: &[&str], current: &str) -> Vec<String> {
        let mut words = self.words(ItemKind::Prompt, before, current);
        if before.is_empty() {
            words.extend(self.names(ItemKind::ResourceTemplate));
        }
        words
    }

    fn own_names(&self, kind: ItemKind, server: &str) -> Vec<String> {
        let entries = self.view.iter().flat_map(|view| view.entries(kind));
        let of_server = entries.filter(|entry| entry.server().name.as_str() == server);
        of_server.map(|entry| entry.name().to_owned()).collect()
    }

    /// The arguments of a tool that are not given yet, or the values of the one at the cursor.
    fn arguments(
        &self,
        is_meant: impl Fn(&trunkline::catalog::Entry) -> bool,
        kind: ItemKind,
        given: &[&str],
        current: &str,
    ) -> Vec<String> {
        let mut entries = self.view.iter().flat_map(|view| view.entries(kind));
        let Some(entry) = entries.find(|entry| is_meant(entry)) else { return Vec::new() };
        if kind == ItemKind::Prompt {
            let arguments =
                entry.definition().get("arguments").map(|it| it.items()).unwrap_or_default();
            let names =
                arguments.iter().filter_map(|it| Some(it.get("name")?.as_str()?.into_owned()));
            return names.map(|name| format!("{name}=")).collect();
        }
        let schema = ArgumentSchema::of(entry.definition());
        if let Some((name, _)) = current.split_once('=') {
            let values = schema.argument(name).map(values).unwrap_or_default();
            return values.into_iter().map(|value| format!("{name}={value}")).collect();
        }
        let is_given = |name: &&str| {
            given.iter().any(|word| word.split(['=', ':', '[', '.']).next() == Some(name))
        };
        let names = schema.names().into_iter().filter(|name| !is_given(name));
        names.map(|name| format!("{name}=")).collect()
    }
}

/// The values that a schema lists.
fn values(schema: &Value) -> Vec<String> {
    let listed = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    let mut values: Vec<String> = listed
        .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        .collect();
    if schema.get("type").and_then(Value::as_str) == Some("boolean") {
        values.extend(["true".to_owned(), "false".to_owned()]);
    }
    values
}
