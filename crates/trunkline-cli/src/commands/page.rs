//! `trunkline page`: a link that opens the page of the service or of a gateway.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use url::Url;

use crate::arguments::{Format, PageArguments};
use crate::control::gateway_lock::GatewayLock;
use crate::control::token;
use crate::environment::ProcessEnv;
use crate::output::exit::Outcome;
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::settings::Settings;

/// How long a gateway may take to respond.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Limit of a response in bytes.
const MAX_RESPONSE: u64 = 64 * 1024;

pub(crate) fn run(
    arguments: &PageArguments,
    settings: &Settings,
    environment: &ProcessEnv,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    if arguments.token {
        let token = token::of_user(environment)?;
        terminal.print(&match settings.format {
            Format::Text => format!("{token}\n"),
            format => report::document(&json!({ "token": token }), format),
        })?;
        return Ok(Outcome::Good);
    }
    let url = match &arguments.address {
        Some(address) => link_at(address, environment)?,
        None => link_of_service(environment)?,
    };
    terminal.print(&match settings.format {
        Format::Text => format!("{url}\n"),
        format => report::document(&json!({ "url": url }), format),
    })?;
    terminal.tell("It opens the page in one browser, within ten minutes.\n");
    Ok(Outcome::Good)
}

#[cfg(unix)]
fn link_of_service(environment: &ProcessEnv) -> Result<String> {
    use crate::host::command_host::runtime;
    use crate::socket::dial;
    use crate::socket::hello::Wants;
    use crate::socket::runtime_dir::RuntimeDir;

    let folder = RuntimeDir::of(environment)?;
    let Some(welcome) = runtime()?.block_on(dial::ask(&folder, Wants::Page))? else {
        bail!(
            "no service is running; `trunkline up` starts it, and `trunkline page --address \
             http://127.0.0.1:7420` opens the page of a `trunkline serve`"
        );
    };
    if let Some(error) = welcome.error {
        bail!("{error}");
    }
    let url = welcome.response["url"].as_str();
    url.map(str::to_owned).context("the service has no page")
}

#[cfg(not(unix))]
fn link_of_service(_: &ProcessEnv) -> Result<String> {
    bail!("give the address of a `trunkline serve`, such as --address http://127.0.0.1:7420")
}

/// Asks a gateway for a link, with the token of the user.
fn link_at(address: &str, environment: &ProcessEnv) -> Result<String> {
    let url = Url::parse(address).with_context(|| format!("{address} is no address"))?;
    let host = url.host_str().filter(|_| url.scheme() == "http");
    let host = host.with_context(|| format!("{address} is no address with http://"))?;
    // The token opens the gateways of this user, and nothing else should see it.
    let is_local = matches!(host, "127.0.0.1" | "localhost" | "[::1]");
    if !is_local {
        bail!("{host} is not this machine; run `trunkline page` there");
    }
    let port = url.port().unwrap_or(80);
    let authority = format!("{host}:{port}");
    // Any program may listen there, and would receive the token.
    if !GatewayLock::is_held(port, environment) {
        bail!(
            "no `trunkline serve` of this user listens at {authority}\n  start one with `trunkline serve`, \
             or leave --address out for the page of the background service"
        );
    }
    let token = token::of_user(environment)?;
    let no_answer = || format!("no gateway responds at {authority}");
    let mut stream = TcpStream::connect(&*authority).with_context(no_answer)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let request = format!(
        "POST /api/v1/login-links HTTP/1.1\r\nHost: {authority}\r\nAuthorization: Bearer {token}\r\n\
         Content-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).with_context(no_answer)?;
    let mut response = String::new();
    stream.take(MAX_RESPONSE).read_to_string(&mut response).with_context(no_answer)?;
    let (head, body) = response.split_once("\r\n\r\n").with_context(no_answer)?;
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    match (body["url"].as_str(), body["detail"].as_str()) {
        (Some(url), _) if url.starts_with(&format!("http://{authority}/login?t=")) => {
            Ok(url.to_owned())
        }
        (_, Some(_)) if head.contains(" 401 ") => bail!(
            "the gateway at {authority} does not know the control token of this user: it runs as another user, \
             or with another state directory"
        ),
        (_, Some(detail)) => bail!("the gateway at {authority} refuses: {detail}"),
        (_, None) => bail!("the program at {authority} is no Trunkline with a page"),
    }
}
