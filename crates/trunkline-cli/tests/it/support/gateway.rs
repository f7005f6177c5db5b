//! Runs the program as a gateway, and sends requests to it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

use crate::support::processes::{LONGEST_START, send, wait_until};
use crate::support::program::Folder;

/// The first request of a legacy client.
pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;

/// A modern request that subscribes to tool list changes.
pub(crate) const LISTEN: &str = r#"{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

/// The program in `serve`; it ends with the test.
pub(crate) struct Serving {
    process: Child,
    /// The first line of its output.
    pub(crate) line: String,
    output: Option<BufReader<ChildStdout>>,
    messages: Arc<Mutex<String>>,
    reading: Option<JoinHandle<()>>,
}

impl Serving {
    /// Starts it on a free port, and waits until it listens.
    pub(crate) fn start(folder: &Folder, arguments: &[&str]) -> Self {
        Self::start_with(folder, &[&["--listen", "127.0.0.1:0"], arguments].concat())
    }

    /// The same with these arguments only.
    pub(crate) fn start_with(folder: &Folder, arguments: &[&str]) -> Self {
        Self::run(folder.command(&[&["serve"], arguments].concat()))
    }

    /// The same as [`Serving::start`], with a limit on open files, and with the warnings of the log.
    pub(crate) fn start_with_files(folder: &Folder, files: u32) -> Self {
        let mut program = folder.command(&["serve", "--listen", "127.0.0.1:0"]);
        program.env("TRUNKLINE_LOG", "warn");
        let mut limited = Command::new("/bin/sh");
        limited.arg("-c").arg(format!("ulimit -n {files}; exec \"$0\" \"$@\""));
        limited.arg(program.get_program()).args(program.get_args());
        let variables = program.get_envs().filter_map(|(name, value)| Some((name, value?)));
        limited.env_clear().envs(variables).current_dir(folder.project());
        Self::run(limited)
    }

    pub(crate) fn run(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let stderr = BufReader::new(process.stderr.take().unwrap());
        let messages = Arc::new(Mutex::new(String::new()));
        let said = Arc::clone(&messages);
        let reading = thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                *said.lock().unwrap() += &format!("{line}\n");
            }
        });
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let line = line.trim_end().to_owned();
        Self { process, line, output: Some(output), messages, reading: Some(reading) }
    }

    /// The URL of the endpoint for everything.
    pub(crate) fn url(&self) -> &str {
        &self.line
    }

    pub(crate) fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Its messages so far.
    pub(crate) fn messages(&self) -> String {
        self.messages.lock().unwrap().clone()
    }

    /// Waits for a message.
    pub(crate) fn wait_for(&self, text: &str) {
        wait_until(text, LONGEST_START, || self.messages().contains(text));
    }

    /// Sends a signal. Returns the exit code and all output.
    pub(crate) fn ended_by(mut self, signal: &str) -> (Option<i32>, String) {
        send(signal, self.process.id());
        let code = self.process.wait().unwrap().code();
        let mut printed = format!("{}\n", self.line);
        self.output.take().unwrap().read_to_string(&mut printed).unwrap();
        self.reading.take().unwrap().join().unwrap();
        (code, printed + &self.messages())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The names of the tools that another instance of the program sees at a URL.
pub(crate) fn tools_at(folder: &Folder, url: &str, token: Option<&str>) -> Vec<String> {
    let mut entry = json!({ "type": "http", "url": url, "prefix": "", "access": "read-write" });
    if let Some(token) = token {
        entry["headers"] = json!({ "Authorization": format!("Bearer {token}") });
    }
    let config = json!({ "mcpServers": { "gateway": entry } }).to_string();
    let mut command = folder.bare_command(&["tools", "--format", "json"]);
    // Nothing is cached for the URL, and no other configuration is searched.
    command.env("TRUNKLINE_CACHE", "off").env("TRUNKLINE_CONFIG_JSON", config);
    command.current_dir("/");
    let run = folder.finish(&mut command);
    assert_eq!(run.code, 0, "{run}");
    let listed = run.json();
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    listed["tools"].as_array().unwrap().iter().map(name).collect()
}

/// The status and the whole response to one request.
pub(crate) fn post(url: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
    let host = url.split('/').nth(2).unwrap();
    exchange("POST", host, url, headers, body)
}

/// The status and the whole response to one request with any method.
pub(crate) fn request(
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (u16, String) {
    let host = url.split('/').nth(2).unwrap();
    exchange(method, host, url, headers, body)
}

/// The status of the same request with another `Host` than in the URL.
pub(crate) fn post_as(url: &str, host: &str, body: &str) -> u16 {
    exchange("POST", host, url, &[], body).0
}

fn exchange(
    method: &str,
    host: &str,
    url: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (u16, String) {
    let rest = url.strip_prefix("http://").unwrap();
    let (authority, path) = rest.split_once('/').unwrap();
    let mut head = format!(
        "{method} /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\
         content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         content-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    let mut stream = TcpStream::connect(authority).unwrap();
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split_whitespace().nth(1).unwrap().parse().unwrap();
    (status, answer)
}
