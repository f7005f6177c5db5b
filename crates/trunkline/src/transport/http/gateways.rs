//! The gateways that the servers of this process lead to, as their responses tell (CON-16).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The gateways behind one server, by id. They count for as long as this is kept.
pub(super) type GatewayIds = Mutex<Vec<Box<str>>>;

/// The gateways behind all servers of a process. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReachableGateways(Arc<Mutex<Vec<Weak<GatewayIds>>>>);

impl ReachableGateways {
    /// A place for the gateways behind another server.
    pub(super) fn register(&self) -> Arc<GatewayIds> {
        let ids = Arc::default();
        let mut servers = lock(&self.0);
        servers.retain(|server| server.strong_count() > 0);
        servers.push(Arc::downgrade(&ids));
        ids
    }

    /// The ids of all of them.
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
