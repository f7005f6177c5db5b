//! A handle that does not keep its host alive.

use std::sync::{Arc, Weak};

use super::{Host, HostShared};

/// A handle that does not keep its host alive.
#[derive(Clone)]
pub struct WeakHost {
    shared: Weak<HostShared>,
}

impl WeakHost {
    /// The host, while another handle keeps it alive.
    pub fn upgrade(&self) -> Option<Host> {
        self.shared.upgrade().map(|shared| Host { shared })
    }
}

impl Host {
    /// A handle that does not keep the host alive.
    pub fn downgrade(&self) -> WeakHost {
        WeakHost { shared: Arc::downgrade(&self.shared) }
    }
}
