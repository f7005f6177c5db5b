//! `*/list` requests: the items of all servers that a caller may see, in pages.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use trunkline::call::CallError;
use trunkline::connection::{Connection, State};
use trunkline::host::{ResolvedRequest, WaitFor};
use trunkline::item::ItemKind;
use trunkline::message::{Raw, RpcError};
use trunkline::name::ServerName;
use trunkline::principal::{Requester, Slot};
use trunkline::protocol::{Era, meta};
use trunkline::view::View;

use super::availability::unavailable_servers;
use super::gateway::Gateway;
use super::list_cache::{ListPage, PageKey};
use super::list_pages::{Cursors, ListPageBody, PageStart};
use crate::client::caller::Caller;
use crate::client::tool_revisions::ShownRevisions;
use crate::request::errors::{handler_panicked, shutting_down};
use crate::request::translate::{self, server_info};

/// How long a failed server is not retried for another list request.
const PAUSE: Duration = Duration::from_secs(5);

/// Largest `ttlMs` of a list, in milliseconds.
const LONGEST_TTL: u64 = 60_000;

impl Gateway {
    /// The page of a list that a request's cursor selects, for this caller.
    pub(crate) async fn list(
        self: &Arc<Self>,
        caller: &Caller,
        kind: ItemKind,
        params: &Raw,
    ) -> Result<Raw, RpcError> {
        let cursors = Cursors { codec: &self.codec, owner: caller.identity.as_owner(), kind };
        let start = cursors.open(params)?;
        self.refresh_lists(&[kind]).await;
        let revision = self.tool_revision();
        let view = self.view(caller)?;
        let last = self.tool_revision();
        let first = start.as_ref().map_or(revision, |start| start.revision);
        let page = self.page(caller, &view, (kind, start.map(|start| start.after))).await?;
        if kind == ItemKind::Tool {
            // The view's catalog is not older than the first page's revision, and not newer than
            // the last.
            let shown = ShownRevisions { first, last };
            let shows_tools = view.surface().direct().next().is_some();
            self.record_shown(caller, shows_tools.then_some(shown));
            self.forget_listed(caller, &view);
        }
        let next = |last: &String| PageStart { revision: first, after: last.clone() };
        let cursor = page.last.as_ref().map(|last| Raw::from_string(&cursors.close(&next(last))));
        let missing = unavailable_servers(&self.host, &view, &caller.identity.scope);
        Ok(self.with_notes(caller.era(), (&page.list, cursor), missing))
    }

    pub(crate) fn tool_revision(&self) -> u64 {
        self.tool_revisions.newest(|| self.host.catalog())
    }

    /// Records which tools a client has been shown, until its next list. `None` if the list has only
    /// meta tools.
    fn record_shown(&self, caller: &Caller, shown: Option<ShownRevisions>) {
        match &caller.session {
            Some(session) => session.set_shown_revisions(shown),
            None => {
                let client = caller.list_id();
                let owner = caller.identity.principal.of_client(&client);
                self.last_lists.note(&client, &owner, shown);
            }
        }
    }

    /// Fails if the request calls a tool that has changed since the client last listed the tools,
    /// so that the tool that runs is the one that was shown.
    pub(crate) fn require_unchanged<'v>(
        &self,
        caller: &Caller,
        (view, is_meta): (&'v View, bool),
        found: ResolvedRequest<'v>,
    ) -> Result<ResolvedRequest<'v>, CallError> {
        let entry = found.entry();
        if entry.kind() != ItemKind::Tool {
            return Ok(found);
        }
        match self.is_as_meta_tool_showed(caller, is_meta, (view, entry)) {
            Some(true) => return Ok(found),
            Some(false) => return Err(CallError::changed_since_described(entry)),
            None => {}
        }
        let shown = match &caller.session {
            Some(session) => session.shown(),
            None => self.last_lists.of(&caller.list_id()),
        };
        let Some(shown) = shown else { return Ok(found) };
        let newest = || self.host.catalog();
        match self.tool_revisions.is_unchanged(newest, entry.exposed(), shown) {
            true => Ok(found),
            false if is_meta => Err(CallError::changed_since_described(entry)),
            false => Err(CallError::changed(entry)),
        }
    }

    /// A page of a list, from the cache if possible. It is built on a blocking thread and in the
    /// turn of its principal, because a long list takes CPU time from other requests.
    async fn page(
        &self,
        caller: &Caller,
        view: &View,
        (kind, after): (ItemKind, Option<String>),
    ) -> Result<Arc<ListPage>, RpcError> {
        let (scope, era) = (caller.identity.scope.clone(), caller.era());
        let (key, version) = (PageKey { scope, kind, era, after }, view.version());
        if let Some(page) = self.pages.get(&key, &version) {
            return Ok(page);
        }
        let slot = self.turn(caller).await?;
        // Another request may have built it meanwhile.
        if let Some(page) = self.pages.get(&key, &version) {
            return Ok(page);
        }
        let (view, after, describes) =
            (view.clone(), key.after.clone(), self.host.description_style());
        let made = spawn_blocking(move || {
            let page = ListPageBody::of(&view, kind, after.as_deref(), |definition| {
                translate::definition(era, view.definition(definition, describes))
            });
            let list =
                Raw::empty_object().with(kind.list_key(), &Raw::from_items(&page.definitions));
            let last = page.last.map(str::to_owned);
            // The slot is released when the page is built: the request may be dropped before.
            drop(slot);
            ListPage { list, last }
        });
        let page = made.await.map_err(|_| handler_panicked())?;
        Ok(self.pages.insert(key, version, page))
    }

    /// Waits for the turn of the caller's principal to use CPU time for long lists.
    pub(crate) async fn turn(&self, caller: &Caller) -> Result<Slot, RpcError> {
        let Requester { principal, .. } = caller.requester();
        tokio::select! {
            slot = self.pages.slots.acquire(&principal) => Ok(slot),
            () = self.host.shutdown_started() => Err(shutting_down()),
        }
    }

    /// Appends cursor, cache hints and `_meta` to a page, without parsing it.
    fn with_notes(&self, era: Era, page: (&Raw, Option<Raw>), missing: Vec<Value>) -> Raw {
        let (list, cursor) = page;
        // A server that needs a configuration change to recover is announced when that happens.
        let may_return = missing.iter().any(|server| server["retry"] == true);
        let ttl = if may_return { 0 } else { self.ttl() };
        let mut meta = match era {
            Era::Modern => json!({ meta::SERVER_INFO: server_info() }),
            Era::Legacy => json!({}),
        };
        if !missing.is_empty() {
            meta[meta::UNAVAILABLE] = missing.into();
        }
        let is_empty = meta.as_object().is_some_and(serde_json::Map::is_empty);
        let mut members: Vec<(&str, Raw)> = Vec::new();
        members.extend(cursor.map(|cursor| ("nextCursor", cursor)));
        if era == Era::Modern {
            members.push(("resultType", Raw::from_string("complete")));
            members.push(("ttlMs", Raw::from_number(ttl)));
            members.push(("cacheScope", Raw::from_string("private")));
        }
        members.extend((!is_empty).then(|| ("_meta", Raw::from_value(&meta))));
        let members: Vec<_> = members.iter().map(|(key, value)| (*key, value)).collect();
        list.append_members(&members)
    }

    /// The `ttlMs` of a list: the shortest `tools_ttl` of all servers.
    fn ttl(&self) -> u64 {
        let config = self.host.config();
        let ttls = config.servers().map(|server| server.behaviour.tools_ttl.as_millis());
        let shortest = ttls.min().unwrap_or(0);
        u64::try_from(shortest).unwrap_or(u64::MAX).min(LONGEST_TTL)
    }

    /// Refreshes lists that are missing or stale, and waits until the catalog contains them, at
    /// most for the grace period.
    pub(crate) async fn refresh_lists(&self, kinds: &[ItemKind]) {
        self.refresh_lists_with(kinds, WaitFor::Grace).await;
    }

    /// The same with another wait policy.
    pub(crate) async fn refresh_lists_with(&self, kinds: &[ItemKind], patience: WaitFor) {
        let connections = self.host.servers().connections();
        let wanted = connections.iter().filter(|it| self.is_worth_refreshing(it, kinds));
        let wanted: Vec<_> = wanted.map(|it| it.server().name.clone()).collect();
        // Also with no servers: a list received just now may not be in the catalog yet.
        self.host.refresh_servers(&wanted, kinds, patience).await;
    }

    /// Whether a server may have newer lists than the known ones.
    pub(crate) fn is_worth_refreshing(&self, connection: &Connection, kinds: &[ItemKind]) -> bool {
        if kinds.iter().all(|kind| connection.is_fresh(*kind)) {
            return false;
        }
        let has_failed = connection.watch().borrow().state == State::Failed;
        !has_failed || self.may_retry(&connection.server().name)
    }

    /// Whether enough time has passed since a failed server was last retried.
    fn may_retry(&self, server: &ServerName) -> bool {
        let mut tried = self.tried.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let now = Instant::now();
        let is_due = tried.get(server).is_none_or(|last| now.duration_since(*last) >= PAUSE);
        if is_due {
            tried.insert(server.clone(), now);
        }
        is_due
    }
}
