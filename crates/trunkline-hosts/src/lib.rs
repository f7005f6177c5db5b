//! Configuration files of other AI hosts: where they are, and how one server entry is put in or taken out.
//!
//! Everything here is for the command line: it lists the files of a user, adds the entry of the gateway to one, and
//! shows or writes the change. Entries of other servers are not interpreted. Nothing reads the environment of the
//! process: callers pass it as a [`UserEnvironment`](system::UserEnvironment).

pub mod system;
pub mod edit;
pub mod hosts;
pub mod entry;
pub mod file;
