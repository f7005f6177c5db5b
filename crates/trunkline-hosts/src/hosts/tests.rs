//! Files of hosts on all three systems.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{AiHost, ConfigLevel, HOSTS, existing_files, find};
use crate::edit::{EntryLayout, FileFormat, KeyPath};
use crate::system::{System, UserEnvironment};

fn user<'a>(system: System, variables: &'a [(&'a str, &'a str)]) -> UserEnvironment<'a> {
    UserEnvironment::new(system, "/home/me", |name| {
        let found = variables.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

fn first(id: &str, user: &UserEnvironment<'_>) -> String {
    let files = find(id).unwrap().user_files(user);
    files.first().unwrap().path.to_str().unwrap().replace('\\', "/")
}

#[test]
fn ids_are_unique_and_fit_the_command_line() {
    let ids: BTreeSet<_> = HOSTS.iter().map(AiHost::id).collect();
    assert_eq!(ids.len(), HOSTS.len());
    let is_plain = |char: char| char.is_ascii_lowercase() || char == '-';
    assert!(ids.iter().all(|id| id.chars().all(is_plain)), "{ids:?}");
    assert!(find("nothing").is_none());
    assert_eq!(find("claude-code").unwrap().to_string(), "Claude Code");
}

#[test]
fn files_of_a_user_depend_on_the_system() {
    let linux = user(System::Linux, &[]);
    let macos = user(System::MacOs, &[("XDG_CONFIG_HOME", "/xdg")]);
    let windows = user(System::Windows, &[("APPDATA", "/roaming")]);
    for (id, on_linux, on_macos, on_windows) in [
        (
            "claude-desktop",
            "/home/me/.config/Claude/claude_desktop_config.json",
            "/home/me/Library/Application Support/Claude/claude_desktop_config.json",
            "/roaming/Claude/claude_desktop_config.json",
        ),
        (
            "vscode",
            "/home/me/.config/Code/User/mcp.json",
            "/home/me/Library/Application Support/Code/User/mcp.json",
            "/roaming/Code/User/mcp.json",
        ),
        (
            "zed",
            "/home/me/.config/zed/settings.json",
            "/home/me/.config/zed/settings.json",
            "/roaming/Zed/settings.json",
        ),
        (
            "goose",
            "/home/me/.config/goose/config.yaml",
            "/xdg/goose/config.yaml",
            "/roaming/Block/goose/config/config.yaml",
        ),
        (
            "codex",
            "/home/me/.codex/config.toml",
            "/home/me/.codex/config.toml",
            "/home/me/.codex/config.toml",
        ),
        ("claude-code", "/home/me/.claude.json", "/home/me/.claude.json", "/home/me/.claude.json"),
    ] {
        assert_eq!(first(id, &linux), on_linux);
        assert_eq!(first(id, &macos), on_macos);
        assert_eq!(first(id, &windows), on_windows);
    }
    assert_eq!(
        first("vscode", &user(System::Windows, &[])),
        "/home/me/AppData/Roaming/Code/User/mcp.json"
    );
}

#[test]
fn variables_move_files() {
    let variables = [
        ("XDG_CONFIG_HOME", "/xdg"),
        ("CODEX_HOME", "/codex"),
        ("CLAUDE_CONFIG_DIR", "/claude"),
        ("OPENCODE_CONFIG", "/my/opencode.json"),
        ("CONTINUE_GLOBAL_DIR", ""),
    ];
    let moved = user(System::Linux, &variables);
    assert_eq!(first("zed", &moved), "/xdg/zed/settings.json");
    assert_eq!(first("codex", &moved), "/codex/config.toml");
    assert_eq!(first("claude-code", &moved), "/claude/.claude.json");
    assert_eq!(first("continue", &moved), "/home/me/.continue/config.yaml");
    let opencode = find("opencode").unwrap().user_files(&moved);
    assert!(opencode.iter().any(|file| file.path == Path::new("/my/opencode.json")));
    let relative = user(System::Linux, &[("XDG_CONFIG_HOME", "relative")]);
    assert_eq!(first("zed", &relative), "/home/me/.config/zed/settings.json");
}

#[test]
fn servers_are_under_the_key_of_each_host() {
    let user = user(System::Linux, &[]);
    let shape = |id: &str| {
        let host = find(id).unwrap();
        let files = host.user_files(&user).into_iter().chain(host.project_files(Path::new("/p")));
        let file = files.into_iter().next().unwrap();
        (file.format, file.key_path.to_string(), file.key_path.layout())
    };
    use FileFormat::{Json, Toml, Yaml};
    for (id, format, keys) in [
        ("cursor", Json, "mcpServers"),
        ("vscode", Json, "servers"),
        ("zed", Json, "context_servers"),
        ("opencode", Json, "mcp"),
        ("codex", Toml, "mcp_servers"),
        ("goose", Yaml, "extensions"),
        ("librechat", Yaml, "mcpServers"),
    ] {
        assert_eq!(shape(id), (format, keys.to_owned(), EntryLayout::Map));
    }
    assert_eq!(shape("continue"), (Yaml, "mcpServers".to_owned(), EntryLayout::List));
}

#[test]
fn opencode_files_of_the_newer_form_are_recognized() {
    let user = user(System::Linux, &[]);
    let file = find("opencode").unwrap().user_files(&user).remove(0);
    let older = KeyPath::map(["mcp"]);
    let newer = KeyPath::map(["mcp", "servers"]);
    for (text, expected) in [
        ("", &older),
        (r#"{ "mcp": {} }"#, &older),
        (r#"{ "mcp": { "servers": { "type": "local", "command": [] } } }"#, &older),
        (r#"{ "mcp": { "servers": {} } }"#, &newer),
        (r#"{ "mcp": { "servers": { "a": {} }, "timeout": {} } } // v2"#, &newer),
    ] {
        assert_eq!(&file.key_path_in(text).unwrap(), expected, "{text}");
    }
    assert!(file.key_path_in("{").is_err());
}

/// A directory that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn with(name: &str, files: &[&str]) -> Self {
        let name = format!("trunkline-hosts-{name}-{}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        for file in files {
            let path = folder.0.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        folder
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn existing_files_are_found_for_the_user_and_the_project() {
    let folder = Folder::with(
        "existing",
        &[
            "home/.claude.json",
            "home/.config/Code/User/profiles/b/mcp.json",
            "home/.config/Code/User/profiles/a/mcp.json",
            "home/.config/Code/User/profiles/c/other.json",
            "home/.config/Code - Insiders/User/mcp.json",
            "home/.config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
            "home/.continue/mcpServers/x.yaml",
            "home/.continue/mcpServers/y.json",
            "home/.continue/mcpServers/z.txt",
            "work/.mcp.json",
            "work/project/.mcp.json",
            "work/project/.vscode/mcp.json",
            "work/project/.continue/mcpServers/p.yml",
            "work/project/.cursor/mcp.json/a-directory",
        ],
    );
    let user = UserEnvironment::new(System::Linux, folder.0.join("home"), |_| None);
    let project = folder.0.join("work/project");
    let shown = |project: Option<&Path>| {
        let files = existing_files(&user, project).into_iter();
        let shown = files.map(|file| {
            let path = file.path.strip_prefix(&folder.0).unwrap().to_str().unwrap().to_owned();
            (file.host.id(), file.level, path)
        });
        shown.collect::<Vec<_>>()
    };
    use ConfigLevel::{Project, User, UserProject};
    let code = "home/.config/Code/User";
    let expected = [
        ("claude-code", User, "home/.claude.json".to_owned()),
        ("claude-code", UserProject, "home/.claude.json".to_owned()),
        ("claude-code", Project, "work/project/.mcp.json".to_owned()),
        ("vscode", User, format!("{code}/profiles/a/mcp.json")),
        ("vscode", User, format!("{code}/profiles/b/mcp.json")),
        ("vscode", User, "home/.config/Code - Insiders/User/mcp.json".to_owned()),
        ("vscode", Project, "work/project/.vscode/mcp.json".to_owned()),
        (
            "roo",
            User,
            format!("{code}/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"),
        ),
        ("continue", User, "home/.continue/mcpServers/x.yaml".to_owned()),
        ("continue", User, "home/.continue/mcpServers/y.json".to_owned()),
        ("continue", Project, "work/project/.continue/mcpServers/p.yml".to_owned()),
    ];
    assert_eq!(shown(Some(&project)), expected);
    let of_user: Vec<_> = expected.into_iter().filter(|(_, level, _)| *level == User).collect();
    assert_eq!(shown(None), of_user);
    let files = existing_files(&user, Some(&project));
    let section = files.iter().find(|file| file.level == UserProject).unwrap();
    let keys: Vec<_> = section.key_path.keys().collect();
    assert_eq!(keys, ["projects", project.to_str().unwrap(), "mcpServers"]);
}
