//! The value that a file has to have after an edit.

use serde_json::{Map, Value};

use super::{EntryLayout, KeyPath};

/// The key of the name of a server in a list.
pub(crate) const NAME_KEY: &str = "name";

/// The entry of a server.
pub(crate) fn find<'a>(root: &'a Value, path: &KeyPath, name: &str) -> Option<&'a Value> {
    let servers = path.keys().try_fold(root, |value, key| value.get(key))?;
    match path.layout() {
        EntryLayout::Map => servers.get(name),
        EntryLayout::List => servers.as_array()?.iter().find(|item| is_named(item, name)),
    }
}

fn is_named(item: &Value, name: &str) -> bool {
    item.get(NAME_KEY).and_then(Value::as_str) == Some(name)
}

/// The value with an entry. `None` if a value on the way is no object.
pub(crate) fn with_entry(
    mut root: Value,
    path: &KeyPath,
    name: &str,
    entry: Value,
) -> Option<Value> {
    let servers = path.keys().try_fold(&mut root, |value, key| {
        let object = as_object(value)?;
        Some(object.entry(key).or_insert(Value::Null))
    })?;
    match path.layout() {
        EntryLayout::Map => {
            as_object(servers)?.insert(name.to_owned(), entry);
        }
        EntryLayout::List => {
            if servers.is_null() {
                *servers = Value::Array(Vec::new());
            }
            let items = servers.as_array_mut()?;
            match items.iter_mut().find(|item| is_named(item, name)) {
                Some(item) => *item = entry,
                None => items.push(entry),
            }
        }
    }
    Some(root)
}

/// The value without an entry.
pub(crate) fn without_entry(mut root: Value, path: &KeyPath, name: &str) -> Option<Value> {
    let servers = path.keys().try_fold(&mut root, |value, key| value.get_mut(key))?;
    match path.layout() {
        EntryLayout::Map => {
            servers.as_object_mut()?.remove(name)?;
        }
        EntryLayout::List => {
            let items = servers.as_array_mut()?;
            let index = items.iter().position(|item| is_named(item, name))?;
            items.remove(index);
        }
    }
    Some(root)
}

/// The object of a value; null counts as an empty one.
fn as_object(value: &mut Value) -> Option<&mut Map<String, Value>> {
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut()
}

/// The value without empty objects on the path.
pub(crate) fn without_empty_parents(mut root: Value, path: &KeyPath) -> Value {
    let keys: Vec<&str> = path.keys().collect();
    for depth in (0..keys.len()).rev() {
        let (parents, rest) = keys.split_at_checked(depth).unwrap_or_default();
        let parent = parents.iter().try_fold(&mut root, |value, key| value.get_mut(*key));
        if let (Some(Value::Object(parent)), Some(key)) = (parent, rest.first())
            && parent.get(*key) == Some(&Value::Object(Map::new()))
        {
            parent.remove(*key);
        }
    }
    root
}

/// The value without the member at a path of keys.
pub(crate) fn without_value(mut root: Value, keys: &[&str]) -> Value {
    if let Some((last, parents)) = keys.split_last()
        && let Some(Value::Object(parent)) =
            parents.iter().try_fold(&mut root, |value, key| value.get_mut(*key))
    {
        parent.remove(*last);
    }
    root
}
