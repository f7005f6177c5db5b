//! Toggles of conversations at run time: changed through the host, kept in a store, in force at once (TOOL-9).

use std::sync::Arc;

use tokio::sync::{Mutex, watch};

use super::blocking::blocking;
use super::toggle_store::{ToggleStore, ToggleStoreError};
use super::{ActiveConfig, Host, HostCaller};
use crate::config::Config;
use crate::item::ItemKind;
use crate::name::{ConversationName, ServerName};
use crate::policy::{CallerSpec, Disclosure, ProjectToggles, Toggle, Toggles};

/// A server, tool or prompt that has a toggle; items by their exposed names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToggleSubject {
    /// All items of a server.
    Server(ServerName),
    /// One tool.
    Tool(Box<str>),
    /// One prompt.
    Prompt(Box<str>),
}

impl ToggleSubject {
    /// Sets the toggle, or forgets it: then the project decides for a conversation, and the configuration for
    /// a project.
    pub fn apply(&self, toggles: &mut Toggles, toggle: Option<Toggle>) {
        match (self, toggle) {
            (Self::Server(server), Some(toggle)) => toggles.set(server, toggle),
            (Self::Server(server), None) => toggles.unset(server),
            (Self::Tool(name), Some(toggle)) => toggles.set_item(ItemKind::Tool, name, toggle),
            (Self::Tool(name), None) => toggles.unset_item(ItemKind::Tool, name),
            (Self::Prompt(name), Some(toggle)) => toggles.set_item(ItemKind::Prompt, name, toggle),
            (Self::Prompt(name), None) => toggles.unset_item(ItemKind::Prompt, name),
        }
    }
}

/// The store of a host, and its last error.
#[derive(Default)]
pub(super) struct ConversationState {
    store: Option<Arc<dyn ToggleStore>>,
    /// Held while toggles are read or stored, so that the newest ones stay.
    order: Mutex<()>,
    problem: watch::Sender<Option<ToggleStoreError>>,
    /// Changes with the toggles.
    changed: watch::Sender<()>,
}

impl ConversationState {
    /// Reads the toggles of a store, for a host that starts. If that fails, every server is off.
    pub(super) fn load(store: Option<Arc<dyn ToggleStore>>) -> (Self, Arc<ProjectToggles>) {
        let state = Self { store, ..Self::default() };
        let Some(store) = &state.store else { return (state, Arc::default()) };
        match store.load() {
            Ok(toggles) => (state, Arc::new(toggles)),
            Err(error) => {
                state.problem.send_replace(Some(error));
                (state, Arc::new(ProjectToggles::unreadable()))
            }
        }
    }
}

/// The conversations of a host: which servers, tools and prompts are switched off in each.
///
/// ```
/// use trunkline::Host;
/// use trunkline::host::ToggleSubject;
/// use trunkline::name::{ConversationName, ServerName};
/// use trunkline::policy::Toggle;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let text = r#"{ "mcpServers": { "docs": { "command": "docs-server" } } }"#;
/// let host = Host::builder().config_text("mcp.json", text).start().await?;
/// let chat = ConversationName::new("chat-7")?;
/// let docs = ToggleSubject::Server(ServerName::new("docs")?);
/// host.conversations().set(Some(&chat), &[docs], Some(Toggle::Off)).await?;
///
/// // The view of that conversation has no items of `docs` any more; that of others has.
/// let caller = host.for_conversation(&chat);
/// assert!(!caller.view()?.caller().toggles().is_empty());
/// assert!(host.owner().view()?.caller().toggles().is_empty());
/// # host.shutdown().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Copy)]
pub struct Conversations<'h> {
    host: &'h Host,
}

impl Host {
    /// The toggles of conversations.
    pub fn conversations(&self) -> Conversations<'_> {
        Conversations { host: self }
    }

    /// The owner of the configuration in one conversation: what is switched off there does not exist.
    ///
    /// # Panics
    ///
    /// Never: the owner is always known.
    pub fn for_conversation(&self, conversation: &ConversationName) -> HostCaller {
        let spec = CallerSpec {
            conversation: Some(conversation.as_str()),
            disclosure: Disclosure::Reasons,
            ..CallerSpec::default()
        };
        self.for_caller(spec).expect("invariant: a caller without names is known")
    }
}

impl Conversations<'_> {
    /// All toggles that are in force.
    pub fn toggles(&self) -> Arc<ProjectToggles> {
        Arc::clone(self.host.shared.active.borrow().rules.toggles())
    }

    /// Switches servers, tools and prompts on or off in a conversation, or in the whole project; `None`
    /// forgets their toggles. In force when this returns; clients are notified of changed lists.
    ///
    /// # Errors
    ///
    /// When the toggles cannot be stored. Then nothing has changed.
    pub async fn set(
        &self,
        conversation: Option<&ConversationName>,
        subjects: &[ToggleSubject],
        toggle: Option<Toggle>,
    ) -> Result<(), ToggleStoreError> {
        let (conversation, subjects) = (conversation.cloned(), subjects.to_vec());
        self.update(move |stored| {
            let toggles = stored.entry(conversation.as_ref());
            subjects.iter().for_each(|subject| subject.apply(toggles, toggle));
            let is_empty = toggles.has_none();
            if let Some(name) = conversation.as_ref().filter(|_| is_empty) {
                stored.remove(name.as_str());
            }
        })
        .await
    }

    /// Forgets a conversation with all its toggles.
    ///
    /// # Errors
    ///
    /// When that cannot be stored. Then nothing has changed.
    pub async fn remove(&self, conversation: &ConversationName) -> Result<(), ToggleStoreError> {
        let conversation = conversation.clone();
        let forget = move |stored: &mut ProjectToggles| {
            stored.remove(conversation.as_str());
        };
        self.update(forget).await
    }

    async fn update(
        &self,
        change: impl Fn(&mut ProjectToggles) + Send + Sync + 'static,
    ) -> Result<(), ToggleStoreError> {
        let state = &self.host.shared.conversations;
        let _order = state.order.lock().await;
        let toggles = match state.store.clone() {
            Some(store) => blocking(move || store.update(&change)).await?,
            None => {
                let mut toggles = (*self.toggles()).clone();
                change(&mut toggles);
                toggles
            }
        };
        state.problem.send_replace(None);
        self.replace(toggles);
        Ok(())
    }

    /// Reads the store again, after another process has changed it. If it cannot be read, the toggles stay as
    /// they are.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub async fn reload(&self) -> Result<(), ToggleStoreError> {
        let state = &self.host.shared.conversations;
        let Some(store) = state.store.clone() else { return Ok(()) };
        let _order = state.order.lock().await;
        let loaded = blocking(move || store.load()).await;
        state.problem.send_replace(loaded.as_ref().err().cloned());
        self.replace(loaded?);
        Ok(())
    }

    /// Why the toggles could not be read, if so. If that was at the start, every server is off.
    pub fn problem(&self) -> Option<ToggleStoreError> {
        self.host.shared.conversations.problem.borrow().clone()
    }

    /// Completes whenever toggles have changed.
    pub fn watch(&self) -> watch::Receiver<()> {
        self.host.shared.conversations.changed.subscribe()
    }

    fn replace(&self, toggles: ProjectToggles) {
        let is_changed = self.host.shared.active.send_if_modified(|active| {
            let is_changed = **active.rules.toggles() != toggles;
            if is_changed {
                active.set_toggles(Arc::new(toggles));
            }
            is_changed
        });
        if is_changed {
            self.host.shared.conversations.changed.send_replace(());
        }
    }
}

impl Host {
    /// Makes another configuration active; the toggles stay. Returns that configuration.
    pub(super) fn replace_config(&self, mut next: ActiveConfig) -> Arc<Config> {
        let config = Arc::clone(&next.config);
        self.shared.active.send_modify(|active| {
            next.set_toggles(Arc::clone(active.rules.toggles()));
            *active = next;
        });
        config
    }
}

impl ActiveConfig {
    /// Replaces the toggles of conversations.
    pub(super) fn set_toggles(&mut self, toggles: Arc<ProjectToggles>) {
        self.rules = Arc::new((*self.rules).clone().with_toggles(toggles));
    }
}
