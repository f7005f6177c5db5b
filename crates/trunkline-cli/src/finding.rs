//! From a name on the command line to what it stands for: which servers are asked, and what is said
//! if it leads nowhere.

use anyhow::Result;
use trunkline::call::CallError;
use trunkline::catalog::Kind;
use trunkline::error::Error;
use trunkline::name::ServerName;
use trunkline::view::{NoRoute, View};

use crate::arguments::{WhoArguments, quoted};
use crate::exit::Failure;
use crate::servers::{Asked, Hosted, say_failures};
use crate::terminal::Terminal;

/// Something that is looked for on behalf of somebody.
pub(crate) struct Search<'a> {
    pub(crate) hosted: &'a Hosted,
    pub(crate) who: &'a WhoArguments,
    pub(crate) name: &'a str,
}

/// What came of a look.
struct Look {
    view: View,
    /// Why servers cannot be used.
    failures: Vec<Error>,
    /// Nothing if the name leads somewhere.
    nowhere: Option<Nowhere>,
}

/// A name that leads nowhere.
struct Nowhere {
    error: CallError,
    /// Whether something is known of it: it is hidden, down, or looks like another.
    is_known: bool,
}

impl Search<'_> {
    /// A view in which the name of a tool or a prompt leads somewhere. Only those servers are
    /// started that can have something of that name.
    pub(crate) async fn named(&self, kind: Kind, terminal: &mut Terminal) -> Result<View> {
        // An agent that does not exist is said before anything is started.
        self.hosted.view(self.who)?;
        let owners = owners(self.hosted, self.name);
        if owners.is_empty() {
            let look = self.look(kind, Asked::All, terminal).await?;
            return self.finish(kind, look, terminal);
        }
        let mut look = self.look(kind, Asked::Only(&owners), terminal).await?;
        if look.nowhere.is_some()
            && let Some(error) = look.failures.pop()
        {
            say_failures(&look.failures, terminal);
            return Err(Failure::unavailable(&error).into());
        }
        let is_strange = look.nowhere.as_ref().is_some_and(|nowhere| !nowhere.is_known);
        if is_strange && self.switched_off().is_none() {
            look = self.look(kind, Asked::All, terminal).await?;
        }
        self.finish(kind, look, terminal)
    }

    /// A view in which an address leads somewhere.
    pub(crate) async fn address(&self, asked: Asked<'_>, terminal: &mut Terminal) -> Result<View> {
        self.hosted.view(self.who)?;
        let kinds = [Kind::Resource, Kind::ResourceTemplate];
        let failures = self.hosted.gather(asked, &kinds, terminal).await;
        let view = self.hosted.view(self.who)?;
        let nowhere = view.route_resource(self.name).err().map(|none| self.nowhere(&view, none));
        self.finish(Kind::Resource, Look { view, failures, nowhere }, terminal)
    }

    async fn look(&self, kind: Kind, asked: Asked<'_>, terminal: &mut Terminal) -> Result<Look> {
        let failures = self.hosted.gather(asked, &[kind], terminal).await;
        let view = self.hosted.view(self.who)?;
        let nowhere = view.route(kind, self.name).err().map(|none| self.nowhere(&view, none));
        Ok(Look { view, failures, nowhere })
    }

    fn nowhere(&self, view: &View, none: NoRoute<'_>) -> Nowhere {
        let is_known = match &none {
            NoRoute::Denied(_) => true,
            NoRoute::Unknown { kind, suggestions, .. } => {
                !suggestions.is_empty() || is_there(view, *kind, self.name)
            }
        };
        Nowhere { error: none.into(), is_known }
    }

    fn finish(&self, kind: Kind, look: Look, terminal: &Terminal) -> Result<View> {
        let Some(nowhere) = look.nowhere else { return Ok(look.view) };
        say_failures(&look.failures, terminal);
        let failure = Failure::from(nowhere.error);
        let failure = if is_there(&look.view, kind, self.name) {
            let (name, who) = (quoted(self.name), self.who.written());
            failure.with_hint(format!("it is hidden: `trunkline explain {name}{who}` says why"))
        } else if let Some(server) = self.switched_off() {
            failure.with_hint(format!("its server `{server}` is switched off"))
        } else {
            failure
        };
        Err(failure.into())
    }

    /// The server that would have the name, if it is switched off.
    pub(crate) fn switched_off(&self) -> Option<ServerName> {
        let catalog = self.hosted.host.catalog();
        let owner = catalog.namespaces().owner(self.name)?;
        let server = self.hosted.loaded.config.server(owner.as_str())?;
        (!server.enabled).then(|| owner.clone())
    }
}

/// Whether there is something of a name, whoever may see it.
fn is_there(view: &View, kind: Kind, name: &str) -> bool {
    match kind {
        Kind::Tool | Kind::Prompt => view.catalog().get(kind, name).is_some(),
        Kind::Resource | Kind::ResourceTemplate => !view.catalog().resolve(name).is_empty(),
    }
}

/// The servers whose names a name looks like one of. Several may have one prefix.
pub(crate) fn owners(hosted: &Hosted, name: &str) -> Vec<ServerName> {
    let catalog = hosted.host.catalog();
    let spaces = catalog.namespaces();
    let Some(owner) = spaces.owner(name) else { return Vec::new() };
    let prefix = spaces.prefix(owner);
    let servers = hosted.loaded.config.servers().map(|server| &server.name);
    servers.filter(|server| spaces.prefix(server) == prefix).cloned().collect()
}
