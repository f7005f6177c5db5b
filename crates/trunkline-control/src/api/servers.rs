//! `/servers`: their states, and starting, stopping and restarting them (CON-11).

use std::time::Instant;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use trunkline::config::{self, escape_control};
use trunkline::connection::{Connection, State as ServerState};

use super::extract::{PathOf, QueryOf};
use super::problem::{ApiError, ApiResult};
use crate::control::Control;
use crate::source::OpenProject;
use crate::types::{LogLines, Page, Project, Server};

/// Selects servers.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ServerQuery {
    project: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

/// The most items of a page.
pub(super) const MAX_ITEMS: usize = 500;

/// The items of a page without `limit`.
pub(super) const DEFAULT_ITEMS: usize = 100;

pub(super) async fn projects(State(control): State<Control>) -> ApiResult<Page<Project>> {
    let items = control.source().projects().into_iter().map(|project| project.info).collect();
    Ok(Json(Page { items, next: None }))
}

pub(super) async fn list(
    State(control): State<Control>,
    QueryOf(query): QueryOf<ServerQuery>,
) -> ApiResult<Page<Server>> {
    let servers = all(&control.source().projects());
    let wanted = servers.into_iter().filter(|server| match &query.project {
        Some(project) => *project == server.project,
        None => true,
    });
    page(wanted.collect(), query.limit, query.cursor.as_deref()).map(Json)
}

/// A page of a list that is in memory as a whole. The cursor is the index of the first item.
pub(super) fn page<T>(
    items: Vec<T>,
    limit: Option<usize>,
    cursor: Option<&str>,
) -> Result<Page<T>, ApiError> {
    let limit = checked_limit(limit)?;
    let start = match cursor {
        Some(cursor) if cursor.starts_with('+') => return Err(unknown_cursor()),
        Some(cursor) => cursor.parse().map_err(|_| unknown_cursor())?,
        None => 0_usize,
    };
    let end = start.saturating_add(limit);
    let next = (items.len() > end).then(|| end.to_string());
    Ok(Page { items: items.into_iter().skip(start).take(limit).collect(), next })
}

pub(super) fn checked_limit(limit: Option<usize>) -> Result<usize, ApiError> {
    match limit.unwrap_or(DEFAULT_ITEMS) {
        limit @ 1..=MAX_ITEMS => Ok(limit),
        _ => Err(ApiError::bad_request(format!("`limit` must be from 1 to {MAX_ITEMS}"))),
    }
}

pub(super) fn unknown_cursor() -> ApiError {
    ApiError::bad_request("`cursor` must be the `next` of the page before")
}

/// All servers of all projects, also those that are never started, by project and name.
pub(crate) fn all(projects: &[OpenProject]) -> Vec<Server> {
    projects.iter().flat_map(servers_of).collect()
}

fn servers_of(project: &OpenProject) -> Vec<Server> {
    let (id, config) = (&project.info.id, project.host.config());
    let connections = project.host.servers().connections();
    let mut servers: Vec<_> = connections.iter().map(|it| started(id, it)).collect();
    let held = config.servers().filter(|server| server.hold.is_some());
    servers.extend(held.map(|server| held_server(id, server)));
    let disabled = config.servers().filter(|server| !server.enabled && server.hold.is_none());
    servers.extend(disabled.map(|server| disabled_server(id, server)));
    servers.extend(config.broken().iter().map(|name| broken_server(id, name.as_str())));
    servers.sort_by(|one, two| one.name.cmp(&two.name));
    servers
}

/// A server that is started, or is when it is needed.
fn started(project: &str, connection: &Connection) -> Server {
    let (server, status) = (connection.server(), connection.status());
    let error = status.last_error.as_ref();
    let wait = status.next_attempt.map(|at| at.saturating_duration_since(Instant::now()));
    Server {
        state: status.name().to_owned(),
        transport: Some(status.transport.unwrap_or_else(|| server.transport_word()).to_owned()),
        protocol: status.protocol.as_deref().map(Into::into),
        share: Some(server.behaviour.share.as_str().to_owned()),
        tools: Some(status.tools),
        error: error.map(ToString::to_string),
        hint: error.and_then(|error| error.hint()).map(Into::into),
        pid: status.process_id,
        uptime_ms: status.uptime().map(|it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX)),
        calls: status.calls,
        failures: status.failures,
        restarts: status.restarts,
        next_attempt_ms: wait.map(|it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX)),
        stderr: status.stderr.clone(),
        is_startable: status.state != ServerState::Stopped,
        ..without_state(project, server.name.as_str())
    }
}

fn held_server(project: &str, server: &config::Server) -> Server {
    let hold = server.hold.as_ref().map(ToString::to_string);
    Server {
        state: "not-trusted".to_owned(),
        transport: Some(server.transport_word().to_owned()),
        share: Some(server.behaviour.share.as_str().to_owned()),
        error: hold.map(|hold| format!("it is not started: {}", escape_control(&hold))),
        hint: Some("decide on the file under Trust, or with `trunkline trust`".to_owned()),
        ..without_state(project, server.name.as_str())
    }
}

fn disabled_server(project: &str, server: &config::Server) -> Server {
    Server {
        state: "disabled".to_owned(),
        transport: Some(server.transport_word().to_owned()),
        share: Some(server.behaviour.share.as_str().to_owned()),
        hint: Some("remove `\"enabled\": false` from its configuration to use it".to_owned()),
        ..without_state(project, server.name.as_str())
    }
}

fn broken_server(project: &str, name: &str) -> Server {
    Server {
        state: ServerState::Failed.as_str().to_owned(),
        error: Some("its entry in the configuration has errors".to_owned()),
        hint: Some("`trunkline check` shows them".to_owned()),
        ..without_state(project, name)
    }
}

fn without_state(project: &str, name: &str) -> Server {
    Server {
        project: project.to_owned(),
        name: name.to_owned(),
        state: String::new(),
        transport: None,
        protocol: None,
        share: None,
        tools: None,
        error: None,
        hint: None,
        stderr: Vec::new(),
        pid: None,
        uptime_ms: None,
        calls: 0,
        failures: 0,
        restarts: 0,
        next_attempt_ms: None,
        is_startable: false,
    }
}

/// An action on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerAction {
    Start,
    Stop,
    Restart,
}

/// Starts, stops or restarts a server. Returns its state right after.
pub(crate) async fn act(
    control: &Control,
    (project, name): (&str, &str),
    action: ServerAction,
) -> Result<Server, ApiError> {
    let open = control.project(project).ok_or_else(|| ApiError::not_found("project", project))?;
    let known = servers_of(&open).into_iter().find(|server| server.name == name);
    let known = known.ok_or_else(|| ApiError::not_found("server", name))?;
    if !known.is_startable {
        let reason = known.hint.unwrap_or_else(|| "it cannot be started".to_owned());
        let status = axum::http::StatusCode::CONFLICT;
        return Err(ApiError::new(
            status,
            format!("the server `{name}` cannot be started: {reason}"),
        ));
    }
    if action != ServerAction::Start {
        open.host.close(name).await;
    }
    if action != ServerAction::Stop
        && let Some(connection) = open.host.servers().get(name)
    {
        connection.start();
    }
    let now = servers_of(&open).into_iter().find(|server| server.name == name);
    now.ok_or_else(|| ApiError::not_found("server", name))
}

pub(super) async fn start(
    State(control): State<Control>,
    PathOf((project, name)): PathOf<(String, String)>,
) -> ApiResult<Server> {
    act(&control, (&project, &name), ServerAction::Start).await.map(Json)
}

pub(super) async fn stop(
    State(control): State<Control>,
    PathOf((project, name)): PathOf<(String, String)>,
) -> ApiResult<Server> {
    act(&control, (&project, &name), ServerAction::Stop).await.map(Json)
}

pub(super) async fn restart(
    State(control): State<Control>,
    PathOf((project, name)): PathOf<(String, String)>,
) -> ApiResult<Server> {
    act(&control, (&project, &name), ServerAction::Restart).await.map(Json)
}

pub(super) async fn log(
    State(control): State<Control>,
    PathOf((project, name)): PathOf<(String, String)>,
) -> ApiResult<LogLines> {
    let open = control.project(&project).ok_or_else(|| ApiError::not_found("project", &project))?;
    let server = servers_of(&open).into_iter().find(|server| server.name == name);
    let server = server.ok_or_else(|| ApiError::not_found("server", &name))?;
    Ok(Json(LogLines { lines: server.stderr }))
}
