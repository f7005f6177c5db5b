//! `trunkline enable` and `trunkline disable`: switch servers, tools and prompts on and off (TOOL-9).

use std::fmt::Write as _;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use serde_json::{Value, json};
use trunkline::catalog::ItemKind;
use trunkline::config::{closest_match, escape_control};
use trunkline::host::ToggleSubject;
use trunkline::name::{ConversationName, ServerName};
use trunkline::policy::{ProjectToggles, Toggle, Toggles};

use crate::arguments::{Format, ToggleArguments};
use crate::environment::ProcessEnv;
use crate::host::command_host::{CommandHost, ProblemDetail, with_host};
use crate::host::state;
use crate::output::exit::{Failure, FailureKind, Outcome};
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::settings::Settings;

pub(crate) fn disable(
    arguments: &ToggleArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    run(arguments, Toggle::Off, settings, environment, terminal)
}

pub(crate) fn enable(
    arguments: &ToggleArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    run(arguments, Toggle::On, settings, environment, terminal)
}

fn run(
    arguments: &ToggleArguments,
    toggle: Toggle,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    with_host(ProblemDetail::Counted, settings, environment, terminal, async |hosted, terminal| {
        let project = state::project_directory(&hosted.loaded, environment);
        let project = escape_control(&project.to_string_lossy());
        if let Some(problem) = hosted.host.conversations().problem() {
            return Err(anyhow!("{problem}"));
        }
        if arguments.names.is_empty() {
            let stored = hosted.host.conversations().toggles();
            terminal.print(&match settings.format {
                Format::Text => as_text(&stored, &project),
                format => report::document(&as_json(&stored), format),
            })?;
            return Ok(Outcome::Good);
        }
        if state::file(environment).is_none() {
            return Err(anyhow!("there is no home directory to keep it in; set XDG_STATE_HOME"));
        }
        let mut subjects = Vec::new();
        for name in &arguments.names {
            subjects.push(subject(name, hosted, terminal).await?);
        }
        let conversation = arguments.conversation.as_ref();
        // Where only the configuration is below, being on is no decision.
        let stored = Some(toggle).filter(|it| *it == Toggle::Off || conversation.is_some());
        hosted.host.conversations().set(conversation, &subjects, stored).await?;
        let place = match conversation {
            Some(name) => format!("in the conversation `{}` of {project}", shown(name)),
            None => format!("in {project}"),
        };
        let state = if toggle == Toggle::On { "on" } else { "off" };
        let text: String =
            subjects.iter().map(|it| format!("{} is {state} {place}\n", described(it))).collect();
        match settings.format {
            Format::Text => terminal.confirm(&text)?,
            format => {
                let directory = state::project_directory(&hosted.loaded, environment);
                let mut json = switched_json(&subjects, toggle, conversation);
                json["directory"] = json!(directory);
                terminal.print(&report::document(&json, format))?;
            }
        }
        warn_of_other_reasons(hosted, conversation, (&subjects, toggle), terminal);
        Ok(Outcome::Good)
    })
}

/// The server, tool or prompt of a name. Starts servers only if the name is not one of theirs and no list is
/// cached.
async fn subject(
    name: &str,
    hosted: &CommandHost,
    terminal: &mut Terminal,
) -> Result<ToggleSubject> {
    if let Some(server) = hosted.loaded.config.server(name) {
        return Ok(ToggleSubject::Server(server.name.clone()));
    }
    let kinds = [ItemKind::Tool, ItemKind::Prompt];
    let all = hosted.all();
    hosted.refresh(&all, &kinds, terminal).await;
    let catalog = hosted.host.catalog();
    match kinds.into_iter().find(|kind| catalog.get(*kind, name).is_some()) {
        Some(ItemKind::Tool) => return Ok(ToggleSubject::Tool(name.into())),
        Some(_) => return Ok(ToggleSubject::Prompt(name.into())),
        None => {}
    }
    let items = kinds.into_iter().flat_map(|kind| catalog.entries(kind));
    let known: Vec<String> = items
        .map(|entry| entry.exposed().to_owned())
        .chain(all.iter().map(|server| server.as_str().to_owned()))
        .collect();
    let near = closest_match(name, known.iter().map(String::as_str)).map(str::to_owned);
    let name = escape_control(name);
    let message = match &near {
        Some(near) => {
            format!("there is no server, tool or prompt `{name}`; did you mean `{near}`?")
        }
        None => format!("there is no server, tool or prompt `{name}`"),
    };
    Err(Failure::new(FailureKind::Unknown, message).suggesting(near.into_iter().collect()).into())
}

/// Warns if a server stays off although it was switched on.
fn warn_of_other_reasons(
    hosted: &CommandHost,
    conversation: Option<&ConversationName>,
    (subjects, toggle): (&[ToggleSubject], Toggle),
    terminal: &Terminal,
) {
    if toggle == Toggle::Off {
        return;
    }
    let merged = hosted.host.conversations().toggles();
    let merged = merged.merged(conversation.map(ConversationName::as_str));
    for subject in subjects {
        let owner = match subject {
            ToggleSubject::Server(server) => {
                let disabled = hosted.loaded.config.server(server.as_str());
                if disabled.is_some_and(|it| !it.enabled && it.hold.is_none()) {
                    let name = shown_server(server);
                    terminal.warn(&format!(
                        "the server `{name}` has `\"enabled\": false` in its configuration, and stays off"
                    ));
                }
                continue;
            }
            ToggleSubject::Tool(name) => hosted.host.catalog().get(ItemKind::Tool, name).cloned(),
            ToggleSubject::Prompt(name) => {
                hosted.host.catalog().get(ItemKind::Prompt, name).cloned()
            }
        };
        let owner = owner.map(|entry| entry.server().name.clone());
        if let Some(server) = owner.filter(|server| merged.get(server) == Toggle::Off) {
            let (item, name) = (described(subject), shown_server(&server));
            terminal.warn(&format!(
                "{item} stays off, because its server is; `trunkline enable {name}` switches that on"
            ));
        }
    }
}

fn shown(name: &ConversationName) -> String {
    escape_control(name.as_str())
}

fn shown_server(server: &ServerName) -> String {
    escape_control(server.as_str())
}

fn described(subject: &ToggleSubject) -> String {
    match subject {
        ToggleSubject::Server(name) => format!("the server `{}`", escape_control(name.as_str())),
        ToggleSubject::Tool(name) => format!("the tool `{}`", escape_control(name)),
        ToggleSubject::Prompt(name) => format!("the prompt `{}`", escape_control(name)),
    }
}

fn as_text(stored: &ProjectToggles, project: &str) -> String {
    let mut text = String::new();
    let own = stored.get(None).map(|own| (format!("in {project}"), own));
    let conversations = stored.conversations();
    let conversations =
        conversations.map(|(name, own)| (format!("in the conversation `{}`", shown(name)), own));
    for (place, own) in own.into_iter().chain(conversations).filter(|(_, own)| !own.has_none()) {
        let _ = writeln!(text, "{place}");
        for (what, name, toggle) in lines(own) {
            let state = if toggle == Toggle::On { "on " } else { "off" };
            let _ = writeln!(text, "  {state}  {what} {}", escape_control(name));
        }
    }
    match text.is_empty() {
        true => format!("nothing is switched off in {project}\n"),
        false => text,
    }
}

fn lines(own: &Toggles) -> impl Iterator<Item = (&'static str, &str, Toggle)> {
    let servers = own.iter().map(|(server, toggle)| ("server", server.as_str(), toggle));
    servers.chain(own.items().map(|(kind, name, toggle)| (kind.as_str(), name, toggle)))
}

/// The servers, tools and prompts that were switched.
fn switched_json(
    subjects: &[ToggleSubject],
    toggle: Toggle,
    conversation: Option<&ConversationName>,
) -> Value {
    let subject = |subject: &ToggleSubject| match subject {
        ToggleSubject::Server(name) => json!({ "kind": "server", "name": name.as_str() }),
        ToggleSubject::Tool(name) => json!({ "kind": "tool", "name": name }),
        ToggleSubject::Prompt(name) => json!({ "kind": "prompt", "name": name }),
    };
    json!({
        "switched": subjects.iter().map(subject).collect::<Value>(),
        "on": toggle == Toggle::On,
        "conversation": conversation.map(ConversationName::as_str),
    })
}

fn as_json(stored: &ProjectToggles) -> Value {
    let conversations = stored.conversations();
    let conversations: serde_json::Map<_, _> =
        conversations.map(|(name, own)| (name.as_str().to_owned(), own.to_json())).collect();
    json!({ "project": stored.get(None).map(Toggles::to_json), "conversations": conversations })
}
