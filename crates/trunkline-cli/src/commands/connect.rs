//! `trunkline connect`: the stdio server that a host starts. It relays messages to the background service,
//! which it starts if needed.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use trunkline::config::{CHAIN_VARIABLE, ToolMode, escape_control};

use crate::arguments::ConnectArguments;
use crate::environment::ProcessEnv;
use crate::output::exit::Outcome;
use crate::output::stdio::is_disconnect;
use crate::output::terminal::Terminal;
use crate::service::relay::{DialFuture, DialMode, ProbeFuture, ServiceAccess, relay};
use crate::service::start;
use crate::settings::Settings;
use crate::socket::dial::{Link, dial};
use crate::socket::hello::{ClientEnvironment, Wants};
use crate::socket::runtime_dir::{RuntimeDir, shown};

pub(crate) fn run(
    arguments: &ConnectArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let client = Client::new(arguments, settings, environment)?;
    if terminal.has_keyboard() {
        terminal.tell(
            "Speaking MCP over standard input and output, as to a client that has started this; Ctrl-D ends \
             it.\n",
        );
    }
    // One thread: it only passes messages on.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let streams = runtime.block_on(async { terminal.streams() });
    let said: &Terminal = terminal;
    let report = |text: &str| {
        said.warn(&text.lines().map(escape_control).collect::<Vec<_>>().join("\n"));
    };
    let relayed = runtime.block_on(relay(streams, &client, report));
    runtime.shutdown_background();
    match relayed {
        // A disconnected client is not a failure.
        Err(error) if is_disconnect(&error) => Ok(Outcome::Good),
        relayed => relayed.map(|()| Outcome::Good).context("standard input or output failed"),
    }
}

impl ServiceAccess for Client<'_> {
    fn dial(&self, mode: DialMode) -> DialFuture<'_> {
        Box::pin(self.connect(mode))
    }

    fn probe(&self) -> ProbeFuture<'_> {
        // A service that is slow has time: to give it up ends the calls of this client.
        Box::pin(async { dial(&self.folder, Wants::Status).await.map(drop) })
    }
}

/// The client of the service.
struct Client<'a> {
    arguments: &'a ConnectArguments,
    config: Option<std::path::PathBuf>,
    environment: &'a Arc<ProcessEnv>,
    folder: RuntimeDir,
}

impl<'a> Client<'a> {
    fn new(
        arguments: &'a ConnectArguments,
        settings: &Settings,
        environment: &'a Arc<ProcessEnv>,
    ) -> Result<Self> {
        let folder = RuntimeDir::of(environment)?;
        if let Some(project) = &arguments.project {
            let directory = environment.working_directory().join(project);
            ensure!(directory.is_dir(), "the project {} is not a folder", shown(&directory));
        }
        // As the user writes it: relative to the working directory.
        let config =
            settings.config.as_ref().map(|file| environment.working_directory().join(file));
        Ok(Self { arguments, config, environment, folder })
    }

    /// What the service has to know of this client.
    fn wants(&self) -> Wants {
        let ConnectArguments { project, agent, bundles, conversation, mode } = self.arguments;
        let working_directory = self.environment.working_directory();
        let directory = project.as_ref().map(|it| working_directory.join(it));
        let directory = directory.unwrap_or_else(|| working_directory.to_owned());
        let mode = mode.map(|mode| ToolMode::from(mode).as_str().to_owned());
        let mut client = ClientEnvironment::new(directory, self.environment.variables());
        client.config.clone_from(&self.config);
        client.agent.clone_from(agent);
        client.bundles.clone_from(bundles);
        client.mode = mode;
        client.conversation = conversation.as_ref().map(|name| name.as_str().to_owned());
        Wants::Mcp(Box::new(client))
    }

    async fn connect(&self, mode: DialMode) -> Result<Option<Link>> {
        if let Some(link) = dial(&self.folder, self.wants()).await? {
            return Ok(Some(link));
        }
        if mode == DialMode::Join {
            return Ok(None);
        }
        if self.environment.is_set(CHAIN_VARIABLE) {
            bail!(
                "the background service does not run, and would end with the Trunkline that this runs below; \
                 start it with `trunkline up`"
            );
        }
        let (folder, environment) = (self.folder.clone(), Arc::clone(self.environment));
        tokio::task::spawn_blocking(move || start::start(&folder, &environment)).await??;
        dial(&self.folder, self.wants()).await
    }
}
