//! The effective configuration as JSON for display: secrets masked, origins included.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::audit_settings::AuditSettings;
use super::inherit::InheritEnv;
use super::keywords::{Access, RestartRule, ToolMode};
use super::model::{
    AgentPattern, Config, FoundBy, ItemToolSettings, Origin, Provenance, RemoteTransport, Restart,
    Server, ServerSettings, ToolLists, Transport,
};
use super::oauth::{OAuthMode, OAuthSettings};
use super::redact::{self, is_like_credential};
use super::secret::MASK;
use super::secret_settings::SecretSettings;
use super::template::Template;
use crate::name::BundleName;

impl Config {
    /// Where secrets are stored, by layers that may choose it.
    pub fn secrets(&self) -> &SecretSettings {
        &self.secrets
    }

    /// Which calls are recorded, by layers that may choose it.
    pub fn audit(&self) -> &AuditSettings {
        &self.audit
    }

    /// The whole configuration under the keys of `trunkline.json`: every secret replaced by `***`,
    /// every default filled in, with the origin of each server.
    pub fn to_json(&self) -> Value {
        let servers = self.servers().map(|server| (server.name.to_string(), server.to_json()));
        let bundles = self.bundles().map(|(name, bundle)| {
            let mut shown = tool_lists(&bundle.tools);
            shown.insert("serverId".to_owned(), bundle.server.as_str().into());
            shown.insert("mode".to_owned(), bundle.mode.as_str().into());
            shown.extend(item_tools(bundle.item_tools));
            (name.to_string(), Value::Object(shown))
        });
        let agents = self.agents.named.iter().map(|(name, agent)| {
            let texts = |patterns: &Vec<AgentPattern>| -> Vec<String> {
                patterns.iter().map(|it| it.pattern.to_string()).collect()
            };
            let tools = agent.tools.as_ref().map(texts);
            let disabled = agent.is_disabled.then_some(true);
            let mut shown = json!({
                "tools": tools,
                "access": agent.access.map(Access::as_str),
                "mode": agent.mode.map(ToolMode::as_str),
                "description": agent.description,
                "disabled": disabled,
            });
            extend(&mut shown, Value::Object(item_tools(agent.item_tools)));
            (name.to_string(), without_nulls(shown))
        });
        let mut shown = json!({
            "mcpServers": servers.collect::<Map<_, _>>(),
            "bundles": bundles.collect::<Map<_, _>>(),
            "disabledBundles": self.disabled_bundles.iter().map(BundleName::as_str).collect::<Vec<_>>(),
            "agents": agents.collect::<Map<_, _>>(),
            "agentFiles": self.agents.files.iter().map(|it| redact::name(it)).collect::<Vec<_>>(),
            "mode": self.surface.mode.as_str(),
            "tokenBudget": self.surface.token_budget,
            "resourcesAsTools": self.surface.resources_as_tools,
            "promptsAsTools": self.surface.prompts_as_tools,
            "secrets": self.secrets.to_json(),
            "audit": self.audit.to_json(),
            "naming": {
                "separator": self.naming.separator,
                "maxLength": self.naming.max_length,
                "describeServer": self.naming.describe_server,
                "addresses": self.naming.addresses.as_str(),
            },
        });
        extend(&mut shown, behaviour_json(&self.defaults));
        shown
    }
}

impl Server {
    /// The command line or URL of the server, on one line and without secrets.
    pub fn endpoint(&self) -> String {
        match &self.transport {
            Transport::Stdio(stdio) => {
                let words =
                    std::iter::once(stdio.command.redacted()).chain(shown_arguments(&stdio.args));
                words.map(|word| quoted(&word)).collect::<Vec<_>>().join(" ")
            }
            Transport::Remote(remote) => remote.url.redacted(),
        }
    }

    /// This server under the keys of `trunkline.json`, with every secret replaced by `***`.
    pub fn to_json(&self) -> Value {
        let mut shown = json!({
            "enabled": self.enabled,
            "hold": self.hold.as_ref().map(ToString::to_string),
            "type": self.transport_word(),
            "trust": self.trust.as_str(),
            "authProviderId": self.auth_provider.as_deref().map(redact::name),
            "prefix": self.prefix,
            "provenance": provenance_json(&self.provenance),
        });
        extend(&mut shown, transport_json(&self.transport));
        extend(&mut shown, Value::Object(tool_lists(&self.tools)));
        extend(&mut shown, behaviour_json(&self.behaviour));
        if !self.unknown.is_empty() {
            let keys: Vec<_> = self.unknown.iter().map(|kept| redact::name(&kept.key)).collect();
            extend(&mut shown, json!({ "unknownKeys": keys }));
        }
        without_nulls(shown)
    }

    /// The keyword for its transport.
    pub fn transport_word(&self) -> &'static str {
        match &self.transport {
            Transport::Stdio(_) => "stdio",
            Transport::Remote(remote) => match remote.protocol {
                RemoteTransport::Streamable => "http",
                RemoteTransport::Sse => "sse",
                RemoteTransport::Detect => "remote",
            },
        }
    }
}

impl std::fmt::Debug for Config {
    /// Prints without secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Config {}", self.to_json())
    }
}

impl std::fmt::Debug for Server {
    /// Prints without secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Server {} {}", self.name, self.to_json())
    }
}

/// An argument of a command line; quoted if it could be read as several.
fn quoted(word: &str) -> String {
    let plain =
        !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || "\"'".contains(c));
    if plain { word.to_owned() } else { format!("{word:?}") }
}

fn shown_arguments(args: &[Template]) -> Vec<String> {
    redact::arguments(&args.iter().map(Template::redaction_input).collect::<Vec<_>>())
}

fn transport_json(transport: &Transport) -> Value {
    match transport {
        Transport::Stdio(stdio) => {
            let variable = |(name, value): &(Box<str>, Option<Template>)| {
                (redact::name(name).to_owned(), value.as_ref().map(Template::masked).into())
            };
            json!({
                "command": stdio.command.redacted(),
                "args": shown_arguments(&stdio.args),
                "cwd": stdio.cwd.as_ref().map(Template::redacted),
                "env": stdio.env.iter().map(variable).collect::<Map<_, _>>(),
                "envFile": stdio.env_file.as_ref().map(Template::redacted),
            })
        }
        Transport::Remote(remote) => {
            let header = |(name, value): &(Box<str>, Template)| {
                (redact::name(name).to_owned(), value.masked().into())
            };
            json!({
                "url": remote.url.redacted(),
                "headers": remote.headers.iter().map(header).collect::<Map<_, _>>(),
                "headersCommand": remote.headers_command.as_ref().map(|it| shown_arguments(it)),
                "oauth": oauth_json(&remote.oauth),
            })
        }
    }
}

/// The settings that were written; most servers have none.
fn oauth_json(oauth: &OAuthMode) -> Option<Value> {
    let settings = match oauth {
        OAuthMode::Disabled => return Some(false.into()),
        OAuthMode::Enabled(settings) => settings,
    };
    if **settings == OAuthSettings::default() {
        return None;
    }
    let masked = |value: &Option<Template>| value.as_ref().map(Template::masked);
    let provider = settings.identity_provider.as_ref().map(|provider| {
        without_nulls(json!({
            "tokenUrl": provider.token_url,
            "clientId": masked(&provider.client_id),
            "clientSecret": masked(&provider.client_secret),
            "idToken": provider.id_token.masked(),
        }))
    });
    let hosts = Some(&settings.private_hosts).filter(|hosts| !hosts.is_empty());
    Some(without_nulls(json!({
        "grant": settings.grant.as_str(),
        "clientId": settings.client_id.as_ref().map(Template::redacted),
        "clientSecret": masked(&settings.client_secret),
        "privateKey": masked(&settings.private_key),
        "keyId": settings.key_id,
        "clientMetadataUrl": settings.client_metadata_url,
        "scopes": settings.scopes,
        "assertion": masked(&settings.assertion),
        "identityProvider": provider,
        "metadataUrl": settings.metadata_url,
        "callbackPort": settings.callback_port,
        "redirectUri": settings.redirect_uri,
        "privateHosts": hosts,
        "dpop": settings.dpop,
    })))
}

fn tool_lists(lists: &ToolLists) -> Map<String, Value> {
    let mut shown = Map::new();
    if let Some(allow) = &lists.allow {
        shown.insert("allowTools".to_owned(), json!(allow));
    }
    if !lists.deny.is_empty() {
        shown.insert("denyTools".to_owned(), json!(lists.deny));
    }
    shown
}

/// The settings that a scope has of its own.
fn item_tools(settings: ItemToolSettings) -> Map<String, Value> {
    let written = [("resourcesAsTools", settings.resources), ("promptsAsTools", settings.prompts)];
    let member = |(key, value): (&str, Option<bool>)| Some((key.to_owned(), value?.into()));
    written.into_iter().filter_map(member).collect()
}

fn behaviour_json(behaviour: &ServerSettings) -> Value {
    let timeouts = &behaviour.timeouts;
    without_nulls(json!({
        "access": behaviour.access.as_str(),
        "connect": behaviour.connect.as_str(),
        "protocol": behaviour.protocol.as_str(),
        "restart": restart_json(&behaviour.restart),
        "inheritEnv": inherit_env_json(&behaviour.inherit_env),
        "timeouts": {
            "connect": milliseconds(timeouts.connect),
            "handshake": milliseconds(timeouts.handshake),
            "list": milliseconds(timeouts.list),
            "call": milliseconds(timeouts.call),
            "question": milliseconds(timeouts.question),
            "shutdown": milliseconds(timeouts.shutdown),
            "grace": milliseconds(timeouts.grace),
        },
        "concurrency": behaviour.concurrency,
        "share": behaviour.share.as_str(),
        "redact": behaviour.redact.then_some(true),
        "toolsTtlMs": milliseconds(behaviour.tools_ttl),
        "idleTimeout": behaviour.idle_timeout.map(milliseconds),
        "maxResultBytes": behaviour.max_result_bytes,
    }))
}

fn inherit_env_json(inherit: &InheritEnv) -> Option<Value> {
    match inherit {
        InheritEnv::Everything => Some(true.into()),
        InheritEnv::Matching(patterns) if patterns.is_empty() => None,
        InheritEnv::Matching(_) => {
            let shown =
                |it: &str| if is_like_credential(it) { MASK.to_owned() } else { it.to_owned() };
            Some(inherit.written().into_iter().map(shown).collect::<Vec<_>>().into())
        }
    }
}

fn restart_json(restart: &Restart) -> Value {
    match restart {
        Restart::Never => RestartRule::Never.as_str().into(),
        Restart::OnFailure(backoff) => json!({
            "policy": RestartRule::OnFailure.as_str(),
            "limit": backoff.limit,
            "delay": milliseconds(backoff.delay),
            "maxDelay": milliseconds(backoff.max_delay),
        }),
    }
}

/// A duration in milliseconds, as in a file; an integer where possible.
fn milliseconds(duration: Duration) -> Value {
    let whole = Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
    if whole == duration {
        Value::from(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    } else {
        Value::from(duration.as_secs_f64() * 1000.0)
    }
}

fn provenance_json(provenance: &Provenance) -> Value {
    let place = |origin: &Origin, location: &super::source::Location| {
        let start = location.start();
        let (layer, found) = match origin {
            Origin::Overrides => ("overrides", None),
            Origin::Variable(_) => ("variable", None),
            Origin::Text => ("text", None),
            Origin::File(file) => ("file", Some(found_word(&file.found))),
        };
        without_nulls(json!({
            "layer": layer,
            "found": found,
            "source": location.source().name(),
            "line": start.line,
            "column": start.column,
        }))
    };
    let mut shown = place(&provenance.origin, &provenance.location);
    if let Some((origin, location)) = &provenance.switched_by {
        extend(&mut shown, json!({ "switchedBy": place(origin, location) }));
    }
    shown
}

fn found_word(found: &FoundBy) -> &'static str {
    match found {
        FoundBy::Asked => "given",
        FoundBy::Variable(_) => "variable",
        FoundBy::Discovered => "discovered",
        FoundBy::Fallback => "fallback",
    }
}

fn extend(shown: &mut Value, more: Value) {
    if let (Value::Object(shown), Value::Object(more)) = (shown, more) {
        shown.extend(more);
    }
}

fn without_nulls(shown: Value) -> Value {
    match shown {
        Value::Object(members) => {
            members.into_iter().filter(|(_, value)| !value.is_null()).collect()
        }
        other => other,
    }
}
