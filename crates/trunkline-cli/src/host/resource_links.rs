//! Rewrites resource links in a result so that they can be read: a call starts only one server, so
//! the resources of others are unknown.

use std::path::Path;

use trunkline::call::Outcome;
use trunkline::catalog::{Catalog, ItemKind};
use trunkline::content::rewrite_uris;
use trunkline::host::WaitFor;
use trunkline::name::{parse_qualified_uri, qualified_uri};

use super::command_host::CommandHost;
use crate::environment::ProcessEnv;

const ADDRESSED: [ItemKind; 2] = [ItemKind::Resource, ItemKind::ResourceTemplate];

/// Qualifies links in a result with its server. Links stay unchanged if they are qualified already,
/// if the server has no such resource, or if they point to saved artifacts.
pub(crate) async fn with_readable_links(
    mut called: Outcome,
    hosted: &CommandHost,
    (environment, kept): (&ProcessEnv, Option<&Path>),
) -> Outcome {
    // Where resource lists are known, the library has rewritten the links already.
    if has_resource_lists(&hosted.host.catalog()) || !has_links(&called) {
        return called;
    }
    let Some(server) = called.server().cloned() else { return called };
    let patience = WaitFor::AllReady;
    hosted.host.refresh_servers(std::slice::from_ref(&server), &ADDRESSED, patience).await;
    let catalog = hosted.host.catalog();
    let has_others = hosted.all().len() > 1;
    let is_kept = |uri: &str| {
        let name = uri.strip_prefix("file:").and_then(|path| path.rsplit('/').next());
        let path = kept.zip(name).map(|(folder, name)| folder.join(name));
        path.is_some_and(|path| environment.has_file(&path))
    };
    let exposed = |uri: &str| {
        let is_named = parse_qualified_uri(uri).is_some_and(|(named, _)| named == server);
        if is_named || is_kept(uri) {
            return None;
        }
        let whole = qualified_uri(&server, uri);
        let leads_somewhere = has_others && catalog.may_have(&server, uri);
        catalog.exposed_uri(&server, uri).or(leads_somewhere.then_some(whole))
    };
    called.result = rewrite_uris(&called.result, &exposed);
    called
}

fn has_resource_lists(catalog: &Catalog) -> bool {
    ADDRESSED.iter().any(|kind| !catalog.entries(*kind).is_empty())
}

fn has_links(called: &Outcome) -> bool {
    let marked = rewrite_uris(&called.result, &|_| Some(String::new()));
    marked != called.result
}
