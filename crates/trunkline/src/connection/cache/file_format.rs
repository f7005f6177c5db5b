//! The JSON of a cache file: the protocol and the tools of a server, and under `lists` its other lists, once they were
//! requested. A list is an object with its items, the rejected ones and its time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::{CachedList, CachedLists, CachedServer, NegotiatedProtocol};
use crate::config::RemoteTransport;
use crate::connection::pagination::{ItemList, PageReader};
use crate::connection::state::status::RejectedItem;
use crate::item::ItemKind;
use crate::message::Raw;

/// The version of the file format. Other versions are ignored.
const VERSION: u64 = 1;

/// Lifetime of a list. After that, a server that may have been upgraded to the modern era is probed
/// again.
const LONGEST_BELIEF: Duration = Duration::from_secs(7 * 24 * 3600);

/// The key of the lists other than tools.
const LISTS: &str = "lists";

/// A list that the server has sent now.
pub(super) fn list_object(list: &ItemList) -> Raw {
    let set_aside = list.set_aside.iter();
    let set_aside = set_aside.map(|it| json!({ "name": it.name, "reason": it.reason }));
    let saved = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let head = json!({ "savedAt": saved.as_secs(), "setAside": set_aside.collect::<Vec<_>>() });
    let items: Vec<_> = list.items.iter().map(|item| item.definition().clone()).collect();
    Raw::from_value(&head).append_members(&[(list.kind.list_key(), &Raw::from_items(&items))])
}

/// A file with a list of tools.
pub(super) fn file_object(spoken: NegotiatedProtocol, tools: &Raw) -> Raw {
    let is_sse = spoken.transport == RemoteTransport::Sse;
    let [version, modern, sse] = [json!(VERSION), json!(spoken.is_modern), json!(is_sse)];
    tools.append_members(&[
        ("version", &Raw::from_value(&version)),
        ("modern", &Raw::from_value(&modern)),
        ("sse", &Raw::from_value(&sse)),
    ])
}

/// A file with other lists than it had.
pub(super) fn with_lists(file: &Raw, lists: &Raw) -> Raw {
    match lists.members().is_empty() {
        true => file.without(LISTS),
        false => file.with(LISTS, lists),
    }
}

/// The lists of a file other than tools that can still be used.
pub(super) fn other_lists(file: &Raw) -> Raw {
    let lists = file.get(LISTS);
    let kinds = ItemKind::ALL.into_iter().filter(|kind| *kind != ItemKind::Tool);
    kinds.fold(Raw::empty_object(), |kept, kind| {
        let list = lists.as_ref().and_then(|lists| lists.get(kind.list_key()));
        match list.filter(|list| saved_at(list).is_some()) {
            Some(list) => kept.with(kind.list_key(), &list),
            None => kept,
        }
    })
}

/// The file of a text, if it has the current version.
pub(super) fn file_of_text(text: &str) -> Option<Raw> {
    let file = Raw::from_text(text).ok()?;
    (file.get("version")?.as_u64()? == VERSION).then_some(file)
}

/// The protocol and some lists of a file.
pub(super) fn server_of(file: &Raw, kinds: &[ItemKind]) -> Option<CachedServer> {
    let [modern, sse, others] = file.get_all(["modern", "sse", LISTS]);
    let transport =
        if sse?.as_bool()? { RemoteTransport::Sse } else { RemoteTransport::Streamable };
    let spoken = NegotiatedProtocol { is_modern: modern?.as_bool()?, transport };
    let mut lists = CachedLists::default();
    lists.insert(ItemKind::Tool, list_of(ItemKind::Tool, file)?);
    for kind in kinds.iter().filter(|kind| **kind != ItemKind::Tool) {
        let list = others.as_ref().and_then(|others| others.get(kind.list_key()));
        // A list that cannot be read is requested again.
        if let Some(list) = list.and_then(|list| list_of(*kind, &list)) {
            lists.insert(*kind, list);
        }
    }
    Some(CachedServer { spoken, lists })
}

fn list_of(kind: ItemKind, object: &Raw) -> Option<CachedList> {
    let saved_at = saved_at(object)?;
    let mut pages = PageReader::new(kind, false);
    pages.add(object).ok()?;
    let aside = object.get("setAside");
    let set_aside = aside.iter().flat_map(Raw::items).filter_map(|it| rejected(kind, &it));
    Some(CachedList { items: pages.finish().items, set_aside: set_aside.collect(), saved_at })
}

/// The time of a list that can still be used.
fn saved_at(object: &Raw) -> Option<SystemTime> {
    let seconds = Duration::from_secs(object.get("savedAt")?.as_u64()?);
    let saved = UNIX_EPOCH.checked_add(seconds)?;
    // A list from the future is as doubtful as an old one.
    let age = SystemTime::now().duration_since(saved).ok()?;
    (age < LONGEST_BELIEF).then_some(saved)
}

fn rejected(kind: ItemKind, item: &Raw) -> Option<RejectedItem> {
    let [name, reason] = item.get_all(["name", "reason"]);
    let text = |raw: Raw| raw.as_str().map(Into::into);
    Some(RejectedItem { kind, name: name.and_then(text), reason: reason.and_then(text)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(kind: ItemKind, page: &str) -> Raw {
        let mut pages = PageReader::new(kind, false);
        assert!(pages.add(&Raw::from_text(page).unwrap()).is_ok());
        list_object(&pages.finish())
    }

    fn file() -> String {
        let spoken = NegotiatedProtocol { is_modern: true, transport: RemoteTransport::Streamable };
        let tools = list(ItemKind::Tool, r#"{"tools":[{"name":"t","inputSchema":{}}]}"#);
        let prompts = list(ItemKind::Prompt, r#"{"prompts":[{"name":"p"}]}"#);
        let lists = Raw::empty_object().with("prompts", &prompts);
        with_lists(&file_object(spoken, &tools), &lists).text().to_owned()
    }

    fn read(text: &str) -> Option<CachedServer> {
        server_of(&file_of_text(text)?, &ItemKind::ALL)
    }

    #[test]
    fn files_that_are_damaged_old_or_of_another_version_are_not_believed() {
        let good = file();
        assert!(read(&good).is_some());
        // Files of earlier versions have no such members.
        assert!(read(&good.replace("\"setAside\"", "\"other\"")).is_some());
        assert!(read(&good.replace("\"lists\"", "\"other\"")).is_some());
        for bad in [
            good.replace("\"version\":1", "\"version\":2"),
            good.replace("\"savedAt\":", "\"savedAt\":1,\"was\":"),
            good.replace("\"savedAt\":", "\"savedAt\":9"),
            good.replace("\"tools\"", "\"things\""),
            good.get(..good.len() / 2).unwrap().to_owned(),
            String::new(),
        ] {
            assert!(read(&bad).is_none(), "{bad}");
        }
    }

    /// Each list has its own age: tools are listed with every start, prompts seldom.
    #[test]
    fn an_old_or_damaged_list_is_dropped_and_the_tools_stay() {
        let good = file();
        let prompts = |text: &str| read(text).unwrap().lists.take(ItemKind::Prompt);
        assert_eq!(prompts(&good).unwrap().items[0].name(), "p");
        let (tools, lists) = good.split_at_checked(good.find("\"lists\"").unwrap()).unwrap();
        for lists in [
            lists.replace("\"savedAt\":", "\"savedAt\":1,\"was\":"),
            lists.replace("\"savedAt\":", "\"savedAt\":9"),
            lists.replace("\"prompts\":[", "\"things\":["),
            "\"lists\":7}".to_owned(),
        ] {
            let text = format!("{tools}{lists}");
            assert!(read(&text).is_some(), "{text}");
            assert!(prompts(&text).is_none(), "{text}");
            assert!(other_lists(&file_of_text(&text).unwrap()).get("resources").is_none());
        }
    }
}
