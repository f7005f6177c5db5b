//! Lists items of servers as a caller sees them: as text, as JSON, or as a model gets them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::{Value, json};
use trunkline::catalog::{Entry, ItemKind};
use trunkline::config::escape_control;
use trunkline::message::Raw;
use trunkline::name::ServerName;
use trunkline::policy::{Reason, Rule};
use trunkline::view::{DescriptionStyle, View};

use crate::output::report;

/// A list of the items that a caller sees.
pub(crate) struct ListCommand<'v> {
    pub(crate) view: &'v View,
    pub(crate) kinds: &'v [ItemKind],
    /// Limits the list to these servers.
    pub(crate) servers: Option<BTreeSet<ServerName>>,
    /// How descriptions are rendered.
    pub(crate) describe: DescriptionStyle,
    /// Whether hidden items are included.
    pub(crate) shows_hidden: bool,
}

impl ListCommand<'_> {
    fn is_meant(&self, entry: &Entry) -> bool {
        self.servers.as_ref().is_none_or(|servers| servers.contains(&entry.server().name))
    }

    /// The visible items with their definitions.
    fn seen(&self, kind: ItemKind) -> Vec<(&Entry, Raw)> {
        let definitions = self.view.list(kind, self.describe);
        let seen = self.view.entries(kind).zip(definitions);
        seen.filter(|(entry, _)| self.is_meant(entry)).collect()
    }

    /// The hidden items, each with the first rule that hides it.
    pub(crate) fn hidden(&self) -> Vec<(&Entry, Reason<'_>)> {
        let hidden = self.kinds.iter().flat_map(|kind| self.view.hidden(*kind));
        hidden.filter(|(entry, _)| self.is_meant(entry)).collect()
    }

    /// The visible items.
    pub(crate) fn visible(&self) -> impl Iterator<Item = &Entry> {
        let all = self.kinds.iter().flat_map(|kind| self.view.entries(*kind));
        all.filter(|entry| self.is_meant(entry))
    }

    /// Items that do not have their default exposed name (TOOL-2).
    fn renamed(&self) -> Vec<&Entry> {
        let all = self.kinds.iter().flat_map(|kind| self.view.catalog().entries(*kind));
        all.filter(|entry| self.is_meant(entry) && entry.renamed().is_some()).collect()
    }

    /// A hint on hidden and renamed items, and how to see them.
    pub(crate) fn hint(&self, options: &str) -> String {
        self.hidden_hint(options) + &self.renamed_hint()
    }

    /// A notice that the list is empty, if there is no other message, with the reason why no server
    /// is in use. Servers without any visible item have not been started.
    pub(crate) fn nothing(
        &self,
        is_limited: bool,
        options: &str,
        reason: Option<String>,
    ) -> String {
        let is_empty = self.kinds.iter().all(|kind| self.seen(*kind).is_empty());
        if !is_empty || !self.hidden().is_empty() {
            return String::new();
        }
        let what = self.kinds.first().map_or("tools", |kind| kind.list_key());
        match (is_limited, reason) {
            (true, _) => format!(
                "no {what} can be seen; `trunkline {what} --all{options}` shows what there is and why not\n"
            ),
            (false, Some(reason)) => format!("there are no {what}; {reason}\n"),
            (false, None) => format!("there are no {what}\n"),
        }
    }

    fn renamed_hint(&self) -> String {
        let renamed = self.renamed();
        if renamed.is_empty() || !self.shows_hidden {
            return String::new();
        }
        let mut text = format!("{} had to be changed:\n", report::plural(renamed.len(), "name"));
        for entry in renamed {
            let _ =
                writeln!(text, "  {}: {}", escape_control(entry.exposed()), renamed_text(entry));
        }
        text
    }

    /// The number of hidden items, and the command that shows them, with the same options.
    fn hidden_hint(&self, options: &str) -> String {
        let hidden = self.hidden();
        if hidden.is_empty() {
            return String::new();
        }
        let mut by_server = BTreeMap::new();
        for (entry, _) in &hidden {
            *by_server.entry(&entry.server().name).or_insert(0_usize) += 1;
        }
        let by_server = by_server
            .iter()
            .map(|(server, count)| format!("{count} of {}", escape_control(server.as_str())));
        let (first, _) = &hidden[0];
        let count = report::plural(hidden.len(), first.kind().as_str());
        let verb = if hidden.len() == 1 { "is" } else { "are" };
        let more = match self.shows_hidden {
            true => format!("`trunkline explain NAME{options}` says more of one"),
            false => {
                let command = self.kinds.first().map_or("tools", |kind| kind.list_key());
                format!("`trunkline {command} --all{options}` shows what and why")
            }
        };
        format!("{count} {verb} hidden ({}); {more}\n", by_server.collect::<Vec<_>>().join(", "))
    }

    /// One definition per line, as a model gets it.
    pub(crate) fn as_raw(&self) -> String {
        let seen = self.kinds.iter().flat_map(|kind| self.seen(*kind));
        seen.map(|(_, definition)| format!("{definition}\n")).collect()
    }

    pub(crate) fn as_json(&self) -> Value {
        self.as_written().to_value()
    }

    /// The whole list as JSON, with definitions byte for byte.
    pub(crate) fn as_written(&self) -> Raw {
        let hidden = self.hidden();
        let mut json = Raw::from_value(&json!({ "hiddenCount": hidden.len() }));
        for kind in self.kinds {
            let definitions: Vec<_> = self.seen(*kind).into_iter().map(|(_, raw)| raw).collect();
            json = json.with(kind.list_key(), &Raw::from_items(&definitions));
        }
        if self.shows_hidden {
            let all: Value =
                hidden.iter().map(|(entry, reason)| hidden_json(entry, reason)).collect();
            let renamed: Value = self.renamed().into_iter().map(renamed_json).collect();
            json = json.with("hidden", &Raw::from_value(&all));
            json = json.with("renamed", &Raw::from_value(&renamed));
        }
        json
    }
}

pub(crate) fn hidden_json(entry: &Entry, reason: &Reason<'_>) -> Value {
    let mut json = reason_json(reason);
    json["kind"] = entry.kind().as_str().into();
    json["name"] = entry.exposed().into();
    json["server"] = entry.server().name.as_str().into();
    json
}

/// The reason why an item does not have its default exposed name.
pub(crate) fn renamed_text(entry: &Entry) -> String {
    let (plain, reason) = entry.renamed().unwrap_or_default();
    format!("it cannot be `{}`, because {}", escape_control(plain), escape_control(&reason))
}

fn renamed_json(entry: &Entry) -> Value {
    let renamed = entry.renamed();
    json!({
        "name": entry.exposed(),
        "kind": entry.kind().as_str(),
        "server": entry.server().name.as_str(),
        "own": entry.name(),
        "plain": renamed.as_ref().map(|(plain, _)| *plain),
        "reason": renamed.as_ref().map(|(_, reason)| reason),
    })
}

/// A reason as JSON.
pub(crate) fn reason_json(reason: &Reason<'_>) -> Value {
    json!({
        "rule": reason.rule().as_str(),
        "reason": reason.to_string(),
        "hint": reason.hint(),
        "location": reason.location().map(report::location_json),
    })
}

/// The effect of a reason on an item.
pub(crate) fn fate(reason: &Reason<'_>) -> &'static str {
    match reason.rule() {
        Rule::Available => "not available",
        _ => "hidden",
    }
}
