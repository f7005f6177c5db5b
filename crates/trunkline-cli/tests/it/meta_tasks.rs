//! A scripted agent completes ten tasks with real servers in meta mode, through `trunkline serve`.
//!
//! It does what a model does: search with short queries, choose, describe, call. Of the results of a
//! search it takes the first whose parameters fit the arguments that it has: it has all required
//! ones, and no other than those that the line names. Each task is checked in the world: files,
//! commits, the memory graph.
//!
//! `cargo nextest run --workspace --no-capture -E 'test(ten_tasks)'` prints the tokens of each task,
//! beside those of direct mode.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tiktoken_rs::CoreBPE;

use crate::support::gateway::INITIALIZE;
use crate::support::program::Folder;
use crate::third_party_servers::{npm, python};

/// The directories and files that the servers work on.
struct World {
    folder: Folder,
}

impl World {
    fn new() -> Self {
        let folder = Folder::new()
            .file("files/notes.txt", "milk and bread\n")
            .file("files/draft.txt", "Dear Bob,\n")
            .file("repository/readme.md", "# Readme\n");
        let world = Self { folder };
        world.git(&["init", "--quiet", "--initial-branch=main"]);
        world.git(&["add", "."]);
        world.git(&["commit", "--quiet", "--message=First"]);
        world.write("repository/readme.md", "# Read me\n");
        world.write("meta.json", &world.config("meta").to_string());
        world.write("direct.json", &world.config("direct").to_string());
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.project().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Runs git in the repository.
    fn git(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]);
        let output = command.args(arguments).current_dir(self.path("repository")).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The five servers in a mode.
    fn config(&self, mode: &str) -> Value {
        let (files, repository) = (self.path("files"), self.path("repository"));
        let mut memory = npm("server-memory", &[]);
        memory["env"] = json!({ "MEMORY_FILE_PATH": self.path("memory.json") });
        let mut git = python("mcp_server_git", &["--repository", repository.to_str().unwrap()]);
        git["env"] = json!({
            "GIT_AUTHOR_NAME": "Ann", "GIT_AUTHOR_EMAIL": "ann@example.org",
            "GIT_COMMITTER_NAME": "Ann", "GIT_COMMITTER_EMAIL": "ann@example.org",
        });
        json!({
            "mode": mode,
            "access": "read-write",
            // Five interpreters start at once, which takes a while on a small machine.
            "timeouts": { "handshake": "90s", "grace": "90s" },
            "mcpServers": {
                "everything": npm("server-everything", &["stdio"]),
                "filesystem": npm("server-filesystem", &[files.to_str().unwrap()]),
                "memory": memory,
                "time": python("mcp_server_time", &[]),
                "git": git,
            },
        })
    }
}

/// A client of `trunkline serve --stdio`.
struct Client {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Client {
    fn start(world: &World, config: &str) -> Self {
        let mut command = world.folder.command(&["serve", "--stdio", "--config", config]);
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let input = process.stdin.take().unwrap();
        let mut client = Self { process, input, output, next: 1 };
        writeln!(client.input, "{INITIALIZE}").unwrap();
        client.response(1);
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        writeln!(client.input, "{initialized}").unwrap();
        client
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(self.input, "{request}").unwrap();
        let response = self.response(id);
        assert!(response["result"].is_object(), "{request}: {response}");
        response["result"].clone()
    }

    /// The response to a request, after any notifications.
    fn response(&mut self, id: u64) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "it has ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    /// The definitions that a model receives.
    fn definitions(&mut self) -> Vec<String> {
        let listed = self.request("tools/list", &json!({}));
        listed["tools"].as_array().unwrap().iter().map(Value::to_string).collect()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// One call that a task needs: a query for the tool, and the arguments.
struct Step {
    query: &'static str,
    arguments: Value,
}

fn step(query: &'static str, arguments: Value) -> Step {
    Step { query, arguments }
}

struct Task {
    goal: &'static str,
    steps: Vec<Step>,
    /// Whether the goal is reached, by the world and the last result.
    is_done: fn(&World, &str) -> bool,
}

fn task(goal: &'static str, steps: Vec<Step>, is_done: fn(&World, &str) -> bool) -> Task {
    Task { goal, steps, is_done }
}

fn tasks(world: &World) -> Vec<Task> {
    let mut tasks: Vec<_> = file_tasks(&world.path("files")).into();
    tasks.extend(repository_tasks(&world.path("repository")));
    tasks.extend(other_tasks());
    tasks
}

fn file_tasks(files: &Path) -> [Task; 3] {
    let edits = json!([{ "oldText": "milk", "newText": "oat milk" }]);
    let [plan, notes, archive] = ["plan.txt", "notes.txt", "archive"].map(|name| files.join(name));
    let rename = json!({
        "source": files.join("draft.txt"), "destination": files.join("letter.txt"),
    });
    [
        task(
            "write a file",
            vec![step("write a file", json!({ "path": plan, "content": "1. Begin\n" }))],
            |world, _| world.text("files/plan.txt") == "1. Begin\n",
        ),
        task(
            "change a word in a file",
            vec![step("edit a text file", json!({ "path": notes, "edits": edits }))],
            |world, _| world.text("files/notes.txt") == "oat milk and bread\n",
        ),
        task(
            "rename a file and make a folder",
            vec![
                step("rename a file", rename),
                step("create a directory", json!({ "path": archive })),
            ],
            |world, _| {
                let is_moved = world.text("files/letter.txt") == "Dear Bob,\n";
                is_moved && world.path("files/archive").is_dir()
            },
        ),
    ]
}

fn repository_tasks(repository: &Path) -> [Task; 3] {
    let branch = json!({ "repo_path": repository, "branch_name": "topic" });
    [
        task(
            "stage a change and commit it",
            vec![
                step("stage files", json!({ "repo_path": repository, "files": ["readme.md"] })),
                step("record changes", json!({ "repo_path": repository, "message": "Title" })),
            ],
            |world, _| world.git(&["log", "-1", "--format=%s"]) == "Title\n",
        ),
        task("start a branch", vec![step("create a branch", branch)], |world, _| {
            world.git(&["branch", "--list", "topic"]).contains("topic")
        }),
        task(
            "read the history of a repository",
            vec![step("show commit log", json!({ "repo_path": repository, "max_count": 5 }))],
            |_, result| result.contains("Title") && result.contains("First"),
        ),
    ]
}

fn other_tasks() -> [Task; 4] {
    let time = json!({
        "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo",
    });
    let ann = json!({ "name": "Ann", "entityType": "person", "observations": ["likes tea"] });
    [
        task("convert a time", vec![step("convert time between time zones", time)], |_, result| {
            result.contains("T21:00:00+09:00")
        }),
        task(
            "remember a person",
            vec![step("create entities in memory", json!({ "entities": [ann] }))],
            |world, _| world.text("memory.json").contains("likes tea"),
        ),
        task(
            "recall a person",
            vec![step("search memory for a query", json!({ "query": "Ann" }))],
            |_, result| result.contains("likes tea"),
        ),
        task(
            "add two numbers",
            vec![step("sum of two numbers", json!({ "a": 40, "b": 2 }))],
            |_, result| result.contains("42"),
        ),
    ]
}

/// A conversation: everything that the model reads and writes.
struct Agent<'c> {
    client: &'c mut Client,
    /// Calls and their results.
    transcript: Vec<String>,
}

impl Agent<'_> {
    /// Calls a tool and returns the text of its result.
    fn call(&mut self, name: &str, arguments: &Value) -> String {
        let call = json!({ "name": name, "arguments": arguments });
        let result = self.client.request("tools/call", &call);
        let blocks = result["content"].as_array().unwrap();
        let texts: Vec<_> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        let text = texts.join("\n");
        assert_ne!(result["isError"], true, "{call}: {text}");
        self.transcript.extend([call.to_string(), text.clone()]);
        text
    }

    /// Completes a task. Returns the direct calls that it made, with their results.
    fn complete(&mut self, task: &Task) -> Vec<String> {
        let queries: Vec<_> = task.steps.iter().map(|step| step.query).collect();
        let found = self.call("trunkline_search", &json!({ "queries": queries }));
        let chosen: Vec<_> = task.steps.iter().map(|step| choose(&found, step)).collect();
        let described = self.call("trunkline_describe", &json!({ "names": chosen }));
        for (step, definition) in task.steps.iter().zip(described.lines()) {
            let definition: Value = serde_json::from_str(definition).unwrap();
            let required = definition["inputSchema"]["required"].as_array().cloned();
            let has = |name: &Value| step.arguments.get(name.as_str().unwrap()).is_some();
            assert!(required.unwrap_or_default().iter().all(has), "{definition}");
        }
        let mut direct = Vec::new();
        for (step, name) in task.steps.iter().zip(chosen) {
            let call = json!({ "name": name, "arguments": step.arguments });
            let result = self.call("trunkline_call", &call);
            direct.extend([call.to_string(), result]);
        }
        direct
    }
}

/// The name of the first tool of a search whose parameters fit the arguments of a step.
fn choose(found: &str, step: &Step) -> String {
    let fits = |line: &&str| {
        let Some((_, parameters)) = line.split_once('(') else { return false };
        let Some((parameters, _)) = parameters.split_once(')') else { return false };
        let names = parameters.split(", ").filter_map(|it| it.split_once(": ")).map(|it| it.0);
        let names: Vec<_> = names.collect();
        let is_there = |name: &&str| step.arguments.get(*name).is_some();
        let is_known = |key: &String| names.iter().any(|it| it.trim_end_matches('?') == key);
        names.iter().filter(|name| !name.ends_with('?')).all(is_there)
            && step.arguments.as_object().unwrap().keys().all(is_known)
    };
    let line = found.lines().find(fits);
    let line = line.unwrap_or_else(|| panic!("no tool for {:?} in\n{found}", step.query));
    line.split('(').next().unwrap().to_owned()
}

/// The tokens of texts in the vocabulary `o200k_base`.
fn tokens<T: AsRef<str>>(tokenizer: &CoreBPE, texts: &[T]) -> usize {
    texts.iter().map(|text| tokenizer.encode_ordinary(text.as_ref()).len()).sum()
}

#[test]
fn ten_tasks_cost_less_in_meta_mode() {
    let world = World::new();
    let tokenizer = tiktoken_rs::o200k_base().unwrap();
    let direct_definitions = Client::start(&world, "direct.json").definitions();
    let mut client = Client::start(&world, "meta.json");
    let meta_definitions = client.definitions();
    assert_eq!(meta_definitions.len(), 4);
    let [direct_base, meta_base] =
        [&direct_definitions, &meta_definitions].map(|texts| tokens(&tokenizer, texts));
    let mut table = "| task | meta | direct |\n|---|--:|--:|\n".to_owned();
    let (mut meta_total, mut direct_total) = (0, 0);
    let tasks = tasks(&world);
    assert_eq!(tasks.len(), 10);
    for task in tasks {
        let mut agent = Agent { client: &mut client, transcript: Vec::new() };
        let calls = agent.complete(&task);
        assert!((task.is_done)(&world, calls.last().unwrap()), "{}: {calls:?}", task.goal);
        let meta = meta_base + tokens(&tokenizer, &agent.transcript);
        let direct = direct_base + tokens(&tokenizer, &calls);
        let _ = writeln!(table, "| {} | {meta} | {direct} |", task.goal);
        (meta_total, direct_total) = (meta_total + meta, direct_total + direct);
    }
    let _ = writeln!(table, "| all | {meta_total} | {direct_total} |");
    println!("{} tools, {direct_base} tokens; meta tools: {meta_base}", direct_definitions.len());
    println!("{table}");
    assert!(meta_total < direct_total, "{table}");
}
