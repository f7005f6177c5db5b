//! Shared parts of the example hosts: servers, temporary directories, and an environment separate
//! from that of the process.

#![expect(dead_code, reason = "each example uses a part of it")]

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::error::Elapsed;
use tokio::time::{sleep, timeout};
use trunkline::config::Environment;
use trunkline_gateway::demo::DemoServer;

/// Runs as an MCP server over stdio if the first argument is `serve`.
pub(crate) async fn serve_if_asked() -> io::Result<bool> {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some("serve") {
        return Ok(false);
    }
    let name = arguments.next().unwrap_or_default();
    match DemoServer::from_name(&name) {
        Some(server) => server.serve(tokio::io::stdin(), tokio::io::stdout()).await?,
        None => serve_workshop()?,
    }
    Ok(true)
}

/// The entry of a stdio server: this program as a server.
pub(crate) fn stdio_entry(name: &str) -> io::Result<Value> {
    Ok(json!({ "command": std::env::current_exe()?, "args": ["serve", name] }))
}

/// A server whose list of tools grows with each call of `make_tool`, and whose tool `wait` answers
/// once it is cancelled. On standard error it says that it was asked for its list.
fn serve_workshop() -> io::Result<()> {
    let mut made = 0;
    let mut output = io::stdout();
    let mut send = |message: Value| writeln!(output, "{message}").and_then(|()| output.flush());
    for line in io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?).unwrap_or_default();
        let (id, tool) = (&request["id"], request["params"]["name"].as_str().unwrap_or_default());
        let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
        let result = match request["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": { "tools": { "listChanged": true } },
                "serverInfo": { "name": "workshop", "version": "1" },
            }),
            "tools/list" => {
                writeln!(io::stderr(), "listed")?;
                json!({ "tools": workshop_tools(made) })
            }
            "notifications/cancelled" => {
                writeln!(io::stderr(), "cancelled")?;
                continue;
            }
            "tools/call" if tool == "wait" => continue,
            "tools/call" => {
                made += 1;
                send(json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }))?;
                text("made")
            }
            "server/discover" => {
                let error = json!({ "code": -32601, "message": "unknown method" });
                send(json!({ "jsonrpc": "2.0", "id": id, "error": error }))?;
                continue;
            }
            _ if id.is_null() => continue,
            _ => json!({}),
        };
        send(json!({ "jsonrpc": "2.0", "id": id, "result": result }))?;
    }
    Ok(())
}

fn workshop_tools(made: usize) -> Vec<Value> {
    let made = (1..=made).map(|number| format!("tool_{number}"));
    let names = ["make_tool".to_owned(), "wait".to_owned()].into_iter().chain(made);
    names.map(|name| json!({ "name": name, "inputSchema": { "type": "object" } })).collect()
}

/// A server at an address that lets no request in without this `Authorization`. It ends with the task.
pub(crate) async fn guarded_server(authorization: &str) -> io::Result<(String, JoinHandle<()>)> {
    let inner = TcpListener::bind("127.0.0.1:0").await?;
    let target = inner.local_addr()?;
    let outer = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/mcp", outer.local_addr()?);
    let expected = format!("authorization: {authorization}\r\n").to_lowercase();
    let task = tokio::spawn(async move {
        let serving = DemoServer::Words.listen(inner);
        let passing = async {
            while let Ok((client, _)) = outer.accept().await {
                let _ = pass_on(client, target, &expected).await;
            }
        };
        tokio::select! {
            _ = serving => {}
            () = passing => {}
        }
    });
    Ok((url, task))
}

/// Passes one connection on, if its first request has the line that is expected.
async fn pass_on(mut client: TcpStream, target: SocketAddr, expected: &str) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && client.read_buf(&mut head).await? > 0 {}
    if !String::from_utf8_lossy(&head).to_lowercase().contains(expected) {
        let refusal = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n";
        return client.write_all(refusal).await;
    }
    let mut server = TcpStream::connect(target).await?;
    server.write_all(&head).await?;
    tokio::spawn(async move { copy_bidirectional(&mut client, &mut server).await });
    Ok(())
}

/// Variables that a host was started with, and the files of the machine.
#[derive(Default)]
pub(crate) struct Machine {
    pub(crate) variables: BTreeMap<&'static str, OsString>,
}

impl Environment for Machine {
    fn variable(&self, name: &str) -> Option<OsString> {
        self.variables.get(name).cloned()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }
}

/// A directory that is removed on drop.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file, and creates its parent directories.
    pub(crate) fn write(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&self.0))?;
        fs::write(&path, text)?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whether a process exists.
pub(crate) fn is_running(process: u32) -> io::Result<bool> {
    signal("-0", process)
}

/// Sends a signal to a process. Returns whether it exists.
pub(crate) fn signal(signal: &str, process: u32) -> io::Result<bool> {
    let process = process.to_string();
    let sent = Command::new("kill").args([signal, &process]).stderr(Stdio::null()).status()?;
    Ok(sent.success())
}

/// Waits until a condition is true.
pub(crate) async fn until(is_so: impl Fn() -> bool) -> Result<(), Elapsed> {
    let looked = async {
        while !is_so() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(30), looked).await
}

/// Result of an example.
pub(crate) type Outcome = Result<(), Box<dyn Error>>;
