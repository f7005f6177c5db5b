//! Conversations and their toggles, and those of whole projects (TOOL-9).

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use trunkline::host::{ToggleStoreError, ToggleSubject};
use trunkline::item::ItemKind;
use trunkline::name::{ConversationName, ServerName};
use trunkline::policy::{Toggle, Toggles};

use super::extract::{JsonOf, PathOf};
use super::problem::{ApiError, ApiResult};
use crate::control::Control;
use crate::source::OpenProject;
use crate::types::{Conversation, Page, ToggleChanges};

pub(super) async fn list(
    State(control): State<Control>,
    PathOf(project): PathOf<String>,
) -> ApiResult<Page<Conversation>> {
    let open = open(&control, &project)?;
    Ok(Json(Page { items: named(&open), next: None }))
}

fn open(control: &Control, project: &str) -> Result<OpenProject, ApiError> {
    control.project(project).ok_or_else(|| ApiError::not_found("project", project))
}

/// The conversations of a project that have toggles.
pub(crate) fn named(project: &OpenProject) -> Vec<Conversation> {
    let stored = project.host.conversations().toggles();
    let conversations = stored.conversations();
    conversations.map(|(name, own)| described(project, name.as_str(), own)).collect()
}

/// A conversation, or the whole project without a name. One without toggles is empty.
pub(crate) fn find(
    control: &Control,
    project: &str,
    name: Option<&str>,
) -> Result<Conversation, ApiError> {
    let open = open(control, project)?;
    let name = checked(name)?;
    let stored = open.host.conversations().toggles();
    if let Some(problem) = open.host.conversations().problem().filter(|_| stored.is_unreadable()) {
        return Err(not_stored(&problem));
    }
    let name = name.as_ref().map(ConversationName::as_str);
    let own = stored.get(name).cloned().unwrap_or_default();
    Ok(described(&open, name.unwrap_or_default(), &own))
}

fn checked(name: Option<&str>) -> Result<Option<ConversationName>, ApiError> {
    // Browsers take these for steps in a path.
    if let Some("." | "..") = name {
        return Err(ApiError::bad_request("a conversation cannot be called `.` or `..` here"));
    }
    let name = name.map(ConversationName::new).transpose();
    name.map_err(|error| ApiError::bad_request(error.to_string()))
}

fn described(project: &OpenProject, name: &str, own: &Toggles) -> Conversation {
    let is_on = |toggle: Toggle| toggle == Toggle::On;
    let items = |kind: ItemKind| {
        let items = own.items().filter(|(it, ..)| *it == kind);
        items.map(|(_, name, toggle)| (name.to_owned(), is_on(toggle))).collect()
    };
    Conversation {
        project: project.info.id.clone(),
        name: name.to_owned(),
        servers: own.iter().map(|(server, it)| (server.as_str().to_owned(), is_on(it))).collect(),
        tools: items(ItemKind::Tool),
        prompts: items(ItemKind::Prompt),
    }
}

/// Changes toggles of a conversation, or of the whole project without a name.
pub(crate) async fn change(
    control: &Control,
    (project, name): (&str, Option<&str>),
    changes: &ToggleChanges,
) -> Result<Conversation, ApiError> {
    let open = open(control, project)?;
    let conversation = checked(name)?;
    let subjects = subjects(&open, changes)?;
    for toggle in [Some(Toggle::On), Some(Toggle::Off), None] {
        let those = subjects.iter().filter(|(_, wanted)| *wanted == toggle);
        let those: Vec<_> = those.map(|(subject, _)| subject.clone()).collect();
        if !those.is_empty() {
            let set = open.host.conversations().set(conversation.as_ref(), &those, toggle).await;
            set.map_err(|error| not_stored(&error))?;
        }
    }
    find(control, project, name)
}

/// The items of a change. A name that does not exist is an error: it would be switched for nothing.
fn subjects(
    project: &OpenProject,
    changes: &ToggleChanges,
) -> Result<Vec<(ToggleSubject, Option<Toggle>)>, ApiError> {
    let toggle = |is_on: Option<bool>| is_on.map(|it| if it { Toggle::On } else { Toggle::Off });
    let (config, catalog) = (project.host.config(), project.host.catalog());
    let unknown = ApiError::not_found;
    let mut subjects = Vec::new();
    for (name, is_on) in &changes.servers {
        let server = ServerName::new(name).ok().filter(|it| config.server(it.as_str()).is_some());
        // Toggles of items that no longer exist can be removed.
        let server = match (server, is_on) {
            (Some(server), _) => server,
            (None, None) => ServerName::new(name).map_err(|_| unknown("server", name))?,
            (None, Some(_)) => return Err(unknown("server", name)),
        };
        subjects.push((ToggleSubject::Server(server), toggle(*is_on)));
    }
    let items = [(ItemKind::Tool, &changes.tools), (ItemKind::Prompt, &changes.prompts)];
    for (kind, changes) in items {
        for (name, is_on) in changes {
            if is_on.is_some() && catalog.get(kind, name).is_none() {
                return Err(unknown(kind.as_str(), name));
            }
            let subject = match kind {
                ItemKind::Tool => ToggleSubject::Tool(name.as_str().into()),
                _ => ToggleSubject::Prompt(name.as_str().into()),
            };
            subjects.push((subject, toggle(*is_on)));
        }
    }
    Ok(subjects)
}

fn not_stored(error: &ToggleStoreError) -> ApiError {
    ApiError::new(StatusCode::INSUFFICIENT_STORAGE, error.to_string())
}

pub(super) async fn one(
    State(control): State<Control>,
    PathOf((project, name)): PathOf<(String, String)>,
) -> ApiResult<Conversation> {
    find(&control, &project, Some(&name)).map(Json)
}

pub(super) async fn patch(
    State(control): State<Control>,
    PathOf((project, name)): PathOf<(String, String)>,
    JsonOf(changes): JsonOf<ToggleChanges>,
) -> ApiResult<Conversation> {
    change(&control, (&project, Some(&name)), &changes).await.map(Json)
}

pub(super) async fn remove(
    State(control): State<Control>,
    PathOf((project, name)): PathOf<(String, String)>,
) -> ApiResult<Conversation> {
    let open = open(&control, &project)?;
    if let Some(name) = checked(Some(&name))? {
        open.host.conversations().remove(&name).await.map_err(|error| not_stored(&error))?;
    }
    find(&control, &project, Some(&name)).map(Json)
}

pub(super) async fn of_project(
    State(control): State<Control>,
    PathOf(project): PathOf<String>,
) -> ApiResult<Conversation> {
    find(&control, &project, None).map(Json)
}

pub(super) async fn patch_project(
    State(control): State<Control>,
    PathOf(project): PathOf<String>,
    JsonOf(changes): JsonOf<ToggleChanges>,
) -> ApiResult<Conversation> {
    change(&control, (&project, None), &changes).await.map(Json)
}
