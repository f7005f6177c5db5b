//! Opens a web page in the browser of the user.

use std::process::{Command, Stdio};
use std::{io, thread};

use url::Url;

/// Opens a page. No shell is involved, and only web addresses are opened: the text comes from a server.
pub(crate) fn open(url: &Url) -> io::Result<()> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(io::Error::other("this is not a web address"));
    }
    let (program, arguments): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("rundll32", &["url.dll,FileProtocolHandler"])
    } else {
        ("xdg-open", &[])
    };
    let mut command = Command::new(program);
    command.args(arguments).arg(url.as_str());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    // It ends when the browser has the address; nothing waits for it.
    thread::spawn(move || child.wait());
    Ok(())
}
