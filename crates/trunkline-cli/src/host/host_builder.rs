//! Builders of hosts with the environment, logins, cache, toggles and background service of the program.

use std::sync::Arc;
use std::time::Duration;

use trunkline::config::LoadedConfig;
use trunkline::connection::ChildOptions;
use trunkline::host::{Host, HostBuilder};

use super::state;
use crate::config::logins::{Browser, oauth};
use crate::environment::ProcessEnv;
use crate::roots::{RootsHandler, ServerRoots};
use crate::settings::Settings;
#[cfg(unix)]
use crate::socket::kept_processes::KeptProcesses;

/// Delay of the cache files of gateways and of the service. When they start, many servers do, and a file costs as much as a
/// tenth of the start of its server.
pub(crate) const CACHE_WRITE_DELAY: Duration = Duration::from_secs(1);

/// A builder of hosts in the environment of this process.
pub(crate) fn builder(environment: &Arc<ProcessEnv>) -> HostBuilder {
    builder_with(environment, environment.child_options())
}

/// The same with options for child processes that have been made already.
pub(crate) fn builder_with(environment: &Arc<ProcessEnv>, child: ChildOptions) -> HostBuilder {
    Host::builder()
        .resolver(Arc::clone(environment) as _)
        .child_options(child)
        .http_options(environment.http_options())
}

/// The same with the logins of the user, and a cache directory.
pub(crate) fn with_cache(
    builder: HostBuilder,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
) -> HostBuilder {
    let builder = builder.oauth(oauth(settings, environment, Browser::Unknown));
    // A server on the command line may be under development: its lists of the last run are not used.
    match environment.memory_directory().filter(|_| settings.server.is_none()) {
        Some(folder) => builder.cache_dir(folder),
        None => builder,
    }
}

/// The same with the processes that a running service or gateway keeps, which need not be started.
pub(crate) fn with_service(
    builder: HostBuilder,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    roots: &Arc<ServerRoots>,
) -> HostBuilder {
    #[cfg(unix)]
    if settings.uses_service
        && let Some(processes) = KeptProcesses::new(roots, environment)
    {
        return builder.streams(Arc::new(processes));
    }
    #[cfg(not(unix))]
    let _ = (settings.uses_service, environment, roots);
    builder
}

/// The same with the stored toggles of the project.
pub(crate) fn with_state(
    builder: HostBuilder,
    loaded: &LoadedConfig,
    environment: &ProcessEnv,
) -> HostBuilder {
    match state::of_project(loaded, environment) {
        Some(state) => builder.toggle_store(Arc::new(state)),
        None => builder,
    }
}

/// The same for servers that ask for roots as they start.
pub(crate) fn with_roots(builder: HostBuilder, roots: &Arc<ServerRoots>) -> HostBuilder {
    match roots.are_declared() {
        true => builder.handler(Arc::new(RootsHandler(Arc::clone(roots)))),
        false => builder,
    }
}
