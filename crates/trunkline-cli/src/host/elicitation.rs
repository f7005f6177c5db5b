//! Answers server requests during a call on a terminal: elicitation as questions, and `roots/list`.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use trunkline::config::escape_control;
use trunkline::connection::ServerRequest;
use trunkline::content::validate_arguments;
use trunkline::message::{Raw, RpcError};
use trunkline::protocol::code;

use super::enum_choices::{EnumChoices, written};
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

/// A field that is asked for.
struct AskedField<'s> {
    name: &'s str,
    schema: &'s ArgumentSchema,
    argument: &'s Value,
    /// The values of an enumeration.
    choices: EnumChoices,
    /// The same for the items of a list.
    item_choices: EnumChoices,
}

impl<'s> AskedField<'s> {
    fn new(name: &'s str, schema: &'s ArgumentSchema) -> Self {
        let argument = schema.argument(name).unwrap_or(&Value::Null);
        let parts = schema.conjunction(&[argument]);
        let items: Vec<_> = parts.iter().filter_map(|part| part.get("items")).collect();
        let choices = EnumChoices::of(&parts);
        let item_choices = EnumChoices::of(&schema.conjunction(&items));
        Self { name, schema, argument, choices, item_choices }
    }

    /// The default, which an empty answer means.
    fn default(&self) -> Option<&'s Value> {
        self.argument.get("default")
    }

    /// The values that it takes, and whether it can be left out.
    fn details(&self) -> String {
        let mut details = match (self.choices.is_empty(), self.item_choices.is_empty()) {
            (false, _) => self.choices.listed(" or "),
            (true, false) => {
                format!("any of {}, separated by commas", self.item_choices.listed(", "))
            }
            (true, true) => {
                let types = self.schema.type_names(self.name);
                let is_json = types.iter().any(|it| ["array", "object"].contains(&&**it));
                types.join(" or ") + if is_json { ", as JSON" } else { "" }
            }
        };
        match self.default() {
            Some(value) if self.choices.contains(value) => {
                details += &format!("; default {}", written(value));
            }
            Some(value) => details += &format!("; default {value}"),
            None if !self.schema.required().contains(&self.name) => details += "; optional",
            None => {}
        }
        details
    }

    /// The value of an answer, or why it does not fit.
    fn value(&self, answer: &str) -> Result<Value, String> {
        let typed = self.schema.typed(self.name, answer).to_value();
        let value = match &typed {
            _ if !self.choices.is_empty() => match self.choices.value(answer) {
                Some(value) => value.clone(),
                None => typed,
            },
            Value::Array(items) => items.iter().map(|item| self.item(item)).collect(),
            Value::String(_) if !self.item_choices.is_empty() => {
                let named = self.item_choices.values(answer);
                named.map_err(|part| format!("`{part}` is none of the choices"))?.into()
            }
            _ => typed,
        };
        match self.problem(&value) {
            Some(problem) => Err(problem),
            None => Ok(value),
        }
    }

    /// An item of a list in JSON, which may be the title of a choice.
    fn item(&self, item: &Value) -> Value {
        let named = item.as_str().and_then(|text| self.item_choices.value(text));
        if self.item_choices.contains(item) { item } else { named.unwrap_or(item) }.clone()
    }

    fn problem(&self, value: &Value) -> Option<String> {
        let is_chosen =
            |choices: &EnumChoices, value: &Value| choices.is_empty() || choices.contains(value);
        let properties = json!({ "type": "object", "properties": { self.name: self.argument } });
        let given = Raw::from_value(&json!({ self.name: value }));
        let texts = self.schema.text_problems(&given.to_value()).into_iter().next();
        let problem = texts.or_else(|| {
            let invalid = validate_arguments(&Raw::from_value(&properties), &given).err();
            invalid.map(|it| it.problems().join("; "))
        });
        let items = value.as_array().into_iter().flatten();
        let other = items.into_iter().find(|item| !is_chosen(&self.item_choices, item));
        let other = other.map(|item| format!("`{}` is none of the choices", written(item)));
        let none = || "it is none of the choices".to_owned();
        problem.or(other).or_else(|| (!is_chosen(&self.choices, value)).then(none))
    }
}

/// Asks for one field; `None` if the user leaves it out.
pub(super) async fn ask_field(
    name: &str,
    schema: &ArgumentSchema,
    terminal: &Terminal,
) -> std::io::Result<Option<Value>> {
    let field = AskedField::new(name, schema);
    let description = field.argument.get("description").or_else(|| field.argument.get("title"));
    if let Some(description) = description.and_then(Value::as_str) {
        terminal.say_verbatim(&format!("  {}\n", escape_control(description)));
    }
    let question = format!("  {} ({}): ", escape_control(name), escape_control(&field.details()));
    for _ in 0..MAX_ATTEMPTS {
        let line = terminal.ask_line_async(&question).await?;
        let line = line.trim_end_matches(['\r', '\n']);
        if line.is_empty() {
            return Ok(field.default().cloned());
        }
        match field.value(line) {
            Ok(value) => return Ok(Some(value)),
            Err(problem) => {
                let problem = escape_control(&problem);
                terminal.say(&format!("  the answer does not fit: {problem}\n"));
            }
        }
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
