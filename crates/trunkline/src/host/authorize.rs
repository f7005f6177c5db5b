//! Views and calls under the current rules and definitions, and whether a failed call may be retried.

use std::sync::Arc;

use super::Host;
use crate::call::{Authorizer, CallError, CallErrorKind};
use crate::catalog::Entry;
use crate::connection::State;
use crate::error::ErrorKind;
use crate::item::ItemKind;
use crate::policy::{Caller, CallerCache, Rules, UnknownCaller};
use crate::view::View;

impl Host {
    /// Sets whether a retry can succeed, as far as that depends on the state of the host.
    pub(super) fn judged(&self, error: CallError) -> CallError {
        let Some(server) = error.server() else { return error };
        let is_down = error.kind() == CallErrorKind::Unavailable;
        if error.kind() == CallErrorKind::Failed(ErrorKind::ShuttingDown) {
            let config = self.config();
            let is_used = config.server(server.as_str()).is_some_and(|server| server.enabled);
            return if is_used { error.retryable(true) } else { CallError::removed(server) };
        }
        let Some(connection) = self.shared.servers.get(server.as_str()) else { return error };
        let has_failed = connection.watch().borrow().state == State::Failed;
        let error = if has_failed { error.unreachable() } else { error };
        if is_down { error.retryable(connection.will_recover()) } else { error }
    }

    /// The view of a caller of many requests: it is resolved when the rules have changed. Each caller has a cache of its
    /// own, with which it is always resolved in the same way.
    ///
    /// # Errors
    ///
    /// Those of `resolve`.
    pub fn view_of_cached(
        &self,
        cache: &CallerCache,
        resolve: impl FnOnce(&Rules) -> Result<Caller, UnknownCaller>,
    ) -> Result<View, UnknownCaller> {
        let rules = Arc::clone(&self.shared.active.borrow().rules);
        let caller = cache.get_or_resolve(&rules, resolve)?;
        Ok(View::new(self.catalog(), rules, caller))
    }

    /// Whether a view uses the current catalog and rules.
    pub(super) fn is_current(&self, view: &View) -> bool {
        Arc::ptr_eq(&self.shared.active.borrow().rules, view.rules())
            && Arc::ptr_eq(&self.catalog(), view.catalog())
    }

    /// The current view of the same caller.
    pub(super) fn with_current_rules(&self, view: &View) -> Result<View, CallError> {
        let rules = Arc::clone(&self.shared.active.borrow().rules);
        let catalog = self.catalog();
        if Arc::ptr_eq(&rules, view.rules()) {
            return Ok(View::new(catalog, rules, Arc::clone(view.caller())));
        }
        let caller = rules.refreshed_caller(view.caller())?;
        Ok(View::new(catalog, rules, Arc::new(caller)))
    }
}

impl Authorizer for Host {
    /// Ensures that a call uses the definition that was shown: the item still exists, a tool has
    /// the same definition, and the current rules allow it.
    fn authorize(&self, view: &View, entry: &Entry) -> Result<(), CallError> {
        if self.is_current(view) {
            // The view has admitted the entry, and would decide the same again.
            return Ok(());
        }
        let now = self.with_current_rules(view)?;
        if !entry.is_listed() {
            // Rules may apply to its URI, and another server may list it by now.
            let found = now.route_resource(entry.exposed())?;
            let is_same = found.entry.server().name == entry.server().name;
            return if is_same { Ok(()) } else { Err(CallError::gone(entry)) };
        }
        if Arc::ptr_eq(now.catalog(), view.catalog()) {
            return Ok(now.authorize(entry)?);
        }
        let same = now.catalog().get(entry.kind(), entry.exposed());
        let same = same.filter(|same| same.server().name == entry.server().name);
        match same.filter(|same| same.name() == entry.name()) {
            None => Err(CallError::gone(entry)),
            Some(same) if same.kind() == ItemKind::Tool && same.digest() != entry.digest() => {
                Err(CallError::changed(entry))
            }
            Some(same) => Ok(now.authorize(same)?),
        }
    }
}
