//! Links in a result, as they can be followed: a call starts one server, and knows nothing of what the
//! others have.

use std::path::Path;

use trunkline::call::Outcome;
use trunkline::catalog::{Catalog, Kind};
use trunkline::content::with_addresses;
use trunkline::host::Patience;
use trunkline::name::{address_of, split_address};

use crate::environment::Environment;
use crate::servers::Hosted;

const ADDRESSED: [Kind; 2] = [Kind::Resource, Kind::ResourceTemplate];

/// A result with links that lead to its own server, whatever the others have. Those that name it already
/// stay as they are, and so do those that lead nowhere, and those to files that were kept of the result.
pub(crate) async fn followable(
    mut called: Outcome,
    hosted: &Hosted,
    (environment, kept): (&Environment, Option<&Path>),
) -> Outcome {
    // Where addresses are known, the library has written them already.
    if knows_addresses(&hosted.host.catalog()) || !has_links(&called) {
        return called;
    }
    let server = called.server().clone();
    let patience = Patience::UntilAllAreReady;
    hosted.host.gather_of(std::slice::from_ref(&server), &ADDRESSED, patience).await;
    let catalog = hosted.host.catalog();
    let has_others = hosted.all().len() > 1;
    let is_kept = |uri: &str| {
        let name = uri.strip_prefix("file:").and_then(|path| path.rsplit('/').next());
        let path = kept.zip(name).map(|(folder, name)| folder.join(name));
        path.is_some_and(|path| environment.has_file(&path))
    };
    let exposed = |uri: &str| {
        let is_named = split_address(uri).is_some_and(|(named, _)| named == server);
        if is_named || is_kept(uri) {
            return None;
        }
        let whole = address_of(&server, uri);
        let leads_somewhere = has_others && catalog.may_have(&server, uri);
        catalog.exposed_address(&server, uri).or(leads_somewhere.then_some(whole))
    };
    called.result = with_addresses(&called.result, &exposed);
    called
}

fn knows_addresses(catalog: &Catalog) -> bool {
    ADDRESSED.iter().any(|kind| !catalog.entries(*kind).is_empty())
}

fn has_links(called: &Outcome) -> bool {
    let marked = with_addresses(&called.result, &|_| Some(String::new()));
    marked != called.result
}
