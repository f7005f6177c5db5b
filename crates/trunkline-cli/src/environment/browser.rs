//! Opens a web page in the browser of the user.

use std::process::{Command, Stdio};
use std::{io, thread};

use url::Url;

/// Variables with keys of the store for secrets.
const SECRET_VARIABLES: [&str; 3] =
    ["TRUNKLINE_SECRETS_PASSPHRASE", "TRUNKLINE_SECRETS_KEY", "TRUNKLINE_SECRETS_KEY_FILE"];

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
    // The browser runs pages of others, and needs no key of the store.
    for variable in SECRET_VARIABLES {
        command.env_remove(variable);
    }
    let mut child = command.spawn()?;
    // It ends when the browser has the address; nothing waits for it.
    thread::spawn(move || child.wait());
    Ok(())
}
