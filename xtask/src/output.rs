//! The only module that prints: progress and errors of development commands.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "printing is what a development command is for"
)]

/// Prints one line.
pub(crate) fn say(line: &str) {
    println!("{line}");
}

/// Prints an error so that it stands out from the output of other tools.
pub(crate) fn complain(message: &str) {
    let rule = "=".repeat(80);
    eprintln!("\n{rule}\nerror: {message}\n{rule}");
}
