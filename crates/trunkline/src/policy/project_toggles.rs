//! The toggles of a project and of its conversations, as they are stored (TOOL-9).

use std::collections::BTreeMap;

use super::toggles::Toggles;
use crate::name::ConversationName;

/// The toggles of a project and of its conversations. Where both have a toggle for the same server or item,
/// that of the conversation applies.
///
/// ```
/// use trunkline::name::{ConversationName, ServerName};
/// use trunkline::policy::{ProjectToggles, Toggle};
///
/// let (github, chat) = (ServerName::new("github").unwrap(), ConversationName::new("chat-7").unwrap());
/// let mut toggles = ProjectToggles::default();
/// toggles.entry(None).set(&github, Toggle::Off);
/// toggles.entry(Some(&chat)).set(&github, Toggle::On);
/// assert_eq!(toggles.merged(None).get(&github), Toggle::Off);
/// assert_eq!(toggles.merged(Some("chat-7")).get(&github), Toggle::On);
/// assert_eq!(toggles.merged(Some("another")).get(&github), Toggle::Off);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectToggles {
    project: Toggles,
    conversations: BTreeMap<ConversationName, Toggles>,
}

impl ProjectToggles {
    /// Toggles that could not be read: every server is off, because they may have switched it off.
    pub fn unreadable() -> Self {
        Self { project: Toggles::unreadable(), ..Self::default() }
    }

    /// Whether the toggles could not be read.
    pub fn is_unreadable(&self) -> bool {
        self.project.is_unreadable()
    }

    /// The toggles of a conversation, or of the whole project, to change them.
    pub fn entry(&mut self, conversation: Option<&ConversationName>) -> &mut Toggles {
        match conversation {
            Some(name) => self.conversations.entry(name.clone()).or_default(),
            None => &mut self.project,
        }
    }

    /// The toggles that a conversation, or the whole project, has itself.
    pub fn get(&self, conversation: Option<&str>) -> Option<&Toggles> {
        match conversation {
            Some(name) => self.conversations.get(name),
            None => Some(&self.project),
        }
    }

    /// Forgets a conversation. Returns whether it was known.
    pub fn remove(&mut self, conversation: &str) -> bool {
        self.conversations.remove(conversation).is_some()
    }

    /// All conversations with toggles, by name.
    pub fn conversations(&self) -> impl Iterator<Item = (&ConversationName, &Toggles)> {
        self.conversations.iter()
    }

    /// The toggles that apply in a conversation, or in none.
    pub fn merged(&self, conversation: Option<&str>) -> Toggles {
        let mut toggles = self.project.clone();
        if let Some(own) = conversation.and_then(|name| self.conversations.get(name)) {
            toggles.extend(own);
        }
        toggles
    }

    /// Whether nothing is switched off, in no conversation.
    pub fn is_empty(&self) -> bool {
        self.project.is_empty() && self.conversations.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::ItemKind;
    use crate::name::ServerName;
    use crate::policy::Toggle;

    #[test]
    fn unreadable_toggles_switch_every_server_off() {
        let server = ServerName::new("any").unwrap();
        let toggles = ProjectToggles::unreadable();
        assert_eq!(toggles.merged(Some("chat")).get(&server), Toggle::Off);
        assert!(!toggles.is_empty());
        // A conversation cannot switch on what may have been switched off.
        let mut toggles = toggles;
        let chat = ConversationName::new("chat").unwrap();
        toggles.entry(Some(&chat)).set_item(ItemKind::Tool, "any_tool", Toggle::On);
        assert_eq!(toggles.merged(Some("chat")).get(&server), Toggle::Off);
    }

    #[test]
    fn an_item_toggle_of_a_conversation_goes_over_that_of_the_project() {
        let chat = ConversationName::new("chat").unwrap();
        let mut toggles = ProjectToggles::default();
        toggles.entry(None).set_item(ItemKind::Tool, "time_now", Toggle::Off);
        toggles.entry(Some(&chat)).set_item(ItemKind::Tool, "time_now", Toggle::On);
        let now = |name| toggles.merged(name).get_item(ItemKind::Tool, "time_now");
        assert_eq!((now(None), now(Some("chat"))), (Toggle::Off, Toggle::On));
    }
}
