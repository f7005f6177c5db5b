//! The gateways behind the servers of this process, as their responses report them (CON-16).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The IDs of the gateways behind one server. They count until this is dropped.
pub(super) type GatewayIds = Mutex<Vec<Box<str>>>;

/// The gateways behind all servers of a process. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReachableGateways(Arc<Mutex<Vec<Weak<GatewayIds>>>>);

impl ReachableGateways {
    /// Adds a server, with no gateways yet.
    pub(super) fn register(&self) -> Arc<GatewayIds> {
        let ids = Arc::default();
        let mut servers = lock(&self.0);
        servers.retain(|server| server.strong_count() > 0);
        servers.push(Arc::downgrade(&ids));
        ids
    }

    /// The IDs of all gateways.
    pub(crate) fn ids(&self) -> Vec<Box<str>> {
        let servers: Vec<_> = lock(&self.0).iter().filter_map(Weak::upgrade).collect();
        let mut ids: Vec<_> = servers.iter().flat_map(|server| lock(server).clone()).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

/// Replaces the gateways behind a server.
pub(super) fn record(server: &GatewayIds, ids: Vec<Box<str>>) {
    *lock(server) = ids;
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateways_count_while_their_server_is_used() {
        let gateways = ReachableGateways::default();
        let (first, second) = (gateways.register(), gateways.register());
        record(&first, vec!["b".into(), "a".into()]);
        record(&second, vec!["b".into()]);
        assert_eq!(gateways.clone().ids(), ["a".into(), "b".into()]);
        record(&first, Vec::new());
        assert_eq!(gateways.ids(), ["b".into()]);
        drop(second);
        assert!(gateways.ids().is_empty());
    }
}
