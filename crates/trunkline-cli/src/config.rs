//! The configuration of a command: loading it, consent to it, and how it is displayed.

pub(crate) mod load;
pub(crate) mod secrets;
pub(crate) mod logins;
pub(crate) mod display;
pub(crate) mod nested_command;
pub(crate) mod inspection;
pub(crate) mod consent;
pub(crate) mod trusted_edit;
