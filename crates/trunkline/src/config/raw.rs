//! The file as written: every key of every dialect, with its span, before validation.

use super::decode::{AnyValue, NamedValues, WithSpan, written};
use super::keywords::{
    Access, Protocol, RestartRule, SecretStoreChoice, Share, StartPolicy, ToolMode,
    TransportKeyword, UriStyle,
};
use super::oauth::OAuthGrant;
use super::units::{Count, PositiveDuration, RawNumber, WrittenDuration, WrittenSize};

mod values;
mod names;
mod servers;

pub(crate) use names::{AllowList, DenyList, NameLength, Prefix, Separator};
pub(crate) use servers::{McpEntry, NamedServer, ServerMap};
pub(crate) use values::{
    AgentsEntry, CommandEntry, HeadersCommandEntry, InheritEntry, OAuthEntry, PatternsEntry,
    RestartEntry, ScopesEntry, ShareEntry, TimeoutEntry, TransportEntry, TrustEntry, VariableEntry,
};

written! {
    /// One server. The keys of other hosts are accepted too.
    open struct ServerEntry {
        /// Transport of the server. Default: `stdio` with `command`, `remote` with `url`.
        kind: TransportKeyword = "type" | "transportType",
        /// Transport, or an object with the keys of the transport (ToolLoop).
        transport: TransportEntry = "transport",
        /// Program to run. An array also contains its arguments (opencode).
        command: CommandEntry = "command",
        /// Arguments of the program.
        args: Vec<WithSpan<Box<str>>> = "args",
        /// Working directory of the program. Default: that of Trunkline.
        cwd: Box<str> = "cwd",
        /// Environment variables of the program. `null` removes a variable.
        env: NamedValues<VariableEntry> = "env" | "environment",
        /// File with more environment variables, one `NAME=value` per line.
        env_file: Box<str> = "envFile",
        /// Environment variables of Trunkline that the server inherits, in addition to the usual
        /// ones: `true` for all, or patterns of names. Default: the top-level `inheritEnv`.
        @rule inherit_env: InheritEntry = "inheritEnv",
        /// URL of a remote server.
        url: Box<str> = "url" | "serverUrl" | "baseUrl",
        /// URL of a Streamable HTTP server (Gemini CLI).
        http_url: Box<str> = "httpUrl",
        /// Address of a TCP server (Gemini CLI). Not supported.
        tcp: Box<str> = "tcp",
        /// HTTP headers of every request.
        headers: NamedValues<Box<str>> = "headers",
        /// Whether the server is used. Default: `true`.
        @rule enabled: bool = "enabled" | "isActive",
        /// Whether the server is not used: the opposite of `enabled`. Default: `false`.
        @rule disabled: bool = "disabled",
        /// Whether output of the server is trusted. Tools of an untrusted server need `allowTools`.
        /// Default: `trusted`.
        @rule trust: TrustEntry = "trust",
        /// How the server is logged in to, or `false` for a server that needs no OAuth. Most servers
        /// describe what they need, so that most entries do not have this key.
        oauth: OAuthEntry = "oauth" | "auth" | "oauthClient",
        /// Program that prints headers of every request as a JSON object, with its arguments. It is run
        /// again when the server refuses them.
        headers_command: HeadersCommandEntry = "headersCommand",
        /// Shell command that prints headers as a JSON object (Claude Code).
        headers_helper: Box<str> = "headersHelper",
        /// ID of a credential provider that the embedding host supplies.
        auth_provider: Box<str> = "authProviderId",
        /// Prefix of the exposed names. An empty string means no prefix. Default: the name of the
        /// server.
        prefix: Prefix = "prefix",
        /// Tools that are visible, by their annotations. Default: the top-level `access`.
        @rule access: Access = "access",
        /// When the server is started. Default: the top-level `connect`.
        connect: StartPolicy = "connect",
        /// Protocol era. Default: the top-level `protocol`.
        protocol: Protocol = "protocol",
        /// Whether the server is restarted after a failure. Default: the top-level `restart`.
        @rule restart: RestartEntry = "restart",
        /// Timeout of calls, in the unit of the host that the entry was written for. A string has a
        /// unit, such as "30s".
        timeout: TimeoutEntry = "timeout",
        /// Timeouts. Default: the top-level `timeouts`.
        timeouts: TimeoutsEntry = "timeouts",
        /// Timeout of calls, in milliseconds (Claude Code).
        request_timeout_ms: PositiveDuration = "request_timeout_ms",
        /// Timeout of the start, in milliseconds (LibreChat).
        init_timeout: PositiveDuration = "initTimeout",
        /// Maximum number of concurrent calls. Default: the top-level `concurrency`.
        @rule concurrency: Count = "concurrency",
        /// Whether all clients of a gateway share the server, or each has its own. Default: the
        /// top-level `share`.
        @rule share: Share = "share",
        /// Whether secrets of the configuration are masked in results. Default: the top-level
        /// `redact`.
        @rule redact: bool = "redact",
        /// Lifetime of a list of tools, in milliseconds. Default: the top-level `toolsTtlMs`.
        tools_ttl: WrittenDuration = "toolsTtlMs",
        /// Idle time after which the server is stopped, in milliseconds, or with a unit such as
        /// "10m". Default: the top-level `idleTimeout`.
        idle_timeout: PositiveDuration = "idleTimeout",
        /// Maximum size of a result, in bytes, or with a unit such as "1MiB". A larger result is
        /// truncated. Default: the top-level `maxResultBytes`.
        @rule max_result: WrittenSize = "maxResultBytes",
        /// Tools and prompts that are visible, by the server's own names, and resources, by their
        /// URIs. Default: all.
        @rule allow_tools: AllowList =
            "allowTools" | "allowedTools" | "includeTools" | "enabledTools" | "tools",
        /// Tools, prompts and resources that are hidden, also if `allowTools` contains them.
        @rule deny_tools: DenyList =
            "denyTools" | "disabledTools" | "excludeTools" | "blockedTools",
    }
}

written! {
    /// A program, as older versions of Zed write it.
    struct ProgramEntry {
        /// Program to run.
        path: Box<str> = "path",
        /// Arguments of the program.
        args: Vec<WithSpan<Box<str>>> = "args",
        /// Environment variables of the program.
        env: NamedValues<VariableEntry> = "env",
    }
}

written! {
    /// How a server is logged in to with OAuth. All keys are optional.
    struct OAuthDetails {
        /// How tokens are obtained. Default: `authorization-code`, where a user logs in.
        grant: OAuthGrant = "grant",
        /// ID of a client that was registered with the authorization server before.
        client_id: Box<str> = "clientId" | "client_id" | "CLIENT_ID",
        /// Its secret: a reference such as `${SECRET}`.
        client_secret: Box<str> = "clientSecret" | "client_secret" | "CLIENT_SECRET",
        /// Its private key in PEM, instead of a secret: a reference such as `${file:key.pem}`.
        private_key: Box<str> = "privateKey",
        /// ID of the private key.
        key_id: Box<str> = "keyId",
        /// URL of a client metadata document, used as client ID where that is supported.
        client_metadata_url: Box<str> = "clientMetadataUrl",
        /// Scopes to request, instead of those that the server asks for.
        scopes: ScopesEntry = "scopes" | "scope",
        /// Token of the workload, for the grant `jwt-bearer`: a reference such as `${file:token}`.
        assertion: Box<str> = "assertion",
        /// The identity provider, for the grant `enterprise-managed`.
        identity_provider: IdentityProviderEntry = "identityProvider",
        /// URL of the authorization server's metadata, for a server that does not name it.
        metadata_url: Box<str> = "metadataUrl" | "authServerMetadataUrl",
        /// Port of the redirect URI on this machine. Default: any free one.
        callback_port: Count = "callbackPort" | "callback_port",
        /// Redirect URI that the client was registered with, on this machine.
        redirect_uri: Box<str> = "redirectUri" | "redirect_uri",
        /// Hosts that may have an address of a private network or of this machine. The host of the server
        /// always may.
        private_hosts: Vec<WithSpan<Box<str>>> = "privateHosts",
        /// Whether tokens are bound to a key of this client (DPoP). Default: where the server requires it.
        dpop: bool = "dpop",
    }
}

written! {
    /// An identity provider that issues grants for servers (enterprise-managed authorization).
    struct IdentityProviderEntry {
        /// URL of its token endpoint.
        token_url: Box<str> = "tokenUrl",
        /// ID of the client there.
        client_id: Box<str> = "clientId",
        /// Its secret: a reference such as `${SECRET}`.
        client_secret: Box<str> = "clientSecret",
        /// ID token of the user: a reference such as `${file:id-token}`.
        id_token: Box<str> = "idToken",
    }
}

written! {
    /// Timeouts. A number is in milliseconds; a string has a unit, such as "30s".
    struct TimeoutsEntry {
        /// Start of the process, or connection to the URL. Default: 10s.
        connect: PositiveDuration = "connect",
        /// Handshake of the protocol. Default: 30s.
        handshake: PositiveDuration = "handshake",
        /// Response to a list request. Default: 30s.
        list: PositiveDuration = "list",
        /// Response to a call, without the time in which a server request is open. Default: 5m.
        call: PositiveDuration = "call",
        /// Response to a server request during a call. Default: 10m.
        question: PositiveDuration = "question",
        /// Graceful shutdown, after which the server is killed. Default: 5s.
        shutdown: PositiveDuration = "shutdown",
        /// Time that a list waits for servers that are starting. Default: 2s.
        grace: WrittenDuration = "grace",
    }
}

written! {
    /// Timeouts, as opencode writes them.
    struct StartupRequestEntry {
        /// Timeout of the start, in milliseconds.
        startup: PositiveDuration = "startup",
        /// Timeout of a request, in milliseconds.
        request: PositiveDuration = "request",
    }
}

written! {
    /// When and how often a server is restarted.
    struct RestartDetails {
        /// Whether the server is restarted. Default: `on-failure`.
        @rule policy: RestartRule = "policy",
        /// Maximum number of restarts in a row. Default: 5.
        @rule limit: Count = "limit",
        /// Delay before the first restart, which doubles each time. Default: 500ms.
        delay: PositiveDuration = "delay",
        /// Maximum delay. Default: 30s.
        max_delay: PositiveDuration = "maxDelay",
    }
}

written! {
    /// Rules for exposed names.
    struct NamingEntry {
        /// Separator between prefix and name. Default: `_`.
        separator: Separator = "separator",
        /// Maximum length of a name, in characters. Default: 64, which every model provider accepts.
        max_length: NameLength = "maxLength",
        /// Whether descriptions start with `[server]`. Default: `true`.
        describe_server: bool = "describeServer",
        /// Whether resource URIs name their server also where they are unique. Default: `bare`.
        addresses: UriStyle = "addresses",
    }
}

written! {
    /// A named selection of tools of one server.
    struct BundleEntry {
        /// Name of the server.
        server: Box<str> = "serverId",
        /// How the tools are presented to the model. Default: `direct`.
        mode: ToolMode = "mode",
        /// Whether the model can list and read resources with tools. Default: the top-level
        /// `resourcesAsTools`.
        resources_as_tools: bool = "resourcesAsTools",
        /// Whether the model can list and get prompts with tools. Default: the top-level
        /// `promptsAsTools`.
        prompts_as_tools: bool = "promptsAsTools",
        /// Tools in the bundle, by the server's own names. Default: all.
        @rule allow_tools: AllowList =
            "allowTools" | "allowedTools" | "includeTools" | "enabledTools" | "tools",
        /// Tools that are not in the bundle, also if `allowTools` contains them.
        @rule deny_tools: DenyList =
            "denyTools" | "disabledTools" | "excludeTools" | "blockedTools",
    }
}

written! {
    /// An agent, with the tools that it sees.
    struct AgentEntry {
        /// Patterns of exposed names. The last pattern that matches decides.
        @rule tools: PatternsEntry = "tools",
        /// Tools that the agent sees, by their annotations, within `access` of the server.
        @rule access: Access = "access",
        /// How the tools are presented to the agent. Default: the top-level `mode`.
        mode: ToolMode = "mode",
        /// Whether the agent can list and read resources with tools. Default: the top-level
        /// `resourcesAsTools`.
        resources_as_tools: bool = "resourcesAsTools",
        /// Whether the agent can list and get prompts with tools. Default: the top-level
        /// `promptsAsTools`.
        prompts_as_tools: bool = "promptsAsTools",
        /// Description of the agent.
        description: Box<str> = "description",
    }
}

written! {
    /// An input of the user (VS Code).
    struct InputEntry {
        /// Kind of prompt. Not used: the value comes from the variable `TRUNKLINE_INPUT_…`, with the
        /// ID in capitals.
        kind: AnyValue = "type",
        /// Text of the prompt.
        description: AnyValue = "description",
        /// Values to choose from.
        options: AnyValue = "options",
        /// Command of VS Code that returns the value. Not run.
        command: AnyValue = "command",
        /// Arguments of that command.
        args: AnyValue = "args",
        /// ID, for `${input:id}`.
        id: Box<str> = "id",
        /// Value if the variable is not set.
        default: Box<str> = "default",
        /// Whether the value is a secret.
        password: bool = "password",
    }
}

written! {
    /// Where secrets are stored.
    struct SecretsEntry {
        /// Store for secrets. Default: `auto`, the one used before, else the keychain if there is one, else
        /// encrypted files.
        store: SecretStoreChoice = "store",
        /// File with the age identity that encrypted files are encrypted with. Default: a generated one.
        key_file: Box<str> = "keyFile",
    }
}

written! {
    /// Record of the calls of clients.
    struct AuditEntry {
        /// Whether calls are written to the audit log. Default: `false`.
        log: bool = "log",
        /// Whether arguments and results are kept too, in the log and in lists of recent calls. They may contain
        /// secrets. Default: `false`.
        payloads: bool = "payloads",
    }
}

written! {
    /// A configuration of Trunkline. Entries of other hosts work unchanged.
    open struct FileEntry {
        /// URL or path of this schema, for editors.
        schema: AnyValue = "$schema",
        /// Servers, by name.
        mcp_servers: ServerMap = "mcpServers",
        /// Servers, by name (VS Code, ToolLoop, Dispatch).
        servers: ServerMap = "servers",
        /// Servers, by name (opencode).
        mcp: McpEntry = "mcp",
        /// Servers, by name (Zed).
        context_servers: ServerMap = "context_servers",
        /// Bundles, by name: selections of tools.
        bundles: NamedValues<BundleEntry> = "bundles",
        /// Agents by name, or files and directories that define them.
        agents: AgentsEntry = "agents",
        /// Rules for exposed names.
        naming: NamingEntry = "naming",
        /// How the tools of a scope without bundles are presented to the model. Default: `direct`.
        mode: ToolMode = "mode",
        /// Estimated tokens of definitions that mode `auto` lists directly. Default: 10000.
        token_budget: Count = "tokenBudget",
        /// Whether models can list and read resources with tools, for clients without resources.
        /// Default: `false`.
        resources_as_tools: bool = "resourcesAsTools",
        /// Whether models can list and get prompts with tools, for clients without prompts.
        /// Default: `false`.
        prompts_as_tools: bool = "promptsAsTools",
        /// Short form of `naming.separator`.
        separator: Separator = "separator",
        /// Tools that are visible, by their annotations. Default: `read-write`.
        @rule access: Access = "access",
        /// When servers are started. Default: `lazy`.
        connect: StartPolicy = "connect",
        /// Protocol era. Default: `auto`.
        protocol: Protocol = "protocol",
        /// Whether servers are restarted after a failure. Default: `on-failure`.
        @rule restart: RestartEntry = "restart",
        /// Environment variables of Trunkline that servers inherit, in addition to the usual ones:
        /// `true` for all, or patterns of names. Default: none.
        @rule inherit_env: InheritEntry = "inheritEnv",
        /// Timeouts of all servers.
        timeouts: TimeoutsEntry = "timeouts",
        /// Maximum number of concurrent calls of each server. Default: no limit.
        @rule concurrency: Count = "concurrency",
        /// Whether all clients of a gateway share the servers, or each has its own. Default: `all`.
        @rule share: ShareEntry = "share",
        /// Whether secrets of the configuration are masked in results. Default: `false`.
        @rule redact: bool = "redact",
        /// Lifetime of a list of tools, in milliseconds. Default: 5m.
        tools_ttl: WrittenDuration = "toolsTtlMs",
        /// Idle time after which a server is stopped, in milliseconds, or with a unit such as "10m".
        /// Default: never.
        idle_timeout: PositiveDuration = "idleTimeout",
        /// Maximum size of a result, in bytes, or with a unit such as "1MiB". A larger result is
        /// truncated. Default: 5 MiB.
        @rule max_result: WrittenSize = "maxResultBytes",
        /// Where secrets are stored. Only in your own configuration, or one that you name.
        secrets: SecretsEntry = "secrets",
        /// Which calls are recorded. Only in your own configuration, or one that you name.
        audit: AuditEntry = "audit",
        /// Inputs of the user (VS Code).
        inputs: Vec<WithSpan<InputEntry>> = "inputs",
        /// Timeout of calls to all servers, in seconds (Zed).
        context_server_timeout: RawNumber = "context_server_timeout",
        /// Experimental settings of opencode. Only `mcp_timeout` is used, in milliseconds.
        experimental: AnyValue = "experimental",
        /// Rules of opencode for tools. Not applied.
        permission: AnyValue = "permission",
        /// Older rules of opencode for tools. Not applied.
        tools: AnyValue = "tools",
        /// Sandbox of VS Code. Not applied.
        sandbox: AnyValue = "sandbox",
    }
}
