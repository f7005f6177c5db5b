//! Lists of an earlier run, with their age.

use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};
use trunkline::catalog::ItemKind;
use trunkline::name::ServerName;

use super::command_host::CommandHost;
use crate::environment::rfc3339;
use crate::output::report::plural;

/// The servers whose lists are those of an earlier run. They have not been started.
#[derive(Default)]
pub(crate) struct RememberedLists {
    servers: Vec<(ServerName, Option<SystemTime>)>,
    /// The items in these lists.
    what: &'static str,
}

impl RememberedLists {
    pub(crate) fn of(hosted: &CommandHost, asked: &[ServerName], kinds: &[ItemKind]) -> Self {
        let connections = hosted.host.servers();
        let saved_at = |name: &ServerName| {
            let connection = connections.get(name.as_str())?;
            // The oldest decides, if there are several kinds.
            kinds.iter().filter_map(|kind| connection.cached_at(*kind)).min()
        };
        let cached = hosted.cached(asked, kinds).into_iter();
        let servers = cached.map(|name| (name.clone(), saved_at(&name))).collect();
        Self { servers, what: kinds.first().map_or("tools", |kind| kind.list_key()) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    pub(crate) fn contains(&self, server: &ServerName) -> bool {
        self.servers.iter().any(|(name, _)| name == server)
    }

    /// The names of the servers.
    pub(crate) fn names_json(&self) -> Value {
        self.servers.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// The time of each list, by server.
    pub(crate) fn times_json(&self) -> Value {
        let time = |(name, saved_at): &(ServerName, Option<SystemTime>)| {
            Some((name.as_str().to_owned(), rfc3339((*saved_at)?).into()))
        };
        self.servers.iter().filter_map(time).collect::<Map<_, _>>().into()
    }

    /// The notice about servers that were not started; empty if there are none.
    pub(crate) fn notice(&self) -> String {
        if self.servers.is_empty() {
            return String::new();
        }
        let count = plural(self.servers.len(), "server");
        let verb = if self.servers.len() == 1 { "was" } else { "were" };
        let (what, age) = (self.what, self.age_text());
        format!(
            "{count} {verb} not started: the {what} are those of {age}; `--refresh` asks again\n"
        )
    }

    fn age_text(&self) -> String {
        let ages = self.servers.iter().filter_map(|(_, saved_at)| saved_at.as_ref());
        let ages: Vec<_> = ages.filter_map(|it| it.elapsed().ok()).collect();
        match (ages.iter().min().copied().map(age), ages.iter().max().copied().map(age)) {
            (Some(newest), Some(oldest)) if newest == oldest => {
                format!("the last run, {oldest} ago")
            }
            (Some(newest), Some(oldest)) => format!("earlier runs, {newest} to {oldest} ago"),
            _ => "the last run".to_owned(),
        }
    }
}

/// A duration in its largest unit.
fn age(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (count, unit) = match seconds {
        0..60 => return "less than a minute".to_owned(),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    plural(usize::try_from(count).unwrap_or(usize::MAX), unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(ages: &[u64]) -> RememberedLists {
        let now = SystemTime::now();
        let server = |age: &u64| {
            let name = ServerName::new(&format!("s{age}")).unwrap();
            (name, now.checked_sub(Duration::from_secs(*age)))
        };
        RememberedLists { servers: ages.iter().map(server).collect(), what: "tools" }
    }

    #[test]
    fn ages_are_in_the_largest_unit() {
        let shown =
            [0, 59, 60, 3_599, 3_600, 7_200, 86_400, 600_000].map(|it| lists(&[it]).age_text());
        let ages = [
            "less than a minute",
            "less than a minute",
            "1 minute",
            "59 minutes",
            "1 hour",
            "2 hours",
            "1 day",
            "6 days",
        ];
        assert_eq!(shown, ages.map(|age| format!("the last run, {age} ago")));
        assert_eq!(lists(&[7_300, 7_200]).age_text(), "the last run, 2 hours ago");
        assert_eq!(lists(&[120, 7_200]).age_text(), "earlier runs, 2 minutes to 2 hours ago");
    }

    #[test]
    fn nothing_is_said_without_servers() {
        assert_eq!(lists(&[]).notice(), "");
        assert!(
            lists(&[1, 2])
                .notice()
                .starts_with("2 servers were not started: the tools are those of")
        );
    }
}
