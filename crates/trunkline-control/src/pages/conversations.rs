//! The section with conversations and their switches.

use std::collections::BTreeMap;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::Markup;
use trunkline::item::ItemKind;

use super::form::FormFields;
use super::respond::{self, PageResult};
use crate::api::conversations;
use crate::api::problem::ApiError;
use crate::control::Control;
use crate::templates::{self, ConversationPage, Nonce, Section, SwitchKind};
use crate::types::{Conversation, Project, ToggleChanges};

pub(super) async fn page(State(control): State<Control>) -> Response {
    let (projects, list) = all(&control);
    let body = |nonce: Nonce<'_>| templates::conversations(nonce, &projects, &list);
    respond::page(&control, "Conversations", Section::Conversations, body).await
}

pub(super) async fn fragment(State(control): State<Control>) -> Response {
    let (projects, list) = all(&control);
    respond::fragment(|nonce| templates::conversation_list(nonce, &projects, &list))
}

/// The projects, and all conversations with toggles; those of whole projects first.
fn all(control: &Control) -> (Vec<Project>, Vec<Conversation>) {
    let open = control.source().projects();
    let mut list = Vec::new();
    for project in &open {
        list.extend(conversations::find(control, &project.info.id, None));
        list.extend(conversations::named(project));
    }
    (open.into_iter().map(|project| project.info).collect(), list)
}

pub(super) async fn add(
    State(control): State<Control>,
    headers: HeaderMap,
    body: String,
) -> PageResult {
    let fields = FormFields::parse(&body);
    let (project, name) = (fields.get("project"), fields.get("name"));
    conversations::find(&control, project, Some(name))?;
    let address = templates::conversation_address(project, name);
    if !respond::is_htmx(&headers) {
        return Ok(Redirect::to(&address).into_response());
    }
    let mut response = respond::fragment(|_| Markup::default());
    if let Ok(address) = HeaderValue::try_from(address) {
        response.headers_mut().insert("hx-redirect", address);
    }
    Ok(response)
}

async fn show(control: &Control, project: &str, name: Option<&str>) -> PageResult {
    let conversation = conversations::find(control, project, name)?;
    let title = name.unwrap_or("Project");
    let body = |nonce: Nonce<'_>| render(control, &conversation, nonce);
    Ok(respond::page(control, title, Section::Conversations, body).await)
}

fn show_fragment(control: &Control, project: &str, name: Option<&str>) -> PageResult {
    let conversation = conversations::find(control, project, name)?;
    Ok(respond::fragment(|nonce| render(control, &conversation, nonce)))
}

fn render(control: &Control, conversation: &Conversation, nonce: Nonce<'_>) -> Markup {
    let project = control.project(&conversation.project);
    let mut servers: Vec<String> = Vec::new();
    let mut tools: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut prompts: Vec<String> = Vec::new();
    if let Some(project) = &project {
        let (config, catalog) = (project.host.config(), project.host.catalog());
        servers.extend(config.servers().map(|server| server.name.as_str().to_owned()));
        for entry in catalog.entries(ItemKind::Tool) {
            let server = entry.server().name.as_str().to_owned();
            tools.entry(server).or_default().push(entry.exposed().to_owned());
        }
        prompts.extend(catalog.entries(ItemKind::Prompt).iter().map(|it| it.exposed().to_owned()));
    }
    servers.sort();
    let page =
        ConversationPage { conversation, servers: &servers, tools: &tools, prompts: &prompts };
    templates::conversation(nonce, &page)
}

async fn apply(
    control: &Control,
    headers: &HeaderMap,
    (project, name): (&str, Option<&str>),
    body: &str,
) -> PageResult {
    let fields = FormFields::parse(body);
    let switch = templates::parse_switch(fields.get("switch"));
    let switch = switch.ok_or_else(|| ApiError::bad_request("the switch cannot be read"))?;
    let mut changes = ToggleChanges::default();
    let toggles = match switch.kind {
        SwitchKind::Server => &mut changes.servers,
        SwitchKind::Tool => &mut changes.tools,
        SwitchKind::Prompt => &mut changes.prompts,
    };
    toggles.insert(switch.name, Some(switch.is_on));
    let address = templates::conversation_address(project, name.unwrap_or_default());
    let now = conversations::change(control, (project, name), &changes).await?;
    Ok(respond::after_change(headers, &address, |nonce| render(control, &now, nonce)))
}

pub(super) async fn one(
    State(control): State<Control>,
    Path((project, name)): Path<(String, String)>,
) -> PageResult {
    show(&control, &project, Some(&name)).await
}

pub(super) async fn of_project(
    State(control): State<Control>,
    Path(project): Path<String>,
) -> PageResult {
    show(&control, &project, None).await
}

pub(super) async fn one_fragment(
    State(control): State<Control>,
    Path((project, name)): Path<(String, String)>,
) -> PageResult {
    show_fragment(&control, &project, Some(&name))
}

pub(super) async fn project_fragment(
    State(control): State<Control>,
    Path(project): Path<String>,
) -> PageResult {
    show_fragment(&control, &project, None)
}

pub(super) async fn switch(
    State(control): State<Control>,
    Path((project, name)): Path<(String, String)>,
    headers: HeaderMap,
    body: String,
) -> PageResult {
    apply(&control, &headers, (&project, Some(&name)), &body).await
}

pub(super) async fn switch_in_project(
    State(control): State<Control>,
    Path(project): Path<String>,
    headers: HeaderMap,
    body: String,
) -> PageResult {
    apply(&control, &headers, (&project, None), &body).await
}
