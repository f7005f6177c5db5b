//! Settings whose values are keywords.

use super::decode::words;

words! {
    /// Tools that a caller may see, by their annotations (TOOL-5).
    pub enum Access, "an access rule" {
        /// Hides tools that declare that they write; shows those without a declaration.
        ReadOnly = "read-only",
        /// Shows only tools that declare that they do not write.
        ReadOnlyStrict = "read-only-strict",
        /// Shows all tools.
        ReadWrite = "read-write",
    }
}

impl Access {
    /// Returns the more restrictive of two.
    #[must_use]
    pub fn strictest(self, other: Self) -> Self {
        let rank = |access| match access {
            Self::ReadOnlyStrict => 0,
            Self::ReadOnly => 1,
            Self::ReadWrite => 2,
        };
        if rank(other) < rank(self) { other } else { self }
    }
}

words! {
    /// Whether clients share one running server.
    pub enum Share, "a way of sharing" {
        /// All clients use the same server.
        All = "all" | "shared",
        /// Clients of the background service share it within a project. Elsewhere a host has one project.
        PerProject = "per-project",
        /// Every client of a gateway has a dedicated server.
        PerClient = "per-client",
    }
}

words! {
    /// The time when a server is connected (CON-3).
    pub enum StartPolicy, "a time to connect" {
        /// At first use.
        Lazy = "lazy",
        /// At start.
        Eager = "eager",
    }
}

words! {
    /// The protocol era used with a server (CON-2).
    pub enum Protocol, "a generation of the protocol" {
        /// The newest era that the server supports, determined by probing.
        Auto = "auto",
        /// The era that opens with `initialize`, up to 2025-11-25.
        Legacy = "legacy",
        /// The era in which every request carries its protocol version.
        Modern = "2026-07-28" | "modern",
    }
}

words! {
    /// Whether a server is restarted after it ended (CON-5).
    pub(crate) enum RestartRule, "a restart rule" {
        /// It stays down.
        Never = "never",
        /// It is restarted if it ended on its own.
        OnFailure = "on-failure",
    }
}

words! {
    /// Whether the output of a server is trusted (CFG-3, TOOL-10).
    pub enum Trust, "a level of trust" {
        /// Its tools are shown unless a rule hides them.
        Trusted = "trusted",
        /// None of its tools is shown without an allow-list; all of its output is treated as
        /// hostile.
        Untrusted = "untrusted",
    }
}

words! {
    /// When exposed resource URIs are qualified with their server (TOOL-12).
    pub enum UriStyle, "a form of addresses" {
        /// Where several servers have the same URI.
        Bare = "bare",
        /// Always.
        WithServer = "with-server",
    }
}

words! {
    /// The form in which a model receives tools (BUN-3).
    pub enum ToolMode, "a mode" {
        /// The model receives each tool.
        Direct = "direct",
        /// The model receives a small fixed set of tools to search, describe and call.
        Meta = "meta",
        /// The model receives each tool while all of them fit into the token budget, and the fixed
        /// set otherwise.
        Auto = "auto",
    }
}

words! {
    /// The store that secrets are in.
    pub enum SecretStoreChoice, "a store for secrets" {
        /// The one used before, else the keychain if there is one, else encrypted files.
        Auto = "auto",
        /// The keychain of the operating system.
        Keychain = "keychain",
        /// Encrypted files.
        File = "file",
    }
}

words! {
    /// A transport, in all spellings that hosts use.
    pub(crate) enum TransportKeyword, "a transport" {
        /// A child process.
        Stdio = "stdio" | "local",
        /// Streamable HTTP.
        Http = "http" | "streamable-http" | "streamableHttp" | "streamable_http" | "streamablehttp",
        /// Streamable HTTP, with a fallback to HTTP+SSE.
        Remote = "remote",
        /// HTTP+SSE.
        Sse = "sse",
    }
    unlisted {
        /// `WebSocket`, which some hosts support.
        WebSocket = "ws" | "websocket"
    }
}
