//! Validates one server entry: transport, switches, lists and rules.

use std::sync::Arc;

use super::settings::{ServerSettingsLayer, bad_timeout};
use super::transport::TransportReader;
use super::{is_comment, kept, list_places, tool_lists};
use crate::config::decode::{Decoder, RawObject, WithSpan};
use crate::config::diagnostic::{Code, Severity};
use crate::config::dialect::{BareTimeout, Dialect, FOREIGN_KEYS};
use crate::config::jsonc::{ObjectMember, Value};
use crate::config::model::{Inputs, RuleLocations, ToolLists, Transport, Trust, UnknownKey};
use crate::config::raw::{NamedServer, ServerEntry, TimeoutEntry, TransportEntry, TrustEntry};
use crate::config::source::{Source, Span};

/// A server of one layer, before layers are merged.
pub(crate) enum ServerDraft {
    /// An entry without errors.
    Whole(Box<WholeServer>),
    /// Only a switch for an entry of a lower layer.
    Switch(bool),
    /// An entry with errors. It is not used, and nothing from a lower layer takes its place.
    Broken,
}

/// A complete entry, without defaults of other layers.
pub(crate) struct WholeServer {
    pub(crate) enabled: bool,
    pub(crate) transport: Transport,
    pub(crate) trust: Trust,
    pub(crate) auth_provider: Option<Box<str>>,
    pub(crate) prefix: Option<Box<str>>,
    pub(crate) tools: ToolLists,
    pub(crate) behaviour: ServerSettingsLayer,
    pub(crate) places: RuleLocations,
    pub(crate) unknown: Vec<UnknownKey>,
    pub(crate) inputs: Arc<Inputs>,
}

impl ServerDraft {
    pub(super) fn switch_off(&mut self) {
        match self {
            Self::Whole(server) => server.enabled = false,
            Self::Switch(enabled) => *enabled = false,
            Self::Broken => {}
        }
    }
}

pub(super) struct ServerReader<'r, 'd> {
    pub(super) decoder: &'r mut Decoder<'d>,
    pub(super) source: &'r Source,
    pub(super) dialect: Dialect,
    pub(super) inputs: &'r Arc<Inputs>,
    pub(super) named: &'r NamedServer,
}

impl ServerReader<'_, '_> {
    /// Validates an entry. `None` means that it cannot be used, which was reported.
    pub(super) fn draft(&mut self, entry: &ServerEntry) -> Option<ServerDraft> {
        self.unknown_keys(entry);
        let enabled = self.enabled(entry);
        if is_switch(entry) {
            return Some(ServerDraft::Switch(enabled));
        }
        let behaviour = self.behaviour(entry);
        let trust = self.trust(entry);
        // If a value could not be decoded, it may be the transport that seems to be missing.
        if !self.named.clean && entry.command.is_none() && entry.url.is_none() {
            return None;
        }
        let (decoder, key) = (&mut *self.decoder, self.named.key);
        let transport =
            TransportReader { decoder, dialect: self.dialect, inputs: self.inputs, key }
                .transport(entry)?;
        Some(ServerDraft::Whole(Box::new(WholeServer {
            enabled,
            transport,
            trust,
            auth_provider: auth_provider(entry),
            prefix: entry.prefix.as_ref().map(|prefix| prefix.value.0.clone()),
            tools: tool_lists(entry.allow_tools.as_ref(), entry.deny_tools.as_ref()),
            behaviour,
            places: self.places(entry),
            unknown: self.kept(entry),
            inputs: Arc::clone(self.inputs),
        })))
    }

    fn unknown_keys(&mut self, entry: &ServerEntry) {
        let nested = match entry.transport.as_ref().map(|transport| &transport.value) {
            Some(TransportEntry::Keys(nested)) => nested.unknown.as_slice(),
            _ => &[],
        };
        for member @ ObjectMember { key, value } in entry.unknown.iter().chain(nested) {
            if is_comment(&key.text) {
                continue;
            }
            let Some(foreign) = FOREIGN_KEYS.iter().find(|foreign| foreign.key == &*key.text)
            else {
                self.decoder.unknown_key::<ServerEntry>(member);
                continue;
            };
            let message = format!("`{}` is kept and has no effect: {}", key.text, foreign.meaning);
            // A switch that is off has the same effect as no key.
            let switched_off = value.value == Value::Bool(false);
            let found = match foreign.severity {
                Severity::Warning if !switched_off => {
                    self.decoder.warning(Code::ForeignKey, key.span, message)
                }
                _ => self.decoder.note(Code::ForeignKey, key.span, message),
            };
            self.decoder.push(found);
        }
    }

    /// All unknown members of the entry and its transport.
    fn kept(&self, entry: &ServerEntry) -> Vec<UnknownKey> {
        let mut all = kept(self.source, &entry.unknown);
        if let Some(TransportEntry::Keys(nested)) = entry.transport.as_ref().map(|it| &it.value) {
            all.extend(kept(self.source, &nested.unknown));
        }
        all
    }

    fn places(&self, entry: &ServerEntry) -> RuleLocations {
        let decoder = &*self.decoder;
        let switch = entry.enabled.as_ref().or(entry.disabled.as_ref());
        RuleLocations {
            enabled: switch.map(|it| decoder.location(it.key)),
            trust: entry.trust.as_ref().map(|it| decoder.location(it.key)),
            access: entry.access.as_ref().map(|it| decoder.location(it.key)),
            access_override: None,
            tools: list_places(entry.allow_tools.as_ref(), entry.deny_tools.as_ref(), decoder),
        }
    }

    fn enabled(&mut self, entry: &ServerEntry) -> bool {
        match (&entry.enabled, &entry.disabled) {
            (Some(enabled), Some(disabled)) if enabled.value == disabled.value => {
                let message = "`enabled` and `disabled` contradict each other";
                let found = self.decoder.error(Code::Contradiction, disabled.span, message);
                let other = self.decoder.location(enabled.span);
                self.decoder.push(found.related(other, "the other one"));
                false
            }
            (Some(enabled), _) => enabled.value,
            (None, Some(disabled)) => !disabled.value,
            (None, None) => true,
        }
    }

    fn behaviour(&mut self, entry: &ServerEntry) -> ServerSettingsLayer {
        let mut changes = ServerSettingsLayer::of_server(entry);
        if let Some(bound) = &entry.request_timeout_ms {
            changes.bound_calls(bound.value.0);
        }
        if let Some(bound) = &entry.init_timeout {
            changes.bound_start(bound.value.0);
        }
        if let Some(timeout) = &entry.timeout {
            self.timeout(entry, timeout, &mut changes);
        }
        changes
    }

    fn timeout(
        &mut self,
        entry: &ServerEntry,
        timeout: &WithSpan<TimeoutEntry>,
        changes: &mut ServerSettingsLayer,
    ) {
        let number = match &timeout.value {
            TimeoutEntry::Split(split) => return changes.bound_split(split),
            TimeoutEntry::Duration(bound) => return changes.bound_calls(*bound),
            TimeoutEntry::Number(number) => *number,
        };
        match self.dialect.timeout(entry, number) {
            BareTimeout::Bound(bound) if self.dialect == Dialect::Opencode => {
                changes.bound_everything(bound);
            }
            BareTimeout::Bound(bound) => changes.bound_calls(bound),
            BareTimeout::OutOfRange => bad_timeout(self.decoder, timeout.span),
            BareTimeout::Ignored => {
                let message = format!("a timeout of {number} milliseconds is ignored");
                let found = self
                    .decoder
                    .warning(Code::AmbiguousTimeout, timeout.span, message)
                    .label("too short to be milliseconds");
                let seconds = format!("if seconds were meant, write `\"timeout\": \"{number}s\"`");
                self.decoder.push(found.maybe_help((number > 0.0).then_some(seconds)));
            }
        }
    }

    fn trust(&mut self, entry: &ServerEntry) -> Trust {
        match entry.trust.as_ref().map(|trust| (trust.value, trust.span)) {
            None => Trust::Trusted,
            Some((TrustEntry::Level(trust), _)) => trust,
            Some((TrustEntry::Switch(is_on), span)) => {
                self.trust_switch(is_on, span);
                Trust::Trusted
            }
        }
    }
}

impl ServerReader<'_, '_> {
    /// Reports Gemini CLI's switch `trust`, which controls there whether calls need confirmation.
    /// Outside of `mcpServers`, where Gemini CLI has its servers, `false` is intended as a limit.
    fn trust_switch(&mut self, is_on: bool, span: Span) {
        let message = "`trust` as a switch is Gemini CLI's and has no effect here";
        let found = match (is_on, self.dialect) {
            (true, _) => self.decoder.note(Code::ForeignKey, span, message),
            (false, Dialect::McpServers | Dialect::Gemini) => {
                self.decoder.warning(Code::ForeignKey, span, message)
            }
            (false, _) => {
                let message = "`trust` is not a switch";
                self.decoder.error(Code::WrongType, span, message)
            }
        };
        self.decoder.push(found.help("write `\"trusted\"` or `\"untrusted\"`"));
    }
}

fn auth_provider(entry: &ServerEntry) -> Option<Box<str>> {
    let nested = match entry.transport.as_ref().map(|transport| &transport.value) {
        Some(TransportEntry::Keys(nested)) => nested.auth_provider.as_ref(),
        _ => None,
    };
    nested.or(entry.auth_provider.as_ref()).map(|id| id.value.clone())
}

/// Whether an entry has only `enabled` or `disabled`, and perhaps a comment.
fn is_switch(entry: &ServerEntry) -> bool {
    let comments = entry.unknown.iter().filter(|member| is_comment(&member.key.text)).count();
    let switches = usize::from(entry.enabled.is_some()) + usize::from(entry.disabled.is_some());
    switches > 0 && entry.key_count() == switches + comments
}
