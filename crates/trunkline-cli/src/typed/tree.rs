//! Arguments under construction: nested objects and lists, with values as they were written.

use serde_json::Value;
use trunkline::message::Raw;

/// An object with its members in the order of their first use.
#[derive(Debug, Default)]
pub(super) struct ArgumentTree {
    members: Vec<(String, TreeNode)>,
}

#[derive(Debug)]
enum TreeNode {
    Value(Raw),
    Items(Vec<Raw>),
    Object(ArgumentTree),
}

impl ArgumentTree {
    /// Adds a value at a path of keys. The error is the key whose place is taken by a value of another kind.
    pub(super) fn insert(
        &mut self,
        path: &[String],
        is_item: bool,
        value: Raw,
    ) -> Result<(), String> {
        let Some((first, rest)) = path.split_first() else { return Ok(()) };
        let conflict = || first.clone();
        let node = match self.members.iter().position(|(name, _)| name == first) {
            Some(at) => self.members.get_mut(at).map(|(_, node)| node),
            None => {
                let node = match (rest.is_empty(), is_item) {
                    (false, _) => TreeNode::Object(Self::default()),
                    (true, true) => TreeNode::Items(Vec::new()),
                    (true, false) => {
                        self.members.push((first.clone(), TreeNode::Value(value)));
                        return Ok(());
                    }
                };
                self.members.push((first.clone(), node));
                self.members.last_mut().map(|(_, node)| node)
            }
        };
        match (node, rest.is_empty()) {
            (Some(TreeNode::Object(object)), false) => {
                object.insert(rest, is_item, value).map_err(|below| format!("{first}.{below}"))
            }
            (Some(TreeNode::Items(items)), true) if is_item => {
                items.push(value);
                Ok(())
            }
            _ => Err(conflict()),
        }
    }

    pub(super) fn to_raw(&self) -> Raw {
        let mut object = Raw::from_value(&Value::Object(serde_json::Map::new()));
        for (name, node) in &self.members {
            let value = match node {
                TreeNode::Value(value) => value.clone(),
                TreeNode::Items(items) => Raw::from_items(items),
                TreeNode::Object(tree) => tree.to_raw(),
            };
            object = object.with(name, &value);
        }
        object
    }
}
