//! Ranking of MCP tools: finds the few tools among thousands that fit a description of a task.
//!
//! An [`Index`] holds the texts of tools as [`Document`]s; [`Index::search`] ranks them for a
//! [`Query`].

pub mod limits;
mod parameters;
mod stem;
mod stop_words;
mod words;
mod document;
mod vectors;
mod options;
mod vocabulary;
mod reader;
mod index;
mod visible;
mod query;
mod sums;
mod scores;
mod search;
mod explain;
pub mod flat;

pub use document::{Document, Field};
pub use explain::{Explanation, TermContribution};
pub use index::{Entry, Index};
pub use options::{FieldOptions, Options};
pub use parameters::{Schema, parameter_texts};
pub use query::{DEFAULT_HITS, Query};
pub use search::Hit;
pub use vectors::word_vector_table;
pub use visible::Visible;
