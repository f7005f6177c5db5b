//! The file as written: every key of every dialect, with its span, before validation.

use super::decode::{AnyValue, NamedValues, WithSpan, written};
use super::keywords::{
    Access, Protocol, RestartRule, Share, StartPolicy, ToolMode, TransportKeyword, UriStyle,
};
use super::units::{Count, PositiveDuration, RawNumber, WrittenDuration, WrittenSize};

mod values;
mod names;
mod servers;

pub(crate) use names::{AllowList, DenyList, NameLength, Prefix, Separator};
pub(crate) use servers::{McpEntry, NamedServer, ServerMap};
pub(crate) use values::{
    AgentsEntry, CommandEntry, InheritEntry, PatternsEntry, RestartEntry, ShareEntry, TimeoutEntry,
    TransportEntry, TrustEntry, VariableEntry,
};

written! {
    /// One server, in any host's spelling.
    open struct ServerEntry {
        /// How the server is reached. Left out, it follows from `command` or `url`.
        kind: TransportKeyword = "type" | "transportType",
        /// The kind of transport, or an object with the keys of the transport (ToolLoop).
        transport: TransportEntry = "transport",
        /// The program to run; as an array, with its arguments (opencode).
        command: CommandEntry = "command",
        /// Arguments of the program.
        args: Vec<WithSpan<Box<str>>> = "args",
        /// The directory to run it in.
        cwd: Box<str> = "cwd",
        /// Environment variables of the program; `null` removes one.
        env: NamedValues<VariableEntry> = "env" | "environment",
        /// A file with more environment variables, one `NAME=value` per line.
        env_file: Box<str> = "envFile",
        /// Variables of the host that it gets beside those that every server gets: true for all, or
        /// patterns of names. Default: the global rule.
        @rule inherit_env: InheritEntry = "inheritEnv",
        /// The address of a remote server.
        url: Box<str> = "url" | "serverUrl" | "baseUrl",
        /// The address of a Streamable HTTP server (Gemini CLI).
        http_url: Box<str> = "httpUrl",
        /// The address of a plain TCP server (Gemini CLI); not supported.
        tcp: Box<str> = "tcp",
        /// Headers sent with every request.
        headers: NamedValues<Box<str>> = "headers",
        /// Whether the server is used. Default: true.
        @rule enabled: bool = "enabled" | "isActive",
        /// Whether the server is not used; the opposite of `enabled`.
        @rule disabled: bool = "disabled",
        /// Whether the server is taken at its word. Default: trusted.
        @rule trust: TrustEntry = "trust",
        /// The provider of credentials that the embedding host supplies under this id.
        auth_provider: Box<str> = "authProviderId",
        /// What goes before the names of its tools instead of the server's name; empty for nothing.
        prefix: Prefix = "prefix",
        /// Which of its tools may be seen. Default: the global rule.
        @rule access: Access = "access",
        /// When it is connected. Default: the global rule.
        connect: StartPolicy = "connect",
        /// Which generation of the protocol is spoken. Default: the global rule.
        protocol: Protocol = "protocol",
        /// Whether it is started again when it ended. Default: the global rule.
        @rule restart: RestartEntry = "restart",
        /// A bound on calls, in the unit of the host this entry was written for.
        timeout: TimeoutEntry = "timeout",
        /// Bounds on every kind of wait.
        timeouts: TimeoutsEntry = "timeouts",
        /// A bound on calls in milliseconds (Claude Code).
        request_timeout_ms: PositiveDuration = "request_timeout_ms",
        /// A bound on the start in milliseconds (LibreChat).
        init_timeout: PositiveDuration = "initTimeout",
        /// How many calls may run at once. Default: no limit.
        @rule concurrency: Count = "concurrency",
        /// Whether all clients of a gateway use the same process, or each one of its own.
        @rule share: Share = "share",
        /// Whether secrets of the configuration are also masked in what a server answers. Default:
        /// no.
        @rule redact: bool = "redact",
        /// How long a list of tools is used before it is asked for again, in milliseconds.
        tools_ttl: WrittenDuration = "toolsTtlMs",
        /// How long the server may be idle before it is stopped. Default: for ever.
        idle_timeout: PositiveDuration = "idleTimeout",
        /// How large a result may be before it is cut. Default: 5 MiB.
        @rule max_result: WrittenSize = "maxResultBytes",
        /// The only tools and prompts that may be seen, in the server's own names, and resources, by
        /// their addresses.
        @rule allow_tools: AllowList =
            "allowTools" | "allowedTools" | "includeTools" | "enabledTools" | "tools",
        /// Tools, prompts and resources that may not be seen, named in the same way.
        @rule deny_tools: DenyList =
            "denyTools" | "disabledTools" | "excludeTools" | "blockedTools",
    }
}

written! {
    /// A program as older versions of Zed wrote it.
    struct ProgramEntry {
        /// The program to run.
        path: Box<str> = "path",
        /// Its arguments.
        args: Vec<WithSpan<Box<str>>> = "args",
        /// Its environment variables.
        env: NamedValues<VariableEntry> = "env",
    }
}

written! {
    /// Bounds on waiting. A number is milliseconds; a text has a unit, such as "30s".
    struct TimeoutsEntry {
        /// Reaching the server: starting its process, opening a connection.
        connect: PositiveDuration = "connect",
        /// Agreeing on the protocol.
        handshake: PositiveDuration = "handshake",
        /// Listing tools, resources or prompts.
        list: PositiveDuration = "list",
        /// One call, without the time in which a question of the server waits for an answer.
        call: PositiveDuration = "call",
        /// One question that the server asks during a call.
        question: PositiveDuration = "question",
        /// Ending by itself when asked to.
        shutdown: PositiveDuration = "shutdown",
        /// How long a list waits for servers that are still starting.
        grace: WrittenDuration = "grace",
    }
}

written! {
    /// Bounds as opencode writes them.
    struct StartupRequestEntry {
        /// The start, in milliseconds.
        startup: PositiveDuration = "startup",
        /// One request, in milliseconds.
        request: PositiveDuration = "request",
    }
}

written! {
    /// When and how often a server is started again.
    struct RestartDetails {
        /// Whether it is started again at all.
        @rule policy: RestartRule = "policy",
        /// How many times in a row. Default: 5.
        @rule limit: Count = "limit",
        /// The pause before the first time. Default: 500ms.
        delay: PositiveDuration = "delay",
        /// The longest pause. Default: 30s.
        max_delay: PositiveDuration = "maxDelay",
    }
}

written! {
    /// How exposed names are made.
    struct NamingEntry {
        /// What stands between server and tool. Default: `_`.
        separator: Separator = "separator",
        /// How long a name may be. Default: 64, which every model provider accepts.
        max_length: NameLength = "maxLength",
        /// Whether descriptions start with `[server]`. Default: true.
        describe_server: bool = "describeServer",
        /// Whether addresses of resources say whose they are, also where they are unique. Default:
        /// bare.
        addresses: UriStyle = "addresses",
    }
}

written! {
    /// A named choice of tools of one server.
    struct BundleEntry {
        /// The server.
        server: Box<str> = "serverId",
        /// How the tools reach the model. Default: direct.
        mode: ToolMode = "mode",
        /// The only tools in the bundle, in the server's own names. Left out: all.
        @rule allow_tools: AllowList =
            "allowTools" | "allowedTools" | "includeTools" | "enabledTools" | "tools",
        /// Tools that are not in the bundle; they win over `allowTools`.
        @rule deny_tools: DenyList =
            "denyTools" | "disabledTools" | "excludeTools" | "blockedTools",
    }
}

written! {
    /// An agent and what it may see.
    struct AgentEntry {
        /// Patterns of exposed names; the last that matches wins.
        @rule tools: PatternsEntry = "tools",
        /// The most that the agent may do, if that is less than the configuration allows.
        @rule access: Access = "access",
        /// What the agent is for.
        description: Box<str> = "description",
    }
}

written! {
    /// A value the user is asked for (VS Code).
    struct InputEntry {
        /// How the user is asked; here, input comes from the environment.
        kind: AnyValue = "type",
        /// What the user is told.
        description: AnyValue = "description",
        /// What the user may choose from.
        options: AnyValue = "options",
        /// The command of VS Code that gives the value; not run.
        command: AnyValue = "command",
        /// Arguments of that command.
        args: AnyValue = "args",
        /// What `${input:…}` refers to it by.
        id: Box<str> = "id",
        /// The value when none is given.
        default: Box<str> = "default",
        /// Whether the value is a secret.
        password: bool = "password",
    }
}

written! {
    /// A Trunkline configuration. Entries of other hosts can be pasted in unchanged.
    open struct FileEntry {
        /// Where this schema is.
        schema: AnyValue = "$schema",
        /// The servers, by name.
        mcp_servers: ServerMap = "mcpServers",
        /// The servers, by name, as VS Code, ToolLoop and Dispatch spell it.
        servers: ServerMap = "servers",
        /// The servers, by name, as opencode spells it.
        mcp: McpEntry = "mcp",
        /// The servers, by name, as Zed spells it.
        context_servers: ServerMap = "context_servers",
        /// Named choices of tools.
        bundles: NamedValues<BundleEntry> = "bundles",
        /// Agents: a file or folder, several of them, or agents by name.
        agents: AgentsEntry = "agents",
        /// How exposed names are made.
        naming: NamingEntry = "naming",
        /// How the tools of a scope without bundles reach the model. Default: direct.
        mode: ToolMode = "mode",
        /// How many tokens of definitions `auto` lists directly. Default: 10000.
        token_budget: Count = "tokenBudget",
        /// What stands between server and tool in an exposed name; short for `naming.separator`.
        separator: Separator = "separator",
        /// Which tools may be seen. Default: read-write.
        @rule access: Access = "access",
        /// When servers are connected. Default: lazy.
        connect: StartPolicy = "connect",
        /// Which generation of the protocol is spoken. Default: auto.
        protocol: Protocol = "protocol",
        /// Whether servers are started again when they ended. Default: on-failure.
        @rule restart: RestartEntry = "restart",
        /// Variables of the host that servers get beside those that every server gets: true for all,
        /// or patterns of names. Default: none.
        @rule inherit_env: InheritEntry = "inheritEnv",
        /// Bounds on every kind of wait.
        timeouts: TimeoutsEntry = "timeouts",
        /// How many calls may run at once, per server. Default: no limit.
        @rule concurrency: Count = "concurrency",
        /// Whether all clients of a gateway use the same processes, or each its own. Default: all.
        @rule share: ShareEntry = "share",
        /// Whether secrets of the configuration are also masked in what a server answers. Default:
        /// no.
        @rule redact: bool = "redact",
        /// How long a list of tools is used before it is asked for again, in milliseconds.
        tools_ttl: WrittenDuration = "toolsTtlMs",
        /// How long a server may be idle before it is stopped. Default: for ever.
        idle_timeout: PositiveDuration = "idleTimeout",
        /// How large a result may be before it is cut. Default: 5 MiB.
        @rule max_result: WrittenSize = "maxResultBytes",
        /// Values the user is asked for (VS Code).
        inputs: Vec<WithSpan<InputEntry>> = "inputs",
        /// A bound on calls to all servers in seconds (Zed).
        context_server_timeout: RawNumber = "context_server_timeout",
        /// Settings that opencode calls experimental.
        experimental: AnyValue = "experimental",
        /// opencode's rules for tools; not applied.
        permission: AnyValue = "permission",
        /// opencode's older rules for tools; not applied.
        tools: AnyValue = "tools",
        /// VS Code's sandbox; not applied.
        sandbox: AnyValue = "sandbox",
    }
}
