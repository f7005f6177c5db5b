//! Meta mode: a fixed set of tools by which a model searches, describes and calls all others
//! (BUN-3).
//!
//! A model that is given 527 tools reads about 85,000 tokens before the first word; with these it
//! reads about 700. The set depends on the configuration only, so that prompt caches hold, and
//! clients that ignore `list_changed` still find new tools.
//!
//! Beside them, or beside the servers' tools, are those for resources and prompts (TOOL-14).

mod arguments;
mod definitions;
mod visible_tools;
mod index;
mod signature;
mod shown;
mod item_arguments;
mod item_tools;
mod item_line;
mod surface;

pub use arguments::{ArgumentError, CallArguments, DescribeArguments, SearchArguments};
pub use definitions::MetaTool;
pub use index::{SearchHit, ToolIndex};
pub use item_arguments::{ItemListArguments, ItemRequest};
pub(crate) use item_line::{item_contains, item_line};
pub use item_tools::ItemTool;
pub use shown::{MAX_SHOWN_TOOLS, ShownTool, ShownToolSet};
pub use signature::{parameter_list, parameter_type, search_line, signature};
pub use surface::{Surface, estimated_tokens};

#[cfg(test)]
mod tests {
    use super::{ItemTool, MetaTool};
    use crate::name::HOST_TOOL_NAMES;

    #[test]
    fn names_of_all_tools_of_the_host_are_reserved() {
        let meta = MetaTool::ALL.into_iter().map(MetaTool::name);
        let names: Vec<_> = meta.chain(ItemTool::ALL.into_iter().map(ItemTool::name)).collect();
        assert_eq!(names, HOST_TOOL_NAMES);
    }
}
