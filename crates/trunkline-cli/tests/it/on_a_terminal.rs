//! Commands on a terminal: width, colours, pager, questions and interrupts.

use serde_json::json;
use trunkline_testkit::peers;

use crate::support::program::Folder;
use crate::support::pseudo_terminal::{on_terminal, on_terminal_with};
use crate::tools_command::folder;

/// The reference server, which has tools of many kinds.
fn everything() -> Folder {
    let package = "@modelcontextprotocol/server-everything/dist/index.js";
    let script = peers::node_modules().join(package);
    let entry = json!({ "command": "node", "args": [script, "stdio"] });
    Folder::new().file("trunkline.json", json!({ "mcpServers": { "e": entry } }).to_string())
}

/// The text without colours and progress.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain += before;
        let end = after.find(|it: char| it.is_ascii_alphabetic()).unwrap_or(0);
        rest = after.get(end + 1..).unwrap_or_default();
    }
    plain + rest
}

#[test]
fn lists_fit_the_width_of_the_terminal() {
    let folder = everything();
    for columns in [40, 80, 200] {
        let shown = on_terminal(&folder, columns, &["tools", "--no-pager"], &[]);
        assert_eq!(shown.code, 0, "{}", shown.text);
        let text = plain(&shown.text);
        let list = text.split_once("e  13 tools").expect(&text).1;
        // A long word has a line of its own.
        let lines = list.lines().filter(|line| line.starts_with("  ") && line.trim().contains(' '));
        let longest = lines.map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= usize::from(columns).min(120), "{columns}: {longest}\n{text}");
        assert!(list.contains("      Echoes back the input string"), "{text}");
        assert!(shown.text.contains("\u{1b}[36me_echo\u{1b}[0m(message: "), "{}", shown.text);
    }
}

#[test]
fn colours_are_left_out_on_request() {
    let shown = on_terminal(&folder(), 80, &["tools", "--no-pager", "--no-color"], &[]);
    let list = shown.text.split_once("words  2 tools").expect(&shown.text).1;
    assert!(!list.contains("[36m"), "{list}");
}

#[test]
fn long_lists_are_paged_and_short_ones_are_not() {
    if !std::path::Path::new("/usr/bin/less").exists() {
        eprintln!("skipped: this machine has no `less`");
        return;
    }
    let folder = everything();
    on_terminal(&folder, 80, &["tools", "--no-pager"], &[]);
    let shown = on_terminal(&folder, 80, &["tools"], &[("get-annotated-message", "q")]);
    assert_eq!(shown.code, 0, "{}", shown.text);
    assert!(!shown.text.contains("trigger-long-running"), "the pager has ended: {}", shown.text);
    let shown =
        on_terminal(&folder, 80, &["tools"], &[("get-annotated-message", "\u{3}"), ("", "q")]);
    assert!(!shown.text.contains("interrupted"), "Ctrl-C is for the pager: {}", shown.text);
    let shown = on_terminal(&folder, 80, &["tool", "e", "echo"], &[]);
    assert_eq!(shown.code, 0, "{}", shown.text);
    assert!(shown.text.contains("trunkline call e_echo message=TEXT"), "{}", shown.text);
}

#[test]
fn missing_arguments_are_asked_for() {
    let folder = folder();
    let answers = [("text (string): ", "typed words\n")];
    let shown = on_terminal(&folder, 80, &["call", "words_shout"], &answers);
    assert_eq!(shown.code, 0, "{}", shown.text);
    assert!(shown.text.contains("TYPED WORDS"), "{}", shown.text);
    let shown = on_terminal(&folder, 80, &["call", "words_shout", "--yes"], &[]);
    assert_eq!(shown.code, 6, "{}", shown.text);
    // Ctrl-C ends it while it waits for an answer.
    let shown = on_terminal(&folder, 80, &["call", "words_shout"], &[("text (string): ", "\u{3}")]);
    assert_eq!(shown.code, 1, "{}", shown.text);
    assert!(shown.text.contains("interrupted"), "{}", shown.text);
}

/// Fields of the request of the reference server after the name; each is optional or has a default.
const OTHER_FIELDS: usize = 12;

#[test]
fn elicitation_is_answered_by_questions() {
    let folder = everything();
    let call = ["call", "e", "trigger-elicitation-request"];
    for (decision, expected) in [("y\n", "Name: Ann"), ("n\n", "declined")] {
        let mut answers = vec![("  name (string): ", "Ann\n")];
        answers.extend(std::iter::repeat_n(("): ", "\n"), OTHER_FIELDS));
        answers.push(("to server e? [y/N] ", decision));
        let shown = on_terminal(&folder, 100, &call, &answers);
        assert!(shown.text.contains("Server e asks: Please provide inputs"), "{}", shown.text);
        assert_eq!(shown.code, 0, "{}", shown.text);
        assert!(shown.text.contains(expected), "{expected}: {}", shown.text);
    }
}

/// Seen: titles of choices were not shown, and a choice of several was refused unless it was a JSON list.
#[test]
fn choices_are_shown_and_named_by_their_titles() {
    let call = ["call", "e", "trigger-elicitation-request"];
    let mut answers = vec![("  name (string", "Ann\n")];
    answers.extend([("): ", "\n"); 7]);
    answers.extend([
        ("Monica or Rachel or Joey or Chandler or Ross or Phoebe; default Monica): ", "Ross\n"),
        ("(any of Guitar, Piano, Violin, Drums, Bass, separated by commas; ", "Piano, Harp\n"),
        ("the answer does not fit: `Harp` is none of the choices", ""),
        ("MultipleSelectEnum (any of ", "Piano, Bass\n"),
        ("(hero-1 (Superman) or hero-2 (Green Lantern) or hero-3 (Wonder", "green lantern\n"),
        ("(any of fish-1 (Tuna), fish-2 (Salmon), fish-3 (Trout), ", "[\"fish-1\", \"Trout\"]\n"),
        ("(pet-1 (Cats) or pet-2 (Dogs) or ", "Dogs\n"),
        ("to server e? [y/N] ", "y\n"),
    ]);
    let shown = on_terminal(&everything(), 200, &call, &answers);
    assert_eq!(shown.code, 0, "{}", shown.text);
    let sent = shown.text.split_once("Send ").expect(&shown.text).1;
    for part in [
        r#""untitledSingleSelectEnum":"Ross""#,
        r#""untitledMultipleSelectEnum":["Piano","Bass"]"#,
        r#""titledSingleSelectEnum":"hero-2""#,
        r#""titledMultipleSelectEnum":["fish-1","fish-3"]"#,
        r#""legacyTitledEnum":"pet-2""#,
    ] {
        assert!(sent.contains(part), "{part}: {sent}");
    }
}

/// Seen: a value that is no choice was sent, and the choices were not shown.
#[test]
fn missing_arguments_are_checked() {
    let answers = [
        ("location (New York or Chicago or Los Angeles): ", "Paris\n"),
        ("the answer does not fit", ""),
        ("location (New York or Chicago or Los Angeles): ", "Chicago\n"),
    ];
    let shown = on_terminal(&everything(), 200, &["call", "e", "get-structured-content"], &answers);
    assert!(shown.code == 0 && shown.text.contains("temperature"), "{}", shown.text);
}

#[test]
fn roots_are_the_working_directory() {
    let roots = ["call", "e", "get-roots-list"];
    let shown = on_terminal(&everything(), 200, &roots, &[]);
    assert!(shown.code == 0 && shown.text.contains("/project"), "{}", shown.text);
    // A pipe is a program, which names directories itself.
    let run = everything().run(&roots);
    assert!(run.code != 0 && !run.output.contains("/project"), "{run}");
}

#[test]
fn directories_of_a_configuration_are_not_replaced_by_roots() {
    let script = "@modelcontextprotocol/server-filesystem/dist/index.js";
    let folder = Folder::new().file("files/hello.txt", "hello");
    let args = json!([peers::node_modules().join(script), folder.project().join("files")]);
    let config = json!({ "mcpServers": { "f": { "command": "node", "args": args } } });
    let folder = folder.file("trunkline.json", config.to_string());
    let shown = on_terminal(&folder, 200, &["call", "f", "list_allowed_directories"], &[]);
    assert!(shown.text.contains("/project/files"), "{}", shown.text);
}

const NOT_SHOWN: &str =
    "1 binary part of the result is not shown; `--artifacts DIRECTORY` saves it as a file";

#[test]
fn images_are_shown_in_a_terminal_that_can() {
    let folder = everything();
    let call = ["call", "e", "get-tiny-image"];
    let kitty = ("KITTY_WINDOW_ID", "1");
    for (variables, sequence) in [
        (&[kitty][..], "\u{1b}_Ga=T,f=100,q=2,m=1;iVBORw0KGgo"),
        (&[("TERM_PROGRAM", "iTerm.app")], "\u{1b}]1337;File=inline=1;"),
    ] {
        let shown = on_terminal_with(variables, &folder, 80, &call, &[]);
        assert_eq!(shown.code, 0, "{}", shown.text);
        assert!(shown.text.contains(sequence), "{}", shown.text);
        assert!(!shown.text.contains("not shown"), "{}", shown.text);
    }
    let in_tmux = [kitty, ("TMUX", "/tmp/tmux,1,0")];
    for (variables, options) in
        [(&[][..], &[][..]), (&in_tmux, &[]), (&[kitty], &["--images", "never"])]
    {
        let shown = on_terminal_with(variables, &folder, 100, &[&call, options].concat(), &[]);
        assert!(!shown.text.contains("iVBORw0KGgo"), "{}", shown.text);
        assert!(shown.text.contains("[image: image/png, "), "{}", shown.text);
        assert!(shown.text.contains(NOT_SHOWN), "{}", shown.text);
    }
    let json = [&call[..], &["--format", "json"]].concat();
    let shown = on_terminal_with(&[kitty], &folder, 100, &json, &[]);
    assert!(!shown.text.contains("\u{1b}_G"), "{}", shown.text);
}

#[test]
fn images_of_a_pipe_or_of_an_untrusted_server_are_not_shown() {
    let folder = everything();
    let mut command = folder.command(&["call", "e", "get-tiny-image"]);
    command.env("PATH", std::env::var_os("PATH").unwrap()).env("KITTY_WINDOW_ID", "1");
    let run = folder.finish(&mut command);
    assert!(run.code == 0 && run.messages.contains(NOT_SHOWN), "{run}");
    assert!(!run.output.contains('\u{1b}'), "{run}");
    let text = std::fs::read_to_string(folder.project().join("trunkline.json")).unwrap();
    let text = text.replace(
        r#""command""#,
        r#""trust":"untrusted","allowTools":["get-tiny-image"],"command""#,
    );
    let folder = folder.file("trunkline.json", text);
    let kitty = [("KITTY_WINDOW_ID", "1")];
    let shown = on_terminal_with(&kitty, &folder, 100, &["call", "e", "get-tiny-image"], &[]);
    assert!(!shown.text.contains("\u{1b}_G"), "{}", shown.text);
    assert!(shown.text.contains(NOT_SHOWN), "{}", shown.text);
}

/// Seen: at 80 columns each row of the table was two lines.
#[test]
fn the_table_of_import_fits_the_width_of_the_terminal() {
    let long = "/home/ann/projects/with/a/rather/long/path";
    let entry = json!({ "command": "npx", "args": ["-y", "server-filesystem", long, long] });
    let text = json!({ "mcpServers": { "files": entry } }).to_string();
    let folder = Folder::new().file("../home/.cursor/mcp.json", text);
    for columns in [60, 80, 200] {
        let shown = on_terminal(&folder, columns, &["import"], &[("[y/N]", "n\n")]);
        let text = plain(&shown.text);
        let row = text.lines().find(|line| line.starts_with("Cursor")).expect(&text);
        assert!(row.ends_with("…  as files"), "{text}");
        assert!(row.chars().count() <= usize::from(columns), "{text}");
        assert!(shown.text.contains("\u{1b}[1mhost"), "{}", shown.text);
    }
}

#[test]
fn errors_are_coloured() {
    let shown = on_terminal(&folder(), 80, &["call", "words_shuot", "--yes"], &[]);
    assert!(shown.text.contains("\u{1b}[1;31merror\u{1b}[0m: there is no tool"), "{}", shown.text);
}

/// Seen: "the arguments do not fit the tool", of a form that a server sent.
#[test]
fn an_answer_that_does_not_fit_is_asked_for_again() {
    let folder = everything();
    let call = ["call", "e", "trigger-elicitation-request"];
    let mut answers = vec![("  name (string): ", "Ann\n")];
    answers.extend([("): ", "\n"); 2]);
    answers.extend([("  email (", "ann\n"), ("  email (", "ann@example.com\n")]);
    answers.extend([("): ", "\n"); 2]);
    answers.extend([("  integer (", "500\n"), ("  integer (", "50\n")]);
    answers.extend(std::iter::repeat_n(("): ", "\n"), OTHER_FIELDS - 6));
    answers.push(("to server e? [y/N] ", "y\n"));
    let shown = on_terminal(&folder, 200, &call, &answers);
    assert_eq!(shown.code, 0, "{}", shown.text);
    let text = plain(&shown.text);
    for part in [
        "  the answer does not fit: `email` must be an email address such as",
        "  the answer does not fit: `integer` must be at most 100\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("the arguments do not fit the tool"), "{text}");
    assert!(text.contains("ann@example.com") && text.contains("Name: Ann"), "{text}");
}

#[test]
fn messages_fit_the_width_of_the_terminal() {
    let folder = folder();
    let call = ["call", "numbers_add", "a=x", "b=two", "--yes"];
    let message = "error: the arguments do not fit the tool: `a` must be a number, not a string; `b` must be a number, not a string\n  \
        `trunkline tool numbers_add` shows its arguments; `--no-check` sends them anyway\n";
    assert_eq!(folder.run(&call).messages, message, "a pipe gets whole lines");
    for columns in [40, 80, 300] {
        let shown = on_terminal(&folder, columns, &[&call[..], &["--no-color"]].concat(), &[]);
        let text = plain(&shown.text);
        let said = text.get(text.find("error: ").unwrap()..).unwrap();
        let longest = said.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= usize::from(columns).min(120), "{columns}: {longest}\n{said}");
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(said), words(message));
        assert!(said.contains("\n  `trunkline tool numbers_add`"), "{said}");
        if columns == 40 {
            assert!(
                said.starts_with(
                    "error: the arguments do not fit the\n       tool: `a` must be a number"
                ),
                "{said}"
            );
        }
    }
    let shown = on_terminal(&folder, 40, &["call", "words_shuot", "--yes"], &[]);
    assert!(shown.text.contains("\u{1b}[1;31merror\u{1b}[0m: there is no tool"), "{}", shown.text);
}

/// What a file would run is shown as it is: a part of a command must not look like another line.
#[test]
fn commands_to_trust_are_not_wrapped() {
    let path = "x ".repeat(40);
    let entry = json!({ "command": "/bin/sh", "args": ["-c", path] });
    let folder =
        Folder::new().file("trunkline.json", json!({ "mcpServers": { "s": entry } }).to_string());
    let elsewhere = folder.project().join("home");
    // Nothing is trusted there.
    let home = [("HOME", elsewhere.to_str().unwrap())];
    let shown = on_terminal_with(&home, &folder, 60, &["tools"], &[("[y/N] ", "n\n")]);
    assert!(shown.text.contains(&path), "{}", shown.text);
}

/// The quoted line of a file and its mark belong together.
#[test]
fn quoted_lines_of_a_file_are_not_wrapped() {
    let text = format!(
        r#"{{ "mcpServers": {{ "words": {{ "url": "https://example.com/{}", "hedaers": {{}} }} }} }}"#,
        "x".repeat(60)
    );
    let folder = Folder::new().file("trunkline.json", &text);
    let shown = on_terminal(&folder, 60, &["config", "--no-color", "--no-pager"], &[]);
    assert!(shown.text.contains(&format!("1 | {text}\n")), "{}", shown.text);
}

/// Seen: only that of `import` was bold.
#[test]
fn heads_of_tables_are_bold() {
    let folder = folder();
    let config = json!({ "mcpServers": { "docs": { "url": "https://example.com/mcp" } } });
    let remote = Folder::new().file("trunkline.json", config.to_string());
    for (folder, arguments, head) in [
        (&folder, &["status"][..], "server "),
        (&folder, &["trust", "--list"], "file "),
        (&remote, &["login", "--status"], "server "),
    ] {
        let shown = on_terminal(folder, 200, arguments, &[]);
        let bold = format!("\u{1b}[1m{head}");
        assert!(shown.text.contains(&bold), "{arguments:?}: {}", shown.text);
        let shown = on_terminal_with(&[("NO_COLOR", "1")], folder, 200, arguments, &[]);
        assert!(!shown.text.contains("\u{1b}[1m"), "{arguments:?}: {}", shown.text);
        let run = folder.run(arguments);
        assert!(run.output.contains(head) && !run.output.contains('\u{1b}'), "{run}");
    }
}

/// Seen: it was broken inside of a word at the edge of the terminal.
#[test]
fn the_question_for_trust_is_wrapped() {
    let config = json!({ "mcpServers": { "s": { "command": "true" } } });
    let folder = Folder::new().file("sub/.mcp.json", config.to_string());
    let shown = on_terminal(&folder, 40, &["trust", "sub/.mcp.json"], &[("[y/N] ", "y\n")]);
    assert_eq!(shown.code, 0, "{}", shown.text);
    let question = "Start them, now and whenever this file\nhas exactly this content? [y/N] ";
    assert!(plain(&shown.text).contains(question), "{}", shown.text);
}
