//! `/tools`: all tools of a project, hidden ones with the reason.

use std::borrow::Cow;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use serde_json::Value;
use trunkline::catalog::Entry;
use trunkline::host::HostCaller;
use trunkline::item::ItemKind;
use trunkline::message::Raw;
use trunkline::name::ConversationName;
use trunkline::view::View;

use super::extract::{PathOf, QueryOf};
use super::problem::{ApiError, ApiResult};
use super::servers::page;
use crate::audit::hex;
use crate::control::Control;
use crate::source::{ControlSource, OpenProject};
use crate::types::{HiddenReason, Page, Tool};

/// Selects tools.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ToolSelection {
    /// Tools of this project.
    pub(crate) project: Option<String>,
    /// Tools of this server.
    pub(crate) server: Option<String>,
    /// Tools whose name, title or description contains each of these words.
    pub(crate) search: Option<String>,
    /// Only visible or only hidden ones.
    pub(crate) visible: Option<bool>,
    /// As seen in this conversation.
    pub(crate) conversation: Option<String>,
    pub(crate) limit: Option<usize>,
    pub(crate) cursor: Option<String>,
}

pub(super) async fn list(
    State(control): State<Control>,
    QueryOf(query): QueryOf<ToolSelection>,
) -> ApiResult<Page<Tool>> {
    select(&control, &query).map(Json)
}

/// The tools that a selection names. Only those of the page are described.
pub(crate) fn select(control: &Control, query: &ToolSelection) -> Result<Page<Tool>, ApiError> {
    let found = found(control, query)?;
    let Page { items, next } = page(found, query.limit, query.cursor.as_deref())?;
    Ok(Page { items: items.iter().map(|tool| tool.describe(control)).collect(), next })
}

/// A tool that a selection names.
pub(crate) struct FoundTool {
    project: String,
    view: Arc<View>,
    entry: Entry,
}

impl FoundTool {
    pub(crate) fn describe(&self, control: &Control) -> Tool {
        described(&**control.source(), &self.project, &self.view, &self.entry)
    }
}

/// All tools that a selection names, by project and name.
pub(crate) fn found(control: &Control, query: &ToolSelection) -> Result<Vec<FoundTool>, ApiError> {
    let conversation = conversation(query.conversation.as_deref())?;
    let words: Vec<String> =
        query.search.iter().flat_map(|it| it.split_whitespace()).map(str::to_lowercase).collect();
    let mut found = Vec::new();
    for project in control.source().projects() {
        if query.project.as_ref().is_some_and(|wanted| *wanted != project.info.id) {
            continue;
        }
        let caller = caller_of(&project, conversation.as_ref());
        let Ok(view) = caller.view() else { continue };
        let view = Arc::new(view);
        let visible: Vec<_> =
            view.entries(ItemKind::Tool).map(|entry| (entry.clone(), true)).collect();
        let hidden = view.hidden(ItemKind::Tool).map(|(entry, _)| (entry.clone(), false));
        let mut tools: Vec<_> = visible.into_iter().chain(hidden).collect();
        tools.sort_by(|(one, _), (two, _)| one.exposed().cmp(two.exposed()));
        let wanted = tools.into_iter().filter(|(entry, is_visible)| {
            let server = query.server.as_ref();
            query.visible.is_none_or(|wanted| wanted == *is_visible)
                && server.is_none_or(|wanted| *wanted == entry.server().name.as_str())
                && matches(entry, &words)
        });
        found.extend(wanted.map(|(entry, _)| FoundTool {
            project: project.info.id.clone(),
            view: Arc::clone(&view),
            entry,
        }));
    }
    Ok(found)
}

fn matches(entry: &Entry, words: &[String]) -> bool {
    if words.is_empty() {
        return true;
    }
    let [title, description] = entry.definition().get_all(["title", "description"]);
    let text = |raw: Option<Raw>| raw.and_then(|raw| raw.as_str().map(|it| it.to_lowercase()));
    let (title, description) = (text(title), text(description));
    let name = entry.exposed().to_lowercase();
    let texts = [Some(name), title, description];
    words.iter().all(|word| texts.iter().flatten().any(|text| text.contains(word.as_str())))
}

fn described(source: &dyn ControlSource, project: &str, view: &View, entry: &Entry) -> Tool {
    let definition = entry.definition();
    let [title, description, schema, annotations] =
        definition.get_all(["title", "description", "inputSchema", "annotations"]);
    let text = |raw: Option<Raw>| raw.and_then(|raw| raw.as_str().map(Cow::into_owned));
    let results = view.explain(entry);
    let deciding = results.iter().filter(|result| result.decides);
    let reasons: Vec<_> = deciding
        .map(|result| HiddenReason {
            rule: result.reason.rule().as_str().to_owned(),
            reason: result.reason.to_string(),
            remedy: result.reason.hint().map(Into::into),
        })
        .collect();
    Tool {
        project: project.to_owned(),
        server: entry.server().name.as_str().to_owned(),
        name: entry.exposed().to_owned(),
        title: text(title),
        description: text(description),
        input_schema: schema.map_or(Value::Null, |schema| schema.to_value()),
        annotations: annotations.map(|annotations| annotations.to_value()),
        definition: definition_id(entry),
        tokens: source.tokens(definition.text()),
        is_visible: reasons.is_empty(),
        reasons,
    }
}

/// Names a tool with its server and definition.
pub(super) fn definition_id(entry: &Entry) -> String {
    let text = format!("{}\n{}", entry.server().name.as_str(), entry.definition().text());
    hex(digest(&SHA256, text.as_bytes()).as_ref())
}

pub(super) fn conversation(name: Option<&str>) -> Result<Option<ConversationName>, ApiError> {
    let name = name.map(ConversationName::new).transpose();
    name.map_err(|error| ApiError::bad_request(format!("`conversation`: {error}")))
}

pub(super) fn caller_of(
    project: &OpenProject,
    conversation: Option<&ConversationName>,
) -> HostCaller {
    match conversation {
        Some(name) => project.host.for_conversation(name),
        None => project.host.owner(),
    }
}

/// One tool, by its exposed name.
pub(crate) fn find(control: &Control, project: &str, name: &str) -> Result<Tool, ApiError> {
    let open = control.project(project).ok_or_else(|| ApiError::not_found("project", project))?;
    let no_tool = || ApiError::not_found("tool", name);
    let view = open.host.owner().view().map_err(|_| no_tool())?;
    let catalog = open.host.catalog();
    let entry = catalog.get(ItemKind::Tool, name).ok_or_else(no_tool)?;
    Ok(described(&**control.source(), project, &view, entry))
}

pub(super) async fn one(
    State(control): State<Control>,
    PathOf((project, name)): PathOf<(String, String)>,
) -> ApiResult<Tool> {
    find(&control, &project, &name).map(Json)
}
