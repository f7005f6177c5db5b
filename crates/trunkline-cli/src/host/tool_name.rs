//! Finds the exposed name of a tool or prompt that is named as people do: by its server and the server's own
//! name, or without the prefix.

use anyhow::Result;
use trunkline::catalog::{Entry, ItemKind};
use trunkline::config::{closest_match, escape_control};
use trunkline::error::Error;
use trunkline::name::ServerName;
use trunkline::view::View;

use super::caller::CallerOptions;
use super::command_host::CommandHost;
use super::resolve::{TimeLimit, owners};
use crate::output::exit::{Failure, FailureKind};
use crate::output::report::plural;
use crate::output::terminal::Terminal;

/// Names that one message lists.
const MAX_NAMED: usize = 12;

/// A name as it is typed, and the server if it is named too.
pub(crate) struct TypedName<'a> {
    pub(crate) kind: ItemKind,
    pub(crate) server: Option<&'a str>,
    pub(crate) name: &'a str,
    /// The time limit of the command.
    time: TimeLimit,
}

impl<'a> TypedName<'a> {
    /// Takes the name from the beginning of a list of words: `TOOL …` or `SERVER TOOL …`. Returns the other words,
    /// which are arguments.
    pub(crate) fn split(
        kind: ItemKind,
        words: &'a [String],
        server: Option<&'a str>,
        hosted: &CommandHost,
    ) -> (Self, &'a [String]) {
        let time = TimeLimit::new(None);
        match (server, words) {
            (None, [first, second, rest @ ..])
                if is_server(hosted, kind, first) && !second.contains('=') && second != "-" =>
            {
                (Self { kind, server: Some(first), name: second, time }, rest)
            }
            (server, [name, rest @ ..]) => (Self { kind, server, name, time }, rest),
            (server, []) => (Self { kind, server, name: "", time }, words),
        }
    }

    /// Limits the time of its search.
    #[must_use]
    pub(crate) fn within(self, time: TimeLimit) -> Self {
        Self { time, ..self }
    }

    /// The exposed name. A name that cannot be found is returned as it is, for the error of its search.
    pub(crate) async fn exposed(
        &self,
        hosted: &CommandHost,
        who: &CallerOptions<'_>,
        terminal: &mut Terminal,
    ) -> Result<String> {
        let view = hosted.view_with_warnings(who, terminal)?;
        match self.server {
            Some(server) => self.of_server(&hosted.find(server)?, hosted, who, terminal).await,
            None if view.route(self.kind, self.name).is_ok() => Ok(self.name.to_owned()),
            None if !owners(hosted, self.name).is_empty() => Ok(self.name.to_owned()),
            None if hosted.loaded.config.server(self.name).is_some() => {
                Err(self.is_server().into())
            }
            None => self.without_prefix(view, hosted, who, terminal).await,
        }
    }

    /// The exposed name of an item of a server.
    async fn of_server(
        &self,
        server: &ServerName,
        hosted: &CommandHost,
        who: &CallerOptions<'_>,
        terminal: &mut Terminal,
    ) -> Result<String> {
        if let Some(held) = hosted.held(server.as_str()) {
            return Err(held.into());
        }
        let servers = [server.clone()];
        if let Some(found) = self.own_name(&hosted.view(who)?, Some(server)).pop() {
            return Ok(found);
        }
        let failures = self.time.refresh(&servers, &[self.kind], hosted, terminal).await?;
        let view = hosted.view(who)?;
        if let Some(found) = self.own_name(&view, Some(server)).pop() {
            return Ok(found);
        }
        if let Some(error) = failures.first() {
            return Err(Failure::unavailable(error).into());
        }
        // The name may be an exposed one, or be hidden: the search for it says so.
        let exposed = view.catalog().entries(self.kind).iter().find(|entry| {
            entry.server().name == *server
                && (entry.exposed() == self.name || entry.name() == self.name)
        });
        match exposed {
            Some(entry) => Ok(entry.exposed().to_owned()),
            None => Err(self.unknown(&view, server).into()),
        }
    }

    fn unknown(&self, view: &View, server: &ServerName) -> Failure {
        let (kind, list) = (self.kind.as_str(), self.kind.list_key());
        let (server, name) = (escape_control(server.as_str()), escape_control(self.name));
        let entries =
            view.entries(self.kind).filter(|entry| entry.server().name.as_str() == server);
        let near = closest_match(self.name, entries.map(Entry::name));
        let message = match near {
            Some(near) => {
                format!("server `{server}` has no {kind} `{name}`; did you mean `{near}`?")
            }
            None => format!("server `{server}` has no {kind} `{name}`"),
        };
        let failure = Failure::new(FailureKind::Unknown, message);
        failure
            .suggesting(near.map(str::to_owned).into_iter().collect())
            .with_hint(format!("`trunkline {list} {server}` lists its {list}"))
    }

    /// The exposed name of the only item that its server calls like this.
    async fn without_prefix(
        &self,
        view: View,
        hosted: &CommandHost,
        who: &CallerOptions<'_>,
        terminal: &mut Terminal,
    ) -> Result<String> {
        let mut found = self.own_name(&view, None);
        if found.len() < 2 || self.kind != ItemKind::Tool {
            let failures = self.ask_servers(&view, hosted, who, terminal).await?;
            found = self.own_name(&hosted.view(who)?, None);
            // If there is none, the search for the name reports the failures.
            if let ([one], 1..) = (found.as_slice(), failures.len()) {
                terminal.warn(&format!(
                    "`{one}` is used; {} cannot be asked, and may have a {} of this name too\n  \
                     write `{one}` to ask no other server",
                    plural(failures.len(), "server"),
                    self.kind.as_str(),
                    one = escape_control(one),
                ));
            }
        }
        match found.as_slice() {
            [] => Ok(self.hidden(hosted, who)?.unwrap_or_else(|| self.name.to_owned())),
            [one] => Ok(one.clone()),
            several => {
                let (kind, name) = (self.kind.as_str(), escape_control(self.name));
                let forms: Vec<_> =
                    several.iter().take(MAX_NAMED).map(|form| escape_control(form)).collect();
                let more = match several.len() - forms.len() {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let message =
                    format!("several servers have a {kind} `{name}`: {}{more}", forms.join(", "));
                let failure = Failure::new(FailureKind::Unknown, message);
                Err(failure
                    .suggesting(several.to_vec())
                    .with_hint("give one of these names")
                    .into())
            }
        }
    }

    /// Asks the servers that may have an item of this name. Returns the errors of those that fail.
    ///
    /// Servers with cached tools are not asked. Cached prompts only say which server to ask first: unless the answer is
    /// one prompt, all servers are asked, because an old list may lack it.
    async fn ask_servers(
        &self,
        view: &View,
        hosted: &CommandHost,
        who: &CallerOptions<'_>,
        terminal: &mut Terminal,
    ) -> Result<Vec<Error>> {
        let holders = hosted.holders(view);
        let cached = hosted.cached(&holders, &[self.kind]);
        let is_tool = self.kind == ItemKind::Tool;
        // Also if one is known: a server that has never been asked may have another of this name.
        let mut asked = holders.clone();
        asked.retain(|server| {
            !cached.contains(server) || (!is_tool && !self.own_name(view, Some(server)).is_empty())
        });
        let failures = self.time.refresh(&asked, &[self.kind], hosted, terminal).await?;
        if is_tool || self.own_name(&hosted.view(who)?, None).len() == 1 {
            return Ok(failures);
        }
        Ok(self.time.refresh(&holders, &[self.kind], hosted, terminal).await?)
    }

    /// The exposed name of a hidden item that its server calls like this: the search for it says which rule hides it.
    fn hidden(&self, hosted: &CommandHost, who: &CallerOptions<'_>) -> Result<Option<String>> {
        let view = hosted.view(who)?;
        let mut hidden = view.hidden(self.kind).filter(|(it, _)| it.name() == self.name);
        Ok(hidden.next().map(|(entry, _)| entry.exposed().to_owned()))
    }

    /// The error for a server in the place of an item.
    fn is_server(&self) -> Failure {
        let (kind, list, name) =
            (self.kind.as_str(), self.kind.list_key(), escape_control(self.name));
        let failure =
            Failure::new(FailureKind::Unknown, format!("`{name}` is a server, and not a {kind}"));
        failure.with_hint(format!(
            "`trunkline {list} {name}` lists its {list}; its own name for one follows"
        ))
    }

    /// The exposed names of visible items with this name at their servers.
    fn own_name(&self, view: &View, server: Option<&ServerName>) -> Vec<String> {
        let is_meant = |name: &ServerName| server.is_none_or(|it| it == name);
        let entries = view.entries(self.kind);
        entries
            .filter(|entry| entry.name() == self.name && is_meant(&entry.server().name))
            .map(|entry| entry.exposed().to_owned())
            .collect()
    }
}

/// Whether a word names a server, and not an item that is exposed under the same name.
fn is_server(hosted: &CommandHost, kind: ItemKind, word: &str) -> bool {
    hosted.loaded.config.server(word).is_some() && hosted.host.catalog().get(kind, word).is_none()
}
