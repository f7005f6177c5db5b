//! Runs the program on a pseudo-terminal, with answers to its questions.

use std::process::Stdio;

use serde_json::json;
use trunkline_testkit::peers;

use super::program::Folder;

/// Runs a command on a terminal of a given size: waits for each text, then types the answer to it. Prints everything
/// that appeared, and the exit code.
const DRIVER: &str = r#"
import fcntl, json, os, pty, select, struct, sys, termios, time
plan = json.loads(sys.argv[1])
pid, terminal = pty.fork()
if pid == 0:
    # The size is set before the program looks at it.
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", plan["rows"], plan["columns"], 0, 0))
    os.execv(plan["command"][0], plan["command"])
shown, seen, answers, end = b"", 0, plan["answers"], time.time() + 60
while time.time() < end:
    if not select.select([terminal], [], [], 0.5)[0]:
        # An answer without a question is typed when nothing more appears.
        if answers and not answers[0][0]:
            os.write(terminal, answers.pop(0)[1].encode())
        continue
    try:
        part = os.read(terminal, 65536)
    except OSError:
        break
    if not part:
        break
    shown += part
    while answers and answers[0][0] and (at := shown.find(answers[0][0].encode(), seen)) >= 0:
        question, answer = answers.pop(0)
        seen = at + len(question)
        os.write(terminal, answer.encode())
else:
    os.kill(pid, 9)
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
json.dump({"text": shown.decode(errors="replace").replace("\r\n", "\n"), "code": code}, sys.stdout)
"#;

/// What a terminal showed.
pub(crate) struct Shown {
    pub(crate) text: String,
    pub(crate) code: i64,
}

/// Runs the program on a terminal with so many columns. Each answer is typed once its question has appeared.
pub(crate) fn on_terminal(
    folder: &Folder,
    columns: u16,
    arguments: &[&str],
    answers: &[(&str, &str)],
) -> Shown {
    on_terminal_with(&[], folder, columns, arguments, answers)
}

/// The same with variables that a terminal sets.
pub(crate) fn on_terminal_with(
    variables: &[(&str, &str)],
    folder: &Folder,
    columns: u16,
    arguments: &[&str],
    answers: &[(&str, &str)],
) -> Shown {
    let program = folder.command(arguments);
    let command: Vec<_> = std::iter::once(program.get_program())
        .chain(program.get_args())
        .map(|it| it.to_str().unwrap())
        .collect();
    let plan = json!({ "command": command, "columns": columns, "rows": 24, "answers": answers });
    let mut driver = std::process::Command::new(peers::python());
    driver.args(["-I", "-c", DRIVER, &plan.to_string()]).stdin(Stdio::null());
    driver.current_dir(folder.project()).env_clear();
    driver.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    driver.env("TERM", "xterm-256color").env_remove("NO_COLOR").env_remove("PAGER");
    driver.envs(variables.iter().copied());
    let output = driver.output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).expect(&messages);
    Shown {
        text: shown["text"].as_str().unwrap().to_owned(),
        code: shown["code"].as_i64().unwrap(),
    }
}
