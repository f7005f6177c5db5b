//! Access control: scopes, tokens, and byte budgets per principal.

pub(crate) mod scope;
pub(crate) mod tokens;
pub(crate) mod budget;
