//! Which of the found servers are imported, and under which names.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use trunkline::config::Config;
use trunkline::name::ServerName;

use super::found::{FoundServer, FoundServers};
use super::literals::LiteralCredential;
use super::selection::SelectedServers;
use crate::environment::ProcessEnv;
use crate::output::report::plural;

/// A found server, and what the import does with it.
#[derive(Clone, Debug)]
pub(crate) struct PlannedServer {
    pub(crate) found: FoundServer,
    /// The name in the file; `None` if it is not imported.
    pub(crate) name: Option<String>,
    /// The server that is the same, which is why this one is not imported.
    pub(crate) same_as: Option<String>,
    /// The other server of this name, which is why this one gets another.
    pub(crate) differs_from: Option<String>,
}

/// An import of servers into a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct ImportPlan {
    pub(crate) servers: Vec<PlannedServer>,
}

impl ImportPlan {
    /// Plans to add servers to a configuration. Equal ones are added once; one with the name of another gets the name of
    /// its host as well.
    pub(crate) fn new(found: Vec<FoundServer>, config: &Config) -> Self {
        let mut taken = taken_names(config);
        let merged = merged_names(&found, &taken);
        let mut servers = Vec::new();
        for found in found {
            let entry = comparable(&found.entry);
            let same = taken.iter().find(|(_, (other, _))| is_same(other, &entry));
            if let Some((name, (_, place))) = same {
                let (name, same_as) = (name.clone(), Some(place.clone()));
                if found.is_enabled {
                    enable(&mut servers, &name);
                }
                servers.push(PlannedServer { found, name: None, same_as, differs_from: None });
                continue;
            }
            let other = taken.get(&found.name).map(|(_, place)| place);
            let differs_from = other.or_else(|| merged.get(&found.name)).cloned();
            let name =
                free_name(&found, |name| !taken.contains_key(name) && !merged.contains_key(name));
            let place = place_of(&found);
            taken.insert(name.clone(), (entry, place));
            servers.push(PlannedServer { found, name: Some(name), same_as: None, differs_from });
        }
        Self { servers }
    }

    /// The servers to write, with their names.
    pub(crate) fn added(&self) -> impl Iterator<Item = (&str, &FoundServer)> {
        self.servers.iter().filter_map(|it| Some((it.name.as_deref()?, &it.found)))
    }

    pub(crate) fn added_mut(&mut self) -> impl Iterator<Item = (&str, &mut FoundServer)> {
        self.servers.iter_mut().filter_map(|it| Some((it.name.as_deref()?, &mut it.found)))
    }

    pub(crate) fn to_json(&self) -> Value {
        let server = |planned: &PlannedServer| {
            let found = &planned.found;
            json!({
                "host": found.host.id(),
                "file": found.file,
                "server": found.name,
                "transport": found.transport,
                "endpoint": found.endpoint,
                "enabled": found.is_enabled,
                "name": planned.name,
                "sameAs": planned.same_as,
                "differsFrom": planned.differs_from,
                "notes": found.notes,
                "literalCredentials": found.literals.iter().map(LiteralCredential::name).collect::<Value>(),
            })
        };
        self.servers.iter().map(server).collect()
    }
}

/// Names in a file, each with its entry and its place for messages.
type TakenNames = BTreeMap<String, (Value, String)>;

fn taken_names(config: &Config) -> TakenNames {
    let place = |name: &ServerName| format!("`{name}` in the file");
    let servers = config.servers().map(|server| {
        (server.name.to_string(), (comparable(&server.to_entry()), place(&server.name)))
    });
    let broken = config.broken().iter();
    let broken = broken.map(|name| (name.to_string(), (Value::Null, place(name))));
    servers.chain(broken).collect()
}

/// Names of servers that are the same as one of another name, with their places for messages. Such a server is not
/// imported, and its name must not be given to a different one.
fn merged_names(found: &[FoundServer], taken: &TakenNames) -> BTreeMap<String, String> {
    let in_file = taken.iter().map(|(name, (entry, _))| (name.as_str(), entry.clone()));
    let mut known: Vec<(&str, Value)> = in_file.collect();
    let mut merged = BTreeMap::new();
    for server in found {
        let entry = comparable(&server.entry);
        match known.iter().find(|(_, other)| is_same(other, &entry)) {
            None => known.push((&server.name, entry)),
            Some((name, _)) if *name == server.name => {}
            Some(_) => drop(merged.entry(server.name.clone()).or_insert_with(|| place_of(server))),
        }
    }
    merged
}

/// A found server, for messages.
fn place_of(found: &FoundServer) -> String {
    format!("`{}` of {}", found.name, found.host)
}

/// Enables a planned server that is on in another host.
fn enable(servers: &mut [PlannedServer], name: &str) {
    let planned = servers.iter_mut().find(|it| it.name.as_deref() == Some(name));
    let Some(planned) = planned else { return };
    planned.found.is_enabled = true;
    if let Some(members) = planned.found.entry.as_object_mut() {
        members.remove("enabled");
    }
}

/// Whether two entries are the same server. A value in the store for secrets is the same as any other.
fn is_same(one: &Value, other: &Value) -> bool {
    let is_stored = |it: &Value| it.as_str().is_some_and(|text| text.starts_with("${secret:"));
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, value)| other.get(key).is_some_and(|it| is_same(value, it)))
        }
        _ => {
            one == other
                || is_stored(one) && other.is_string()
                || is_stored(other) && one.is_string()
        }
    }
}

/// The entry without its switch: a server that is off somewhere is the same server.
fn comparable(entry: &Value) -> Value {
    let mut entry = entry.clone();
    if let Some(members) = entry.as_object_mut() {
        members.remove("enabled");
    }
    entry
}

fn free_name(found: &FoundServer, is_free: impl Fn(&str) -> bool) -> String {
    let with_host = format!("{}-{}", found.name, found.host.id());
    let numbered = (2..).map(|number| format!("{with_host}-{number}"));
    let mut names = [found.name.clone(), with_host.clone()].into_iter().chain(numbered);
    names.find(|name| is_free(name)).unwrap_or(with_host)
}

/// A line on the servers of other hosts that could be imported; empty if there are none.
pub(crate) fn import_offer(environment: &ProcessEnv) -> String {
    let found = FoundServers::read(environment, &[]);
    let found = SelectedServers::of(found, false);
    let plan = ImportPlan::new(found.meant, &Config::default());
    let mut hosts: Vec<&str> = plan.added().map(|(_, server)| server.host.name()).collect();
    let servers = plural(hosts.len(), "server");
    hosts.dedup();
    match hosts.is_empty() {
        true => String::new(),
        false => format!(
            "{servers} of {} on this machine can be imported: `trunkline import` shows them and asks.\n",
            hosts.join(", ")
        ),
    }
}
