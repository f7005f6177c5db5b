//! `trunkline logout`: revokes the tokens of a login, and removes it.

use std::sync::Arc;

use anyhow::Result;
use serde_json::json;
use trunkline::config::escape_control;

use crate::arguments::{Format, LogoutArguments};
use crate::environment::ProcessEnv;
use crate::host::command_host::{ProblemDetail, with_host};
use crate::output::exit::{Failure, Outcome};
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::settings::Settings;

pub(crate) fn run(
    arguments: &LogoutArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    with_host(ProblemDetail::Counted, settings, environment, terminal, async |hosted, terminal| {
        let server = hosted.find(&arguments.server)?;
        let done = hosted.host.logout(server.as_str()).await;
        let done = done.map_err(|error| Failure::unavailable(&error))?;
        let shown = escape_control(server.as_str());
        let issuer = done.issuer.as_deref().unwrap_or("its authorization server");
        let text = match (done.was_logged_in, &done.revoked) {
            (false, _) => format!("There is no login to `{shown}`.\n"),
            (true, Some(Ok(()))) => {
                format!("Logged out of `{shown}`: {issuer} has revoked the tokens.\n")
            }
            (true, Some(Err(error))) => format!(
                "The login to `{shown}` is removed, but {issuer} could not be told: {}.\n  \
                 Its tokens stay valid there until they expire.\n",
                escape_control(error.message())
            ),
            (true, None) => format!(
                "The login to `{shown}` is removed. {issuer} offers no revocation: its tokens stay valid \
                 there until they expire.\n"
            ),
        };
        terminal.tell(&text);
        if settings.format != Format::Text {
            let document = json!({
                "server": server.as_str(),
                "removed": done.was_logged_in,
                "revoked": done.revoked.as_ref().map(Result::is_ok),
            });
            terminal.print(&report::document(&document, settings.format))?;
        }
        Ok(Outcome::Good)
    })
}
