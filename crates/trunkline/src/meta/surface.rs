//! Which tools of a view a model receives directly, and whether it receives the meta tools.

use super::{ItemTool, MetaTool};
use crate::catalog::{Entry, ItemKind};
use crate::config::ToolMode;
use crate::message::Raw;
use crate::name::ServerName;
use crate::view::View;

/// Bytes of JSON per token, on average over definitions of real servers. A mode needs no exact
/// number: `trunkline tokens` counts with a tokenizer.
const BYTES_PER_TOKEN: usize = 4;

/// The tools that a model receives from a view.
#[derive(Clone, Copy, Debug)]
pub struct Surface<'v> {
    view: &'v View,
    /// `auto` resolved to one of the other modes.
    auto: ToolMode,
}

/// Estimated tokens of a definition.
pub fn estimated_tokens(definition: &Raw) -> usize {
    definition.bytes().len().div_ceil(BYTES_PER_TOKEN)
}

impl View {
    /// The tools that a model receives.
    pub fn surface(&self) -> Surface<'_> {
        let unresolved = Surface { view: self, auto: ToolMode::Auto };
        Surface { view: self, auto: unresolved.resolve_auto() }
    }

    /// The meta tool that a call of this name means; `None` if the caller has no meta tools.
    pub fn meta_tool(&self, name: &str) -> Option<MetaTool> {
        MetaTool::from_name(name).filter(|_| self.surface().answers_meta_tools())
    }

    /// Whether the model may have received a tool directly, now or before `auto` was resolved to
    /// another mode.
    pub fn may_be_direct(&self, entry: &Entry) -> bool {
        self.tool_mode(&entry.server().name) != ToolMode::Meta
    }

    /// The mode of the tools of a server.
    fn tool_mode(&self, server: &ServerName) -> ToolMode {
        let of_scope = self.caller().tool_mode(server);
        of_scope.unwrap_or_else(|| self.rules().surface().mode)
    }
}

impl<'v> Surface<'v> {
    /// The mode of the tools of a server; never `auto`, once that is resolved.
    fn mode(&self, server: &ServerName) -> ToolMode {
        match self.view.tool_mode(server) {
            ToolMode::Auto => self.auto,
            mode => mode,
        }
    }

    /// Whether all tools in mode `auto` fit into the token budget.
    fn resolve_auto(&self) -> ToolMode {
        let budget =
            usize::try_from(self.view.rules().surface().token_budget).unwrap_or(usize::MAX);
        if !self.modes().any(|mode| mode == ToolMode::Auto) {
            return ToolMode::Direct;
        }
        let mut tokens = 0;
        for entry in self.view.entries(ItemKind::Tool) {
            if self.view.tool_mode(&entry.server().name) == ToolMode::Auto {
                tokens += estimated_tokens(entry.definition());
            }
            if tokens > budget {
                return ToolMode::Meta;
            }
        }
        ToolMode::Direct
    }

    /// Whether the model receives the meta tools. Depends on the configuration only, except in
    /// mode `auto`.
    pub fn has_meta_tools(&self) -> bool {
        self.modes().any(|mode| match mode {
            ToolMode::Meta => true,
            ToolMode::Auto => self.auto == ToolMode::Meta,
            ToolMode::Direct => false,
        })
    }

    /// Whether the meta tools may be called: also while `auto` lists all tools directly, because a
    /// client may have received them before.
    pub fn answers_meta_tools(&self) -> bool {
        self.modes().any(|mode| mode != ToolMode::Direct)
    }

    /// The modes that the configuration gives to the caller.
    fn modes(&self) -> impl Iterator<Item = ToolMode> {
        let mut of_scope = self.view.caller().tool_modes().peekable();
        let of_all = of_scope.peek().is_none().then(|| self.view.rules().surface().mode);
        of_scope.chain(of_all)
    }

    /// Whether the model receives a tool for resources or prompts. Depends on the configuration
    /// only.
    pub fn has_item_tool(&self, tool: ItemTool) -> bool {
        let (of_scope, of_all) = (self.view.caller().item_tools(), self.view.rules().surface());
        match tool {
            ItemTool::ListResources | ItemTool::ReadResource => {
                of_scope.resources.unwrap_or(of_all.resources_as_tools)
            }
            ItemTool::ListPrompts | ItemTool::GetPrompt => {
                of_scope.prompts.unwrap_or(of_all.prompts_as_tools)
            }
        }
    }

    /// The tools for resources and prompts that the model receives.
    pub fn item_tools(&self) -> impl Iterator<Item = ItemTool> {
        let surface = *self;
        ItemTool::ALL.into_iter().filter(move |tool| surface.has_item_tool(*tool))
    }

    /// Whether the model receives this tool itself.
    pub fn is_direct(&self, entry: &Entry) -> bool {
        self.mode(&entry.server().name) == ToolMode::Direct
    }

    /// The tools that the model receives directly, sorted by exposed name.
    pub fn direct(&self) -> impl Iterator<Item = &'v Entry> {
        let surface = *self;
        self.view.entries(ItemKind::Tool).filter(move |entry| surface.is_direct(entry))
    }
}
