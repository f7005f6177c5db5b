//! The table of hosts.

use super::AiHost;
use super::place::{Base, FilePlace, Servers};
use crate::edit::FileFormat;
use crate::system::System;

const ALL: &[System] = &[System::Linux, System::MacOs, System::Windows];
const UNIX: &[System] = &[System::Linux, System::MacOs];
const LINUX: &[System] = &[System::Linux];
const MACOS: &[System] = &[System::MacOs];
const WINDOWS: &[System] = &[System::Windows];

const MCP_SERVERS: &Servers = &Servers::map(FileFormat::Json, &["mcpServers"]);
const VSCODE: &Servers = &Servers::map(FileFormat::Json, &["servers"]);
const DEV_CONTAINER: &Servers =
    &Servers::map(FileFormat::Json, &["customizations", "vscode", "mcp", "servers"]);
const ZED: &Servers = &Servers::map(FileFormat::Json, &["context_servers"]);
const OPENCODE: &Servers = &Servers {
    format: FileFormat::Json,
    keys: &["mcp"],
    newer_keys: Some(&["mcp", "servers"]),
    is_list: false,
};
const CODEX: &Servers = &Servers::map(FileFormat::Toml, &["mcp_servers"]);
const GOOSE: &Servers = &Servers::map(FileFormat::Yaml, &["extensions"]);
const LIBRECHAT: &Servers = &Servers::map(FileFormat::Yaml, &["mcpServers"]);
const CONTINUE: &Servers =
    &Servers { format: FileFormat::Yaml, keys: &["mcpServers"], newer_keys: None, is_list: true };

const CONTINUE_BASE: Base = Base::Variable { name: "CONTINUE_GLOBAL_DIR", otherwise: ".continue" };
const CODEX_BASE: Base = Base::Variable { name: "CODEX_HOME", otherwise: ".codex" };
const CLAUDE_BASE: Base = Base::Variable { name: "CLAUDE_CONFIG_DIR", otherwise: "" };

const fn on(
    systems: &'static [System],
    base: Base,
    path: &'static str,
    servers: &'static Servers,
) -> FilePlace {
    FilePlace { systems, base, path, servers }
}

const fn home(path: &'static str, servers: &'static Servers) -> FilePlace {
    on(ALL, Base::Home, path, servers)
}

const fn application(path: &'static str, servers: &'static Servers) -> FilePlace {
    on(ALL, Base::ApplicationData, path, servers)
}

const fn project(path: &'static str, servers: &'static Servers) -> FilePlace {
    on(ALL, Base::Project, path, servers)
}

const fn host(
    id: &'static str,
    name: &'static str,
    user: &'static [FilePlace],
    project: &'static [FilePlace],
) -> AiHost {
    AiHost { id, name, user, project, has_project_sections: false }
}

/// All hosts, in the order in which they are listed.
pub static HOSTS: &[AiHost] = &[
    host(
        "claude-desktop",
        "Claude Desktop",
        &[application("Claude/claude_desktop_config.json", MCP_SERVERS)],
        &[],
    ),
    AiHost {
        has_project_sections: true,
        ..host(
            "claude-code",
            "Claude Code",
            &[on(ALL, CLAUDE_BASE, ".claude.json", MCP_SERVERS)],
            &[project(".mcp.json", MCP_SERVERS)],
        )
    },
    host(
        "cursor",
        "Cursor",
        &[home(".cursor/mcp.json", MCP_SERVERS)],
        &[project(".cursor/mcp.json", MCP_SERVERS)],
    ),
    host(
        "vscode",
        "Visual Studio Code",
        &[
            application("Code/User/mcp.json", VSCODE),
            application("Code/User/profiles/*/mcp.json", VSCODE),
            application("Code - Insiders/User/mcp.json", VSCODE),
            application("Code - Insiders/User/profiles/*/mcp.json", VSCODE),
        ],
        &[
            project(".vscode/mcp.json", VSCODE),
            project(".devcontainer/devcontainer.json", DEV_CONTAINER),
            project(".devcontainer.json", DEV_CONTAINER),
        ],
    ),
    host(
        "windsurf",
        "Windsurf (Devin)",
        &[
            home(".codeium/windsurf/mcp_config.json", MCP_SERVERS),
            home(".codeium/windsurf-next/mcp_config.json", MCP_SERVERS),
            home(".codeium/mcp_config.json", MCP_SERVERS),
            on(ALL, Base::XdgConfig, "devin/mcp_config.json", MCP_SERVERS),
        ],
        &[
            project(".devin/mcp_config.json", MCP_SERVERS),
            project(".devin/mcp_config.local.json", MCP_SERVERS),
        ],
    ),
    host(
        "zed",
        "Zed",
        &[
            on(LINUX, Base::XdgConfig, "zed/settings.json", ZED),
            on(MACOS, Base::Home, ".config/zed/settings.json", ZED),
            on(WINDOWS, Base::ApplicationData, "Zed/settings.json", ZED),
        ],
        &[project(".zed/settings.json", ZED)],
    ),
    host(
        "opencode",
        "opencode",
        &[
            on(ALL, Base::XdgConfig, "opencode/opencode.json", OPENCODE),
            on(ALL, Base::XdgConfig, "opencode/opencode.jsonc", OPENCODE),
            on(ALL, Base::OnlyVariable("OPENCODE_CONFIG"), "", OPENCODE),
            on(ALL, Base::OnlyVariable("OPENCODE_CONFIG_DIR"), "opencode.json", OPENCODE),
            on(ALL, Base::OnlyVariable("OPENCODE_CONFIG_DIR"), "opencode.jsonc", OPENCODE),
        ],
        &[
            project("opencode.json", OPENCODE),
            project("opencode.jsonc", OPENCODE),
            project(".opencode/opencode.json", OPENCODE),
            project(".opencode/opencode.jsonc", OPENCODE),
        ],
    ),
    host(
        "codex",
        "Codex",
        &[on(ALL, CODEX_BASE, "config.toml", CODEX)],
        &[project(".codex/config.toml", CODEX)],
    ),
    host(
        "gemini",
        "Gemini CLI",
        &[home(".gemini/settings.json", MCP_SERVERS)],
        &[project(".gemini/settings.json", MCP_SERVERS)],
    ),
    host(
        "goose",
        "goose",
        &[
            on(UNIX, Base::XdgConfig, "goose/config.yaml", GOOSE),
            on(WINDOWS, Base::ApplicationData, "Block/goose/config/config.yaml", GOOSE),
        ],
        &[],
    ),
    host(
        "cline",
        "Cline",
        &[
            home(".cline/data/settings/cline_mcp_settings.json", MCP_SERVERS),
            application(
                "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
                MCP_SERVERS,
            ),
            application(
                "Code - Insiders/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
                MCP_SERVERS,
            ),
            home(".cline/mcp.json", MCP_SERVERS),
        ],
        &[],
    ),
    host(
        "roo",
        "Roo Code",
        &[
            application(
                "Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
                MCP_SERVERS,
            ),
            application(
                "Code - Insiders/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
                MCP_SERVERS,
            ),
        ],
        &[project(".roo/mcp.json", MCP_SERVERS)],
    ),
    host("librechat", "LibreChat", &[], &[project("librechat.yaml", LIBRECHAT)]),
    host(
        "amazon-q",
        "Amazon Q Developer CLI",
        &[
            home(".aws/amazonq/mcp.json", MCP_SERVERS),
            home(".aws/amazonq/cli-agents/*.json", MCP_SERVERS),
        ],
        &[
            project(".amazonq/mcp.json", MCP_SERVERS),
            project(".amazonq/cli-agents/*.json", MCP_SERVERS),
        ],
    ),
    host(
        "kiro",
        "Kiro",
        &[home(".kiro/settings/mcp.json", MCP_SERVERS)],
        &[project(".kiro/settings/mcp.json", MCP_SERVERS)],
    ),
    host(
        "jetbrains",
        "JetBrains AI Assistant",
        &[home(".ai/mcp/mcp.json", MCP_SERVERS)],
        &[project(".ai/mcp/mcp.json", MCP_SERVERS), project(".air/mcp.json", MCP_SERVERS)],
    ),
    host(
        "junie",
        "JetBrains Junie",
        &[home(".junie/mcp/mcp.json", MCP_SERVERS)],
        &[project(".junie/mcp/mcp.json", MCP_SERVERS)],
    ),
    host(
        "copilot-cli",
        "GitHub Copilot CLI",
        &[home(".copilot/mcp-config.json", MCP_SERVERS)],
        &[],
    ),
    host(
        "continue",
        "Continue",
        &[
            on(ALL, CONTINUE_BASE, "config.yaml", CONTINUE),
            on(ALL, CONTINUE_BASE, "mcpServers/*.yaml", CONTINUE),
            on(ALL, CONTINUE_BASE, "mcpServers/*.yml", CONTINUE),
            on(ALL, CONTINUE_BASE, "mcpServers/*.json", MCP_SERVERS),
        ],
        &[
            project(".continue/mcpServers/*.yaml", CONTINUE),
            project(".continue/mcpServers/*.yml", CONTINUE),
            project(".continue/mcpServers/*.json", MCP_SERVERS),
        ],
    ),
    host(
        "mcporter",
        "mcporter",
        &[
            home(".mcporter/mcporter.json", MCP_SERVERS),
            home(".mcporter/mcporter.jsonc", MCP_SERVERS),
        ],
        &[project("config/mcporter.json", MCP_SERVERS)],
    ),
];
