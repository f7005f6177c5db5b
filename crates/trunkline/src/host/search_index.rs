//! The search index of the tools of a host, which follows the catalog in the background.

use std::sync::Arc;

use tokio::sync::{Mutex, watch};

use super::ActiveConfig;
use super::blocking::blocking;
use crate::catalog::Catalog;
use crate::meta::ToolIndex;

/// The index of the newest catalog. The lock is held while it is built, so that it is built once.
#[derive(Default)]
pub(super) struct SearchIndex(Mutex<Option<Arc<ToolIndex>>>);

impl SearchIndex {
    /// The index of a catalog, built unless it is known. Building reads only what has changed, and
    /// blocks no thread of the runtime.
    pub(super) async fn of(&self, catalog: &Arc<Catalog>) -> Arc<ToolIndex> {
        let mut known = self.0.lock().await;
        if let Some(index) = known.as_ref().filter(|index| index.is_of(catalog)) {
            return Arc::clone(index);
        }
        let (catalog, before) = (Arc::clone(catalog), known.clone());
        let build = move || ToolIndex::build(&catalog, before.as_deref());
        let index = Arc::new(blocking(build).await);
        *known = Some(Arc::clone(&index));
        index
    }

    async fn is_built(&self) -> bool {
        self.0.lock().await.is_some()
    }

    /// Builds the index of every new catalog until the host ends, so that searches do not wait for
    /// it. In direct mode it is built once something was searched for.
    pub(super) async fn follow(
        self: Arc<Self>,
        mut catalog: watch::Receiver<Arc<Catalog>>,
        active: watch::Receiver<ActiveConfig>,
    ) {
        catalog.mark_changed();
        while catalog.changed().await.is_ok() {
            let newest = Arc::clone(&catalog.borrow_and_update());
            let has_meta_tools = active.borrow().rules.has_meta_tools();
            if has_meta_tools || self.is_built().await {
                self.of(&newest).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{sleep, timeout};

    use super::*;
    use crate::Host;

    async fn host(mode: &str) -> Host {
        let text = format!(r#"{{ "mode": "{mode}" }}"#);
        Host::builder().config_text("test", text).start().await.unwrap()
    }

    fn is_newest(host: &Host) -> bool {
        let index = host.shared.search.0.try_lock();
        let index = index.ok().and_then(|index| index.clone());
        index.is_some_and(|index| index.is_of(&host.catalog()))
    }

    async fn until_newest(host: &Host) {
        let built = async {
            while !is_newest(host) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(60), built).await.expect("the index follows the catalog");
    }

    /// BUN-3: no search waits for the index of a catalog that has changed before.
    #[tokio::test]
    async fn index_follows_the_catalog_in_the_background() {
        let host = host("meta").await;
        until_newest(&host).await;
        let before = host.catalog();
        let config = crate::config::parse("test", r#"{ "mode": "auto" }"#).config;
        host.reload(config, Default::default()).await;
        assert!(!Arc::ptr_eq(&before, &host.catalog()));
        until_newest(&host).await;
        host.shutdown().await;
    }

    #[tokio::test]
    async fn index_is_not_built_in_direct_mode_before_a_search() {
        for (mode, is_built) in [("direct", false), ("meta", true)] {
            let host = host(mode).await;
            let index = Arc::new(SearchIndex::default());
            // The catalog of a host that has ended: one round.
            let (_, catalog) = watch::channel(host.catalog());
            Arc::clone(&index).follow(catalog, host.shared.active.subscribe()).await;
            assert_eq!(index.is_built().await, is_built, "{mode}");
            host.shutdown().await;
        }
    }
}
