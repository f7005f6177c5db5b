//! The projects of the service: one host per configuration and environment of clients. Their servers come
//! from one pool, so that clients for whom an entry means the same share its process.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;
use tracing::info;
use trunkline::config::{ToolMode, escape_control};
use trunkline::connection::Connection;
use trunkline::host::Host;
use trunkline::registry::ConnectionPool;
use trunkline_control::{
    Activity, ControlSource, OpenProject, TrustDecision, UnknownTrustRequest, types,
};
use trunkline_gateway::{Observer, client_capabilities};

use super::program_directories::ProgramDirectories;
use super::tail;
use crate::arguments::Format;
use crate::config::consent;
use crate::config::logins::{Browser, oauth};
use crate::config::secrets;
use crate::control::trust_requests::{self, ProjectFiles};
use crate::control::{audit, count_tokens};
use crate::environment::ProcessEnv;
use crate::gateway::health::report_on;
use crate::gateway::reload::{ConfigReloader, ReloadStatus};
use crate::host::host_builder;
use crate::host::server_status::server_statuses;
use crate::output::exit::Failure;
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::roots::RootsSetting;
use crate::settings::{Colors, Settings, Verbosity};
use crate::socket::hello::{ClientEnvironment, StderrSource};

/// How long a project without clients keeps its servers.
const IDLE: Duration = Duration::from_secs(5 * 60);

/// All projects. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Projects {
    shared: Arc<ProjectsShared>,
}

#[derive(Default)]
struct ProjectsShared {
    pool: ConnectionPool,
    open: Mutex<OpenProjects>,
    activity: Activity,
    /// The log of the service.
    log: OnceLock<PathBuf>,
}

#[derive(Default)]
struct OpenProjects {
    projects: HashMap<ProjectKey, Arc<ProjectSlot>>,
    /// Whether the service ends, and opens none any more.
    is_closed: bool,
    /// When the last client left.
    last_left: Option<Instant>,
}

/// What distinguishes two hosts.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ProjectKey {
    directory: PathBuf,
    config: Option<PathBuf>,
    mode: Option<String>,
    variables: u64,
}

impl ProjectKey {
    /// A name for addresses, the same while the service runs.
    fn id(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }

    fn of(client: &ClientEnvironment) -> Self {
        let mut variables = DefaultHasher::new();
        client.variables().for_each(|variable| variable.hash(&mut variables));
        Self {
            directory: client.directory.clone(),
            config: client.config.clone(),
            mode: client.mode.clone(),
            variables: variables.finish(),
        }
    }
}

/// A project that is starting or running.
struct ProjectSlot {
    project: OnceCell<Project>,
    use_count: Mutex<UseCount>,
}

#[derive(Clone, Copy)]
struct UseCount {
    clients: usize,
    /// When the last client left.
    since: Instant,
}

/// The host of a project, and the task that follows its files.
struct Project {
    /// Names it in addresses of the control API.
    id: String,
    host: Host,
    directory: PathBuf,
    files: ReloadStatus,
    /// How its configuration is found, to decide on trust.
    found: ProjectFiles,
    task: AbortHandle,
}

impl Project {
    async fn close(&self) {
        self.task.abort();
        self.host.shutdown().await;
    }
}

/// A project in use by a client.
pub(crate) struct ProjectLease {
    projects: Projects,
    slot: Arc<ProjectSlot>,
}

impl ProjectLease {
    /// Why a client may miss servers.
    pub(crate) fn notice(&self) -> Option<String> {
        let project = self.slot.project.get()?;
        let unreadable = project.host.conversations().toggles().is_unreadable();
        let problem = || project.files.problem(&project.host).filter(|_| unreadable);
        project.files.messages().notice.or_else(problem)
    }

    /// Its host, once it has started.
    pub(crate) fn host(&self) -> Option<&Host> {
        self.slot.project.get().map(|project| &project.host)
    }

    /// Records the requests of its clients.
    pub(crate) fn observer(&self) -> Option<Observer> {
        let project = self.slot.project.get()?;
        Some(self.projects.shared.activity.observer(&project.id))
    }
}

impl Drop for ProjectLease {
    fn drop(&mut self) {
        let mut open = self.projects.projects();
        let mut count = self.slot.count();
        count.clients -= 1;
        count.since = Instant::now();
        open.last_left = Some(count.since);
    }
}

impl ProjectSlot {
    fn count(&self) -> MutexGuard<'_, UseCount> {
        self.use_count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Projects {
    /// Opens the project of a client, or joins it; `None` if the service ends.
    ///
    /// # Errors
    ///
    /// If its configuration cannot be used at all.
    pub(crate) async fn open(&self, client: &ClientEnvironment) -> Result<Option<ProjectLease>> {
        let key = ProjectKey::of(client);
        let Some(lease) = self.enter(&key) else { return Ok(None) };
        let project = &lease.slot.project;
        let id = key.id();
        let project = project.get_or_try_init(|| start(client, id, &self.shared)).await?;
        // Closed meanwhile: it was not among the projects that had started.
        if self.projects().is_closed {
            project.close().await;
            return Ok(None);
        }
        Ok(Some(lease))
    }

    fn enter(&self, key: &ProjectKey) -> Option<ProjectLease> {
        let mut open = self.projects();
        if open.is_closed {
            return None;
        }
        let slot = open.projects.entry(key.clone()).or_insert_with(|| {
            let count = UseCount { clients: 0, since: Instant::now() };
            Arc::new(ProjectSlot { project: OnceCell::new(), use_count: Mutex::new(count) })
        });
        slot.count().clients += 1;
        Some(ProjectLease { projects: self.clone(), slot: Arc::clone(slot) })
    }

    /// The number of connected clients, and when the last one left.
    pub(crate) fn clients(&self) -> (usize, Option<Instant>) {
        let open = self.projects();
        let clients = open.projects.values().map(|slot| slot.count().clients).sum();
        (clients, open.last_left)
    }

    /// Closes projects that have had no client for long.
    pub(crate) async fn close_idle(&self) {
        let is_idle = |count: UseCount| count.clients == 0 && count.since.elapsed() > IDLE;
        let idle: Vec<_> = {
            let mut open = self.projects();
            open.projects.extract_if(|_, slot| is_idle(*slot.count())).collect()
        };
        close(idle.into_iter().map(|(_, slot)| slot)).await;
    }

    /// Closes all projects for good. When this returns, none of their servers is running.
    pub(crate) async fn close_all(&self) {
        let open = {
            let mut open = self.projects();
            open.is_closed = true;
            std::mem::take(&mut open.projects)
        };
        close(open.into_values()).await;
    }

    /// Restarts a server in all projects. Returns the directories of those that have it.
    pub(crate) async fn restart(&self, server: &str) -> Vec<String> {
        let hosts = self.hosts_with(server);
        for (_, host) in &hosts {
            host.close(server).await;
        }
        for connection in hosts.iter().filter_map(|(_, host)| host.servers().get(server)) {
            connection.start();
        }
        hosts.into_iter().map(|(directory, _)| directory).collect()
    }

    /// The lines that a server wrote last to standard error, of each of its processes.
    pub(crate) fn stderr(&self, server: &str) -> Vec<StderrSource> {
        let hosts = self.hosts_with(server);
        let is_named = |it: &&Arc<Connection>| it.server().name.as_str() == server;
        let source = |connection: &Arc<Connection>| {
            let projects = |is_its: &dyn Fn(&Arc<Connection>) -> bool| {
                let has_it = |host: &Host| host.servers().get(server).is_some_and(|it| is_its(&it));
                let found = hosts.iter().filter(|(_, host)| has_it(host));
                let mut found: Vec<_> = found.map(|(directory, _)| directory.clone()).collect();
                found.dedup();
                found
            };
            let mut directories = projects(&|it| Arc::ptr_eq(it, connection));
            if directories.is_empty() {
                // The process of one client.
                directories = projects(&|it| it.fingerprint() == connection.fingerprint());
            }
            StderrSource { directories, lines: connection.status().stderr }
        };
        self.shared.pool.connections().iter().filter(is_named).map(source).collect()
    }

    /// The directories and hosts of the projects with a server, sorted.
    fn hosts_with(&self, server: &str) -> Vec<(String, Host)> {
        let open = self.projects();
        let started = open.projects.values().filter_map(|slot| slot.project.get());
        let hosts = started.filter(|it| it.host.servers().get(server).is_some());
        let directory = |it: &Project| it.directory.to_string_lossy().into_owned();
        let mut hosts: Vec<_> = hosts.map(|it| (directory(it), it.host.clone())).collect();
        hosts.sort_by(|one, two| one.0.cmp(&two.0));
        hosts
    }

    /// The state of all projects and servers.
    pub(crate) fn status(&self) -> Value {
        let open = self.projects();
        let projects = open.projects.values().filter_map(|slot| {
            let project = slot.project.get()?;
            Some(json!({
                "directory": project.directory,
                "clients": slot.count().clients,
                "problem": project.files.problem(&project.host),
                "servers": server_statuses(&project.host),
            }))
        });
        let processes = self.shared.pool.connections().len();
        json!({ "projects": projects.collect::<Vec<_>>(), "connections": processes })
    }

    fn projects(&self) -> MutexGuard<'_, OpenProjects> {
        self.shared.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Projects {
    /// Shows this file as the log of the service.
    pub(crate) fn set_log(&self, path: PathBuf) {
        let _ = self.shared.log.set(path);
    }

    /// Requests of all clients.
    pub(crate) fn activity(&self) -> &Activity {
        &self.shared.activity
    }

    /// How the configurations of all projects are found.
    fn files(&self) -> Vec<ProjectFiles> {
        let open = self.projects();
        let started = open.projects.values().filter_map(|slot| slot.project.get());
        started.map(|project| project.found.clone()).collect()
    }
}

impl ControlSource for Projects {
    fn projects(&self) -> Vec<OpenProject> {
        let open = Self::projects(self);
        let project = |slot: &Arc<ProjectSlot>| {
            let project = slot.project.get()?;
            let info = types::Project {
                id: project.id.clone(),
                directory: project.directory.to_string_lossy().into_owned(),
                clients: Some(slot.count().clients),
                problem: project.files.problem(&project.host),
            };
            Some(OpenProject { info, host: project.host.clone() })
        };
        let mut projects: Vec<_> = open.projects.values().filter_map(project).collect();
        projects.sort_by(|one, two| {
            let key = |it: &OpenProject| (it.info.directory.clone(), it.info.id.clone());
            key(one).cmp(&key(two))
        });
        projects
    }

    fn trust_requests(&self) -> Vec<types::TrustRequest> {
        trust_requests::requests(&self.files())
    }

    fn decide(
        &self,
        id: &str,
        decision: TrustDecision,
    ) -> Result<Result<(), UnknownTrustRequest>, String> {
        trust_requests::decide(&self.files(), id, decision)
    }

    fn log(&self, lines: usize) -> Vec<String> {
        let path = self.shared.log.get();
        path.and_then(|path| tail::last_lines(path, lines).ok()).unwrap_or_default()
    }

    fn tokens(&self, definition: &str) -> Option<usize> {
        count_tokens(definition)
    }
}

async fn close(slots: impl Iterator<Item = Arc<ProjectSlot>>) {
    let closing: Vec<JoinHandle<()>> = slots
        .map(|slot| {
            tokio::spawn(async move {
                if let Some(project) = slot.project.get() {
                    project.close().await;
                }
            })
        })
        .collect();
    for closing in closing {
        let _ = closing.await;
    }
}

/// Starts the host of a client, in the environment of that client.
async fn start(
    client: &ClientEnvironment,
    id: String,
    shared: &Arc<ProjectsShared>,
) -> Result<Project> {
    let environment = Arc::new(ProcessEnv::of_client(client.directory.clone(), client.variables()));
    let mode = client.mode.as_deref();
    let modes = [ToolMode::Direct, ToolMode::Meta, ToolMode::Auto];
    let settings = Settings {
        config: client.config.clone(),
        server: None,
        pager: None,
        format: Format::Text,
        images: None,
        verbosity: Verbosity::Normal,
        colors: Colors::Never,
        access: None,
        uses_service: false,
        roots: RootsSetting::None,
        mode: mode.and_then(|mode| modes.into_iter().find(|it| it.as_str() == mode)),
        progress: false,
    };
    secrets::install(&settings, &environment);
    let directory = client.directory.clone();
    let shared = Arc::clone(shared);
    // Reads files, which may be slow.
    let started = tokio::task::spawn_blocking(move || {
        start_blocking(&settings, &environment, (directory, id), &shared)
    });
    started.await?
}

fn start_blocking(
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    (directory, id): (PathBuf, String),
    shared: &ProjectsShared,
) -> Result<Project> {
    let runtime = tokio::runtime::Handle::current();
    let terminal = Terminal::new(settings);
    let places = ProgramDirectories::of(environment, directory.clone());
    let (reloader, (loaded, agents)) = ConfigReloader::load(settings, environment)?;
    let files = ReloadStatus::default();
    let prepare = places.clone();
    let reloader = reloader
        .preparing(Box::new(move |config| prepare.apply(config)))
        .reporting_to(files.clone());
    let messages = report::problems(&loaded, Verbosity::Normal, terminal.message_style());
    terminal.say(&messages);
    if settings.config.is_some() && loaded.config.servers().len() == 0 && loaded.has_errors(false) {
        bail!("no server of the configuration can be used:\n{messages}");
    }
    consent::say_held(&loaded, &terminal);
    audit::apply(&shared.activity, &id, *loaded.config.audit(), (environment, &terminal));
    files.on_loaded(&loaded, &directory, messages);
    let builder =
        host_builder::with_cache(host_builder::builder(environment), settings, environment)
            .oauth(oauth(settings, environment, Browser::Local))
            .capabilities(client_capabilities())
            .connection_pool(shared.pool.clone(), directory.clone())
            .cache_write_delay(host_builder::CACHE_WRITE_DELAY);
    let builder = host_builder::with_state(builder, &loaded, environment);
    builder.chain().check(&loaded.config).map_err(Failure::from)?;
    let mut loaded = loaded;
    loaded.config = places.apply(loaded.config);
    let host = runtime.block_on(builder.config(loaded).agents(agents).allow_errors().start())?;
    info!(directory = %escape_control(&directory.to_string_lossy()), "project opened");
    let followed = host.clone();
    let follow = async move {
        tokio::select! {
            never = reloader.run(&followed, &terminal) => match never {},
            never = report_on(&followed, &terminal) => match never {},
        }
    };
    let (following, status) = (runtime.spawn(follow), files.clone());
    let task = following.abort_handle();
    runtime.spawn(async move {
        if following.await.is_err_and(|error| error.is_panic()) {
            status.on_defect();
        }
    });
    let options = settings.load_options(environment, None);
    let environment = (**environment).clone();
    let found = ProjectFiles { project: id.clone(), options, environment };
    Ok(Project { id, host, directory, files, found, task })
}
