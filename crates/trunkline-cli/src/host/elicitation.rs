//! Answers server requests during a call on a terminal: elicitation as questions, and `roots/list`.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use trunkline::config::escape_control;
use trunkline::connection::ServerRequest;
use trunkline::content::validate_arguments;
use trunkline::message::{Raw, RpcError};
use trunkline::protocol::code;

use crate::output::terminal::Terminal;
use crate::roots::ServerRoots;
use crate::typed::ArgumentSchema;

/// Fields that one request may ask for.
const MAX_FIELDS: usize = 50;

/// How often a field is asked for again after an answer that does not fit.
const MAX_ATTEMPTS: usize = 5;

/// What a user can answer during a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct UserInput {
    /// Whether the user can be asked.
    pub(crate) can_ask: bool,
    /// The directories that servers may learn of.
    pub(crate) roots: Arc<ServerRoots>,
}

impl UserInput {
    /// The capabilities to declare to servers.
    pub(crate) fn capabilities(&self) -> Option<Raw> {
        let mut capabilities = Map::new();
        if self.can_ask {
            capabilities.insert("elicitation".to_owned(), json!({ "form": {}, "url": {} }));
        }
        if self.roots.are_declared() {
            capabilities.insert("roots".to_owned(), json!({}));
        }
        (!capabilities.is_empty()).then(|| Raw::from_value(&Value::Object(capabilities)))
    }

    /// Answers a server request.
    pub(crate) async fn answer(
        &self,
        request: ServerRequest,
        server: &str,
        terminal: &Terminal,
    ) -> Result<Raw, RpcError> {
        let params = request.params.as_ref().map_or(Value::Null, Raw::to_value);
        match &*request.method {
            "elicitation/create" if self.can_ask => {
                terminal.clear_progress();
                // Not as a value, which would sort the fields.
                let fields = request.params.as_ref().and_then(|it| it.get("requestedSchema"));
                let answer = ask((&params, fields.as_ref()), server, terminal).await;
                // Without an answer, the request is cancelled.
                let answer = answer.unwrap_or_else(|_| json!({ "action": "cancel" }));
                Ok(Raw::from_value(&answer))
            }
            "roots/list" if self.roots.are_declared() => {
                Ok(self.roots.result(&request.server).await)
            }
            method => {
                let message = format!("this client does not support {method}");
                Err(RpcError::new(code::METHOD_NOT_FOUND, &message))
            }
        }
    }
}

/// Asks the user for the fields of an elicitation. Leaves the choice to send nothing.
async fn ask(
    (params, fields): (&Value, Option<&Raw>),
    server: &str,
    terminal: &Terminal,
) -> std::io::Result<Value> {
    let text = |key: &str| params.get(key).and_then(Value::as_str).map(escape_control);
    let message = params.get("message").and_then(Value::as_str).unwrap_or_default();
    let message: Vec<_> = message.lines().map(escape_control).collect();
    terminal.say_verbatim(&format!("\nServer {server} asks: {}\n", message.join("\n  ")));
    if let Some(url) = text("url") {
        terminal.say_verbatim(&format!("  open this page in your browser: {url}\n"));
        let is_done = terminal.ask_async("Have you done so?").await?;
        return Ok(json!({ "action": if is_done { "accept" } else { "decline" } }));
    }
    let schema =
        fields.map_or_else(Raw::empty_object, |it| Raw::empty_object().with("inputSchema", it));
    let schema = ArgumentSchema::of(&schema);
    let mut content = Map::new();
    for name in schema.names().into_iter().take(MAX_FIELDS) {
        match ask_field(name, &schema, terminal).await? {
            Some(value) => drop(content.insert(name.to_owned(), value)),
            None if schema.required().contains(&name) => return Ok(json!({ "action": "decline" })),
            None => {}
        }
    }
    let shown = escape_control(&Value::Object(content.clone()).to_string());
    let is_sent = terminal.ask_async(&format!("Send {shown} to server {server}?")).await?;
    Ok(match is_sent {
        true => json!({ "action": "accept", "content": content }),
        false => json!({ "action": "decline" }),
    })
}

/// The values of an enumeration, with titles or without.
fn choices(schema: &Value) -> Vec<Value> {
    let list = |key: &str| schema.get(key).and_then(Value::as_array).into_iter().flatten();
    let titled = list("oneOf").chain(list("anyOf")).filter_map(|choice| choice.get("const"));
    list("enum").chain(titled).cloned().collect()
}

/// Asks for one field; `None` if the user leaves it out.
pub(super) async fn ask_field(
    name: &str,
    schema: &ArgumentSchema,
    terminal: &Terminal,
) -> std::io::Result<Option<Value>> {
    let argument = schema.argument(name).unwrap_or(&Value::Null);
    let default = argument.get("default");
    let choices = choices(argument);
    let of_items = argument.get("items").map(self::choices).unwrap_or_default();
    let listed =
        |values: &[Value]| values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
    let mut details = match (choices.is_empty(), of_items.is_empty()) {
        (false, _) => listed(&choices),
        (true, false) => format!("a JSON list of {}", listed(&of_items)),
        (true, true) => {
            let types = schema.type_names(name);
            let is_json = types.iter().any(|it| ["array", "object"].contains(&&**it));
            types.join(" or ") + if is_json { ", as JSON" } else { "" }
        }
    };
    if let Some(default) = default {
        details += &format!(", default {default}");
    } else if !schema.required().contains(&name) {
        details += ", optional";
    }
    let description = argument.get("description").or_else(|| argument.get("title"));
    if let Some(description) = description.and_then(Value::as_str) {
        terminal.say_verbatim(&format!("  {}\n", escape_control(description)));
    }
    let question = format!("  {} ({}): ", escape_control(name), escape_control(&details));
    for _ in 0..MAX_ATTEMPTS {
        let line = terminal.ask_line_async(&question).await?;
        let line = line.trim_end_matches(['\r', '\n']);
        if line.is_empty() {
            return Ok(default.cloned());
        }
        let value = schema.typed(name, line).to_value();
        let properties = json!({ "type": "object", "properties": { name: argument } });
        let given = Raw::from_value(&json!({ name: value }));
        let texts = schema.text_problems(&given.to_value()).into_iter().next();
        let problem = texts.or_else(|| {
            let invalid = validate_arguments(&Raw::from_value(&properties), &given).err();
            invalid.map(|it| it.problems().join("; "))
        });
        let problem = match problem {
            Some(problem) => problem,
            None if choices.is_empty() || choices.contains(&value) => return Ok(Some(value)),
            None => "it is none of the choices".to_owned(),
        };
        let problem = escape_control(&problem);
        terminal.say(&format!("  the answer does not fit: {problem}\n"));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use trunkline::config::Config;

    use super::*;
    use crate::roots::RootsSetting;

    #[test]
    fn only_what_can_be_answered_is_declared() {
        assert!(UserInput::default().capabilities().is_none());
        let given = RootsSetting::Given(vec!["/".into()]);
        let roots = Arc::new(ServerRoots::new(&given, false, &Config::default()));
        let input = UserInput { can_ask: true, roots };
        let declared = input.capabilities().unwrap().to_value();
        assert!(declared["elicitation"]["form"].is_object() && declared["roots"].is_object());
    }
}
