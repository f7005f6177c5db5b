//! `trunkline login`: logs in to a server with OAuth, or lists the logins.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use serde_json::{Value, json};
use tokio::time::timeout;
use trunkline::config::{OAuthGrant, OAuthSettings, Server, Transport, escape_control};
use trunkline::name::ServerName;
use trunkline::oauth::{LoginOutcome, LoginRequest, LoginStatus, PendingLogin};
use url::Url;

use crate::arguments::{Format, LoginArguments};
use crate::environment::{ProcessEnv, browser};
use crate::host::command_host::{CommandHost, ProblemDetail, with_host};
use crate::output::exit::{Failure, FailureKind, Outcome};
use crate::output::report;
use crate::output::terminal::{self, Terminal};
use crate::settings::Settings;

/// Time for the user to log in.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(600);

/// Port of the redirect address that nothing listens on: the user copies the address.
const HEADLESS_PORT: u16 = 33418;

pub(crate) fn run(
    arguments: &LoginArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    with_host(ProblemDetail::Counted, settings, environment, terminal, async |hosted, terminal| {
        if arguments.status {
            return list(hosted, arguments.server.as_deref(), settings.format, terminal).await;
        }
        let name = arguments.server.as_deref().unwrap_or_default();
        let login = LoginCommand { hosted, server: hosted.find(name)?, arguments };
        let outcome = login.run(terminal).await?;
        login.report(&outcome, settings.format, terminal).await
    })
}

struct LoginCommand<'a> {
    hosted: &'a CommandHost,
    server: ServerName,
    arguments: &'a LoginArguments,
}

impl LoginCommand<'_> {
    async fn run(&self, terminal: &mut Terminal) -> Result<LoginOutcome> {
        let request =
            LoginRequest::default().scopes(self.arguments.scopes.iter().map(String::as_str));
        match (self.arguments.device, self.arguments.headless) {
            (true, _) => self.on_device(request, terminal).await,
            (_, true) => self.headless(request, terminal).await,
            _ => self.in_browser(request, terminal).await,
        }
    }

    async fn in_browser(&self, request: LoginRequest, terminal: &Terminal) -> Result<LoginOutcome> {
        let listener = self.hosted.host.login_listener(self.server.as_str()).await;
        let listener = listener.map_err(|error| self.cannot_listen(&error))?;
        let login = self.begin(request.redirect_uri(listener.redirect_uri())).await?;
        let shown = escape_control(self.server.as_str());
        terminal.say(&format!(
            "Log in to `{shown}` at {}:\n\n  {}\n\n",
            login.issuer(),
            login.url()
        ));
        match browser::open(login.url()) {
            Ok(()) => terminal.tell("The page opens in your browser. Ctrl-C cancels.\n"),
            Err(_) => terminal.tell(
                "No browser could be opened here: open the page yourself, on this machine. On another \
                 one, use `--headless` or `--device`. Ctrl-C cancels.\n",
            ),
        }
        let callback = listener.callback(|url| login.is_for(url));
        let Ok(callback) = timeout(LOGIN_TIMEOUT, callback).await else {
            return Err(too_late().into());
        };
        Ok(login.finish(&callback?).await.map_err(|error| Failure::unavailable(&error))?)
    }

    async fn headless(&self, request: LoginRequest, terminal: &Terminal) -> Result<LoginOutcome> {
        let settings = self.settings();
        let uri = settings.and_then(|it| it.redirect_uri.as_deref().map(str::to_owned));
        let port = settings.and_then(|it| it.callback_port).unwrap_or(HEADLESS_PORT);
        let redirect = uri.unwrap_or_else(|| format!("http://127.0.0.1:{port}/callback"));
        let login = self.begin(request.redirect_uri(redirect)).await?;
        let shown = escape_control(self.server.as_str());
        terminal.say(&format!(
            "Open this page in a browser, on any machine, and log in to `{shown}`:\n\n  {}\n\n\
             The browser then shows an error for an address that begins with {}.\n\
             Copy that whole address, and paste it here:\n",
            login.url(),
            login.redirect_uri(),
        ));
        let callback = pasted(&login).await?;
        Ok(login.finish(&callback).await.map_err(|error| Failure::unavailable(&error))?)
    }

    async fn on_device(&self, request: LoginRequest, terminal: &Terminal) -> Result<LoginOutcome> {
        let login = self.hosted.host.begin_device_login(self.server.as_str(), request).await;
        let login = login.map_err(|error| Failure::unavailable(&error))?;
        let shown = escape_control(self.server.as_str());
        terminal.say(&format!(
            "On any device, open\n\n  {}\n\nand enter the code {} to log in to `{shown}`. Ctrl-C cancels.\n",
            login.verification_url(),
            login.user_code(),
        ));
        Ok(login.finish().await.map_err(|error| Failure::unavailable(&error))?)
    }

    async fn begin(&self, request: LoginRequest) -> Result<PendingLogin> {
        let login = self.hosted.host.begin_login(self.server.as_str(), request).await;
        Ok(login.map_err(|error| Failure::unavailable(&error))?)
    }

    fn cannot_listen(&self, error: &io::Error) -> Failure {
        let port = self.settings().and_then(|it| it.callback_port);
        let place = port.map_or_else(|| "this machine".to_owned(), |port| format!("port {port}"));
        let message = format!("cannot wait for the browser on {place}: {error}");
        Failure::new(FailureKind::Unavailable, message)
            .with_hint("set another `oauth.callbackPort`, or use `--headless`")
    }

    fn settings(&self) -> Option<&OAuthSettings> {
        self.hosted.loaded.config.server(self.server.as_str()).and_then(Server::oauth_settings)
    }

    /// Connects with the new login, and reports both.
    async fn report(
        &self,
        outcome: &LoginOutcome,
        format: Format,
        terminal: &mut Terminal,
    ) -> Result<Outcome> {
        let connection = self.hosted.host.servers().get(self.server.as_str());
        let connection = connection.ok_or_else(|| anyhow!("the server is gone"))?;
        let shown = escape_control(self.server.as_str());
        let renewal = match outcome.is_renewable {
            true => "It is renewed by itself.",
            false => "It cannot be renewed: log in again when it expires.",
        };
        terminal.tell(&format!(
            "Logged in to `{shown}` at {}{}. {renewal}\n",
            outcome.issuer,
            shown_scopes(&outcome.scopes),
        ));
        if let Err(error) = connection.connect().await {
            terminal.warn(&format!("the login is stored, but: {}", Failure::unavailable(&error)));
        }
        if format != Format::Text {
            let document = json!({
                "server": self.server.as_str(),
                "issuer": outcome.issuer,
                "scopes": outcome.scopes,
                "renewable": outcome.is_renewable,
                "state": connection.status().name(),
            });
            terminal.print(&report::document(&document, format))?;
        }
        Ok(Outcome::Good)
    }
}

fn shown_scopes(scopes: &[Box<str>]) -> String {
    match scopes {
        [] => String::new(),
        scopes => format!(" with the scopes {}", escape_control(&scopes.join(" "))),
    }
}

/// Reads the address that the user pastes.
async fn pasted(login: &PendingLogin) -> Result<Url> {
    let line = tokio::task::spawn_blocking(terminal::read_line).await??;
    let line = line.trim();
    let url = match Url::parse(line) {
        Ok(url) => url,
        // Only the part after the question mark was copied.
        Err(_) if line.contains("code=") || line.contains("error=") => {
            let base = Url::parse(login.redirect_uri())?;
            base.join(&format!("?{}", line.trim_start_matches('?')))?
        }
        Err(_) if line.is_empty() => {
            return Err(Failure::new(FailureKind::Usage, "no address was pasted".to_owned()).into());
        }
        Err(_) => {
            let message = "this is not the address that the browser shows after the login";
            let failure = Failure::new(FailureKind::Usage, message.to_owned());
            return Err(failure
                .with_hint("it begins with http://127.0.0.1 and contains `code=`")
                .into());
        }
    };
    Ok(url)
}

fn too_late() -> Failure {
    let minutes = LOGIN_TIMEOUT.as_secs() / 60;
    let message = format!("nothing came back from the browser within {minutes} minutes");
    Failure::new(FailureKind::NoAnswer, message).with_hint("begin again, or use `--headless`")
}

/// Lists the logins of all remote servers, or of one.
async fn list(
    hosted: &CommandHost,
    only: Option<&str>,
    format: Format,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    if let Some(name) = only {
        hosted.find(name)?;
    }
    let mut logins = Vec::new();
    for server in hosted.loaded.config.servers().filter(|server| server.enabled) {
        let is_remote = matches!(server.transport, Transport::Remote(_));
        if is_remote && only.is_none_or(|name| server.name.as_str() == name) {
            let status = hosted.host.login_status(server.name.as_str()).await;
            logins.push(LoginRow { server, status });
        }
    }
    if format != Format::Text {
        let logins: Vec<_> = logins.iter().map(LoginRow::as_json).collect();
        terminal.print(&report::document(&json!({ "logins": logins }), format))?;
        return Ok(Outcome::Good);
    }
    if logins.is_empty() {
        terminal.tell("there are no remote servers\n");
        return Ok(Outcome::Good);
    }
    let header = ["server", "login", "at", "scopes"].map(str::to_owned);
    let rows: Vec<_> = std::iter::once(header).chain(logins.iter().map(LoginRow::row)).collect();
    terminal.print(&report::table_with_head(&rows, terminal.layout()))?;
    Ok(Outcome::Good)
}

/// The login of one server.
struct LoginRow<'a> {
    server: &'a Server,
    status: Result<Option<LoginStatus>, trunkline::Error>,
}

impl LoginRow<'_> {
    /// Whether its tokens are obtained without a user.
    fn is_automatic(&self) -> bool {
        let settings = self.server.oauth_settings();
        settings.is_some_and(|it| it.grant != OAuthGrant::AuthorizationCode)
    }

    fn state(&self) -> String {
        match &self.status {
            Err(error) => error.message().to_owned(),
            Ok(None) if self.is_automatic() => "not needed".to_owned(),
            Ok(None) => "none".to_owned(),
            Ok(Some(login)) if login.has_expired() => "expired".to_owned(),
            Ok(Some(_)) => "logged in".to_owned(),
        }
    }

    fn row(&self) -> [String; 4] {
        let login = self.status.as_ref().ok().and_then(Option::as_ref);
        let or_dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
        let scopes = login.map(|login| login.scopes.join(" ")).unwrap_or_default();
        [
            escape_control(self.server.name.as_str()),
            escape_control(&self.state()),
            or_dash(login.map(|login| login.issuer.clone()).unwrap_or_default()),
            or_dash(escape_control(&scopes)),
        ]
    }

    fn as_json(&self) -> Value {
        let login = self.status.as_ref().ok().and_then(Option::as_ref);
        json!({
            "server": self.server.name.as_str(),
            "login": self.state(),
            "issuer": login.map(|login| &login.issuer),
            "scopes": login.map(|login| &login.scopes),
            "renewable": login.map(|login| login.is_renewable),
        })
    }
}
