//! The only place that prints: what a development command says while it works.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "printing is what a development command is for"
)]

/// Says one line to whoever runs the command.
pub(crate) fn say(line: &str) {
    println!("{line}");
}

/// Reports a failure where it stands out from the output of the tools around it.
pub(crate) fn complain(message: &str) {
    let rule = "=".repeat(80);
    eprintln!("\n{rule}\nerror: {message}\n{rule}");
}
