//! Allow and deny lists of a server or bundle.

use crate::config::decode::{Decoder, WithSpan};
use crate::config::model::{ListLocations, ToolLists};
use crate::config::raw::{AllowList, DenyList};

/// The locations of tool lists.
pub(super) fn list_places(
    allow: Option<&WithSpan<AllowList>>,
    deny: Option<&WithSpan<DenyList>>,
    decoder: &Decoder<'_>,
) -> ListLocations {
    ListLocations {
        allow: allow.map(|it| decoder.location(it.key)),
        deny: deny.map(|it| decoder.location(it.key)),
    }
}

/// An allow list that contains `*` allows everything, as in Copilot CLI.
pub(super) fn tool_lists(
    allow: Option<&WithSpan<AllowList>>,
    deny: Option<&WithSpan<DenyList>>,
) -> ToolLists {
    let texts = |names: &[WithSpan<Box<str>>]| -> Vec<Box<str>> {
        names.iter().map(|name| name.value.clone()).collect()
    };
    let allow = allow.map(|list| texts(&list.value.0));
    let allow = allow.filter(|names| !names.iter().any(|name| &**name == "*"));
    ToolLists { allow, deny: deny.map(|list| texts(&list.value.0)).unwrap_or_default() }
}
