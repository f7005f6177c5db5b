//! The environment of a child process, and the options for tracking its descendants.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::sync::Arc;

use tokio::process::Command;

use super::ancestry::{self, ChainMarker};
use super::spawn_id;
use crate::config::{
    CHAIN_VARIABLE, Chain, InheritEnv, Inheritance, ResolvedStdio, Secret, inherited_secrets,
};
use crate::transport::stdio::watchdog;

/// A variable of the host. What depends on its name and value alone is found once, and not again for each server.
struct HostVariable {
    name: OsString,
    value: OsString,
    inheritance: Inheritance,
    secrets: Vec<Secret>,
}

impl HostVariable {
    fn new(name: OsString, value: OsString) -> Self {
        let inheritance = Inheritance::of(&name.to_string_lossy());
        let text = name.to_str().zip(value.to_str());
        let secrets = text.map_or_else(Vec::new, |(name, value)| inherited_secrets(name, value));
        Self { name, value, inheritance, secrets }
    }
}

/// Options for child processes: the environment they inherit, and how their descendants are
/// tracked.
#[derive(Clone, Default)]
pub struct ChildOptions {
    /// The variables of the host, including credentials.
    variables: Arc<[HostVariable]>,
    /// The spawn IDs of the hosts around this one.
    pub(super) outer: Option<OsString>,
    pub(super) is_subreaper: bool,
    pub(super) with_cgroups: bool,
    /// This process and the Trunkline processes above it, passed to servers in [`CHAIN_VARIABLE`],
    /// which no configuration entry can change.
    pub(super) chain: Chain,
    /// Publishes the chain to descendants that do not get the variable.
    pub(super) marker: Arc<ChainMarker>,
}

impl ChildOptions {
    /// Takes the variables of the host's environment. Each server inherits those that
    /// [`InheritEnv::passes`] allows (CON-7).
    pub fn from_environment(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut options = Self::default();
        let mut of_servers = Vec::new();
        let mut above = String::new();
        for (name, value) in variables {
            if name == spawn_id::VARIABLE {
                options.outer = Some(value);
            } else if name == CHAIN_VARIABLE {
                above = value.to_string_lossy().into_owned();
            } else {
                of_servers.push(HostVariable::new(name, value));
            }
        }
        options.variables = of_servers.into();
        options.chain = ancestry::chain_below(&above);
        options
    }

    /// The same for servers of another host in this process. They may use a gateway of this host, which would refuse
    /// its own servers (CON-16).
    #[must_use]
    pub fn for_another_host(&self) -> Self {
        Self { chain: self.chain.with_another_id(), marker: Arc::default(), ..self.clone() }
    }

    /// Starts the watchdog of this process on a thread: it ends all servers if this process is killed. Otherwise it
    /// starts with the first server, which waits for it. No effect if it runs, and on Windows, which has none.
    pub fn start_watchdog() {
        watchdog::start_early();
    }

    /// The variables of the host with these names.
    pub(crate) fn variables_named(&self, names: &[&str]) -> Vec<(OsString, OsString)> {
        let is_named = |it: &&HostVariable| names.iter().any(|name| it.name == *name);
        let named = self.variables.iter().filter(is_named);
        named.map(|it| (it.name.clone(), it.value.clone())).collect()
    }

    /// The variables that a server inherits.
    pub fn inherited<'o>(
        &'o self,
        inherit: &'o InheritEnv,
    ) -> impl Iterator<Item = (&'o OsStr, &'o OsStr)> {
        self.passed(inherit).map(|it| (&*it.name, &*it.value))
    }

    /// The variables that a server inherits because its `inheritEnv` requests them.
    pub(crate) fn inherited_on_request<'o>(
        &'o self,
        inherit: &'o InheritEnv,
    ) -> impl Iterator<Item = (&'o OsStr, &'o OsStr)> {
        let named = self.passed(inherit).filter(|it| it.inheritance == Inheritance::IfRequested);
        named.map(|it| (&*it.name, &*it.value))
    }

    /// The secrets in the variables that a server inherits.
    pub(in crate::transport) fn inherited_secrets<'o>(
        &'o self,
        inherit: &'o InheritEnv,
    ) -> impl Iterator<Item = &'o Secret> {
        self.passed(inherit).flat_map(|it| &it.secrets)
    }

    fn passed<'o>(&'o self, inherit: &'o InheritEnv) -> impl Iterator<Item = &'o HostVariable> {
        let passes =
            |it: &HostVariable| inherit.passes_with(it.inheritance, || it.name.to_string_lossy());
        self.variables.iter().filter(move |it| passes(it))
    }

    /// Sets the environment of a server: the variables it inherits, those of its entry, and the chain.
    pub(super) fn set_env(&self, command: &mut Command, program: &ResolvedStdio) {
        command.env_clear().envs(self.inherited(&program.inherit_env));
        for (name, value) in &program.env {
            match value {
                Some(value) => command.env(&**name, value.expose()),
                None => command.env_remove(&**name),
            };
        }
        self.set_chain(command, &self.chain.variable(&program.identity));
    }

    /// Sets and publishes the chain of a server.
    pub(in crate::transport) fn set_chain(&self, command: &mut Command, chain: &str) {
        self.marker.publish(chain);
        command.env(CHAIN_VARIABLE, chain);
    }

    /// Makes this process the parent of every orphaned descendant (Linux:
    /// `PR_SET_CHILD_SUBREAPER`), so that no process of a server escapes by leaving its process
    /// group, clearing its environment and ending its parent. No effect on other systems.
    ///
    /// For programs whose only child processes are servers, because it affects the whole process:
    /// every orphan below it is attributed to a server. Orphans are reaped when they exit, and are
    /// ended after the last server.
    #[must_use]
    pub fn with_subreaper(self) -> Self {
        Self { is_subreaper: true, ..self }
    }

    /// Puts each server into its own cgroup below that of this process, where cgroup v2 exists and
    /// this process has permission (Linux 5.14 and later). No effect elsewhere.
    #[must_use]
    pub fn with_cgroups(self) -> Self {
        Self { with_cgroups: true, ..self }
    }

    /// This process and the Trunkline processes above it.
    pub(crate) fn chain(&self) -> &Chain {
        &self.chain
    }
}

impl fmt::Debug for ChildOptions {
    /// Prints no variables: some are credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildOptions").finish_non_exhaustive()
    }
}
