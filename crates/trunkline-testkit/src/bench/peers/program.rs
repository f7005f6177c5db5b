//! The programs that are compared, and how each is started.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::OnceLock;

use serde_json::{Value, json};
use tokio::process::Command;
use trunkline_testkit::peers;

use super::client::{ClientEra, PeerEndpoint};
use super::process::PeerHome;
use crate::host::program;
use crate::own_program::{other_build_path, program_path};
use crate::proxy::{FORWARDER, HTTP, PROXY, STDIO};
use crate::server::{SERVE, SERVE_HTTP};

/// The row that others are compared with.
pub(crate) const OURS: &str = "trunkline";

/// The version that a client asks for, unless a peer knows only an older one.
const LEGACY: ClientEra = ClientEra::Legacy("2025-11-25");

/// Options of a server that knows only legacy versions.
pub(crate) const LEGACY_ONLY: &str = "0,legacy";

/// Transport of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Front {
    Stdio,
    Http,
}

/// A server behind a peer.
#[derive(Clone, Debug)]
pub(crate) enum Upstream {
    /// Program and arguments.
    Command(Vec<String>),
    /// Port of an HTTP server.
    Port(u16),
    /// Port of an HTTP server that stands for several, and the number of this one.
    Page(u16, usize),
}

impl Upstream {
    /// This program as a server with [`crate::server::ServerOptions`].
    pub(crate) fn echo(options: &str) -> Self {
        let own = program().to_string_lossy().into_owned();
        Self::Command(vec![own, SERVE.to_owned(), options.to_owned()])
    }

    /// An entry of `mcpServers`.
    fn entry(&self) -> Value {
        match self {
            Self::Command(words) => json!({ "command": words[0], "args": words[1..] }),
            _ => json!({ "type": "http", "url": self.url() }),
        }
    }

    /// The URL of an HTTP server; empty for a command.
    fn url(&self) -> String {
        match self {
            Self::Command(_) => String::new(),
            Self::Port(port) => format!("http://127.0.0.1:{port}/mcp"),
            Self::Page(port, number) => format!("http://127.0.0.1:{port}/mcp/{number}"),
        }
    }
}

/// A program to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Trunkline,
    /// The program that `cargo build --release` makes, if another build is measured.
    ReleaseBuild,
    /// `trunkline connect`, with the service that it starts.
    Connect,
    Aggregator,
    RustProxy,
    Supergateway,
    NodeProxy,
    PythonProxy,
    FastMcp,
    Mcporter,
    Nginx,
    Forwarder,
    Direct,
}

/// A program in one role: its name in the tables, the era of the client, and access control.
#[derive(Clone, Copy)]
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    pub(crate) program: Program,
    pub(crate) era: ClientEra,
    /// Options of the server behind it, if they are not those of the scenario.
    pub(crate) server: Option<&'static str>,
    /// Whether clients need a token and see what an agent sees.
    pub(crate) has_tokens: bool,
}

const fn contender(name: &'static str, program: Program, era: ClientEra) -> Contender {
    Contender { name, program, era, server: None, has_tokens: false }
}

/// All peers, with ours first.
pub(crate) const CONTENDERS: &[Contender] = &[
    contender(OURS, Program::Trunkline, LEGACY),
    contender("mcp-aggregator (Rust)", Program::Aggregator, ClientEra::Legacy("2025-06-18")),
    contender("mcp-proxy (Rust)", Program::RustProxy, LEGACY),
    contender("supergateway (npm)", Program::Supergateway, LEGACY),
    contender("mcp-proxy (npm)", Program::NodeProxy, LEGACY),
    contender("mcporter serve (npm)", Program::Mcporter, LEGACY),
    contender("mcp-proxy (PyPI)", Program::PythonProxy, LEGACY),
    contender("fastmcp run (PyPI)", Program::FastMcp, LEGACY),
    contender("nginx (limit)", Program::Nginx, LEGACY),
    contender("bare forwarder (limit)", Program::Forwarder, LEGACY),
    contender("direct (limit)", Program::Direct, LEGACY),
];

/// Other ways to run ours: eras of client and server, and access control.
pub(crate) const VARIANTS: &[Contender] = &[
    contender("trunkline, modern client", Program::Trunkline, ClientEra::Modern),
    Contender {
        server: Some(LEGACY_ONLY),
        ..contender("trunkline, legacy server", Program::Trunkline, LEGACY)
    },
    Contender {
        server: Some(LEGACY_ONLY),
        ..contender(
            "trunkline, modern client, legacy server",
            Program::Trunkline,
            ClientEra::Modern,
        )
    },
    Contender {
        has_tokens: true,
        ..contender("trunkline, token and agent", Program::Trunkline, LEGACY)
    },
    contender("trunkline connect, with the service", Program::Connect, LEGACY),
    contender("trunkline, `cargo build --release`", Program::ReleaseBuild, LEGACY),
];

/// Words of the names of the peers that are compared; all, if none is given.
static CHOSEN: OnceLock<Vec<String>> = OnceLock::new();

/// Compares only ours and the peers with one of these words in their names.
pub(crate) fn choose_peers(words: &str) {
    // Of several lists, the first one is meant.
    let _ = CHOSEN.set(words.split(',').map(str::to_owned).collect());
}

/// A command that starts a peer, and where it listens.
pub(crate) struct Launch {
    pub(crate) command: Command,
    pub(crate) home: PeerHome,
    /// The endpoint; none for a peer over stdio. Port 0 is printed as the first line.
    pub(crate) endpoint: Option<PeerEndpoint>,
}

impl Contender {
    pub(crate) fn is_chosen(&self) -> bool {
        let has_word = |words: &Vec<String>| words.iter().any(|word| self.name.contains(word));
        self.name == OURS || CHOSEN.get().is_none_or(has_word)
    }

    /// Whether the program can be put between these transports.
    pub(crate) fn can_join(&self, front: Front, servers: &[Upstream]) -> bool {
        use Program as P;
        let is_http = matches!(servers, [Upstream::Port(_) | Upstream::Page(..), ..]);
        let is_one = servers.len() == 1;
        match self.program {
            P::Trunkline | P::FastMcp => true,
            P::ReleaseBuild => other_build_path().is_some(),
            P::Connect => front == Front::Stdio,
            P::Aggregator | P::RustProxy | P::Mcporter => {
                front == Front::Http || self.program == P::Mcporter
            }
            P::Supergateway | P::NodeProxy => front == Front::Http && !is_http && is_one,
            P::PythonProxy => front == Front::Http && !is_http && is_one,
            P::Nginx => front == Front::Http && is_http && is_one,
            P::Forwarder => (front == Front::Http || !is_http) && is_one,
            P::Direct => (front == Front::Http) == is_http && is_one,
        }
    }

    /// Writes the configuration of a peer, and returns the command that starts it.
    pub(crate) fn launch(&self, front: Front, servers: &[Upstream]) -> Result<Launch, String> {
        let home = PeerHome::new()?;
        let port = free_port()?;
        let mut endpoint =
            PeerEndpoint { port, path: "/mcp".to_owned(), token: None, era: self.era };
        let command = match self.program {
            Program::Trunkline | Program::ReleaseBuild => {
                self.trunkline(front, servers, &home, &mut endpoint)?
            }
            Program::Connect => connect(servers, &home)?,
            Program::Aggregator => aggregator(servers, &home, port)?,
            Program::RustProxy => {
                endpoint.path = "/".to_owned();
                rust_proxy(servers, &home, port)?
            }
            Program::Supergateway => {
                let mut command = node("supergateway/dist/index.js")?;
                command.args(["--stdio", &words_of(servers)?.join(" ")]);
                command.args(["--outputTransport", "streamableHttp", "--stateful"]);
                command.args(["--logLevel", "none", "--port", &port.to_string()]);
                command
            }
            Program::NodeProxy => {
                let mut command = node("mcp-proxy/dist/bin/mcp-proxy.mjs")?;
                command.args(["--host", "127.0.0.1", "--server", "stream"]);
                command.args(["--port", &port.to_string(), "--"]).args(words_of(servers)?);
                command
            }
            Program::PythonProxy => {
                let mut command = python("python-proxy", "mcp-proxy")?;
                command.args(["--log-level", "WARNING", "--port", &port.to_string(), "--"]);
                command.args(words_of(servers)?);
                command
            }
            Program::FastMcp => fastmcp(front, servers, &home, port)?,
            Program::Mcporter => mcporter(front, servers, &home, port)?,
            Program::Nginx => nginx(servers, &home, port)?,
            Program::Forwarder => {
                endpoint.port = 0;
                let mut command = Command::new(program());
                let back = match servers {
                    [Upstream::Port(port)] => port.to_string(),
                    _ => STDIO.to_owned(),
                };
                let front = if front == Front::Http { HTTP } else { STDIO };
                command.args([PROXY, FORWARDER, front, &back]);
                command
            }
            Program::Direct => match servers {
                [Upstream::Port(port)] => {
                    endpoint.port = *port;
                    Command::new("cat")
                }
                _ => command_of(&words_of(servers)?),
            },
        };
        let endpoint = (front == Front::Http).then_some(endpoint);
        Ok(Launch { command, home, endpoint })
    }

    fn trunkline(
        &self,
        front: Front,
        servers: &[Upstream],
        home: &PeerHome,
        endpoint: &mut PeerEndpoint,
    ) -> Result<Command, String> {
        let program = match self.program {
            Program::ReleaseBuild => {
                other_build_path().ok_or("it is the build that is measured")?
            }
            _ => own_program()?,
        };
        let config = own_config(servers, home)?;
        let mut command = Command::new(&program);
        command.arg("serve").arg("--config").arg(config);
        if front == Front::Stdio {
            command.arg("--stdio");
            return Ok(command);
        }
        command.args(["--listen", &format!("127.0.0.1:{}", endpoint.port)]);
        if self.has_tokens {
            let file = home.folder.join("tokens.json");
            let mut add = std::process::Command::new(&program);
            add.args(["token", "add", "bench", "--file"]).arg(&file).env("HOME", &home.folder);
            let output = add.output().map_err(|error| error.to_string())?;
            let printed = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            endpoint.token = printed.split_whitespace().last().map(str::to_owned);
            endpoint.path = "/mcp/agents/bench".to_owned();
            command.arg("--tokens").arg(file);
        }
        Ok(command)
    }
}

fn connect(servers: &[Upstream], home: &PeerHome) -> Result<Command, String> {
    let config = own_config(servers, home)?;
    let mut command = Command::new(own_program()?);
    command.arg("connect").arg("--config").arg(config);
    command.env("XDG_RUNTIME_DIR", home.private_folder("run")?);
    Ok(command)
}

fn own_program() -> Result<PathBuf, String> {
    let path = program_path().filter(|path| path.is_file());
    path.ok_or_else(|| {
        "the program is missing; `cargo build --release -p trunkline-cli` makes it".to_owned()
    })
}

/// Writes a configuration for ours. Its servers are started at once, as those of the others are.
fn own_config(servers: &[Upstream], home: &PeerHome) -> Result<PathBuf, String> {
    let settings = json!({ "access": "read-write", "connect": "eager" });
    let agents = json!({ "bench": { "tools": ["*"] } });
    let config = json!({ "mcpServers": entries(servers, &settings), "agents": agents });
    home.write("mcp.json", &config.to_string())
}

/// The `mcpServers` of a configuration, each with more keys.
fn entries(servers: &[Upstream], more: &Value) -> Value {
    let named = servers.iter().enumerate().map(|(number, server)| {
        let mut entry = server.entry();
        for (key, value) in more.as_object().into_iter().flatten() {
            entry[key] = value.clone();
        }
        (format!("s{number}"), entry)
    });
    Value::Object(named.collect())
}

fn aggregator(servers: &[Upstream], home: &PeerHome, port: u16) -> Result<Command, String> {
    let mut config = entries(servers, &json!({ "enabled": true }));
    for (name, entry) in config.as_object_mut().into_iter().flatten() {
        entry["prefix"] = json!(name);
        if entry.get("type").is_none() {
            entry["type"] = json!("stdio");
        }
    }
    let config = home.write("mcp.config.json", &json!({ "servers": config }).to_string())?;
    let mut command = rust_program("mcp-aggregator")?;
    command.arg("--config").arg(config).args(["--addr", &format!("127.0.0.1:{port}")]);
    Ok(command)
}

fn rust_proxy(servers: &[Upstream], home: &PeerHome, port: u16) -> Result<Command, String> {
    let mut text = format!(
        "[proxy]\nname = \"bench\"\nseparator = \"/\"\n\n[proxy.listen]\nhost = \"127.0.0.1\"\nport = {port}\n"
    );
    for (number, server) in servers.iter().enumerate() {
        text += &format!("\n[[backends]]\nname = \"s{number}\"\n");
        text += &match server {
            // A JSON list of strings is also one of TOML.
            Upstream::Command(words) => format!(
                "transport = \"stdio\"\ncommand = {}\nargs = {}\n",
                json!(words[0]),
                json!(words[1..])
            ),
            http => format!("transport = \"http\"\nurl = \"{}\"\n", http.url()),
        };
    }
    let config = home.write("proxy.toml", &text)?;
    let mut command = rust_program("mcp-proxy")?;
    command.arg("--config").arg(config);
    Ok(command)
}

fn fastmcp(
    front: Front,
    servers: &[Upstream],
    home: &PeerHome,
    port: u16,
) -> Result<Command, String> {
    let config = json!({ "mcpServers": entries(servers, &json!({})) });
    let config = home.write("mcp.json", &config.to_string())?;
    let mut command = python("python", "fastmcp")?;
    command.arg("run").arg(config).args(["--no-banner", "--log-level", "WARNING"]);
    if front == Front::Http {
        command.args(["--transport", "http", "--host", "127.0.0.1", "--port", &port.to_string()]);
    } else {
        command.args(["--transport", "stdio"]);
    }
    Ok(command)
}

fn mcporter(
    front: Front,
    servers: &[Upstream],
    home: &PeerHome,
    port: u16,
) -> Result<Command, String> {
    let config = json!({ "mcpServers": entries(servers, &json!({ "lifecycle": "keep-alive" })) });
    let config = home.write("mcporter.json", &config.to_string())?;
    let mut command = node("mcporter/dist/cli.js")?;
    command.arg("--config").arg(config).arg("serve");
    if front == Front::Http {
        command.args(["--http", &port.to_string()]);
    } else {
        command.arg("--stdio");
    }
    Ok(command)
}

fn nginx(servers: &[Upstream], home: &PeerHome, port: u16) -> Result<Command, String> {
    let [Upstream::Port(server)] = servers else { return Err("nginx needs one URL".to_owned()) };
    let folder = home.folder.display();
    let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {folder}/{kind};"))
        .join(" ");
    let text = format!(
        "daemon off; worker_processes 1; pid {folder}/pid; error_log stderr;\n\
         events {{ worker_connections 4096; }}\n\
         http {{ access_log off; keepalive_requests 100000000; {paths}\n\
         upstream server {{ server 127.0.0.1:{server}; keepalive 128; keepalive_requests 100000000; }}\n\
         server {{ listen 127.0.0.1:{port}; client_max_body_size 16m;\n\
         location / {{ proxy_pass http://server; proxy_http_version 1.1; proxy_set_header Connection \"\"; }} }} }}\n"
    );
    let config = home.write("nginx.conf", &text)?;
    let candidates = ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx"];
    let path = candidates.into_iter().find(|path| fs::exists(path).unwrap_or(false));
    let path = path.ok_or("not installed; `apt-get install nginx-light` installs it")?;
    let mut command = Command::new(path);
    command.arg("-e").arg("stderr").arg("-c").arg(config);
    Ok(command)
}

fn command_of(words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

fn words_of(servers: &[Upstream]) -> Result<Vec<String>, String> {
    match servers {
        [Upstream::Command(words)] => Ok(words.clone()),
        _ => Err("it takes one server, over stdio".to_owned()),
    }
}

/// A program that `cargo install` made.
fn rust_program(name: &str) -> Result<Command, String> {
    installed("cargo", PathBuf::from("cargo/bin").join(name)).map(Command::new)
}

fn node(script: &str) -> Result<Command, String> {
    let script = installed("npm", PathBuf::from("npm/node_modules").join(script))?;
    let mut command = Command::new("node");
    command.arg(script);
    Ok(command)
}

fn python(folder: &str, name: &str) -> Result<Command, String> {
    installed(folder, PathBuf::from(folder).join("bin").join(name)).map(Command::new)
}

/// The path of an installed file, or the reason that it is missing, which the installation has recorded.
fn installed(manager: &str, path: PathBuf) -> Result<PathBuf, String> {
    let directory = peers::directory();
    let path = directory.join(path);
    if path.is_file() {
        return Ok(path);
    }
    let reason = fs::read_to_string(directory.join(format!("{manager}.failure"))).ok();
    Err(reason.map_or_else(
        || "not installed; `cargo xtask bench peers` installs it".to_owned(),
        |reason| format!("not installed: {}", reason.trim()),
    ))
}

pub(crate) fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    Ok(listener.local_addr().map_err(|error| error.to_string())?.port())
}

/// Arguments that start this program as an HTTP server.
pub(crate) fn http_echo(options: &str) -> [&str; 2] {
    [SERVE_HTTP, options]
}
