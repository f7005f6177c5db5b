//! A server that is named on the command line instead of in a configuration: a URL, or a program after `--`.

use serde_json::{Value, json};
use trunkline::config::MASK;
use trunkline::name::ServerName;

use super::quoting::quoted;

/// Programs that run a package, whose name says more than theirs.
const RUNNERS: &[&str] =
    &["npx", "bunx", "pnpx", "uvx", "pipx", "node", "bun", "deno", "python", "python3", "uv"];

/// Words before the package of a runner.
const RUN_WORDS: &[&str] = &["run", "exec", "dlx", "x", "tool"];

/// Files and directories of packages that are named the same in all of them.
const COMMON_FILES: &[&str] = &["index", "main", "cli", "dist", "build", "src", "bin", "lib", ""];

/// Parts of names that every server could have.
const COMMON_PREFIXES: &[&str] = &["mcp-server-", "server-", "mcp-"];
const COMMON_SUFFIXES: &[&str] = &["-mcp-server", "-mcp", "-server"];

/// Labels of hosts that say nothing about the server.
const COMMON_LABELS: &[&str] = &["www", "mcp", "api"];

/// A server that is named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CommandLineServer {
    /// A program with its arguments.
    Program(Vec<String>),
    /// The URL of a remote server.
    Url(String),
}

/// Whether a word is the URL of a server.
pub(crate) fn is_url(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    word.starts_with("http://") || word.starts_with("https://")
}

/// Takes the URL of a server from the beginning of a list of words, if other words follow.
pub(crate) fn split_url(words: &[String]) -> (Option<&str>, &[String]) {
    match words {
        [url, rest @ ..] if is_url(url) && !rest.is_empty() => (Some(url), rest),
        _ => (None, words),
    }
}

impl CommandLineServer {
    /// A configuration with this server alone. Nothing in it is a reference: the shell has replaced those
    /// already.
    pub(crate) fn to_config(&self) -> Value {
        let mut entry = match self {
            // The user has typed the command, so it gets the variables that it would get from the shell.
            Self::Program(words) => json!({
                "command": words.first().map(|word| literal(word)),
                "args": words.iter().skip(1).map(|word| literal(word)).collect::<Value>(),
                "inheritEnv": true,
            }),
            Self::Url(url) => json!({ "url": literal(url) }),
        };
        // There is only one server, so that its names need no prefix.
        entry["prefix"] = "".into();
        json!({ "mcpServers": { self.name(): entry } })
    }

    /// The server as it is written before the other words, after a space: its URL, with secrets masked.
    pub(crate) fn written_before(&self) -> String {
        match self {
            Self::Program(_) => String::new(),
            Self::Url(_) => format!(" {}", self.masked()),
        }
    }

    /// The server as it is written after all other words: its command line, quoted for a shell, or with secrets
    /// masked.
    pub(crate) fn written_after(&self) -> String {
        match self {
            Self::Program(_) if self.may_hold_secret() => format!(" -- {}", self.masked()),
            Self::Program(words) => {
                let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
                format!(" -- {}", words.join(" "))
            }
            Self::Url(_) => String::new(),
        }
    }

    /// Whether a part of it is masked, so that what is written does not work as it is.
    pub(crate) fn may_hold_secret(&self) -> bool {
        self.masked().contains(MASK)
    }

    fn masked(&self) -> String {
        let loaded = trunkline::config::parse("the command line", self.to_config().to_string());
        let server = loaded.config.servers().next();
        server.map_or_else(|| "…".to_owned(), trunkline::config::Server::endpoint)
    }

    /// A short name for messages.
    fn name(&self) -> String {
        let name = match self {
            Self::Program(words) => package(words),
            Self::Url(url) => host_label(url),
        };
        let name: String =
            name.chars().filter(|it| it.is_ascii_alphanumeric() || *it == '-').collect();
        match ServerName::new(&name) {
            Ok(_) => name,
            Err(_) => "server".to_owned(),
        }
    }
}

/// Escapes the beginning of references.
fn literal(text: &str) -> String {
    text.replace("${", "$${")
}

/// The short name of the package or program of a command.
fn package(words: &[String]) -> String {
    let stem = |word: &str| {
        let is_common =
            |part: &&str| COMMON_FILES.contains(&part.split('.').next().unwrap_or(part));
        let mut parts = word.rsplit(['/', '\\']);
        let file = parts.clone().next().unwrap_or(word);
        let file = parts.find(|part| !is_common(part)).unwrap_or(file);
        // The version of a package: `server-time@1.2`.
        let file = file.split('@').find(|part| !part.is_empty()).unwrap_or(file);
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        stem.to_owned()
    };
    let mut words = words.iter().map(String::as_str);
    let program = stem(words.next().unwrap_or_default());
    let is_package = |word: &&str| !word.starts_with('-') && !RUN_WORDS.contains(word);
    let name = match RUNNERS.contains(&program.as_str()) {
        true => words.find(is_package).map_or(program, stem),
        false => program,
    };
    let short = COMMON_PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
    let short =
        short.or_else(|| COMMON_SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix)));
    short.filter(|short| !short.is_empty()).unwrap_or(&name).to_owned()
}

/// The label of a host that names the server: `example` in `https://mcp.example.com/mcp`.
fn host_label(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let host = host.split(':').next().unwrap_or(host);
    if host.chars().all(|it| it.is_ascii_digit() || it == '.') {
        return "server".to_owned();
    }
    let label = host.split('.').find(|label| !COMMON_LABELS.contains(label));
    label.unwrap_or("server").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(words: &[&str]) -> String {
        CommandLineServer::Program(words.iter().map(|it| (*it).to_owned()).collect()).name()
    }

    #[test]
    fn names_are_those_of_packages() {
        for (words, expected) in [
            (&["npx", "-y", "@modelcontextprotocol/server-everything@1.0"][..], "everything"),
            (&["uvx", "mcp-server-time"], "time"),
            (&["uv", "run", "weather-mcp"], "weather"),
            (&["python3", "-I", "./my_server.py"], "myserver"),
            (&["/opt/bin/files-server", "x"], "files"),
            (&["node", "/x/server-filesystem/dist/index.js"], "filesystem"),
            (&["./index.js"], "index"),
            (&["${HOME}"], "HOME"),
            (&["…"], "server"),
        ] {
            assert_eq!(name(words), expected, "{words:?}");
        }
        for (url, expected) in [
            ("https://mcp.example.com/mcp", "example"),
            ("http://127.0.0.1:8080/mcp", "server"),
            ("https://u:p@docs.test", "docs"),
        ] {
            assert_eq!(CommandLineServer::Url(url.to_owned()).name(), expected, "{url}");
        }
    }

    #[test]
    fn nothing_typed_is_a_reference() {
        let server = CommandLineServer::Program(vec!["echo".into(), "${SECRET}".into()]);
        let config = trunkline::config::parse("test", server.to_config().to_string());
        assert!(!config.has_errors(false), "{:?}", config.diagnostics);
        assert_eq!(server.to_config()["mcpServers"]["echo"]["args"], json!(["$${SECRET}"]));
    }
}
