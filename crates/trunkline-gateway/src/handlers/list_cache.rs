//! Cache of list pages, valid while catalog and rules do not change.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trunkline::item::ItemKind;
use trunkline::message::Raw;
use trunkline::principal::FairSlots;
use trunkline::protocol::Era;
use trunkline::view::ViewVersion;

use crate::access::scope::CallerScope;

/// Limit of cached pages in bytes: sixteen of the longest.
const MAX_CACHED_BYTES: usize = 32 * 1024 * 1024;

/// Limit of cached pages, however short they are.
const MAX_CACHED_PAGES: usize = 1024;

/// Pages that are built concurrently. A long one occupies a CPU core, and other requests need the
/// rest.
const PAGES_IN_PROGRESS: usize = 1;

/// A page of a list, the same for every caller of a scope.
#[derive(Debug)]
pub(crate) struct ListPage {
    /// An object with the definitions.
    pub(crate) list: Raw,
    /// The exposed name of the last one, if others follow.
    pub(crate) last: Option<String>,
}

/// Cache key of a page: everything that it depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PageKey {
    pub(crate) scope: CallerScope,
    pub(crate) kind: ItemKind,
    pub(crate) era: Era,
    /// The exposed name after which it begins.
    pub(crate) after: Option<String>,
}

/// Cached pages, and the slots for building one.
pub(crate) struct ListCache {
    pub(crate) slots: Arc<FairSlots>,
    state: Mutex<CacheState>,
}

#[derive(Default)]
struct CacheState {
    /// The version of catalog and rules that all pages belong to.
    version: Option<ViewVersion>,
    pages: HashMap<PageKey, Arc<ListPage>>,
    /// The keys, oldest first.
    order: VecDeque<PageKey>,
    bytes: usize,
}

impl Default for ListCache {
    fn default() -> Self {
        Self { slots: FairSlots::new(PAGES_IN_PROGRESS), state: Mutex::default() }
    }
}

impl ListCache {
    /// The cached page, if it belongs to this version.
    pub(crate) fn get(&self, key: &PageKey, version: &ViewVersion) -> Option<Arc<ListPage>> {
        let state = self.lock();
        state.pages.get(key).filter(|_| state.version.as_ref() == Some(version)).cloned()
    }

    /// Caches a page. Drops pages of other versions, and the oldest ones above the limits.
    pub(crate) fn insert(
        &self,
        key: PageKey,
        version: ViewVersion,
        page: ListPage,
    ) -> Arc<ListPage> {
        let page = Arc::new(page);
        let mut state = self.lock();
        if state.version.as_ref() != Some(&version) {
            *state = CacheState { version: Some(version), ..CacheState::default() };
        }
        state.remove(&key);
        state.bytes += page.list.bytes().len();
        state.order.push_back(key.clone());
        state.pages.insert(key, Arc::clone(&page));
        while state.bytes > MAX_CACHED_BYTES || state.pages.len() > MAX_CACHED_PAGES {
            let Some(oldest) = state.order.pop_front() else { break };
            state.remove(&oldest);
        }
        page
    }

    fn lock(&self) -> MutexGuard<'_, CacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CacheState {
    fn remove(&mut self, key: &PageKey) {
        if let Some(page) = self.pages.remove(key) {
            self.bytes -= page.list.bytes().len();
            self.order.retain(|known| known != key);
        }
    }
}

#[cfg(test)]
mod tests {
    use trunkline::catalog::{Catalog, CatalogBuilder};
    use trunkline::config;
    use trunkline::policy::{CallerSpec, Rules};
    use trunkline::view::View;

    use super::*;

    fn view() -> View {
        let config = config::parse("x", "{}").config;
        let rules = Rules::new(&config, Default::default());
        let caller = rules.caller(CallerSpec::default()).unwrap();
        let catalog = Catalog::build(&CatalogBuilder::new(&config));
        View::new(Arc::new(catalog), Arc::new(rules), Arc::new(caller))
    }

    fn key(after: &str) -> PageKey {
        let (scope, after) = (CallerScope::default(), Some(after.to_owned()));
        PageKey { scope, kind: ItemKind::Tool, era: Era::Legacy, after }
    }

    fn page(bytes: usize) -> ListPage {
        ListPage { list: Raw::from_string(&"x".repeat(bytes)), last: None }
    }

    #[test]
    fn a_page_is_of_one_key_and_one_version() {
        let (cache, before, now) = (ListCache::default(), view(), view());
        cache.insert(key("a"), before.version(), page(1));
        assert!(cache.get(&key("a"), &before.version()).is_some());
        assert!(cache.get(&key("b"), &before.version()).is_none());
        assert!(
            cache.get(&PageKey { kind: ItemKind::Prompt, ..key("a") }, &before.version()).is_none()
        );
        assert!(cache.get(&key("a"), &now.version()).is_none());
        cache.insert(key("b"), now.version(), page(1));
        assert!(cache.get(&key("a"), &before.version()).is_none(), "the old ones are gone");
    }

    #[test]
    fn the_oldest_make_room() {
        let (cache, view) = (ListCache::default(), view());
        let third = MAX_CACHED_BYTES / 3;
        for after in ["a", "b", "b", "c"] {
            cache.insert(key(after), view.version(), page(third));
        }
        assert!(cache.get(&key("a"), &view.version()).is_none());
        assert!(cache.get(&key("b"), &view.version()).is_some());
        for number in 0..2 * MAX_CACHED_PAGES {
            cache.insert(key(&number.to_string()), view.version(), page(1));
        }
        let state = cache.lock();
        assert_eq!((state.pages.len(), state.order.len()), (MAX_CACHED_PAGES, MAX_CACHED_PAGES));
        assert_eq!(state.bytes, 3 * MAX_CACHED_PAGES);
    }
}
