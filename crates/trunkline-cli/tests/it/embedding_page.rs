//! The TypeScript and Python hosts of `docs/embedding.md`, run as they are printed there.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::json;
use trunkline_testkit::peers;

use crate::support::program::Folder;

const PROGRAM: &str = env!("CARGO_BIN_EXE_trunkline");

/// The first fenced block of the page in a language.
fn example(language: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/embedding.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, block) = page.split_once(&format!("```{language}\n")).unwrap();
    block.split_once("```").unwrap().0.to_owned()
}

/// A directory with the configuration that the examples name, and an example in it.
fn project(file: &str, text: &str) -> Folder {
    let entry = json!({ "command": PROGRAM, "args": ["demo-server", "words"] });
    let configuration = json!({ "mcpServers": { "words": entry } }).to_string();
    Folder::new().file("mcp.json", configuration).file(file, text)
}

/// `PATH` with the directory of the program in front, because the examples run `trunkline`.
fn path() -> OsString {
    let program = Path::new(PROGRAM).parent().unwrap().to_owned();
    let others = env::var_os("PATH").unwrap_or_default();
    env::join_paths([program].into_iter().chain(env::split_paths(&others))).unwrap()
}

fn assert_printed(printed: &str) {
    assert_eq!(printed.trim_end(), "words_count_words\nwords_remember\nwords_shout\nMCP");
}

#[tokio::test]
async fn the_typescript_example_lists_and_calls() {
    let folder = project("host.mjs", &example("ts"));
    // An `import` resolves packages only from the directory of the script.
    symlink(peers::node_modules(), folder.project().join("node_modules")).unwrap();
    let mut command = peers::node_script(&folder.project().join("host.mjs"));
    command.current_dir(folder.project()).env("PATH", path());
    assert_printed(&peers::run(command).await);
}

#[tokio::test]
async fn the_python_example_lists_and_calls() {
    let folder = project("host.py", &example("python"));
    let mut command = peers::python_script(&folder.project().join("host.py"));
    command.current_dir(folder.project()).env("PATH", path());
    assert_printed(&peers::run(command).await);
}
