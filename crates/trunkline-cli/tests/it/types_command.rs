//! `trunkline types`: the output compiles, and fits the tools of real servers.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use trunkline_testkit::peers;

use crate::support::program::Folder;

fn folder() -> Folder {
    let script = |package: &str| {
        peers::node_modules().join(format!("@modelcontextprotocol/server-{package}/dist/index.js"))
    };
    let folder = Folder::new();
    let servers = json!({
        "everything": { "command": "node", "args": [script("everything"), "stdio"] },
        "files": { "command": "node", "args": [script("filesystem"), folder.project()] },
        "memory": { "command": "node", "args": [script("memory")] },
        "time": { "command": peers::python(), "args": ["-m", "mcp_server_time"] },
    });
    folder.file("trunkline.json", json!({ "mcpServers": servers }).to_string())
}

fn output(command: &mut Command, directory: &Path) -> String {
    let output = command.current_dir(directory).output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{text}");
    text
}

#[test]
fn types_of_real_servers_compile() {
    let folder = folder();
    let directory = folder.project();
    let types = folder.run(&["types", "--lang", "ts"]);
    assert_eq!(types.code, 0, "{types}");
    fs::write(directory.join("tools.ts"), &types.output).unwrap();
    // A program that uses them, with one mistake that the compiler has to find.
    let good = r#"
        import type { Tools, ToolName } from "./tools";
        declare function call<N extends ToolName>(name: N, given: Tools[N]["arguments"]): Promise<Tools[N]["structuredContent"]>;
        call("everything_get-sum", { a: 1, b: 2 });
        call("files_read_text_file", { path: "x", head: 3 });
        call("everything_get-structured-content", { location: "Chicago" }).then((it) => it.temperature + 1);
    "#;
    fs::write(directory.join("good.ts"), good).unwrap();
    fs::write(directory.join("bad.ts"), good.replace("\"Chicago\"", "\"Rome\"")).unwrap();
    let tsc = peers::node_modules().join("typescript/bin/tsc");
    let compiler = |file: &str| {
        let mut command = Command::new("node");
        command.arg(&tsc).args([
            "--noEmit",
            "--strict",
            "--target",
            "es2022",
            "--moduleResolution",
            "bundler",
        ]);
        command.args(["--module", "esnext", file]);
        command
    };
    output(&mut compiler("good.ts"), &directory);
    let bad = compiler("bad.ts").current_dir(&directory).output().unwrap();
    let said = String::from_utf8_lossy(&bad.stdout).into_owned();
    assert!(!bad.status.success() && said.contains("Rome"), "{said}");

    let types = folder.run(&["types", "--lang", "py"]);
    assert_eq!(types.code, 0, "{types}");
    fs::write(directory.join("tools.py"), &types.output).unwrap();
    let check = "import tools, typing\n\
        arguments, result = tools.TOOLS['files_read_text_file']\n\
        hints = typing.get_type_hints(arguments, include_extras=True)\n\
        assert hints['path'] is str and arguments.__required_keys__ == {'path'}, hints\n\
        for arguments, result in tools.TOOLS.values():\n    \
            isinstance(arguments, type) and typing.get_type_hints(arguments)\n\
        print(len(tools.TOOLS))";
    let mut python = Command::new(peers::python());
    let count = output(python.args(["-B", "-c", check]), &directory);
    assert!(count.trim().parse::<usize>().unwrap() > 30, "{count}");
    let run = folder.run(&["types", "--lang", "py", "--server", "time"]);
    assert!(
        run.output.contains("time_get_current_time") && !run.output.contains("files_"),
        "{run}"
    );
}
