//! Renders a server as an entry of `mcpServers` in Trunkline's own format, to write it to a file.
//!
//! Other than in [`Server::to_json`](super::Server::to_json), nothing is masked and nothing is filled in:
//! literals are as written, references stay references.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::inherit::InheritEnv;
use super::model::{
    Backoff, Remote, RemoteTransport, Restart, Server, ServerSettings, Stdio, Timeouts, Transport,
    Trust,
};
use super::oauth::{OAuthGrant, OAuthMode, OAuthSettings};
use super::secret::Secret;
use super::template::{ReferenceSource, Template};

impl Server {
    /// This server as an entry under `mcpServers`, with canonical keys. A key is left out where its value is
    /// the default. May contain literal secrets of the file that the server is from.
    ///
    /// References keep their sources, in the syntax `${…}`. Relative paths and `${workspaceFolder}` refer to the
    /// file that the entry is in, so that they change their meaning in a file elsewhere. Unknown keys are left
    /// out, and so are the declarations of inputs: see [`Server::to_inputs`].
    ///
    /// ```
    /// let text = "[mcp_servers.docs]\nurl = \"https://example.com/mcp\"\nbearer_token_env_var = \"TOKEN\"\n";
    /// let loaded = trunkline::config::parse("config.toml", text);
    /// let entry = loaded.config.server("docs").unwrap().to_entry();
    /// assert_eq!(entry, serde_json::json!({
    ///     "type": "http", "url": "https://example.com/mcp", "headers": { "Authorization": "Bearer ${TOKEN}" },
    /// }));
    /// ```
    pub fn to_entry(&self) -> Value {
        let mut entry = EntryWriter::default();
        match &self.transport {
            Transport::Stdio(stdio) => entry.stdio(stdio),
            Transport::Remote(remote) => entry.remote(remote),
        }
        // A held server is disabled here, not in its file.
        entry.add_if(!self.enabled && self.hold.is_none(), "enabled", || false.into());
        entry.add_if(self.trust != Trust::Trusted, "trust", || self.trust.as_str().into());
        entry.add_some("authProviderId", self.auth_provider.as_deref());
        entry.add_some("prefix", self.prefix.as_deref());
        entry.add_some("allowTools", self.tools.allow.as_deref().map(names));
        entry.add_if(!self.tools.deny.is_empty(), "denyTools", || names(&self.tools.deny));
        entry.settings(&self.behaviour);
        entry.0.into()
    }

    /// Declarations under `inputs` that the entry of this server refers to, with their defaults.
    pub fn to_inputs(&self) -> Vec<Value> {
        let mut ids: Vec<_> = self.templates().flat_map(Template::references).collect();
        ids.sort_by_key(|reference| reference.target().written());
        ids.dedup_by_key(|reference| reference.target().written());
        let input = |id: &str| {
            let mut input = EntryWriter::default();
            input.add("type", "promptString");
            input.add("id", id);
            input.add("password", true);
            let default = self.inputs.get(id).and_then(Option::as_ref);
            input.add_some("default", default.map(Secret::expose));
            input.0.into()
        };
        let ids = ids.into_iter().filter_map(|reference| match reference.target() {
            ReferenceSource::Input(id) => Some(id),
            _ => None,
        });
        ids.map(|id| input(id)).collect()
    }
}

/// An object under construction.
#[derive(Default)]
struct EntryWriter(Map<String, Value>);

impl EntryWriter {
    fn add(&mut self, key: &str, value: impl Into<Value>) {
        self.0.insert(key.to_owned(), value.into());
    }

    fn add_some(&mut self, key: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.add(key, value);
        }
    }

    fn add_if(&mut self, condition: bool, key: &str, value: impl FnOnce() -> Value) {
        if condition {
            self.add(key, value());
        }
    }

    fn add_template(&mut self, key: &str, value: Option<&Template>) {
        self.add_some(key, value.map(Template::canonical));
    }

    fn stdio(&mut self, stdio: &Stdio) {
        let Stdio { command, args, cwd, env, env_file } = stdio;
        self.add("command", command.canonical());
        self.add_if(!args.is_empty(), "args", || texts(args));
        self.add_template("cwd", cwd.as_ref());
        let variable = |(name, value): &(Box<str>, Option<Template>)| {
            (name.to_string(), Value::from(value.as_ref().map(Template::canonical)))
        };
        self.add_if(!env.is_empty(), "env", || env.iter().map(variable).collect());
        self.add_template("envFile", env_file.as_ref());
    }

    fn remote(&mut self, remote: &Remote) {
        let Remote { url, headers, protocol, oauth, headers_command } = remote;
        self.add_some(
            "type",
            match protocol {
                RemoteTransport::Streamable => Some("http"),
                RemoteTransport::Sse => Some("sse"),
                RemoteTransport::Detect => None,
            },
        );
        self.add("url", url.canonical());
        let header = |(name, value): &(Box<str>, Template)| {
            (name.to_string(), Value::from(value.canonical()))
        };
        self.add_if(!headers.is_empty(), "headers", || headers.iter().map(header).collect());
        self.add_some("headersCommand", headers_command.as_deref().map(texts));
        match oauth {
            OAuthMode::Disabled => self.add("oauth", false),
            OAuthMode::Enabled(settings) if **settings == OAuthSettings::default() => {}
            OAuthMode::Enabled(settings) => self.add("oauth", oauth_entry(settings)),
        }
    }

    fn settings(&mut self, settings: &ServerSettings) {
        let default = ServerSettings::default();
        let ServerSettings { access, connect, protocol, restart, .. } = settings;
        self.add_if(*access != default.access, "access", || access.as_str().into());
        self.add_if(*connect != default.connect, "connect", || connect.as_str().into());
        self.add_if(*protocol != default.protocol, "protocol", || protocol.as_str().into());
        self.add_if(*restart != default.restart, "restart", || restart_entry(*restart));
        let inherit_env = &settings.inherit_env;
        self.add_if(*inherit_env != default.inherit_env, "inheritEnv", || match inherit_env {
            InheritEnv::Everything => true.into(),
            InheritEnv::Matching(_) => inherit_env.written().into(),
        });
        let timeouts = timeouts_entry(settings.timeouts);
        self.add_if(!timeouts.is_empty(), "timeouts", || timeouts.into());
        self.add_some("concurrency", settings.concurrency);
        self.add_if(settings.is_share_set, "share", || settings.share.as_str().into());
        self.add_if(settings.redact != default.redact, "redact", || settings.redact.into());
        let (ttl, most) = (settings.tools_ttl, settings.max_result_bytes);
        self.add_if(ttl != default.tools_ttl, "toolsTtlMs", || milliseconds(ttl));
        self.add_some("idleTimeout", settings.idle_timeout.map(milliseconds));
        self.add_if(most != default.max_result_bytes, "maxResultBytes", || most.into());
    }
}

fn names(texts: &[Box<str>]) -> Value {
    texts.iter().map(|text| &**text).collect()
}

fn texts(templates: &[Template]) -> Value {
    templates.iter().map(Template::canonical).collect()
}

fn milliseconds(duration: Duration) -> Value {
    let whole = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    match Duration::from_millis(whole) == duration {
        true => whole.into(),
        false => (duration.as_secs_f64() * 1000.0).into(),
    }
}

/// The timeouts that differ from the defaults.
fn timeouts_entry(timeouts: Timeouts) -> Map<String, Value> {
    let default = Timeouts::default();
    let all = [
        ("connect", timeouts.connect, default.connect),
        ("handshake", timeouts.handshake, default.handshake),
        ("list", timeouts.list, default.list),
        ("call", timeouts.call, default.call),
        ("question", timeouts.question, default.question),
        ("shutdown", timeouts.shutdown, default.shutdown),
        ("grace", timeouts.grace, default.grace),
    ];
    let changed = all.into_iter().filter(|(_, timeout, default)| timeout != default);
    changed.map(|(key, timeout, _)| (key.to_owned(), milliseconds(timeout))).collect()
}

fn restart_entry(restart: Restart) -> Value {
    match restart {
        Restart::Never => "never".into(),
        Restart::OnFailure(Backoff { limit, delay, max_delay }) => json!({
            "policy": "on-failure",
            "limit": limit,
            "delay": milliseconds(delay),
            "maxDelay": milliseconds(max_delay),
        }),
    }
}

fn oauth_entry(settings: &OAuthSettings) -> Map<String, Value> {
    let mut entry = EntryWriter::default();
    let is_default = settings.grant == OAuthGrant::AuthorizationCode;
    entry.add_if(!is_default, "grant", || settings.grant.as_str().into());
    entry.add_template("clientId", settings.client_id.as_ref());
    entry.add_template("clientSecret", settings.client_secret.as_ref());
    entry.add_template("privateKey", settings.private_key.as_ref());
    entry.add_some("keyId", settings.key_id.as_deref());
    entry.add_some("clientMetadataUrl", settings.client_metadata_url.as_deref());
    entry.add_some("scopes", settings.scopes.as_deref().map(names));
    entry.add_template("assertion", settings.assertion.as_ref());
    if let Some(provider) = &settings.identity_provider {
        let mut identity = EntryWriter::default();
        identity.add("tokenUrl", &*provider.token_url);
        identity.add_template("clientId", provider.client_id.as_ref());
        identity.add_template("clientSecret", provider.client_secret.as_ref());
        identity.add_template("idToken", Some(&provider.id_token));
        entry.add("identityProvider", identity.0);
    }
    entry.add_some("metadataUrl", settings.metadata_url.as_deref());
    entry.add_some("callbackPort", settings.callback_port);
    entry.add_some("redirectUri", settings.redirect_uri.as_deref());
    let hosts = &settings.private_hosts;
    entry.add_if(!hosts.is_empty(), "privateHosts", || names(hosts));
    entry.add_some("dpop", settings.dpop);
    entry.0
}
