//! The configuration of one server alone, without the rules of its callers.

use super::model::{Access, Agents, Config, RuleLocations, Share, ToolLists, ToolSurface};

impl Config {
    /// The configuration of one enabled server, for a client that has rules and names of its own: items keep
    /// their upstream names, none is hidden, and results are not truncated. `None` if there is no such server.
    pub(crate) fn of_server(&self, name: &str) -> Option<Self> {
        let mut server = self.server(name).filter(|server| server.enabled)?.clone();
        server.prefix = Some("".into());
        server.tools = ToolLists::default();
        server.places = RuleLocations::default();
        server.behaviour.access = Access::ReadWrite;
        server.behaviour.share = Share::All;
        server.behaviour.concurrency = None;
        server.behaviour.max_result_bytes = u64::MAX;
        let mut config = self.clone();
        config.servers = [(server.name.clone(), server)].into();
        config.bundles.clear();
        config.agents = Agents::default();
        config.surface = ToolSurface::default();
        config.naming.describe_server = false;
        config.is_of_one = true;
        Some(config)
    }

    /// Whether items keep their upstream names.
    pub(crate) fn keeps_upstream_names(&self) -> bool {
        self.is_of_one
    }
}
