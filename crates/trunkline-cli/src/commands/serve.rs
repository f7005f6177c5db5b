//! `trunkline serve`: all servers as one, over HTTP or over standard input and output.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Result, bail};
use trunkline_gateway::{Limits, Options, Scope, Tokens, client_capabilities, listen, router};

use super::demo_server::{bind, endpoint};
use crate::arguments::ServeArguments;
use crate::environment::Environment;
use crate::exit::{Failure, Outcome};
use crate::loading;
use crate::report;
use crate::servers::{self, Hosted};
use crate::settings::Settings;
use crate::terminal::Terminal;

pub(crate) fn run(
    arguments: &ServeArguments,
    settings: &Settings,
    environment: &Arc<Environment>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let options = options_of(arguments)?;
    let loaded = loading::load(settings, environment, None);
    let style = terminal.message_style();
    terminal.say(&report::problems(&loaded.0, settings.verbosity, style));
    let connections = servers::remembering(environment).with_capabilities(client_capabilities());
    servers::run(loaded, connections, terminal, async |hosted, terminal| match arguments.stdio {
        true => over_streams(arguments, hosted, terminal).await,
        false => over_http(arguments.listen, options, hosted, terminal).await,
    })
}

/// How the gateway behaves, as the command line says.
fn options_of(arguments: &ServeArguments) -> Result<Options> {
    let tokens = match &arguments.tokens {
        Some(file) => crate::tokens::read(file)?,
        None => Tokens::default(),
    };
    if !arguments.listen.ip().is_loopback() && tokens.is_empty() {
        bail!(
            "{} can be reached by others, who could use every server: give `--tokens FILE` to \
             let in only those who have a token (`trunkline token add` makes one), or listen on \
             127.0.0.1",
            arguments.listen
        );
    }
    let limits = Limits { requests_per_second: arguments.rate, ..Limits::default() };
    let mut hosts = arguments.hosts.clone();
    if !arguments.listen.ip().is_unspecified() {
        hosts.push(arguments.listen.ip().to_string());
    }
    Ok(Options { tokens, hosts, origins: arguments.origins.clone(), limits })
}

async fn over_streams(
    arguments: &ServeArguments,
    hosted: &Hosted,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let scope =
        Scope { agent: arguments.agent.clone(), bundles: arguments.bundles.clone(), access: None };
    scope.check(&hosted.host).map_err(Failure::from)?;
    hosted.go_on();
    let (input, output) = terminal.streams();
    trunkline_gateway::serve(Arc::clone(&hosted.host), scope, input, output).await?;
    Ok(Outcome::Good)
}

async fn over_http(
    address: SocketAddr,
    options: Options,
    hosted: &Hosted,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let listener = bind(address).await?;
    let url = endpoint(&listener)?;
    let router = router(Arc::clone(&hosted.host), options);
    let count = hosted.host.servers().connections().len();
    let servers = if count == 1 { "1 server".to_owned() } else { format!("{count} servers") };
    terminal.print(&format!("{url}\n"))?;
    terminal.say(&format!("serving {servers} at {url}; Ctrl-C ends it\n"));
    hosted.go_on();
    listen(router, listener).await?;
    Ok(Outcome::Good)
}
