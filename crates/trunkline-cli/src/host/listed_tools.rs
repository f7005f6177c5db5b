//! The tools of a caller, for commands that say something about all of them.

use anyhow::Result;
use serde_json::Value;
use trunkline::catalog::ItemKind;
use trunkline::view::View;

use super::caller::CallerOptions;
use super::command_host::CommandHost;
use super::remembered_lists::RememberedLists;
use super::server_lists::ServerLists;
use crate::arguments::{Format, RefreshArguments};
use crate::output::exit::{Failure, Outcome};
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::settings::Settings;

/// The known tools, and the servers whose tools are not known.
pub(crate) struct ListedTools {
    pub(crate) view: View,
    pub(crate) failures: Vec<Failure>,
    pub(crate) remembered: RememberedLists,
    format: Format,
    /// Servers of files that are not trusted yet, which were reported already.
    held: Vec<Failure>,
    has_errors: bool,
    is_configured: bool,
}

impl ListedTools {
    /// Lists the tools of all servers, or of one, from the cache where possible.
    pub(crate) async fn of(
        who: &CallerOptions<'_>,
        (server, arguments): (Option<&str>, &RefreshArguments),
        settings: &Settings,
        hosted: &CommandHost,
        terminal: &mut Terminal,
    ) -> Result<Self> {
        // Reports an unknown agent before anything is started.
        let view = hosted.view_with_warnings(who, terminal)?;
        let servers = match server {
            Some(name) => vec![hosted.find(name)?],
            None => hosted.holders(&view),
        };
        let kinds = &[ItemKind::Tool];
        let ServerLists { remembered, failures } =
            ServerLists::load(arguments, &servers, kinds, hosted, terminal).await;
        Ok(Self {
            view: hosted.view(who)?,
            failures,
            remembered,
            format: settings.format,
            held: hosted.all_held(),
            has_errors: hosted.loaded.has_errors(false),
            is_configured: !hosted.loaded.origins.is_empty(),
        })
    }

    /// Whether the tools of every server are known.
    pub(crate) fn is_complete(&self) -> bool {
        self.failures.is_empty() && self.held.is_empty() && !self.has_errors && self.is_configured
    }

    /// Adds to a document which lists are missing, and which are those of an earlier run.
    pub(crate) fn add_to(&self, json: &mut Value) {
        json["failures"] = self.failures.iter().chain(&self.held).map(Failure::as_json).collect();
        json["remembered"] = self.remembered.names_json();
        json["rememberedAt"] = self.remembered.times_json();
    }

    /// Reports the servers whose tools are missing, and the age of the others.
    pub(crate) fn report(&self, terminal: &Terminal) -> Outcome {
        if self.format == Format::Text {
            terminal.tell(&self.remembered.notice());
        }
        if !self.is_configured && !self.has_errors {
            terminal.tell(report::NOTHING_FOUND);
        }
        self.failures.iter().for_each(|failure| terminal.say(&format!("error: {failure}\n")));
        let is_good = self.failures.is_empty() && self.held.is_empty() && !self.has_errors;
        if is_good { Outcome::Good } else { Outcome::Bad }
    }
}
