//! Items that servers sent and that cannot be used, as messages and as JSON.

use serde_json::{Value, json};
use trunkline::catalog::ItemKind;
use trunkline::config::escape_control;
use trunkline::connection::RejectedItem;
use trunkline::name::ServerName;

use super::command_host::CommandHost;
use crate::output::report::plural;

/// Items that are named in one message.
const MAX_NAMED: usize = 3;

/// The items of some kinds that cannot be used, by server.
pub(crate) struct RejectedItems {
    servers: Vec<(ServerName, Vec<RejectedItem>)>,
}

impl RejectedItems {
    pub(crate) fn of<'a>(
        hosted: &CommandHost,
        servers: impl Iterator<Item = &'a ServerName>,
        kinds: &[ItemKind],
    ) -> Self {
        let rejected = |server: &ServerName| {
            let connection = hosted.host.servers().get(server.as_str())?;
            let mut items = connection.status().set_aside;
            items.retain(|item| kinds.contains(&item.kind));
            (!items.is_empty()).then(|| (server.clone(), items))
        };
        Self { servers: servers.filter_map(rejected).collect() }
    }

    pub(crate) fn as_json(&self) -> Value {
        let item = |server: &ServerName, item: &RejectedItem| {
            json!({
                "server": server.as_str(),
                "kind": item.kind.as_str(),
                "name": item.name,
                "reason": item.reason,
            })
        };
        let items = self
            .servers
            .iter()
            .flat_map(|(server, items)| items.iter().map(move |it| item(server, it)));
        items.collect()
    }

    /// One line per server.
    pub(crate) fn notices(&self) -> Vec<String> {
        self.servers.iter().map(|(server, items)| notice(server, items)).collect()
    }
}

fn notice(server: &ServerName, items: &[RejectedItem]) -> String {
    let named = items.iter().take(MAX_NAMED).map(|item| {
        let reason = escape_control(&item.reason);
        match &item.name {
            Some(name) => format!("`{}` ({reason})", escape_control(name)),
            None => format!("one without a name ({reason})"),
        }
    });
    let named = named.collect::<Vec<_>>().join(", ");
    let more = match items.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more, which `trunkline status` names"),
    };
    let kind = items.first().map_or("tool", |item| item.kind.as_str());
    let (count, verb) = (plural(items.len(), kind), if items.len() == 1 { "is" } else { "are" });
    format!("server `{}`: {count} {verb} not used: {named}{more}", escape_control(server.as_str()))
}
