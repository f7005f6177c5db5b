//! The token of the control API: one per user, in a file that only its owner can read.

use anyhow::{Context as _, Result, ensure};
use trunkline::config::escape_control;
use trunkline_gateway::new_token;

use crate::environment::{PrivateFile, ProcessEnv};

/// The shortest token that is accepted. Shorter ones are not ours.
const MIN_CHARS: usize = 32;

/// The token of the user; makes one the first time.
///
/// # Errors
///
/// If there is no directory for it, or other users can read it.
pub(crate) fn of_user(environment: &ProcessEnv) -> Result<String> {
    let directory = environment.state_directory();
    let directory =
        directory.context("there is no folder for the control token; set XDG_STATE_HOME")?;
    let file = PrivateFile::at(directory.join("control-token"));
    let shown = escape_control(&file.path().to_string_lossy());
    if let Some(token) = read(&file, &shown)? {
        return Ok(token);
    }
    let hold = file.hold().with_context(|| format!("{shown} cannot be written"))?;
    // Another process may have been faster.
    if let Some(token) = read(&file, &shown)? {
        return Ok(token);
    }
    let token = new_token();
    file.replace(&hold, &format!("{token}\n"))
        .with_context(|| format!("{shown} cannot be written"))?;
    Ok(token)
}

fn read(file: &PrivateFile, shown: &str) -> Result<Option<String>> {
    let bytes = file.read().with_context(|| format!("{shown} cannot be read"))?;
    let Some(bytes) = bytes else { return Ok(None) };
    ensure!(!file.is_open_to_others(), "{shown} can be read by others; remove it to get a new one");
    let token = String::from_utf8_lossy(&bytes).trim().to_owned();
    ensure!(token.len() >= MIN_CHARS, "{shown} has no token in it; remove it to get a new one");
    Ok(Some(token))
}
