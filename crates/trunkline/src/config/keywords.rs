//! Choices that a file makes with a word.

use super::decode::words;

words! {
    /// Which tools a caller may see, judged by what they say of themselves (TOOL-5).
    pub enum Access, "an access rule" {
        /// Tools that declare they write are left out; those that declare nothing are kept.
        ReadOnly = "read-only",
        /// Only tools that declare they do not write are kept.
        ReadOnlyStrict = "read-only-strict",
        /// All tools are kept.
        ReadWrite = "read-write",
    }
}

impl Access {
    /// The one of two that lets less through.
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
    /// Who uses one running server.
    pub enum Share, "a way of sharing" {
        /// All clients use the same one.
        All = "all",
        /// Every client of a gateway has one of its own.
        PerClient = "per-client",
    }
}

words! {
    /// When a server is connected (CON-3).
    pub enum StartPolicy, "a time to connect" {
        /// At first use.
        Lazy = "lazy",
        /// At start.
        Eager = "eager",
    }
}

words! {
    /// Which generation of the protocol a server is spoken to in (CON-2).
    pub enum Protocol, "a generation of the protocol" {
        /// The newest it understands: it is asked.
        Auto = "auto",
        /// That which opens with `initialize`, up to 2025-11-25.
        Legacy = "legacy",
        /// That in which every request says for itself what it speaks.
        Modern = "2026-07-28" | "modern",
    }
}

words! {
    /// Whether a server that ended is started again (CON-5).
    pub(crate) enum RestartRule, "a restart rule" {
        /// It stays down.
        Never = "never",
        /// It is started again when it ended by itself.
        OnFailure = "on-failure",
    }
}

words! {
    /// Whether what a server says is taken at its word (CFG-3, TOOL-10).
    pub enum Trust, "a level of trust" {
        /// Its tools are shown unless a rule hides them.
        Trusted = "trusted",
        /// None of its tools is shown without an allow-list; all it says is hostile input.
        Untrusted = "untrusted",
    }
}

words! {
    /// When addresses of resources say whose they are (TOOL-12).
    pub enum UriStyle, "a form of addresses" {
        /// Where several servers have the same.
        Bare = "bare",
        /// Always.
        WithServer = "with-server",
    }
}

words! {
    /// How the tools of a bundle reach the model (BUN-3).
    pub enum BundleMode, "a bundle mode" {
        /// Each tool is put in front of the model.
        Direct = "direct",
        /// The model gets a small fixed surface to search, describe and call.
        Meta = "meta",
    }
}

words! {
    /// A kind of transport, in every host's word for it.
    pub(crate) enum TransportKeyword, "a transport" {
        /// A child process.
        Stdio = "stdio" | "local",
        /// Streamable HTTP.
        Http = "http" | "streamable-http" | "streamableHttp" | "streamable_http" | "streamablehttp",
        /// Streamable HTTP or, where that is not spoken, HTTP+SSE.
        Remote = "remote",
        /// HTTP+SSE.
        Sse = "sse",
    }
    unlisted {
        /// `WebSocket`, which some hosts have.
        WebSocket = "ws" | "websocket"
    }
}
