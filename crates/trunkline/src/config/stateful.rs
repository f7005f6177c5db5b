//! Servers that are known to keep the state of one user: a page that is open in a browser, a train of thought.
//! Clients that share such a server see the state of each other.

use std::time::Duration;

use super::model::{Config, Server, Share, Transport};
use super::template::Template;

/// Packages of such servers, without versions, as they occur on command lines.
const PACKAGES: &[&str] = &[
    "@agent-infra/mcp-server-browser",
    "@browsermcp/mcp",
    "@browserbasehq/mcp",
    "@browserbasehq/mcp-server-browserbase",
    "@executeautomation/playwright-mcp-server",
    "@hisma/server-puppeteer",
    "@modelcontextprotocol/server-memory",
    "@modelcontextprotocol/server-puppeteer",
    "@modelcontextprotocol/server-sequential-thinking",
    "@playwright/mcp",
    "browser-use",
    "chrome-devtools-mcp",
    "mcp-playwright",
    "mcp-server-browser-use",
    "mcp-server-playwright",
    "mcp-server-puppeteer",
    "mcp-server-sequential-thinking",
    "mcp/memory",
    "mcp/playwright",
    "mcp/puppeteer",
    "mcp/sequentialthinking",
    "playwright-mcp",
    "puppeteer-mcp-server",
    "server-memory",
];

impl Server {
    /// Whether it is known to keep the state of one user, by the package in its command.
    pub fn is_known_stateful(&self) -> bool {
        let Transport::Stdio(stdio) = &self.transport else { return false };
        let words = std::iter::once(&stdio.command).chain(&stdio.args);
        words.filter_map(Template::as_literal).any(is_stateful_package)
    }
}

fn is_stateful_package(word: &str) -> bool {
    // `@scope/name@1.2`, `name==1.2`, `name:tag`, `/usr/bin/name`
    let (scope, rest) = match word.strip_prefix('@') {
        Some(rest) => ("@", rest),
        None => ("", word),
    };
    let name = rest.split(['@', '=', ':', '[']).next().unwrap_or(rest);
    let base = name.rsplit('/').next().unwrap_or(name);
    PACKAGES.iter().any(|package| match package.strip_prefix('@') {
        Some(package) => scope == "@" && package == name,
        None => *package == name || (scope.is_empty() && *package == base),
    })
}

impl Config {
    /// Sets what a service for many clients needs, where the configuration does not say: each client gets
    /// its own process of servers that are known to keep state, and idle programs stop.
    #[must_use]
    pub fn for_many_clients(mut self, idle_timeout: Duration) -> Self {
        for server in self.servers.values_mut() {
            let is_stateful = server.is_known_stateful();
            let is_program = matches!(server.transport, Transport::Stdio(_));
            let behaviour = &mut server.behaviour;
            if is_stateful && !behaviour.is_share_set {
                behaviour.share = Share::PerClient;
            }
            if is_program && behaviour.idle_timeout.is_none() {
                behaviour.idle_timeout = Some(idle_timeout);
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    #[test]
    fn packages_are_recognized_in_any_spelling() {
        for word in [
            "@playwright/mcp",
            "@playwright/mcp@latest",
            "chrome-devtools-mcp@0.9",
            "/usr/local/bin/mcp-server-playwright",
            "mcp/playwright:latest",
            "browser-use[cli]",
            "browser-use==0.5",
        ] {
            assert!(is_stateful_package(word), "{word}");
        }
        for word in ["@other/mcp", "mcp", "@playwright/test", "npx", "", "memory", "--memory"] {
            assert!(!is_stateful_package(word), "{word}");
        }
    }

    #[test]
    fn what_is_configured_stays() {
        let config = parse(
            "mcp.json",
            r#"{ "mcpServers": {
                "browser": { "command": "npx", "args": ["-y", "@playwright/mcp@latest"] },
                "shared": { "command": "npx", "args": ["@playwright/mcp"], "share": "all", "idleTimeout": "2h" },
                "time": { "command": "uvx", "args": ["mcp-server-time"] },
                "remote": { "url": "https://example.com/@playwright/mcp" }
            } }"#,
        );
        let config = config.config.for_many_clients(Duration::from_secs(60));
        let of = |name: &str| {
            let behaviour = &config.server(name).unwrap().behaviour;
            (behaviour.share, behaviour.idle_timeout.map(|it| it.as_secs()))
        };
        assert_eq!(of("browser"), (Share::PerClient, Some(60)));
        assert_eq!(of("shared"), (Share::All, Some(7200)));
        assert_eq!(of("time"), (Share::All, Some(60)));
        assert_eq!(of("remote"), (Share::All, None));
    }
}
