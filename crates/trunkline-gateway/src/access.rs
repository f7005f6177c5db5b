//! Who may ask for what: scopes, tokens, and budgets of bytes per principal.

pub(crate) mod scope;
pub(crate) mod tokens;
pub(crate) mod budget;
