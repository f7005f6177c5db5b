//! The servers in the files of other hosts on this machine.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;
use trunkline::config::{
    self, Diagnostic, Environment as _, LoadedConfig, Server, Severity, escape_control,
    is_valid_secret_name,
};
use trunkline::name::ServerName;
use trunkline_hosts::edit::FileFormat;
use trunkline_hosts::file::ConfigFile;
use trunkline_hosts::hosts::{self, AiHost, ConfigLevel, DisabledList, HostFile};
use trunkline_hosts::system::{System, UserEnvironment};

use super::host_rules;
use super::host_text::parse_host_text;
use super::literals::{self, LiteralCredential};
use super::references;
use crate::environment::ProcessEnv;

/// The program of an entry that is Trunkline itself.
const PROGRAM: &str = "trunkline";

/// How a diagnostic speaks of a key without effect, which an import leaves out.
const KEPT: &str = " is kept and has no effect: ";

/// A server in a file of a host.
#[derive(Clone, Debug)]
pub(crate) struct FoundServer {
    pub(crate) host: &'static AiHost,
    pub(crate) level: ConfigLevel,
    pub(crate) file: PathBuf,
    pub(crate) name: String,
    pub(crate) transport: &'static str,
    /// The command line or URL, without secrets.
    pub(crate) endpoint: String,
    pub(crate) is_enabled: bool,
    /// The entry for Trunkline's own file.
    pub(crate) entry: Value,
    pub(crate) literals: Vec<LiteralCredential>,
    /// Keys that have no effect here, and values that mean something else.
    pub(crate) notes: Vec<String>,
}

/// Everything that was found.
#[derive(Clone, Debug, Default)]
pub(crate) struct FoundServers {
    pub(crate) servers: Vec<FoundServer>,
    /// Files and servers that cannot be read, each with the reason.
    pub(crate) failures: Vec<String>,
    /// Parts of files that are no MCP servers, such as extensions that are built into a host.
    pub(crate) notes: Vec<String>,
}

/// The user and the system, for the places of files.
pub(crate) fn user_environment(environment: &ProcessEnv) -> Option<UserEnvironment<'_>> {
    let home = environment.home_directory()?;
    let variable = |name: &str| environment.variable(name).and_then(|it| it.into_string().ok());
    Some(UserEnvironment::new(System::CURRENT, home, variable))
}

impl FoundServers {
    /// Reads the files of these hosts, or of all, for the working directory. Starts nothing.
    pub(crate) fn read(environment: &ProcessEnv, only: &[&'static AiHost]) -> Self {
        let Some(user) = user_environment(environment) else { return Self::default() };
        let mut found = Self::default();
        let files = hosts::existing_files(&user, Some(environment.working_directory()));
        for file in files.iter().filter(|file| only.is_empty() || only.contains(&file.host)) {
            let first = found.servers.len();
            found.add_file(file);
            if file.level == ConfigLevel::Project && found.servers.len() > first {
                let lists = file.host.disabled_lists(&user, environment.working_directory());
                found.switch_off(first, &lists);
            }
        }
        found
    }

    /// Switches off the servers of a file that lists of its host name.
    fn switch_off(&mut self, first: usize, lists: &[DisabledList]) {
        for list in lists {
            let names = ConfigFile::read(&list.path).ok().and_then(|it| list.names_in(it.text()));
            let servers = self.servers.get_mut(first..).unwrap_or_default();
            let is_named = |name: &String| names.as_ref().is_none_or(|names| names.contains(name));
            servers.iter_mut().filter(|it| is_named(&it.name)).for_each(FoundServer::switch_off);
            if names.is_none() {
                let path = escape_control(&list.path.to_string_lossy());
                self.failures.push(format!(
                    "{path}: `{}` cannot be read, so the servers that it may name are imported switched off",
                    list.key()
                ));
            }
        }
    }

    fn add_file(&mut self, file: &HostFile) {
        let shown = escape_control(&file.path.to_string_lossy());
        let text = match ConfigFile::read(&file.path) {
            Ok(read) => read.text().to_owned(),
            Err(error) => return self.failures.push(error.to_string()),
        };
        let keys: Vec<&str> = file.key_path.keys().collect();
        let section = match file.level {
            ConfigLevel::UserProject => keys.split_last().map_or(&[][..], |(_, path)| path),
            ConfigLevel::User | ConfigLevel::Project => &[],
        };
        if let [key, project, ..] = section
            && !config::section_names(&text, key).iter().any(|name| name == project)
        {
            return;
        }
        let loaded = match section {
            [] => parse_host_text(&shown, &text, file.format),
            path => config::parse_section(&shown, &text, path),
        };
        self.add_problems(&shown, &loaded);
        if file.format == FileFormat::Json && section.is_empty() {
            let rules = host_rules::notes(file.host.id(), &text).into_iter();
            self.notes.extend(rules.map(|note| format!("{shown}: {note}")));
        }
        for server in loaded.config.servers() {
            match FoundServer::new(file, server, &loaded.diagnostics) {
                Some(server) => self.servers.push(server),
                None => {
                    let name = escape_control(server.name.as_str());
                    self.failures.push(format!("{shown}: `{name}` is Trunkline itself"));
                }
            }
        }
    }

    fn add_problems(&mut self, file: &str, loaded: &LoadedConfig) {
        // An entry that only switches a server on or off is no server itself.
        let is_server = |name: &ServerName| loaded.config.server(name.as_str()).is_some();
        let is_part = |it: &&Diagnostic| !it.server.as_ref().is_some_and(is_server);
        let parts = loaded.diagnostics.iter().filter(is_part);
        let parts = parts.filter(|it| matches!(it.severity, Severity::Note | Severity::Warning));
        self.notes.extend(parts.map(|it| format!("{file}: {}", escape_control(&it.message))));
        let mut broken: BTreeMap<String, String> = BTreeMap::new();
        let mut others = Vec::new();
        for found in loaded.diagnostics.iter().filter(|it| it.severity == Severity::Error) {
            let place = found
                .location
                .as_ref()
                .map_or_else(String::new, |it| format!(":{}", it.start().line));
            let message = format!("{file}{place}: {}", escape_control(&found.message));
            match &found.server {
                Some(server) => drop(broken.entry(server.to_string()).or_insert(message)),
                None => others.push(message),
            }
        }
        let more = others.len().saturating_sub(1);
        let more = match more {
            0 => String::new(),
            _ => format!(", and {more} more: `trunkline check {file}` shows them"),
        };
        self.failures.extend(others.into_iter().next().map(|first| first + &more));
        self.failures.extend(broken.into_values());
    }
}

impl FoundServer {
    /// A server of a file; `None` if it is Trunkline itself, which must not become its own server.
    fn new(file: &HostFile, server: &Server, diagnostics: &[Diagnostic]) -> Option<Self> {
        let mut entry = server.to_entry();
        if is_trunkline(&entry) {
            return None;
        }
        let has_translated = references::translate(file.host.id(), &mut entry);
        let literals = literals::of_server(&entry);
        let of_server = |it: &&Diagnostic| it.server.as_ref() == Some(&server.name);
        let mut notes: Vec<String> = diagnostics
            .iter()
            .filter(of_server)
            .filter(|it| it.severity < Severity::Error)
            .map(|it| escape_control(&it.message).replace(KEPT, " is not carried over: "))
            .collect();
        // It is about the spelling of a reference that has been translated.
        notes.retain(|note| !has_translated || !note.contains("passed on as it stands"));
        notes.extend(use_secrets_for_inputs(&mut entry));
        notes.extend(literals::notes_elsewhere(server));
        if file.level == ConfigLevel::User && entry.to_string().contains("${workspaceFolder}") {
            notes.push(
                "`${workspaceFolder}` is the directory of the file that it is written in"
                    .to_owned(),
            );
        }
        Some(Self {
            host: file.host,
            level: file.level,
            file: file.path.clone(),
            name: server.name.to_string(),
            transport: server.transport_word(),
            endpoint: escape_control(&server.endpoint()),
            is_enabled: server.enabled,
            entry,
            literals,
            notes,
        })
    }

    fn switch_off(&mut self) {
        self.is_enabled = false;
        if let Some(members) = self.entry.as_object_mut() {
            members.insert("enabled".to_owned(), false.into());
        }
    }
}

/// Whether an entry starts this program as a gateway, under any name of its file.
pub(crate) fn is_trunkline(entry: &Value) -> bool {
    let Some(command) = entry.get("command").and_then(Value::as_str) else { return false };
    let program = command.rsplit(['/', '\\']).next().unwrap_or(command);
    let words = entry.get("args").and_then(Value::as_array).into_iter().flatten();
    let words: Vec<&str> = words.filter_map(Value::as_str).collect();
    let is_gateway =
        words.contains(&"connect") || words.contains(&"serve") && words.contains(&"--stdio");
    program.starts_with(PROGRAM) && is_gateway
}

/// Replaces inputs, which a host asks its user for and keeps as secrets. Returns a note for each.
fn use_secrets_for_inputs(entry: &mut Value) -> Vec<String> {
    let mut names = Vec::new();
    replace_inputs(entry, &mut names);
    let note = |name: String| {
        format!(
            "`${{input:{name}}}` became `${{secret:{name}}}`: `trunkline secret set {name}` stores its value"
        )
    };
    names.into_iter().map(note).collect()
}

fn replace_inputs(value: &mut Value, names: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            let mut rest = text.clone();
            while let Some((_, after)) = rest.split_once("${input:") {
                let Some((name, after)) = after.split_once('}') else { break };
                if is_valid_secret_name(name) {
                    *text =
                        text.replace(&format!("${{input:{name}}}"), &format!("${{secret:{name}}}"));
                    if !names.iter().any(|it| it == name) {
                        names.push(name.to_owned());
                    }
                }
                rest = after.to_owned();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace_inputs(item, names)),
        Value::Object(members) => members.values_mut().for_each(|it| replace_inputs(it, names)),
        _ => {}
    }
}
