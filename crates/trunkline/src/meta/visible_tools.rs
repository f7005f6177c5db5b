//! Cache of the tools that callers may see. Asking the rules for every tool of a large catalog takes
//! longer than a search.

use std::sync::{Arc, Mutex, PoisonError};

use trunkline_search::Visible;

use crate::policy::Caller;
use crate::view::{View, ViewVersion};

/// Views whose visible tools are kept: one for each scope and agent that searches at the time. One
/// takes about 100 kB in a catalog with 50,000 tools.
const MAX_SEARCHED_VIEWS: usize = 32;

/// The visible tools of the views that were searched last, the newest first.
#[derive(Debug, Default)]
pub(super) struct VisibleTools(Mutex<Vec<SearchedView>>);

#[derive(Clone, Debug)]
struct SearchedView {
    version: ViewVersion,
    caller: Arc<Caller>,
    visible: Arc<Visible>,
}

impl VisibleTools {
    /// The visible tools of a view, computed unless a view with the same catalog, rules and limits
    /// was searched before.
    pub(super) fn get(&self, view: &View, compute: impl FnOnce() -> Visible) -> Arc<Visible> {
        let version = view.version();
        if let Some(visible) = self.find(&version, view.caller()) {
            return visible;
        }
        // Without the lock: others search while this is computed.
        let visible = Arc::new(compute());
        let caller = Arc::clone(view.caller());
        let mut views = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        views.insert(0, SearchedView { version, caller, visible: Arc::clone(&visible) });
        views.truncate(MAX_SEARCHED_VIEWS);
        visible
    }

    fn find(&self, version: &ViewVersion, caller: &Caller) -> Option<Arc<Visible>> {
        let mut views = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |it: &SearchedView| it.version == *version && it.caller.has_limits_of(caller);
        let place = views.iter().position(is_same)?;
        views.get_mut(..=place)?.rotate_right(1);
        views.first().map(|it| Arc::clone(&it.visible))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use trunkline_search::Index;

    use super::*;
    use crate::catalog::{Catalog, CatalogBuilder};
    use crate::config::{self, Access, Config};
    use crate::policy::{CallerSpec, Rules, Toggle, Toggles};

    struct Fixture {
        config: Config,
        catalog: Arc<Catalog>,
        cache: VisibleTools,
        computed: Cell<usize>,
    }

    impl Fixture {
        fn new() -> Self {
            let text = r#"{ "servers": { "docs": { "command": "x" }, "prod": { "command": "x" } },
                            "bundles": { "read": { "serverId": "docs" }, "ops": { "serverId": "prod" } },
                            "agents": { "a": { "tools": ["docs_*"] }, "b": { "tools": ["*"] } } }"#;
            let config = config::parse("mcp.json", text).config;
            let catalog = Arc::new(Catalog::build(&CatalogBuilder::new(&config)));
            let (cache, computed) = (VisibleTools::default(), Cell::new(0));
            Self { config, catalog, cache, computed }
        }

        fn rules(&self) -> Arc<Rules> {
            Arc::new(Rules::new(&self.config, self.config.agents().named.clone()))
        }

        fn view(&self, rules: &Arc<Rules>, who: CallerSpec<'_>) -> View {
            let caller = Arc::new(rules.caller(who).unwrap());
            View::new(Arc::clone(&self.catalog), Arc::clone(rules), caller)
        }

        /// Whether the rules were asked for a view.
        fn is_computed(&self, view: &View) -> bool {
            let before = self.computed.get();
            self.cache.get(view, || {
                self.computed.set(before + 1);
                Visible::new(&Index::default(), |_| true)
            });
            self.computed.get() > before
        }
    }

    fn agent(name: &str) -> CallerSpec<'_> {
        CallerSpec { agent: Some(name), ..CallerSpec::default() }
    }

    #[test]
    fn rules_are_asked_once_for_callers_with_the_same_limits() {
        let fixture = Fixture::new();
        let rules = fixture.rules();
        let mut switches = Toggles::default();
        switches.set(&fixture.config.server("docs").unwrap().name, Toggle::Off);
        let callers = || {
            let default = CallerSpec::default;
            [
                default(),
                agent("a"),
                agent("b"),
                CallerSpec { bundles: &["read"], ..default() },
                CallerSpec { bundles: &["ops"], ..default() },
                CallerSpec { access: Some(Access::ReadOnly), ..default() },
                CallerSpec { switches: switches.clone(), ..default() },
            ]
        };
        for who in callers() {
            assert!(fixture.is_computed(&fixture.view(&rules, who.clone())), "{who:?}");
        }
        for who in callers() {
            assert!(!fixture.is_computed(&fixture.view(&rules, who.clone())), "{who:?}");
        }
    }

    #[test]
    fn other_rules_and_another_catalog_are_asked_again() {
        let mut fixture = Fixture::new();
        let rules = fixture.rules();
        assert!(fixture.is_computed(&fixture.view(&rules, agent("a"))));
        assert!(fixture.is_computed(&fixture.view(&fixture.rules(), agent("a"))));
        fixture.catalog = Arc::new(Catalog::build(&CatalogBuilder::new(&fixture.config)));
        assert!(fixture.is_computed(&fixture.view(&rules, agent("a"))));
    }

    #[test]
    fn the_view_not_searched_for_longest_is_forgotten() {
        let fixture = Fixture::new();
        let rules: Vec<_> = (0..=MAX_SEARCHED_VIEWS).map(|_| fixture.rules()).collect();
        let views: Vec<_> = rules.iter().map(|it| fixture.view(it, agent("a"))).collect();
        let (last, others) = views.split_last().unwrap();
        assert!(others.iter().all(|view| fixture.is_computed(view)));
        assert!(!fixture.is_computed(&others[0]));
        assert!(fixture.is_computed(last));
        assert!(!fixture.is_computed(&others[0]), "it was searched again");
        assert!(fixture.is_computed(&others[1]));
    }
}
