//! The operations of the API, each with its handler and its description. The OpenAPI document is made of the same
//! table and of the types, so that neither can differ from the routes.

use axum::Json;
use axum::routing::{MethodRouter, delete, get, patch, post};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::{PREFIX, calls, conversations, events, program, servers, tool_call, tools, trust};
use crate::control::Control;
use crate::types::{self, CONVERSATION_PATTERN};

/// The version of the API.
const VERSION: &str = "1.0.0";

/// One operation.
pub(super) struct Operation {
    method: &'static str,
    pub(super) path: &'static str,
    pub(super) handler: MethodRouter<Control>,
    summary: &'static str,
    query: &'static [Parameter],
    request: Option<SchemaOf>,
    response: SchemaOf,
    /// Statuses of errors, beside those of every operation.
    errors: &'static [u16],
}

type SchemaOf = fn(&mut SchemaGenerator) -> Value;

/// A parameter of a query: its name, JSON type and description.
type Parameter = (&'static str, &'static str, &'static str);

const PROJECT: Parameter = ("project", "string", "Only of this project");
const SERVER: Parameter = ("server", "string", "Only of this server");
const LIMIT: Parameter = ("limit", "limit", "The most items of the page");
const CURSOR: Parameter = ("cursor", "cursor", "The `next` of the page before");

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

fn text(_: &mut SchemaGenerator) -> Value {
    json!({ "type": "string" })
}

fn any(_: &mut SchemaGenerator) -> Value {
    json!({ "type": "object" })
}

impl Operation {
    fn new(
        method: &'static str,
        path: &'static str,
        handler: MethodRouter<Control>,
        summary: &'static str,
        response: SchemaOf,
    ) -> Self {
        let (query, request, errors) = (&[], None, &[]);
        Self { method, path, handler, summary, query, request, response, errors }
    }

    fn query(self, query: &'static [Parameter]) -> Self {
        Self { query, errors: &[400], ..self }
    }

    fn body<T: JsonSchema>(self) -> Self {
        Self { request: Some(schema::<T>), ..self }
    }

    fn errors(self, errors: &'static [u16]) -> Self {
        Self { errors, ..self }
    }
}

/// All operations.
pub(super) fn all() -> Vec<Operation> {
    let mut operations = vec![
        Operation::new("get", "/openapi.json", get(document), "This document", any),
        Operation::new(
            "get",
            "/program",
            get(program::status),
            "The running program",
            schema::<types::Program>,
        ),
        Operation::new(
            "post",
            "/login-links",
            post(program::login_link),
            "A link that opens the page in one browser",
            schema::<types::LoginLink>,
        ),
        Operation::new(
            "get",
            "/log",
            get(program::log),
            "The last lines of the log",
            schema::<types::LogLines>,
        )
        .query(&[("lines", "lines", "How many")]),
        Operation::new(
            "get",
            "/events",
            get(events::stream),
            "All changes as server-sent events; `Last-Event-ID` continues a stream",
            text,
        ),
    ];
    operations.extend(of_servers());
    operations.extend(of_tools());
    operations.extend(of_conversations());
    operations.extend(of_trust());
    operations
}

fn of_servers() -> [Operation; 6] {
    let server = schema::<types::Server>;
    let act = |path, handler, summary| {
        Operation::new("post", path, handler, summary, server).errors(&[400, 404, 409])
    };
    let path = "/projects/{project}/servers/{server}/stderr";
    let lines = schema::<types::LogLines>;
    [
        Operation::new(
            "get",
            "/projects",
            get(servers::projects),
            "The open projects",
            schema::<types::Page<types::Project>>,
        ),
        Operation::new(
            "get",
            "/servers",
            get(servers::list),
            "All servers with their states, also those that are disabled",
            schema::<types::Page<types::Server>>,
        )
        .query(&[PROJECT, LIMIT, CURSOR]),
        act(
            "/projects/{project}/servers/{server}/start",
            post(servers::start),
            "Starts a server, if it is not running",
        ),
        act(
            "/projects/{project}/servers/{server}/stop",
            post(servers::stop),
            "Ends a server; the next call starts it again",
        ),
        act(
            "/projects/{project}/servers/{server}/restart",
            post(servers::restart),
            "Ends a server, and starts it again",
        ),
        Operation::new("get", path, get(servers::log), "Its last lines on standard error", lines)
            .errors(&[400, 404]),
    ]
}

fn of_tools() -> [Operation; 4] {
    const SEARCH: &[Parameter] = &[
        PROJECT,
        SERVER,
        ("search", "string", "Words in name, title or description"),
        ("visible", "boolean", "Only visible, or only hidden ones"),
        ("conversation", "conversation", "As seen in this conversation"),
        LIMIT,
        CURSOR,
    ];
    const CALLS: &[Parameter] = &[
        PROJECT,
        SERVER,
        ("outcome", "string", "Only with this outcome"),
        ("client", "string", "Only of this client"),
        LIMIT,
        CURSOR,
    ];
    let (tools_path, calls_path) = ("/projects/{project}/tools/{tool}", "/calls");
    let call_path = "/projects/{project}/tools/{tool}/call";
    let tool_page = schema::<types::Page<types::Tool>>;
    let call_page = schema::<types::Page<types::Call>>;
    [
        Operation::new("get", "/tools", get(tools::list), "All tools that are known", tool_page)
            .query(SEARCH),
        Operation::new("get", tools_path, get(tools::one), "One tool", schema::<types::Tool>)
            .errors(&[400, 404]),
        Operation::new(
            "post",
            call_path,
            post(tool_call::call),
            "Calls a tool as the owner",
            schema::<types::CallResult>,
        )
        .body::<types::CallRequest>()
        .errors(&[400, 404, 409, 413, 415]),
        Operation::new("get", calls_path, get(calls::list), "Recent calls of clients", call_page)
            .query(CALLS),
    ]
}

fn of_conversations() -> [Operation; 6] {
    let (list, one) =
        ("/projects/{project}/conversations", "/projects/{project}/conversations/{conversation}");
    let toggles = "/projects/{project}/toggles";
    let conversation = schema::<types::Conversation>;
    let page = schema::<types::Page<types::Conversation>>;
    let change = |path, handler, summary| {
        Operation::new("patch", path, handler, summary, conversation)
            .body::<types::ToggleChanges>()
            .errors(&[400, 404, 413, 415, 507])
    };
    [
        Operation::new("get", list, get(conversations::list), "Conversations with toggles", page)
            .errors(&[400, 404]),
        Operation::new("get", one, get(conversations::one), "One conversation", conversation)
            .errors(&[400, 404, 507]),
        change(one, patch(conversations::patch), "Switches servers, tools and prompts in it"),
        Operation::new(
            "delete",
            one,
            delete(conversations::remove),
            "Forgets a conversation",
            conversation,
        )
        .errors(&[400, 404, 507]),
        Operation::new(
            "get",
            toggles,
            get(conversations::of_project),
            "The toggles of a whole project",
            conversation,
        )
        .errors(&[400, 404, 507]),
        change(toggles, patch(conversations::patch_project), "Switches in the whole project"),
    ]
}

fn of_trust() -> [Operation; 3] {
    let page = schema::<types::Page<types::TrustRequest>>;
    let decide = |path, handler, summary| {
        Operation::new("post", path, handler, summary, page).errors(&[400, 404, 507])
    };
    [
        Operation::new("get", "/trust", get(trust::list), "Files that wait for a decision", page),
        decide("/trust/{id}/trust", post(trust::trust), "Lets the servers of a file start"),
        decide("/trust/{id}/block", post(trust::block), "Keeps them from starting"),
    ]
}

async fn document() -> Json<Value> {
    Json(openapi())
}

/// The OpenAPI document.
pub(super) fn openapi() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
    });
    let mut generator = SchemaGenerator::new(settings);
    let problem = schema::<types::Problem>(&mut generator);
    let mut paths = Map::new();
    for operation in all() {
        let path = paths.entry(format!("{PREFIX}{}", operation.path)).or_insert_with(|| json!({}));
        path[operation.method] = described(&operation, &problem, &mut generator);
    }
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Trunkline control API", "version": VERSION },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(false),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn described(operation: &Operation, problem: &Value, generator: &mut SchemaGenerator) -> Value {
    let media = if operation.path == "/events" { "text/event-stream" } else { "application/json" };
    let response = json!({ media: { "schema": (operation.response)(generator) } });
    let mut responses = json!({ "200": { "description": "Success", "content": response } });
    for status in operation.errors.iter().chain(&[401, 403]) {
        let content = json!({ "application/problem+json": { "schema": problem } });
        responses[status.to_string()] = json!({ "description": "Error", "content": content });
    }
    let in_path = operation.path.split('/').filter_map(|part| part.strip_prefix('{'));
    let in_path = in_path.map(|name| name.trim_end_matches('}')).map(|name| {
        let schema = match name {
            "conversation" => json!({ "type": "string", "pattern": CONVERSATION_PATTERN }),
            _ => json!({ "type": "string", "minLength": 1 }),
        };
        json!({ "name": name, "in": "path", "required": true, "schema": schema })
    });
    let in_query = operation.query.iter().map(|(name, kind, description)| {
        json!({ "name": name, "in": "query", "description": description, "schema": query_schema(kind) })
    });
    let mut described = json!({
        "summary": operation.summary,
        "operationId": operation_id(operation),
        "parameters": in_path.chain(in_query).collect::<Vec<_>>(),
        "responses": responses,
    });
    if let Some(request) = operation.request {
        let content = json!({ "application/json": { "schema": request(generator) } });
        described["requestBody"] = json!({ "required": true, "content": content });
    }
    described
}

fn query_schema(kind: &str) -> Value {
    match kind {
        "limit" => json!({ "type": "integer", "minimum": 1, "maximum": servers::MAX_ITEMS }),
        "cursor" => json!({ "type": "string", "pattern": "^[0-9]{1,18}$" }),
        "conversation" => json!({ "type": "string", "pattern": CONVERSATION_PATTERN }),
        "lines" => json!({ "type": "integer", "minimum": 1, "maximum": program::MAX_LINES }),
        kind => json!({ "type": kind }),
    }
}

fn operation_id(operation: &Operation) -> String {
    let is_name = |part: &&str| !part.is_empty() && !part.starts_with('{');
    let parts: Vec<_> = operation.path.split('/').filter(is_name).collect();
    let last = if operation.path.ends_with('}') { "-one" } else { "" };
    format!("{}-{}{last}", operation.method, parts.join("-").replace('.', "-"))
}
