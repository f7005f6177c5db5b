//! Client program for the conformance suite, which starts it with the URL of a server; performs the
//! client's part of a scenario with the library.

#![expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "this is a program, and the suite keeps what it says"
)]

mod answers;
mod login;

use std::env;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};
use trunkline::config::{self, EmptyResolver};
use trunkline::connection::{
    ChildOptions, Connection, ConnectionOptions, HttpOptions, NoopHandler, OutgoingRequest,
    RequestError,
};
use trunkline::error::Error;
use trunkline::item::Item;
use trunkline::message::Raw;

use self::answers::{AcceptingHandler, arguments_for};

/// The error that ends the program.
type Failure = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let scenario = env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let Some(url) = env::args().next_back().filter(|last| last.starts_with("http")) else {
        eprintln!("the last argument has to be the address of a server");
        return ExitCode::from(2);
    };
    match run(&scenario, &url).await {
        Ok(()) => {
            // The suite ignores the exit status, so that the tests look for this line.
            println!("finished");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("{scenario}: {failure}");
            ExitCode::FAILURE
        }
    }
}

async fn run(scenario: &str, url: &str) -> Result<(), Failure> {
    if scenario.starts_with("auth/") {
        return login::run(url).await;
    }
    let connection = connection(url)?;
    connection.connect().await?;
    let result = play(scenario, &connection).await;
    connection.close().await;
    result
}

/// Performs a scenario.
async fn play(scenario: &str, connection: &Connection) -> Result<(), Failure> {
    match scenario {
        "http-custom-headers" => {
            for call in context()?["toolCalls"].as_array().into_iter().flatten() {
                tool_call(connection, &call["name"], Raw::from_value(&call["arguments"])).await?;
            }
        }
        "json-schema-2020-12-preservation" => echo_schema(connection).await?,
        // The server has no tools: the suite checks that the client does not dereference its
        // schemas.
        "json-schema-ref-no-deref" => {}
        _ => {
            for tool in connection.tools().iter() {
                let name = Value::from(tool.name());
                tool_call(connection, &name, arguments_for(tool)).await?;
            }
        }
    }
    if scenario == "http-standard-headers" {
        read_and_prompt(connection).await?;
    }
    Ok(())
}

/// Sends a schema back unchanged.
async fn echo_schema(connection: &Connection) -> Result<(), Failure> {
    let tools = connection.tools();
    let is_focal = |tool: &&Arc<Item>| tool.name() == "json_schema_2020_12_tool";
    let focal = tools.iter().find(is_focal).ok_or("the tool with the schema is missing")?;
    let schema = focal.definition().get("inputSchema").ok_or("the tool has no schema")?;
    let arguments = Raw::from_value(&json!({})).with("schema", &schema);
    tool_call(connection, &json!("json_schema_echo"), arguments).await
}

/// Reads every resource and gets every prompt.
async fn read_and_prompt(connection: &Connection) -> Result<(), Failure> {
    for (list, key, get, name) in [
        ("resources/list", "resources", "resources/read", "uri"),
        ("prompts/list", "prompts", "prompts/get", "name"),
    ] {
        let listed = match connection.request(list, None).await {
            Ok(listed) => listed,
            Err(RequestError::Refused(_)) => continue,
            Err(error @ RequestError::Failed(_)) => return Err(error.into()),
        };
        for item in listed.get(key).map(|items| items.items()).unwrap_or_default() {
            let value = item.get(name).ok_or("something in a list has no name")?;
            let params = Raw::from_value(&json!({})).with(name, &value);
            let request = OutgoingRequest::new(get, Some(params));
            connection.request_with(request, &NoopHandler).await?;
        }
    }
    Ok(())
}

async fn tool_call(connection: &Connection, name: &Value, arguments: Raw) -> Result<(), Failure> {
    let params = Raw::from_value(&json!({ "name": name })).with("arguments", &arguments);
    let request = OutgoingRequest::new("tools/call", Some(params));
    connection.request_with(request, &AcceptingHandler).await?;
    Ok(())
}

/// Additional parameters from the suite.
fn context() -> Result<Value, Failure> {
    Ok(serde_json::from_str(&env::var("MCP_CONFORMANCE_CONTEXT")?)?)
}

fn connection(url: &str) -> Result<Connection, Error> {
    let text = json!({ "mcpServers": { "suite": { "type": "http", "url": url } } });
    let loaded = config::parse("suite", text.to_string());
    let server = loaded.config.server("suite").expect("invariant: it was just written");
    let capabilities = json!({ "elicitation": {}, "sampling": {}, "roots": {} });
    let http = HttpOptions::default();
    let options = ConnectionOptions::new(Arc::new(EmptyResolver), ChildOptions::default(), http)
        .with_capabilities(Raw::from_value(&capabilities));
    Ok(Connection::new(server.clone(), options))
}
