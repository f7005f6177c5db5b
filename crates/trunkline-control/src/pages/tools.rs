//! The section with the tools, and the page of one tool with a form to call it.

use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use maud::Markup;
use serde_json::Value;
use trunkline::message::Raw;

use super::form::FormFields;
use super::respond::{self, PageResult};
use crate::api::problem::ApiError;
use crate::api::tool_call;
use crate::api::tools::{self, ToolSelection};
use crate::control::Control;
use crate::templates::{self, Nonce, PAGE_ROWS, Section, ToolPage, ToolQuery, Visibility};
use crate::types::{CallRequest, CallResult, Project, Tool};

pub(super) async fn page(State(control): State<Control>, RawQuery(query): RawQuery) -> PageResult {
    let query = query_of(query.as_deref());
    let found = select(&control, &query)?;
    let body = |nonce: Nonce<'_>| found.render(&query, |it| templates::tools(nonce, it));
    Ok(respond::page(&control, "Tools", Section::Tools, body).await)
}

pub(super) async fn fragment(
    State(control): State<Control>,
    RawQuery(query): RawQuery,
) -> PageResult {
    let query = query_of(query.as_deref());
    let found = select(&control, &query)?;
    Ok(respond::fragment(|nonce| found.render(&query, |it| templates::tool_list(nonce, it))))
}

fn query_of(text: Option<&str>) -> ToolQuery {
    let fields = FormFields::parse(text.unwrap_or_default());
    ToolQuery {
        project: fields.get("project").to_owned(),
        server: fields.get("server").to_owned(),
        search: fields.get("search").to_owned(),
        visibility: Visibility::from_query(fields.get("visibility")),
        page: fields.get("page").parse().unwrap_or_default(),
    }
}

/// The rows of one page, and the values of the filters.
struct FoundPage {
    projects: Vec<Project>,
    servers: Vec<String>,
    tools: Vec<Tool>,
    total: usize,
}

impl FoundPage {
    fn render(&self, query: &ToolQuery, template: impl FnOnce(&ToolPage<'_>) -> Markup) -> Markup {
        let Self { projects, servers, tools, total } = self;
        template(&ToolPage { query, projects, servers, tools, total: *total })
    }
}

fn select(control: &Control, query: &ToolQuery) -> Result<FoundPage, ApiError> {
    let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let selection = ToolSelection {
        project: given(&query.project),
        server: given(&query.server),
        search: given(&query.search),
        visible: match query.visibility {
            Visibility::All => None,
            Visibility::Visible => Some(true),
            Visibility::Hidden => Some(false),
        },
        ..ToolSelection::default()
    };
    let found = tools::found(control, &selection)?;
    let rows = found.iter().skip(query.page.saturating_mul(PAGE_ROWS)).take(PAGE_ROWS);
    let open = control.source().projects();
    let mut servers: Vec<String> = open
        .iter()
        .flat_map(|project| project.host.servers().connections())
        .map(|connection| connection.server().name.as_str().to_owned())
        .collect();
    servers.sort();
    servers.dedup();
    Ok(FoundPage {
        projects: open.into_iter().map(|project| project.info).collect(),
        servers,
        tools: rows.map(|tool| tool.describe(control)).collect(),
        total: found.len(),
    })
}

pub(super) async fn one(State(control): State<Control>, RawQuery(query): RawQuery) -> PageResult {
    let fields = FormFields::parse(query.as_deref().unwrap_or_default());
    let tool = tools::find(&control, fields.get("project"), fields.get("name"))?;
    let body = |nonce: Nonce<'_>| templates::tool(nonce, &tool, None);
    Ok(respond::page(&control, &tool.name, Section::Tools, body).await)
}

/// The arguments as they would be sent.
pub(super) async fn preview(State(control): State<Control>, body: String) -> PageResult {
    let fields = FormFields::parse(&body);
    let tool = tools::find(&control, fields.get("project"), fields.get("name"))?;
    let arguments = templates::form_arguments(&tool.input_schema, &fields.0);
    Ok(respond::fragment(|_| templates::call_preview(&arguments)))
}

pub(super) async fn call(
    State(control): State<Control>,
    headers: HeaderMap,
    body: String,
) -> PageResult {
    let fields = FormFields::parse(&body);
    let (project, name) = (fields.get("project"), fields.get("name"));
    let tool = tools::find(&control, project, name)?;
    let result = match templates::form_arguments(&tool.input_schema, &fields.0) {
        Ok(Value::Object(arguments)) => {
            let conversation = fields.given("conversation");
            // What was shown is what runs.
            let definition = Some(fields.get("definition").to_owned());
            let raw = Raw::from_value(&Value::Object(arguments));
            let request = CallRequest { definition, conversation, ..CallRequest::default() };
            tool_call::run(&control, (project, name), request, raw).await?.to_result()
        }
        Ok(_) => not_sent("the arguments must be an object".to_owned()),
        Err(problem) => not_sent(problem),
    };
    if respond::is_htmx(&headers) {
        return Ok(respond::fragment(|_| templates::call_result(&result)));
    }
    let body = |nonce: Nonce<'_>| templates::tool(nonce, &tool, Some(&result));
    Ok(respond::page(&control, &tool.name, Section::Tools, body).await)
}

fn not_sent(problem: String) -> CallResult {
    CallResult { sent: Value::Null, result: None, error: Some(problem), duration_ms: 0.0 }
}
