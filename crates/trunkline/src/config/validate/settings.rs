//! Settings for all servers or for one: the ones that a layer changes.

use std::time::Duration;

use crate::config::decode::{Decoder, FromNode as _, WithSpan};
use crate::config::diagnostic::Code;
use crate::config::inherit::InheritEnv;
use crate::config::keywords::RestartRule;
use crate::config::model::{
    Access, Backoff, Naming, Protocol, Restart, ServerSettings, Share, StartPolicy, Timeouts,
    ToolMode, ToolSurface, UriStyle,
};
use crate::config::raw::{
    FileEntry, RestartEntry, ServerEntry, ShareEntry, StartupRequestEntry, TimeoutsEntry,
};
use crate::config::source::Span;
use crate::config::units::{PositiveDuration, seconds};

/// The settings for all servers that a server can override, by their keys. One that cannot be
/// decoded disables the servers that would use it, as it does in a server. `access` is not
/// included: it is replaced by the strictest.
pub(super) const SETTINGS: &[&str] = &[
    "connect",
    "protocol",
    "restart",
    "inheritEnv",
    "timeouts",
    "concurrency",
    "share",
    "redact",
    "toolsTtlMs",
    "idleTimeout",
    "maxResultBytes",
];

/// The limits and rules that a layer changes.
#[derive(Clone, Default)]
pub(crate) struct ServerSettingsLayer {
    access: Option<Access>,
    connect: Option<StartPolicy>,
    protocol: Option<Protocol>,
    restart: Option<Restart>,
    inherit_env: Option<InheritEnv>,
    timeouts: TimeoutsLayer,
    concurrency: Option<u32>,
    share: Option<Share>,
    redact: Option<bool>,
    tools_ttl: Option<Duration>,
    idle_timeout: Option<Duration>,
    max_result_bytes: Option<u64>,
}

#[derive(Clone, Default)]
struct TimeoutsLayer {
    connect: Option<Duration>,
    handshake: Option<Duration>,
    list: Option<Duration>,
    call: Option<Duration>,
    question: Option<Duration>,
    shutdown: Option<Duration>,
    grace: Option<Duration>,
}

/// The settings of a file or a server entry, which have the same names.
macro_rules! changes_of {
    ($written:expr) => {
        ServerSettingsLayer {
            access: $written.access.as_ref().map(|written| written.value),
            connect: $written.connect.as_ref().map(|written| written.value),
            protocol: $written.protocol.as_ref().map(|written| written.value),
            restart: $written.restart.as_ref().map(|written| restart(&written.value)),
            inherit_env: $written.inherit_env.as_ref().map(|written| written.value.0.clone()),
            timeouts: TimeoutsLayer::of($written.timeouts.as_ref()),
            concurrency: $written.concurrency.as_ref().map(|written| written.value.0),
            share: None,
            redact: $written.redact.as_ref().map(|written| written.value),
            tools_ttl: $written.tools_ttl.as_ref().map(|written| written.value.0),
            idle_timeout: duration($written.idle_timeout.as_ref()),
            max_result_bytes: $written.max_result.as_ref().map(|written| written.value.0),
        }
    };
}

impl ServerSettingsLayer {
    pub(crate) fn of_file(file: &FileEntry) -> Self {
        let share = file.share.as_ref().and_then(|written| match written.value {
            ShareEntry::Servers(share) => Some(share),
            ShareEntry::Conversations => None,
        });
        Self { share, ..changes_of!(file) }
    }

    pub(crate) fn of_server(entry: &ServerEntry) -> Self {
        let share = entry.share.as_ref().map(|written| written.value);
        Self { share, ..changes_of!(entry) }
    }

    /// Sets the rules that limit callers to the strictest, whatever is written, because other rules
    /// may be missing.
    pub(super) fn limit(&mut self) {
        self.limit_access(Access::ReadOnlyStrict);
        self.redact = Some(true);
    }

    /// Whether a setting is present, by its key in [`SETTINGS`]. Timeouts are several settings,
    /// which may come from several layers.
    pub(crate) fn sets(&self, setting: &str) -> bool {
        match setting {
            "connect" => self.connect.is_some(),
            "protocol" => self.protocol.is_some(),
            "restart" => self.restart.is_some(),
            "inheritEnv" => self.inherit_env.is_some(),
            "concurrency" => self.concurrency.is_some(),
            "share" => self.share.is_some(),
            "redact" => self.redact.is_some(),
            "toolsTtlMs" => self.tools_ttl.is_some(),
            "idleTimeout" => self.idle_timeout.is_some(),
            "maxResultBytes" => self.max_result_bytes.is_some(),
            _ => false,
        }
    }

    /// Sets the access rule, whatever is written.
    pub(super) fn limit_access(&mut self, access: Access) {
        self.access = Some(access);
    }

    /// Applies timeouts that other hosts set for all servers under their own keys.
    pub(super) fn apply_host_wide(&mut self, file: &FileEntry, decoder: &mut Decoder<'_>) {
        if let Some(written) = &file.context_server_timeout {
            match seconds(written.value.0) {
                Some(bound) if !bound.is_zero() => self.bound_calls(bound),
                _ => bad_timeout(decoder, written.span),
            }
        }
        let experimental = file.experimental.as_ref().map(|written| &written.value.0);
        if let Some(node) = experimental.and_then(|node| node.get("mcp_timeout"))
            && let Some(bound) = PositiveDuration::from_node(node, decoder)
        {
            self.bound_everything(bound.0);
        }
        if let Some(timeout) = file.mcp.as_ref().and_then(|mcp| mcp.value.timeout.as_ref()) {
            self.bound_split(&timeout.value);
        }
        not_applied(file, decoder);
    }

    /// Sets the timeout of calls, unless a clearer key sets it.
    pub(crate) fn bound_calls(&mut self, bound: Duration) {
        self.timeouts.call.get_or_insert(bound);
    }

    pub(crate) fn bound_start(&mut self, bound: Duration) {
        self.timeouts.handshake.get_or_insert(bound);
    }

    /// Sets the timeout of every request, like opencode's `timeout`.
    pub(crate) fn bound_everything(&mut self, bound: Duration) {
        self.bound_calls(bound);
        self.bound_start(bound);
        self.timeouts.list.get_or_insert(bound);
    }

    pub(crate) fn bound_split(&mut self, split: &StartupRequestEntry) {
        if let Some(bound) = duration(split.startup.as_ref()) {
            self.bound_start(bound);
        }
        if let Some(bound) = duration(split.request.as_ref()) {
            self.bound_calls(bound);
            self.timeouts.list.get_or_insert(bound);
        }
    }

    pub(crate) fn apply(&self, to: &mut ServerSettings) {
        change(&mut to.access, self.access);
        change(&mut to.connect, self.connect);
        change(&mut to.protocol, self.protocol);
        change(&mut to.restart, self.restart);
        change(&mut to.inherit_env, self.inherit_env.clone());
        self.timeouts.apply(&mut to.timeouts);
        change(&mut to.concurrency, self.concurrency.map(Some));
        change(&mut to.share, self.share);
        to.is_share_set |= self.share.is_some();
        change(&mut to.redact, self.redact);
        change(&mut to.tools_ttl, self.tools_ttl);
        change(&mut to.idle_timeout, self.idle_timeout.map(Some));
        change(&mut to.max_result_bytes, self.max_result_bytes);
    }
}

impl TimeoutsLayer {
    fn of(written: Option<&WithSpan<TimeoutsEntry>>) -> Self {
        let Some(WithSpan { value: written, .. }) = written else { return Self::default() };
        Self {
            connect: duration(written.connect.as_ref()),
            handshake: duration(written.handshake.as_ref()),
            list: duration(written.list.as_ref()),
            call: duration(written.call.as_ref()),
            question: duration(written.question.as_ref()),
            shutdown: duration(written.shutdown.as_ref()),
            grace: written.grace.as_ref().map(|written| written.value.0),
        }
    }

    fn apply(&self, to: &mut Timeouts) {
        change(&mut to.connect, self.connect);
        change(&mut to.handshake, self.handshake);
        change(&mut to.list, self.list);
        change(&mut to.call, self.call);
        change(&mut to.question, self.question);
        change(&mut to.shutdown, self.shutdown);
        change(&mut to.grace, self.grace);
    }
}

fn change<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

fn duration(written: Option<&WithSpan<PositiveDuration>>) -> Option<Duration> {
    written.map(|written| written.value.0)
}

fn restart(written: &RestartEntry) -> Restart {
    let default = Backoff::default();
    match written {
        RestartEntry::Rule(RestartRule::Never) => Restart::Never,
        RestartEntry::Rule(RestartRule::OnFailure) => Restart::OnFailure(default),
        RestartEntry::Details(details) => {
            match details.policy.as_ref().map(|policy| policy.value) {
                Some(RestartRule::Never) => Restart::Never,
                // Details without a policy imply that they are to be used.
                Some(RestartRule::OnFailure) | None => Restart::OnFailure(Backoff {
                    limit: details.limit.as_ref().map_or(default.limit, |limit| limit.value.0),
                    delay: duration(details.delay.as_ref()).unwrap_or(default.delay),
                    max_delay: duration(details.max_delay.as_ref()).unwrap_or(default.max_delay),
                }),
            }
        }
    }
}

pub(super) fn bad_timeout(decoder: &mut Decoder<'_>, span: Span) {
    let found = decoder.error(Code::OutOfRange, span, "this timeout cannot be used");
    decoder.push(found.label("expected more than zero and at most a week"));
}

/// Reports rules of opencode and VS Code that deny something and are not applied here.
fn not_applied(file: &FileEntry, decoder: &mut Decoder<'_>) {
    let rules = [("permission", &file.permission), ("tools", &file.tools)];
    for (key, written) in rules {
        let Some(written) = written.as_ref().filter(|rule| rule.value.denies_something()) else {
            continue;
        };
        let message = format!("the tools that `{key}` denies are not hidden here");
        let found = decoder.warning(Code::NotApplied, written.key, message);
        decoder.push(found.help("use `denyTools` of a server, or `agents`"));
    }
    if let Some(written) = &file.sandbox {
        let message = "`sandbox` is not applied: servers run with your own permissions";
        decoder.push(decoder.warning(Code::NotApplied, written.key, message));
    }
}

/// The settings of the tool surface that a layer changes.
#[derive(Clone, Copy, Default)]
pub(crate) struct SurfaceLayer {
    mode: Option<ToolMode>,
    token_budget: Option<u32>,
    resources_as_tools: Option<bool>,
    prompts_as_tools: Option<bool>,
}

impl SurfaceLayer {
    pub(super) fn of_file(file: &FileEntry) -> Self {
        Self {
            mode: file.mode.as_ref().map(|written| written.value),
            token_budget: file.token_budget.as_ref().map(|written| written.value.0),
            resources_as_tools: file.resources_as_tools.as_ref().map(|written| written.value),
            prompts_as_tools: file.prompts_as_tools.as_ref().map(|written| written.value),
        }
    }

    pub(crate) fn apply(self, to: &mut ToolSurface) {
        change(&mut to.mode, self.mode);
        change(&mut to.token_budget, self.token_budget);
        change(&mut to.resources_as_tools, self.resources_as_tools);
        change(&mut to.prompts_as_tools, self.prompts_as_tools);
    }
}

/// The naming options that a layer changes.
#[derive(Clone, Default)]
pub(crate) struct NamingLayer {
    separator: Option<Box<str>>,
    max_length: Option<u32>,
    describe_server: Option<bool>,
    addresses: Option<UriStyle>,
}

impl NamingLayer {
    pub(super) fn of_file(file: &FileEntry, decoder: &mut Decoder<'_>) -> Self {
        let naming = file.naming.as_ref().map(|naming| &naming.value);
        let nested = naming.and_then(|naming| naming.separator.as_ref());
        if let (Some(short), Some(nested)) = (&file.separator, nested) {
            let message = "`separator` and `naming.separator` mean the same";
            let found = decoder.error(Code::DuplicateKey, short.key, message);
            let found = found.label("one of them is enough");
            decoder.push(found.related(decoder.location(nested.key), "the other one"));
        }
        let separator = file.separator.as_ref().or(nested);
        Self {
            separator: separator.map(|written| written.value.0.clone()),
            max_length: naming
                .and_then(|naming| naming.max_length.as_ref())
                .map(|written| written.value.0),
            describe_server: naming
                .and_then(|naming| naming.describe_server.as_ref())
                .map(|written| written.value),
            addresses: naming
                .and_then(|naming| naming.addresses.as_ref())
                .map(|written| written.value),
        }
    }

    pub(crate) fn apply(&self, to: &mut Naming) {
        change(&mut to.separator, self.separator.clone());
        change(&mut to.max_length, self.max_length);
        change(&mut to.describe_server, self.describe_server);
        change(&mut to.addresses, self.addresses);
    }
}
