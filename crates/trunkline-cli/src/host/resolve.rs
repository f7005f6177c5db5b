//! Resolves a name on the command line to an item: which servers are started, and the error if
//! there is none.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::time::timeout;
use trunkline::call::CallError;
use trunkline::catalog::ItemKind;
use trunkline::config::{Provenance, escape_control};
use trunkline::connection::{Connection, State};
use trunkline::error::Error;
use trunkline::host::HostCaller;
use trunkline::name::{ServerName, qualified_uri};
use trunkline::policy::{Reason, Toggle, Visibility};
use trunkline::view::{RouteError, View};

use super::caller::CallerOptions;
use super::command_host::{CommandHost, report_failures};
use crate::arguments::quoted;
use crate::output::exit::{Failure, FailureKind};
use crate::output::report;
use crate::output::terminal::Terminal;

/// Limit of servers named in one message.
const MAX_NAMED: usize = 3;

/// The kinds of items that a URI may refer to.
const ADDRESSED_KINDS: [ItemKind; 2] = [ItemKind::Resource, ItemKind::ResourceTemplate];

/// The time limit of a command for everything about a call: starts, lists and the call itself.
#[derive(Clone, Copy)]
pub(crate) struct TimeLimit {
    /// The `--timeout` option; without it only the configured timeouts apply.
    pub(crate) limit: Option<Duration>,
    pub(crate) since: Instant,
}

impl TimeLimit {
    /// A limit that starts now.
    pub(crate) fn new(limit: Option<Duration>) -> Self {
        Self { limit, since: Instant::now() }
    }

    /// Runs some work within the limit; `None` if it is exceeded.
    pub(crate) async fn bound<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        match self.limit {
            Some(limit) => timeout(limit.saturating_sub(self.since.elapsed()), work).await.ok(),
            None => Some(work.await),
        }
    }

    /// Refreshes the lists of servers within the limit.
    pub(crate) async fn refresh(
        &self,
        asked: &[ServerName],
        kinds: &[ItemKind],
        hosted: &CommandHost,
        terminal: &mut Terminal,
    ) -> Result<Vec<Error>, Failure> {
        let gathered = hosted.refresh(asked, kinds, terminal);
        let Some(failures) = self.bound(gathered).await else {
            terminal.clear_progress();
            return Err(self.too_slow(asked, kinds, hosted));
        };
        Ok(failures)
    }

    /// The error for servers that did not list their items within the limit, with their state.
    fn too_slow(&self, asked: &[ServerName], kinds: &[ItemKind], hosted: &CommandHost) -> Failure {
        let connections = asked.iter().filter_map(|it| hosted.host.servers().get(it.as_str()));
        let is_late = |it: &Connection| kinds.iter().any(|kind| !it.is_fresh(*kind));
        let mut late: Vec<_> = connections.clone().filter(|it| is_late(it)).collect();
        if late.is_empty() {
            // The lists have come just now, too late to be used.
            late = connections.collect();
        }
        let names: Vec<_> = late
            .iter()
            .take(MAX_NAMED)
            .map(|it| escape_control(it.server().name.as_str()))
            .collect();
        let servers = if late.len() == 1 { "server" } else { "servers" };
        let others = if late.len() > names.len() { " and others" } else { "" };
        let is_ready = late.iter().all(|it| it.status().state == State::Ready);
        let kinds: Vec<_> = kinds.iter().map(|kind| kind.list_key()).collect();
        let what = match is_ready {
            true => format!("did not list {}", kinds.join(" and ")),
            false => format!("{} not ready", if late.len() == 1 { "was" } else { "were" }),
        };
        let names = names.join("`, `");
        let limit = self.limit.unwrap_or_default();
        let message = format!("{servers} `{names}`{others} {what} within {limit:?} (`--timeout`)");
        let failure = Failure::new(FailureKind::NoAnswer, message);
        let failure = match late.as_slice() {
            [one] => failure.of(&one.server().name),
            _ => failure,
        };
        failure.with_hint(
            "give it more time, or see with `trunkline status` how long it takes to start",
        )
    }
}

/// The search for an item on behalf of a caller.
pub(crate) struct NameSearch<'a> {
    pub(crate) hosted: &'a CommandHost,
    pub(crate) who: &'a CallerOptions<'a>,
    pub(crate) name: &'a str,
    /// The only server to search.
    pub(crate) server: Option<ServerName>,
    /// The time limit of the command.
    pub(crate) time: TimeLimit,
}

/// A resolved name.
pub(crate) struct ResolvedName {
    /// The caller, who sees the item.
    pub(crate) caller: HostCaller,
    /// A view that contains the item.
    pub(crate) view: View,
    /// The server of the item.
    pub(crate) server: ServerName,
}

/// The result of one search.
struct SearchAttempt {
    kind: ItemKind,
    view: View,
    /// Errors of servers that are unavailable.
    failures: Vec<Error>,
    /// The server of the item, if the name resolves.
    led: Result<ServerName, ResolveError>,
}

/// The reason why a name does not resolve.
enum ResolveError {
    /// The caller sees no item with that name.
    Unknown {
        failure: Failure,
        /// Whether other servers should be searched for similar names.
        is_strange: bool,
    },
    /// The item exists, but it is hidden or unavailable.
    Denied(Failure),
}

impl NameSearch<'_> {
    /// Resolves the name of a tool or prompt. Starts only the servers that can have a visible item
    /// of that name. A cached item that is hidden by its name is reported as hidden.
    pub(crate) async fn named(
        &self,
        kind: ItemKind,
        terminal: &mut Terminal,
    ) -> Result<ResolvedName> {
        // Reports an unknown agent before anything is started.
        let view = self.hosted.view_with_warnings(self.who, terminal)?;
        let mut owners = owners(self.hosted, self.name);
        if let Some(held) = self.held_owner(&owners) {
            return Err(held.into());
        }
        let chance = |server: &ServerName| view.could_contain_name(server, self.name);
        let taken_away: Vec<_> =
            owners.iter().filter(|it| chance(it) == Visibility::Excluded).cloned().collect();
        if let Err(none @ RouteError::Hidden { .. }) = view.route(kind, self.name)
            && owners.iter().all(|it| chance(it) != Visibility::Possible)
            && let ResolveError::Denied(failure) = self.not_found(&view, none)
        {
            return Err(failure.into());
        }
        owners.retain(|server| chance(server) == Visibility::Possible);
        if !owners.is_empty() {
            let mut look = self.attempt(kind, &owners, terminal).await?;
            if look.led.is_err()
                && let Some(error) = look.failures.pop()
            {
                report_failures(&look.failures, terminal);
                return Err(Failure::unavailable(&error).into());
            }
            let is_strange =
                matches!(look.led, Err(ResolveError::Unknown { is_strange: true, .. }));
            if !is_strange || self.switched_off().is_some() {
                return self.finish(look);
            }
        }
        // Other servers cannot have it, but may have a similar name. They are started for that only
        // if the name belongs to no server; a name with a known prefix is compared with the known
        // items.
        let mut others = self.hosted.holders(&view);
        let is_ownerless = self::owners(self.hosted, self.name).is_empty();
        let is_asked = |it: &ServerName| is_ownerless && !taken_away.contains(it);
        others.retain(|server| is_asked(server));
        let look = self.attempt(kind, &self.unknown(others, &[kind]), terminal).await?;
        if is_ownerless && let Err(ResolveError::Unknown { failure, .. }) = &look.led {
            let held = || self.held_servers(&view).into_iter().next();
            if let Some(silent) = silent_server(self.name, &look.failures, held, terminal) {
                return Err(silent.with_suggestions_of(failure).into());
            }
        }
        self.finish(look)
    }

    /// The errors of servers that could have items in a view and are not trusted.
    fn held_servers(&self, view: &View) -> Vec<Failure> {
        let mut held = self.hosted.all_held();
        held.retain(|it| it.server().is_some_and(|server| view.could_contain(server)));
        held
    }

    /// The servers without cached lists of these kinds.
    pub(crate) fn unknown(&self, servers: Vec<ServerName>, kinds: &[ItemKind]) -> Vec<ServerName> {
        let remembered = self.hosted.cached(&servers, kinds);
        servers.into_iter().filter(|it| !remembered.contains(it)).collect()
    }

    /// Resolves a URI. It does not identify its server, so every server may have it.
    pub(crate) async fn address(&self, terminal: &mut Terminal) -> Result<ResolvedName> {
        let view = self.hosted.view_with_warnings(self.who, terminal)?;
        let holders = match &self.server {
            Some(server) => vec![server.clone()],
            None => self.hosted.holders(&view),
        };
        if let Some(server) = self.cached_holder(&view, &holders) {
            let mut asked = self.unknown(holders.clone(), &ADDRESSED_KINDS);
            asked.push(server.clone());
            let look = self.attempt_address(&asked, terminal).await?;
            if look.led.as_ref().is_ok_and(|found| *found == server) {
                return self.finish(look);
            }
        }
        let SearchAttempt { view, failures, led, .. } =
            self.attempt_address(&holders, terminal).await?;
        if let Err(ResolveError::Unknown { .. }) = &led
            && let Some(silent) =
                silent_server(self.name, &failures, || self.held_holder(), terminal)
        {
            return Err(silent.into());
        }
        self.finish(SearchAttempt { kind: ItemKind::Resource, view, failures, led })
    }

    /// The server whose cached list has the URI. It is asked alone, and all others if it does not have the resource any
    /// more. A template says too little: another server may have a resource with the URI by now.
    fn cached_holder(&self, view: &View, holders: &[ServerName]) -> Option<ServerName> {
        let found = view.route_resource(self.name).ok()?.entry;
        let cached = self.hosted.cached(holders, &ADDRESSED_KINDS);
        let server = &found.server().name;
        (found.kind() == ItemKind::Resource && cached.contains(server)).then(|| server.clone())
    }

    async fn attempt_address(
        &self,
        asked: &[ServerName],
        terminal: &mut Terminal,
    ) -> Result<SearchAttempt> {
        let failures = self.refresh(asked, &ADDRESSED_KINDS, terminal).await?;
        let view = self.hosted.view(self.who)?;
        let led = match view.route_resource(&self.address_in(&view)) {
            Ok(found) => Ok(found.entry.server().name.clone()),
            Err(none) => Err(self.not_found(&view, none)),
        };
        Ok(SearchAttempt { kind: ItemKind::Resource, view, failures, led })
    }

    /// The URI as the view knows it. With a given server, others were not listed, so that only the
    /// qualified form may resolve.
    pub(crate) fn address_in(&self, view: &View) -> Cow<'_, str> {
        match (&self.server, view.route_resource(self.name)) {
            (Some(server), Err(RouteError::Unasked { .. })) => {
                qualified_uri(server, self.name).into()
            }
            _ => self.name.into(),
        }
    }

    /// The error if a server that could have the URI is not trusted.
    fn held_holder(&self) -> Option<Failure> {
        match &self.server {
            Some(server) => self.hosted.held(server.as_str()),
            None => self.hosted.all_held().into_iter().next(),
        }
    }

    /// The error if none of the servers that could have the name is trusted.
    fn held_owner(&self, owners: &[ServerName]) -> Option<Failure> {
        let held = owners.iter().map(|owner| self.hosted.held(owner.as_str()));
        held.collect::<Option<Vec<_>>>()?.into_iter().next()
    }

    async fn attempt(
        &self,
        kind: ItemKind,
        asked: &[ServerName],
        terminal: &mut Terminal,
    ) -> Result<SearchAttempt> {
        let failures = self.refresh(asked, &[kind], terminal).await?;
        let view = self.hosted.view(self.who)?;
        let led = match view.route(kind, self.name) {
            Ok(entry) => Ok(entry.server().name.clone()),
            Err(none) => Err(self.not_found(&view, none)),
        };
        Ok(SearchAttempt { kind, view, failures, led })
    }

    /// Refreshes the lists of servers within the time limit.
    async fn refresh(
        &self,
        asked: &[ServerName],
        kinds: &[ItemKind],
        terminal: &mut Terminal,
    ) -> Result<Vec<Error>> {
        Ok(self.time.refresh(asked, kinds, self.hosted, terminal).await?)
    }

    fn not_found(&self, view: &View, none: RouteError<'_>) -> ResolveError {
        let (kind, suggestions) = match &none {
            RouteError::Unknown { kind, suggestions, .. } => (kind, suggestions),
            RouteError::Ambiguous { forms, .. } => {
                let forms = forms.clone();
                return ResolveError::Denied(
                    Failure::from(CallError::from(none)).suggesting(forms),
                );
            }
            RouteError::Unlisted { suggestions, servers, .. } => {
                let forms = servers.iter().map(|server| qualified_uri(server, self.name));
                let forms: Vec<_> = suggestions.iter().cloned().chain(forms).collect();
                let failure = Failure::from(CallError::from(none)).suggesting(forms);
                return ResolveError::Unknown { failure, is_strange: false };
            }
            RouteError::Unasked { .. } => {
                let failure = Failure::from(CallError::from(none));
                return ResolveError::Unknown { failure, is_strange: false };
            }
            RouteError::Hidden { reason, .. } => {
                let hint = how_to_see(reason);
                return ResolveError::Denied(Failure::from(CallError::from(none)).with_hint(hint));
            }
            RouteError::Denied(_) => return ResolveError::Denied(CallError::from(none).into()),
        };
        let is_strange = suggestions.is_empty() && !exists(view, *kind, self.name);
        let suggestions = suggestions.clone();
        let failure = Failure::from(CallError::from(none)).suggesting(suggestions);
        ResolveError::Unknown { failure, is_strange }
    }

    fn finish(&self, look: SearchAttempt) -> Result<ResolvedName> {
        match look.led {
            Ok(server) => {
                Ok(ResolvedName { caller: self.hosted.caller(self.who)?, view: look.view, server })
            }
            Err(ResolveError::Denied(failure)) => Err(failure.into()),
            Err(ResolveError::Unknown { failure, .. }) => {
                let hint = self.hidden_reason();
                let hint = hint.unwrap_or_else(|| self.where_to_look(look.kind, &look.view));
                Err(failure.with_hint(hint).into())
            }
        }
    }

    /// A hint on the command that shows more about an unknown name: `explain` if a rule may hide
    /// it, else the list of what there is.
    fn where_to_look(&self, kind: ItemKind, view: &View) -> String {
        let only = self.server.as_ref().map(|it| format!(" --server {}", quoted(it.as_str())));
        let (only, who) = (only.unwrap_or_default(), self.who.as_flags());
        // Tools are known of every server that has been asked for anything.
        if kind == ItemKind::Prompt && view.route(ItemKind::Tool, self.name).is_ok() {
            return format!("it is a tool: `trunkline call {}{who}` calls it", quoted(self.name));
        }
        let is_hidden = self.is_hidden_by_name(view);
        if !is_hidden && !self.who.is_limited() {
            let list = kind.list_key();
            return format!("`trunkline {list}{only}{who}` lists the {list}");
        }
        let rule = if is_hidden { "if there is one, a rule hides it: " } else { "" };
        format!("{rule}`trunkline explain {}{only}{who}` says more", quoted(self.name))
    }

    /// Whether a rule hides the name on every server that could have it.
    fn is_hidden_by_name(&self, view: &View) -> bool {
        let owners = owners(self.hosted, self.name);
        let is_hidden =
            |it: &ServerName| view.could_contain_name(it, self.name) != Visibility::Possible;
        !owners.is_empty() && owners.iter().all(is_hidden)
    }

    /// The reason in the configuration why no server has the name, if there is one.
    pub(crate) fn hidden_reason(&self) -> Option<String> {
        match self.switched_off() {
            Some(server) => Some(match self.hosted.held(server.as_str()) {
                Some(held) => held.to_string(),
                None => self.enable_hint(&server),
            }),
            None => self
                .off_here()
                .or_else(|| self.hosted.broken_owner(self.name))
                .or_else(|| report::why_no_server(&self.hosted.loaded, self.who.config_flag())),
        }
    }

    /// A hint on a server that is switched off, with the place to change.
    fn enable_hint(&self, name: &ServerName) -> String {
        let shown = escape_control(name.as_str());
        let Some(server) = self.hosted.loaded.config.server(name.as_str()) else {
            return format!("its server `{shown}` is switched off");
        };
        let Provenance { location, switched_by, .. } = &server.provenance;
        let place = switched_by.as_ref().map_or(location, |(_, location)| location);
        let place = escape_control(&place.to_string());
        format!("its server `{shown}` is switched off; enable it at {place}")
    }

    /// The reason if the server of the name is disabled in the conversation.
    fn off_here(&self) -> Option<String> {
        let view = self.hosted.view(self.who).ok()?;
        let owner = view.catalog().namespaces().owner(self.name)?;
        let is_off = view.caller().toggles().get(owner) == Toggle::Off;
        is_off.then(|| {
            format!("its server `{owner}` is switched off in this project or conversation")
        })
    }

    /// The server of the name, if it is disabled.
    fn switched_off(&self) -> Option<ServerName> {
        let catalog = self.hosted.host.catalog();
        let owner = catalog.namespaces().owner(self.name)?;
        let server = self.hosted.loaded.config.server(owner.as_str())?;
        (!server.enabled).then(|| owner.clone())
    }
}

/// A hint on how to see a hidden item, by the configuration or for one run.
fn how_to_see(reason: &Reason<'_>) -> String {
    let hint = reason.hint().unwrap_or("`trunkline explain` says more");
    match reason.needed_access() {
        Some(access) => {
            let access = access.as_str();
            format!("to see it: {hint}, or give `--access {access}` for one run")
        }
        None => format!("to see it: {hint}"),
    }
}

/// The error if a server that could have the item did not respond.
fn unavailable_servers(name: &str, error: &Error) -> Failure {
    let failure = Failure::unavailable(error);
    match error.server() {
        Some(server) => failure.saying(format!(
            "server `{server}` could not be asked whether it has `{name}`: {}",
            error.message()
        )),
        None => failure,
    }
}

/// The error if a server that could have the item did not respond, or is not trusted. Reports the others.
pub(crate) fn silent_server(
    name: &str,
    failures: &[Error],
    held: impl FnOnce() -> Option<Failure>,
    terminal: &Terminal,
) -> Option<Failure> {
    match failures {
        [others @ .., last] => {
            report_failures(others, terminal);
            Some(unavailable_servers(name, last))
        }
        [] => held(),
    }
}

/// Whether an item with this name exists, visible or not.
fn exists(view: &View, kind: ItemKind, name: &str) -> bool {
    match kind {
        ItemKind::Tool | ItemKind::Prompt => view.catalog().get(kind, name).is_some(),
        ItemKind::Resource | ItemKind::ResourceTemplate => !view.catalog().resolve(name).is_empty(),
    }
}

/// The servers that would own a name. Several may have the same prefix.
pub(crate) fn owners(hosted: &CommandHost, name: &str) -> Vec<ServerName> {
    let catalog = hosted.host.catalog();
    let spaces = catalog.namespaces();
    let Some(owner) = spaces.owner(name) else { return Vec::new() };
    let prefix = spaces.prefix(owner);
    let servers = hosted.loaded.config.servers().map(|server| &server.name);
    servers.filter(|server| spaces.prefix(server) == prefix).cloned().collect()
}
