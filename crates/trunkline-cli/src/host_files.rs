//! Configuration files of other hosts: the servers in them, and changes to them and to Trunkline's own file.

mod literals;
mod found;
mod plan;
mod change;
mod target;

pub(crate) use change::FileChange;
pub(crate) use found::{FoundServers, import_offer, user_environment};
pub(crate) use plan::{ImportPlan, PlannedServer};
pub(crate) use target::{TargetChoice, TargetFile};
