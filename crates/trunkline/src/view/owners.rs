//! Servers that may own a name or a URI that the catalog does not contain yet.

use super::View;
use crate::name::{ServerName, parse_qualified_uri};
use crate::policy::Visibility;

impl View {
    /// Servers that may have an item of this name, by its prefix. Servers whose item the caller
    /// could not see are left out, so that it learns nothing about them.
    pub fn possible_owners(&self, name: &str) -> Vec<ServerName> {
        let owners = self.catalog().namespaces().owners(name).into_iter();
        let is_possible =
            |owner: &&ServerName| self.could_contain_name(owner, name) == Visibility::Possible;
        owners.filter(is_possible).cloned().collect()
    }

    /// The server that a qualified URI names, if the caller could see the resource.
    pub fn possible_uri_owner(&self, uri: &str) -> Option<ServerName> {
        let (server, own) = parse_qualified_uri(uri)?;
        (self.could_contain_uri(&server, own) == Visibility::Possible).then_some(server)
    }
}
