//! Meta mode: a fixed set of tools by which a model searches, describes and calls all others
//! (BUN-3).
//!
//! A model that is given 527 tools reads about 85,000 tokens before the first word; with these it
//! reads about 700. The set depends on the configuration only, so that prompt caches hold, and
//! clients that ignore `list_changed` still find new tools.

mod arguments;
mod definitions;
mod visible_tools;
mod index;
mod signature;
mod surface;

pub use arguments::{ArgumentError, CallArguments, DescribeArguments, SearchArguments};
pub use definitions::MetaTool;
pub use index::{SearchHit, ToolIndex};
pub use signature::signature;
pub use surface::{Surface, estimated_tokens};
