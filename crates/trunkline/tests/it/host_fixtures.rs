//! Files of other hosts, with the servers in them as entries of Trunkline's own format.

/// A file, and the entries of its servers in JSON.
#[derive(Clone, Copy)]
pub(crate) struct Fixture {
    pub(crate) file: &'static str,
    pub(crate) text: &'static str,
    pub(crate) entries: &'static str,
}

macro_rules! fixtures {
    ($($name:ident: $file:literal $text:literal is $entries:literal;)*) => {
        $(pub(crate) const $name: Fixture = Fixture { file: $file, text: $text, entries: $entries };)*

        /// All files.
        pub(crate) const ALL: &[Fixture] = &[$($name),*];
    };
}

fixtures! {
    CLAUDE_DESKTOP: "claude_desktop_config.json" r#"{ "mcpServers": { "files": {
            "command": "npx", "args": ["-y", "server-filesystem", "/home/ann"], "env": { "DEBUG": "1" } } } }"#
        is r#"{ "files": { "command": "npx", "args": ["-y", "server-filesystem", "/home/ann"],
                           "env": { "DEBUG": "1" } } }"#;

    CLAUDE_CODE: ".mcp.json" r#"{ "mcpServers": {
            "db": { "command": "uvx", "args": ["mcp-alchemy"], "env": { "DB_URL": "${DB_URL:-sqlite:///x.db}" } },
            "api": { "type": "http", "url": "${API_BASE:-https://api.example.com}/mcp", "timeout": 90000,
                     "headers": { "Authorization": "Bearer ${API_KEY}" },
                     "oauth": { "clientId": "abc", "callbackPort": 8080, "scopes": "read write" } } } }"#
        is r#"{ "db": { "command": "uvx", "args": ["mcp-alchemy"], "env": { "DB_URL": "${DB_URL:-sqlite:///x.db}" } },
                "api": { "type": "http", "url": "${API_BASE:-https://api.example.com}/mcp",
                         "headers": { "Authorization": "Bearer ${API_KEY}" }, "timeouts": { "call": 90000 },
                         "oauth": { "clientId": "abc", "callbackPort": 8080, "scopes": ["read", "write"] } } }"#;

    CURSOR: "cursor.json" r#"{ "mcpServers": {
            "local": { "type": "stdio", "command": "node", "args": ["${workspaceFolder}/server.js"],
                       "env": { "API_KEY": "${env:MY_API_KEY}" }, "envFile": "${workspaceFolder}/.env" },
            "remote": { "url": "https://api.example.com/mcp", "headers": { "Authorization": "Bearer ${env:TOKEN}" } } } }"#
        is r#"{ "local": { "command": "node", "args": ["${workspaceFolder}/server.js"],
                           "env": { "API_KEY": "${MY_API_KEY}" }, "envFile": "${workspaceFolder}/.env" },
                "remote": { "url": "https://api.example.com/mcp", "headers": { "Authorization": "Bearer ${TOKEN}" } } }"#;

    VSCODE: "vscode.json" r#"{ // comment
          "inputs": [{ "type": "promptString", "id": "gh", "password": true, "default": "none" }],
          "servers": {
            "fs": { "type": "stdio", "command": "npx", "args": ["fs", "${workspaceFolder}"], "env": { "A": null } },
            "github": { "type": "http", "url": "https://x.example/mcp/", "headers": { "Authorization": "Bearer ${input:gh}" } }, } }"#
        is r#"{ "fs": { "command": "npx", "args": ["fs", "${workspaceFolder}"], "env": { "A": null } },
                "github": { "type": "http", "url": "https://x.example/mcp/", "headers": { "Authorization": "Bearer ${input:gh}" } } }"#;

    WINDSURF: "mcp_config.json" r#"{ "mcpServers": {
            "github": { "command": "npx", "env": { "T": "${env:GITHUB_TOKEN}" }, "disabledTools": ["delete_repo"] },
            "remote": { "serverUrl": "https://example.com/mcp", "headers": { "API_KEY": "Bearer ${file:/run/key}" }, "disabled": true } } }"#
        is r#"{ "github": { "command": "npx", "env": { "T": "${GITHUB_TOKEN}" }, "denyTools": ["delete_repo"] },
                "remote": { "url": "https://example.com/mcp", "headers": { "API_KEY": "Bearer ${file:/run/key}" }, "enabled": false } }"#;

    ZED: "settings.json" r#"{ "theme": "One", "context_servers": {
            "local": { "command": "npx", "args": ["${HOME}"], "timeout": 45 },
            "old": { "source": "custom", "enabled": false, "command": { "path": "srv", "args": ["-v"], "env": { "K": "v" } } },
            "remote": { "url": "https://example.com/mcp", "oauth": { "client_id": "id" } } } }"#
        is r#"{ "local": { "command": "npx", "args": ["$${HOME}"], "timeouts": { "call": 45000 } },
                "old": { "command": "srv", "args": ["-v"], "env": { "K": "v" }, "enabled": false },
                "remote": { "type": "http", "url": "https://example.com/mcp", "oauth": { "clientId": "id" } } }"#;

    OPENCODE: "opencode.json" r#"{ "mcp": {
            "fs": { "type": "local", "command": ["npx", "-y", "fs"], "environment": { "K": "{env:K}" }, "timeout": 20000 },
            "jira": { "type": "remote", "url": "https://jira.example.com/mcp", "enabled": false,
                      "headers": { "Authorization": "Bearer {file:~/jira}" }, "oauth": false } } }"#
        is r#"{ "fs": { "command": "npx", "args": ["-y", "fs"], "env": { "K": "${K}" },
                        "timeouts": { "handshake": 20000, "list": 20000, "call": 20000 } },
                "jira": { "url": "https://jira.example.com/mcp", "enabled": false,
                          "headers": { "Authorization": "Bearer ${file:~/jira}" }, "oauth": false } }"#;

    CODEX: "config.toml" r#"
model = "gpt-5"
approval_policy = "on-request"
mcp_oauth_credentials_store = "keyring"

[projects."/home/ann/app"]
trust_level = "trusted"

[mcp_servers.docs]
command = "npx"
args = ["-y", "docs-mcp"]
cwd = "/srv/docs"
env = { LOG = "1", TEMPLATE = "${raw}" }
env_vars = ["DOCS_KEY", { name = "LOCAL_KEY", source = "local" }, { name = "FAR_KEY", source = "remote" }]
startup_timeout_sec = 12.5
tool_timeout_sec = 60
enabled_tools = ["search", "fetch"]
disabled_tools = ["fetch"]
required = true
supports_parallel_tool_calls = true

[mcp_servers.remote]
url = "https://example.com/mcp"
bearer_token_env_var = "EXAMPLE_TOKEN"
http_headers = { "X-Team" = "core" }
env_http_headers = { "X-Key" = "EXAMPLE_KEY" }
default_tools_approval_mode = "prompt"
scopes = ["read", "write"]
oauth_resource = "https://example.com"
enabled = false
[mcp_servers.remote.oauth]
client_id = "abc"
callback_port = 1455

[mcp_servers.legacy]
command = "legacy"
startup_timeout_ms = 4000
environment_id = "box"
omit_tools_from = ["code"]
name = "Legacy"

[mcp_servers.helped]
url = "https://helped.example.com/mcp"
http_headers_helper = "print-headers"

[mcp_servers.remote.tools.delete]
approval_mode = "prompt"
"#
        is r#"{ "docs": { "command": "npx", "args": ["-y", "docs-mcp"], "cwd": "/srv/docs",
                          "env": { "LOG": "1", "TEMPLATE": "$${raw}" }, "inheritEnv": ["DOCS_KEY", "LOCAL_KEY"],
                          "timeouts": { "handshake": 12500, "call": 60000 },
                          "allowTools": ["search", "fetch"], "denyTools": ["fetch"] },
                "remote": { "type": "http", "url": "https://example.com/mcp", "enabled": false,
                            "headers": { "Authorization": "Bearer ${EXAMPLE_TOKEN}", "X-Team": "core", "X-Key": "${EXAMPLE_KEY}" },
                            "oauth": { "clientId": "abc", "callbackPort": 1455, "scopes": ["read", "write"] } },
                "legacy": { "command": "legacy", "timeouts": { "handshake": 4000 } },
                "helped": { "type": "http", "url": "https://helped.example.com/mcp" } }"#;

    GEMINI: "gemini.json" r#"{ "mcpServers": {
            "py": { "command": "python", "args": ["-m", "srv"], "cwd": "/w", "timeout": 15000, "trust": false,
                    "includeTools": ["search"], "excludeTools": ["drop"] },
            "http": { "httpUrl": "https://example.com/mcp", "headers": { "Authorization": "Bearer ${TOKEN}" } },
            "off": { "url": "https://example.com/sse", "type": "sse" } },
          "mcp": { "allowed": ["py", "http"] } }"#
        is r#"{ "py": { "command": "python", "args": ["-m", "srv"], "cwd": "/w", "timeouts": { "call": 15000 },
                        "allowTools": ["search"], "denyTools": ["drop"] },
                "http": { "type": "http", "url": "https://example.com/mcp", "headers": { "Authorization": "Bearer ${TOKEN}" } },
                "off": { "type": "sse", "url": "https://example.com/sse", "enabled": false } }"#;

    GOOSE: "config.yaml" r#"GOOSE_PROVIDER: openai
extensions:
  github:
    enabled: true
    type: stdio
    name: GitHub
    description: ""
    cmd: npx
    args: ["-y", "server-github", "${literal}"]
    envs: { HOST: example.com }
    env_keys: [GITHUB_TOKEN]
    timeout: 120
    bundled: null
    available_tools: []
  remote:
    enabled: false
    type: streamable_http
    name: remote
    uri: https://$HOST/mcp
    envs: { HOST: example.com }
    env_keys: [TOKEN]
    headers: { Authorization: "Bearer ${TOKEN}", X-Other: "${OTHER}" }
    timeout: 300
    available_tools: [read]
  old:
    enabled: true
    type: sse
    uri: https://example.com/sse
  developer:
    enabled: true
    type: builtin
    name: developer
    timeout: 300
  todo: { enabled: true, type: platform, name: todo }
"#
        is r#"{ "github": { "command": "npx", "args": ["-y", "server-github", "$${literal}"], "timeouts": { "call": 120000 },
                            "env": { "HOST": "example.com", "GITHUB_TOKEN": "${GITHUB_TOKEN}" } },
                "remote": { "type": "http", "url": "https://example.com/mcp", "enabled": false, "allowTools": ["read"],
                            "headers": { "Authorization": "Bearer ${TOKEN}", "X-Other": "$${OTHER}" } },
                "old": { "type": "sse", "url": "https://example.com/sse" } }"#;

    CLINE: "cline_mcp_settings.json" r#"{ "mcpServers": {
            "srv": { "command": "npx", "env": { "K": "v" }, "disabled": true, "autoApprove": ["read"], "timeout": 60 },
            "web": { "type": "streamableHttp", "url": "https://example.com/mcp", "headers": {} } } }"#
        is r#"{ "srv": { "command": "npx", "env": { "K": "v" }, "enabled": false, "timeouts": { "call": 60000 } },
                "web": { "type": "http", "url": "https://example.com/mcp" } }"#;

    ROO: "mcp_settings.json" r#"{ "mcpServers": { "srv": { "type": "streamable-http", "url": "https://example.com/mcp",
            "headers": { "Authorization": "Bearer ${env:T}" }, "alwaysAllow": ["read"], "disabledTools": ["drop"],
            "timeout": 60, "disabled": false } } }"#
        is r#"{ "srv": { "type": "http", "url": "https://example.com/mcp", "headers": { "Authorization": "Bearer ${T}" },
                         "denyTools": ["drop"], "timeouts": { "call": 60000 } } }"#;

    LIBRECHAT: "librechat.yaml" r#"version: 1.2.1
cache: true
mcpSettings:
  allowedDomains: [example.com]
filteredTools: [calculator]
mcpServers:
  everything: { command: npx, args: ["-y", server-everything], env: { PORT: 8080 } }
  events:
    url: https://example.com/events
    initTimeout: 15000
    timeout: 500
  gh:
    type: streamable-http
    url: https://gh.example.com/mcp/
    headers: { Authorization: "Bearer {{GH_PAT}}", X-Key: "${KEY}", X-User: "{{LIBRECHAT_USER_EMAIL}}" }
    customUserVars: { GH_PAT: { title: "GitHub PAT", description: "token" } }
    timeout: 60000
    serverInstructions: true
    chatMenu: false
    startup: false
"#
        is r#"{ "everything": { "command": "npx", "args": ["-y", "server-everything"], "env": { "PORT": "8080" } },
                "events": { "type": "sse", "url": "https://example.com/events", "timeouts": { "handshake": 15000, "call": 500 } },
                "gh": { "type": "http", "url": "https://gh.example.com/mcp/", "timeouts": { "call": 60000 },
                        "headers": { "Authorization": "Bearer ${GH_PAT}", "X-Key": "${KEY}", "X-User": "{{LIBRECHAT_USER_EMAIL}}" } } }"#;

    CONTINUE: "continue.yaml" r#"name: My agent
version: 0.0.1
schema: v1
models:
  - name: m
    provider: openai
mcpServers:
  - name: sqlite
    command: npx
    args: ["-y", "mcp-sqlite", "${literal}"]
    cwd: /srv
    env:
      KEY: ${{ secrets.SQLITE_KEY }}
    connectionTimeout: 20000
  - name: web
    type: streamable-http
    url: https://example.com/mcp
    requestOptions:
      headers:
        Authorization: Bearer ${{ secrets.WEB_TOKEN }}
  - name: events
    type: sse
    url: https://example.com/sse
"#
        is r#"{ "sqlite": { "command": "npx", "args": ["-y", "mcp-sqlite", "$${literal}"], "cwd": "/srv",
                            "env": { "KEY": "${SQLITE_KEY}" }, "timeouts": { "handshake": 20000 } },
                "web": { "type": "http", "url": "https://example.com/mcp", "headers": { "Authorization": "Bearer ${WEB_TOKEN}" } },
                "events": { "type": "sse", "url": "https://example.com/sse" } }"#;

    AMAZON_Q: "agent.json" r#"{ "name": "aws-expert", "tools": ["fs_read", "@git"], "allowedTools": ["fs_*"], "useLegacyMcpJson": true,
            "mcpServers": { "git": { "command": "mcp-git", "args": [], "env": { "T": "${env:T}" }, "timeout": 120000, "disabled": false } } }"#
        is r#"{ "git": { "command": "mcp-git", "env": { "T": "${T}" }, "timeouts": { "call": 120000 } } }"#;

    JETBRAINS: "jetbrains.json" r#"{ "mcpServers": { "srv": { "command": "npx", "args": ["-y", "my-mcp"], "env": { "K": "v" } } } }"#
        is r#"{ "srv": { "command": "npx", "args": ["-y", "my-mcp"], "env": { "K": "v" } } }"#;

    COPILOT: "mcp-config.json" r#"{ "mcpServers": {
            "srv": { "type": "local", "command": "npx", "env": {}, "tools": ["*"] },
            "some": { "type": "http", "url": "https://x.example/mcp", "tools": ["a"] } } }"#
        is r#"{ "srv": { "command": "npx" },
                "some": { "type": "http", "url": "https://x.example/mcp", "allowTools": ["a"] } }"#;

    MCPORTER: "mcporter.json" r#"{ "mcpServers": {
            "linear": { "baseUrl": "https://mcp.linear.app/mcp", "auth": "oauth", "allowedTools": ["list_issues"] },
            "run": { "command": ["node", "x.js"], "blockedTools": ["drop"] } } }"#
        is r#"{ "linear": { "url": "https://mcp.linear.app/mcp", "allowTools": ["list_issues"] },
                "run": { "command": "node", "args": ["x.js"], "denyTools": ["drop"] } }"#;

    TRUNKLINE: "trunkline.json" r#"{ "mcpServers": {
            "all": { "command": "${userHome}/bin/x", "args": ["${env:userHome}", "${secret:A}", "${keychain:B}", "$${c} $5"], "trust": "untrusted",
                     "prefix": "", "allowTools": ["a", "b_*"], "access": "read-only", "connect": "eager", "protocol": "legacy",
                     "restart": { "limit": 2, "delay": "1s" }, "inheritEnv": ["A_*", "!A_B"], "concurrency": 3, "share": "per-client",
                     "redact": true, "toolsTtlMs": 1000, "idleTimeout": "10m", "maxResultBytes": 1000,
                     "timeouts": { "connect": 1, "list": "1.5ms", "question": 3, "shutdown": 4, "grace": 0 } },
            "everything": { "command": "x", "inheritEnv": true, "restart": "never" },
            "cc": { "url": "https://x.example/mcp", "headersCommand": ["print", "${A}"], "authProviderId": "corp" },
            "login": { "type": "sse", "url": "https://x.example/mcp", "oauth": { "grant": "enterprise-managed", "clientId": "a",
                       "clientSecret": "${S}", "keyId": "k", "clientMetadataUrl": "https://x.example/c", "metadataUrl": "https://x.example/m",
                       "redirectUri": "http://127.0.0.1:1/cb", "privateHosts": ["h"], "dpop": true,
                       "identityProvider": { "tokenUrl": "https://x.example/t", "clientId": "i", "clientSecret": "${I}", "idToken": "${file:t}" } } },
            "key": { "url": "https://x.example/mcp", "oauth": { "grant": "jwt-bearer", "clientId": "a", "privateKey": "${file:k}", "assertion": "${file:a}" } } } }"#
        is r#"{ "all": { "command": "${userHome}/bin/x", "args": ["${env:userHome}", "${secret:A}", "${keychain:B}", "$${c} $5"], "trust": "untrusted",
                     "prefix": "", "allowTools": ["a", "b_*"], "access": "read-only", "connect": "eager", "protocol": "legacy",
                     "restart": { "policy": "on-failure", "limit": 2, "delay": 1000, "maxDelay": 30000 }, "inheritEnv": ["A_*", "!A_B"],
                     "concurrency": 3, "share": "per-client",
                     "redact": true, "toolsTtlMs": 1000, "idleTimeout": 600000, "maxResultBytes": 1000,
                     "timeouts": { "connect": 1, "list": 1.5, "question": 3, "shutdown": 4, "grace": 0 } },
                "everything": { "command": "x", "inheritEnv": true, "restart": "never" },
                "cc": { "url": "https://x.example/mcp", "headersCommand": ["print", "${A}"], "authProviderId": "corp" },
                "login": { "type": "sse", "url": "https://x.example/mcp", "oauth": { "grant": "enterprise-managed", "clientId": "a",
                       "clientSecret": "${S}", "keyId": "k", "clientMetadataUrl": "https://x.example/c", "metadataUrl": "https://x.example/m",
                       "redirectUri": "http://127.0.0.1:1/cb", "privateHosts": ["h"], "dpop": true,
                       "identityProvider": { "tokenUrl": "https://x.example/t", "clientId": "i", "clientSecret": "${I}", "idToken": "${file:t}" } } },
                "key": { "url": "https://x.example/mcp", "oauth": { "grant": "jwt-bearer", "clientId": "a", "privateKey": "${file:k}", "assertion": "${file:a}" } } }"#;
}

/// The state file of Claude Code, with servers of the user and of projects.
pub(crate) const CLAUDE_STATE: &str = r#"{
  "numStartups": 7, "tipsHistory": { "new-user-warmup": 3 }, "autoUpdates": false,
  "mcpServers": { "time": { "type": "http", "url": "https://x.example/mcp" } },
  "projects": {
    "/home/ann/app": {
      "allowedTools": [], "history": [{ "display": "hi" }], "mcpContextUris": [],
      "mcpServers": { "db": { "type": "stdio", "command": "uvx", "args": ["mcp-alchemy"], "env": {} },
                      "old": { "command": "old" } },
      "enabledMcpjsonServers": [], "disabledMcpjsonServers": [], "disabledMcpServers": ["old", "time"] },
    "/home/ann/empty": { "allowedTools": [] }
  }
}"#;
