//! Differences between the configuration files of supported hosts.

use std::time::Duration;

use super::diagnostic::Severity;
use super::keywords::TransportKeyword;
use super::raw::ServerEntry;
use super::template::ReferenceSyntax;
use super::transport::RemoteTransport;
use super::units::seconds;

/// A family of hosts, recognized by the key under which their files list servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// `mcpServers`: Claude, Cursor, Windsurf, Gemini CLI, Cline, Roo, `BooCode` and many more.
    McpServers,
    /// `servers`: VS Code, `ToolLoop`, Dispatch.
    Servers,
    /// `mcp`: opencode.
    Opencode,
    /// `context_servers`: Zed.
    Zed,
    /// `mcp_servers` in TOML: Codex.
    Codex,
    /// `extensions` in YAML: goose.
    Goose,
    /// `mcpServers` in YAML, by name: `LibreChat`.
    LibreChat,
    /// `mcpServers` in YAML, as a list: Continue.
    Continue,
    /// `mcpServers` in a file of Cline, by its path.
    Cline,
    /// `mcpServers` in a file of Roo, by its path.
    Roo,
    /// `mcpServers` in a file of Gemini CLI, by its path.
    Gemini,
    /// `mcpServers` in a file of mcporter, by its path.
    Mcporter,
}

/// Meaning of a bare number under `timeout`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BareTimeout {
    /// This duration.
    Bound(Duration),
    /// Too short to be milliseconds, the unit of the dialect; the value is ignored.
    Ignored,
    /// Negative, or above the maximum.
    OutOfRange,
}

/// Keys that identify entries of Cline and Roo under `mcpServers`. These two write timeouts in
/// seconds, all other hosts with that key in milliseconds.
const SECONDS_MARKERS: &[&str] = &["autoApprove", "alwaysAllow", "remoteConfigured", "watchPaths"];

/// Longest `timeout` that Cline and Roo accept. A longer one is another host's milliseconds.
const LONGEST_SECONDS: f64 = 3600.0;

/// Shortest `timeout` taken as milliseconds; Claude Code ignores shorter ones as well.
const SHORTEST_MILLISECONDS: f64 = 1000.0;

impl Dialect {
    /// The dialect of `mcpServers` in a JSON file with this path. The files of these hosts look like all others.
    pub(crate) fn of_json_path(path: &str) -> Self {
        let is_below = |folder: &str| path.split(['/', '\\']).any(|part| part == folder);
        let is_mcporter = is_below("mcporter.json") || is_below("mcporter.jsonc");
        let is_roo = is_below(".roo") || is_below("rooveterinaryinc.roo-cline");
        let is_cline = is_below(".cline") || is_below("saoudrizwan.claude-dev");
        match () {
            () if is_roo => Self::Roo,
            () if is_cline => Self::Cline,
            () if is_below(".gemini") || is_below("gemini-cli") => Self::Gemini,
            () if is_mcporter => Self::Mcporter,
            () => Self::McpServers,
        }
    }

    pub(crate) fn spelling(self) -> ReferenceSyntax {
        match self {
            Self::Opencode => ReferenceSyntax::DollarAndBraces,
            Self::McpServers | Self::Servers | Self::LibreChat | Self::Roo => {
                ReferenceSyntax::Dollar
            }
            // `foreign` writes the references of these hosts in this syntax, and escapes all other text.
            Self::Codex | Self::Goose | Self::Continue => ReferenceSyntax::Dollar,
            Self::Zed | Self::Cline => ReferenceSyntax::None,
            Self::Gemini => ReferenceSyntax::DollarAndName,
            Self::Mcporter => ReferenceSyntax::DollarAndEnv,
        }
    }

    /// The transport of a URL without a type, by the rule of the host.
    pub(crate) fn untyped_remote(self) -> RemoteTransport {
        match self {
            Self::Zed | Self::Codex => RemoteTransport::Streamable,
            Self::LibreChat | Self::Cline => RemoteTransport::Sse,
            Self::McpServers
            | Self::Servers
            | Self::Opencode
            | Self::Goose
            | Self::Continue
            | Self::Roo
            | Self::Gemini
            | Self::Mcporter => RemoteTransport::Detect,
        }
    }

    /// Interprets a bare number under `timeout`.
    pub(crate) fn timeout(self, entry: &ServerEntry, number: f64) -> BareTimeout {
        let in_seconds = match self {
            Self::Zed | Self::Codex | Self::Goose => number,
            Self::Cline | Self::Roo if number <= LONGEST_SECONDS => number,
            Self::McpServers if written_in_seconds(entry) && number <= LONGEST_SECONDS => number,
            Self::McpServers | Self::Servers | Self::Gemini | Self::Mcporter
                if (0.0..SHORTEST_MILLISECONDS).contains(&number) =>
            {
                return BareTimeout::Ignored;
            }
            Self::McpServers
            | Self::Servers
            | Self::Gemini
            | Self::Mcporter
            | Self::Opencode
            | Self::LibreChat
            | Self::Continue
            | Self::Cline
            | Self::Roo => number / 1000.0,
        };
        match seconds(in_seconds) {
            Some(bound) if !bound.is_zero() => BareTimeout::Bound(bound),
            _ => BareTimeout::OutOfRange,
        }
    }
}

fn written_in_seconds(entry: &ServerEntry) -> bool {
    entry.unknown.iter().any(|member| SECONDS_MARKERS.contains(&&*member.key.text))
}

/// A known key of another host that has no effect here.
pub(crate) struct ForeignKey {
    pub(crate) key: &'static str,
    pub(crate) severity: Severity,
    pub(crate) meaning: &'static str,
}

const fn note(key: &'static str, meaning: &'static str) -> ForeignKey {
    ForeignKey { key, severity: Severity::Note, meaning }
}

const fn warning(key: &'static str, meaning: &'static str) -> ForeignKey {
    ForeignKey { key, severity: Severity::Warning, meaning }
}

/// Keys of server entries in other hosts. A warning if ignoring the key changes the abilities or
/// restrictions of the server.
pub(crate) const FOREIGN_KEYS: &[ForeignKey] = &[
    note("alwaysAllow", "approval is the host's business"),
    note("alwaysLoad", "it is a matter of how Claude Code shows tools"),
    note("autoApprove", "approval is the host's business"),
    note("bundled", "it is goose's bookkeeping"),
    note("chatMenu", "it is a matter of what LibreChat shows"),
    note("customUserVars", "each of them is a variable of the same name"),
    note("default_tools_approval_mode", "approval is the host's business"),
    note("description", "nothing shows it"),
    note("dev", "it is for developing a server in VS Code"),
    note("display_name", "nothing shows it"),
    note("faviconUrl", "nothing shows it"),
    note("gallery", "it is VS Code's bookkeeping"),
    note("icon", "nothing shows it"),
    note("iconPath", "nothing shows it"),
    note("metadata", "it is Cline's bookkeeping"),
    note("name", "the key is the server's name"),
    note("remote", "it is a matter of where Zed runs a server"),
    note("remoteConfigured", "it is Cline's bookkeeping"),
    note("required", "a server that cannot start stops no other"),
    note("requiresOAuth", "a login is used where the server asks for one"),
    note("serverInstructions", "instructions of servers are always passed on"),
    note("settings", "it is for Zed extensions"),
    note("source", "it is Zed's bookkeeping"),
    note("sourceFile", "it is Continue's bookkeeping"),
    note("sseReadTimeout", "streams may stay silent"),
    note("startup", "`connect` decides when a server is started"),
    note("stderr", "output of servers goes to the log"),
    note("supports_parallel_tool_calls", "`concurrency` limits calls"),
    note("title", "nothing shows it"),
    note("version", "it is the host's bookkeeping"),
    note("watchPaths", "servers are not restarted for changed files"),
    warning("apiKey", "no header is sent for it"),
    warning("bearer_token", "Codex refuses it; name a variable in `bearer_token_env_var`"),
    warning("environment_id", "the server runs on this machine"),
    warning(
        "http_headers_helper",
        "its headers are not sent; `headersCommand` runs a program that prints headers",
    ),
    warning("oauth_headers", "they are not sent to the authorization server"),
    warning("oauth_resource", "tokens are requested for the address of the server"),
    warning("obo", "no token of a user is exchanged"),
    warning("omit_tools_from", "the tools are visible everywhere"),
    warning("proxy", "requests use the proxy of the environment"),
    warning("sandboxEnabled", "the server does not run in a sandbox"),
    warning("socket", "requests go to the address itself"),
];

impl TransportKeyword {
    /// Whether the server is remote.
    pub(crate) fn is_remote(self) -> bool {
        !matches!(self, Self::Stdio)
    }
}

#[cfg(test)]
mod tests {
    use super::super::decode::RawObject;
    use super::super::limits::LimitKeyword;
    use super::*;

    #[test]
    fn the_list_of_foreign_keys_has_no_key_of_ours() {
        for foreign in FOREIGN_KEYS {
            assert!(!ServerEntry::KEYS.contains(&foreign.key), "{}", foreign.key);
        }
    }

    #[test]
    fn no_foreign_key_is_taken_for_a_limit() {
        for foreign in FOREIGN_KEYS {
            assert_eq!(LimitKeyword::of(foreign.key), None, "{}", foreign.key);
        }
    }

    #[test]
    fn a_bare_timeout_is_in_the_unit_of_its_dialect() {
        let entry = ServerEntry::default();
        let minute = BareTimeout::Bound(Duration::from_secs(60));
        assert_eq!(Dialect::Zed.timeout(&entry, 60.0), minute);
        assert_eq!(Dialect::Opencode.timeout(&entry, 60_000.0), minute);
        assert_eq!(Dialect::McpServers.timeout(&entry, 60_000.0), minute);
        assert_eq!(Dialect::McpServers.timeout(&entry, 60.0), BareTimeout::Ignored);
        assert_eq!(Dialect::Zed.timeout(&entry, -1.0), BareTimeout::OutOfRange);
    }
}
