//! The background service of a machine, and clients of it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use serde_json::{Value, json};

use super::gateway::INITIALIZE;
use super::processes::{LONGEST_START, wait_until};
use super::program::Folder;

/// A machine with a user's own configuration. Its service ends with the test.
pub(crate) struct Machine {
    pub(crate) folder: Folder,
}

impl Machine {
    pub(crate) fn new(config: &Value) -> Self {
        let machine = Self { folder: Folder::new() };
        machine.configure(&config.to_string());
        machine
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.project().with_file_name("home")
    }

    pub(crate) fn configure(&self, text: &str) {
        let folder = self.home().join(".config/trunkline");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("mcp.json"), text).unwrap();
    }

    pub(crate) fn runtime_folder(&self) -> PathBuf {
        self.home().join(".local/state/trunkline/run")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.runtime_folder().join("service.sock")
    }

    /// The state of the service.
    pub(crate) fn ps(&self) -> Value {
        self.folder.finish(&mut self.folder.bare_command(&["ps", "--format", "json"])).json()
    }

    pub(crate) fn service_pid(&self) -> u32 {
        self.running_service().unwrap()
    }

    /// The process of the service, if it can be reached.
    pub(crate) fn running_service(&self) -> Option<u32> {
        let mut command = self.folder.bare_command(&["ps", "--format", "json"]);
        let run = self.folder.finish(&mut command);
        let ps: Value = serde_json::from_str(&run.output).ok()?;
        u32::try_from(ps["service"]["pid"].as_u64()?).ok()
    }

    /// A command whose call of `wait` of [`odd_names`] a kept process has received.
    pub(crate) fn waiting_call(&self) -> Child {
        let mut call = self.folder.bare_command(&["call", "odd_wait"]);
        let call = call.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("the call runs", LONGEST_START, || {
            let logs = self.folder.finish(&mut self.folder.bare_command(&["logs", "odd"]));
            logs.output.contains("waiting")
        });
        call
    }

    pub(crate) fn client(&self) -> Client {
        Client::start(self.folder.bare_command(&["connect"]))
    }

    /// A client with a session.
    pub(crate) fn session(&self) -> Client {
        let mut client = self.client();
        client.open();
        client
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.folder.bare_command(&["down"]).output();
    }
}

/// `trunkline connect`, as a host runs it.
pub(crate) struct Client {
    pub(crate) process: Child,
    pub(crate) input: Option<ChildStdin>,
    pub(crate) lines: Receiver<Value>,
    pub(crate) next: u64,
}

impl Client {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (found, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = found.send(serde_json::from_str(&line).unwrap());
            }
        });
        let input = process.stdin.take();
        Self { process, input, lines, next: 1 }
    }

    pub(crate) fn open(&mut self) {
        self.write(INITIALIZE);
        self.next += 1;
        let answer = self.line();
        assert_eq!(answer["result"]["serverInfo"]["name"], "trunkline", "{answer}");
        self.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }

    pub(crate) fn write(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    pub(crate) fn line(&self) -> Value {
        self.lines.recv_timeout(LONGEST_START).expect("a message")
    }

    /// Sends a request, without waiting for the response. Returns its ID.
    pub(crate) fn begin(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.write(
            &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string(),
        );
        id
    }

    /// The response to a request. Notifications before it are dropped.
    pub(crate) fn response(&self, id: u64) -> Value {
        loop {
            let line = self.line();
            if line["id"] == id {
                return line;
            }
        }
    }

    /// Waits for a notification.
    pub(crate) fn notification(&self, method: &str) -> Value {
        loop {
            let line = self.line();
            if line["method"] == method {
                return line;
            }
        }
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let id = self.begin("tools/call", &json!({ "name": tool, "arguments": arguments }));
        self.response(id)
    }

    pub(crate) fn shout(&mut self, text: &str) -> String {
        let answer = self.call("words_shout", &json!({ "text": text }));
        answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer}"))
            .to_owned()
    }

    pub(crate) fn tools(&mut self) -> Vec<String> {
        let id = self.begin("tools/list", &json!({}));
        let answer = self.response(id);
        let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Closes the input, and waits for the end.
    pub(crate) fn close(mut self) -> i32 {
        self.input = None;
        self.process.wait().unwrap().code().unwrap()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The demo server with a marked process.
pub(crate) fn words(marker: &str) -> Value {
    let program = env!("CARGO_BIN_EXE_trunkline");
    json!({ "command": program, "args": ["demo-server", "words"], "env": { "MARKER": marker } })
}

pub(crate) fn config(marker: &str) -> Value {
    json!({ "mcpServers": { "words": words(marker) } })
}

/// A legacy server with a tool whose name clients may not have. It answers with the name that it was called by, its
/// directory and a number that counts up. `wait` is never answered, `die` and `leak` end it, `leave` ends it after its
/// answer, `begin` begins a line, and `flood` is answered by a line of more than 64 MiB.
pub(crate) fn odd_names(marker: &str) -> Value {
    let script = r#"calls=0; while read -r line; do
        id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
        name=$(printf '%s' "$line" | sed -n 's/.*"params":.*"name":"\([^"]*\)".*/\1/p')
        case "$line" in
            *'"server/discover"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"no\"}}" ;;
            *'"initialize"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"h\",\"version\":\"1\"}}}" ;;
            *'"tools/list"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[{\"name\":\"files/read it\",\"inputSchema\":{\"type\":\"object\"}},{\"name\":\"files.drop\",\"inputSchema\":{\"type\":\"object\"}},{\"name\":\"wait\",\"inputSchema\":{\"type\":\"object\"}},{\"name\":\"die\",\"inputSchema\":{\"type\":\"object\"}},{\"name\":\"leak\",\"inputSchema\":{\"type\":\"object\"}},{\"name\":\"leave\",\"inputSchema\":{\"type\":\"object\"}},{\"name\":\"umask\",\"inputSchema\":{\"type\":\"object\"}},{\"name\":\"flood\",\"inputSchema\":{\"type\":\"object\"}},{\"name\":\"begin\",\"inputSchema\":{\"type\":\"object\"}}]}}" ;;
            *'"wait"'*) echo waiting >&2 ;;
            *'"die"'*) echo "out of memory" >&2; exit 7 ;;
            *'"leak"'*) printf '%s ' "$${TOKEN%% *}" >&2; sleep 0.1; printf '%s\n' "$${TOKEN#* }" >&2; exit 7 ;;
            *'"leave"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"content\":[]}}"; sleep 0.06; exit 0 ;;
            *'"begin"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"content\":[]}}"; printf 'frag'; echo begun >&2 ;;
            *'"flood"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' "$id"; head -c 67200000 /dev/zero | tr '\0' x; echo '"}]}}' ;;
            *'"umask"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$(umask)\"}]}}" ;;
            *'"tools/call"'*) calls=$((calls + 1)); echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$name in $(pwd) $calls\"}]}}" ;;
        esac
    done"#;
    json!({ "command": "/bin/sh", "args": ["-c", script, marker], "denyTools": ["files.drop"] })
}
