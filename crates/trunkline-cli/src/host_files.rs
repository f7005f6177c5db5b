//! Configuration files of other hosts: the servers in them, and changes to them and to Trunkline's own file.

mod host_text;
mod literals;
mod host_rules;
mod references;
mod found;
mod selection;
mod plan;
mod change;
mod target;

pub(crate) use change::{FileChange, file_failure};
pub(crate) use found::{FoundServers, is_trunkline, user_environment};
pub(crate) use host_text::parse_host_text;
pub(crate) use literals::credential_notes;
pub(crate) use plan::{ImportPlan, PlannedServer, import_offer};
pub(crate) use selection::SelectedServers;
pub(crate) use target::{TargetChoice, TargetFile};
