//! Status of a server (CON-11).

use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind};
use crate::item::ItemKind;
use crate::message::Raw;
use crate::transport::RemainingProcess;

/// Lifecycle state of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// It has not been needed yet, or was stopped until its next use.
    Idle,
    /// It is being started or connected.
    Starting,
    /// It can be called.
    Ready,
    /// It could not be started or reached, or it ended by itself.
    Failed,
    /// The host shut it down.
    Stopped,
}

impl State {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }
}

/// The status of a server.
#[derive(Clone, Debug)]
pub struct Status {
    /// The lifecycle state.
    pub state: State,
    /// The transport: `stdio`, `http` or `sse`; known once it has been ready.
    pub transport: Option<&'static str>,
    /// The negotiated protocol version.
    pub protocol: Option<Box<str>>,
    /// The `serverInfo`: an object with `name` and `version`.
    pub server_info: Option<Raw>,
    /// The capabilities: an object such as `{"tools":{"listChanged":true}}`.
    pub capabilities: Option<Raw>,
    /// The instructions: a string.
    pub instructions: Option<Raw>,
    /// Number of tools; from the cache, if it has not been started.
    pub tools: usize,
    /// Items that cannot be used, with the reason.
    pub set_aside: Vec<RejectedItem>,
    /// The last failure.
    pub last_error: Option<Error>,
    /// Time of the next automatic restart or reconnect.
    pub next_attempt: Option<Instant>,
    /// Number of consecutive restarts.
    pub restarts: u32,
    /// Why a list could not be cached on disk.
    pub not_remembered: Option<Box<str>>,
    /// The last lines of its standard error.
    pub stderr: Vec<String>,
    /// The process ID.
    pub process_id: Option<u32>,
    /// Its processes that could not be ended with it.
    pub remaining_processes: Vec<RemainingProcess>,
    /// Time since which it is ready.
    pub ready_since: Option<Instant>,
    /// Number of calls.
    pub calls: u64,
    /// Number of calls without a response.
    pub failures: u64,
    /// Number of lines that were no messages.
    pub noise: u64,
}

impl Default for Status {
    fn default() -> Self {
        Self {
            state: State::Idle,
            transport: None,
            protocol: None,
            server_info: None,
            capabilities: None,
            instructions: None,
            tools: 0,
            set_aside: Vec::new(),
            last_error: None,
            next_attempt: None,
            restarts: 0,
            not_remembered: None,
            stderr: Vec::new(),
            process_id: None,
            remaining_processes: Vec::new(),
            ready_since: None,
            calls: 0,
            failures: 0,
            noise: 0,
        }
    }
}

/// Limit on the bytes of `serverInfo`, and of the capabilities: kept for as long as the server
/// runs.
const MAX_DESCRIBED_BYTES: usize = 64 * 1024;

/// Limit on the bytes of instructions: about 16,000 words, more than any model should read.
const MAX_INSTRUCTIONS_BYTES: usize = 64 * 1024;

/// The description that a server gives of itself.
#[derive(Default)]
pub(in crate::connection) struct ServerDescription {
    pub(in crate::connection) server_info: Option<Raw>,
    pub(in crate::connection) capabilities: Option<Raw>,
    pub(in crate::connection) instructions: Option<Raw>,
    /// Whether it lists versions of the legacy era besides the modern one.
    pub(in crate::connection) speaks_both_eras: bool,
}

impl ServerDescription {
    /// The description within its limits, detached from its message. Of a long `serverInfo` only
    /// name and version stay, and of long instructions the beginning.
    ///
    /// # Errors
    ///
    /// When the capabilities are too long, because no part of them can be omitted.
    pub(in crate::connection) fn bounded(self) -> Result<Self, Error> {
        let is_short = |raw: &Raw| raw.bytes().len() <= MAX_DESCRIBED_BYTES;
        if !self.capabilities.as_ref().is_none_or(is_short) {
            let kibibytes = MAX_DESCRIBED_BYTES / 1024;
            let message = format!("its `capabilities` are larger than {kibibytes} KiB");
            return Err(Error::new(ErrorKind::ProtocolViolation, message)
                .with_hint("tell those who make it: they are a few words"));
        }
        let server_info = self.server_info.map(|info| match is_short(&info) {
            true => info.detached(),
            false => {
                let named = [("name", info.get("name")), ("version", info.get("version"))];
                let kept = named.into_iter().filter_map(|(key, value)| Some((key, value?)));
                let kept = kept.filter(|(_, value)| value.bytes().len() <= MAX_DESCRIBED_BYTES / 2);
                kept.fold(Raw::empty_object(), |info, (key, value)| info.with(key, &value))
            }
        });
        let capabilities = self.capabilities.map(|capabilities| capabilities.detached());
        let instructions = self.instructions.map(|instructions| cut(&instructions));
        Ok(Self { server_info, capabilities, instructions, ..self })
    }
}

/// Truncates instructions that are too long, with a note about the missing bytes.
fn cut(instructions: &Raw) -> Raw {
    if instructions.bytes().len() <= MAX_INSTRUCTIONS_BYTES {
        return instructions.detached();
    }
    let Some(text) = instructions.as_str() else { return Raw::from_string("") };
    let end = text.floor_char_boundary(MAX_INSTRUCTIONS_BYTES);
    let kept = text.get(..end).unwrap_or_default();
    let missing = text.len() - kept.len();
    Raw::from_string(&format!("{kept}\n[{missing} more bytes of instructions are left out]"))
}

impl Status {
    /// The name of its state; `needs-login` for a server that failed for want of a login.
    pub fn name(&self) -> &'static str {
        match self.needs_login() {
            true => "needs-login",
            false => self.state.as_str(),
        }
    }

    /// Whether the user has to log in before it can be used.
    pub fn needs_login(&self) -> bool {
        let error = self.last_error.as_ref().filter(|_| self.state == State::Failed);
        error.is_some_and(|error| error.kind() == ErrorKind::NeedsLogin)
    }

    /// Time since it became ready.
    pub fn uptime(&self) -> Option<Duration> {
        self.ready_since.map(|since| since.elapsed())
    }
}

/// An item of a server that cannot be used (SEC-3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedItem {
    /// The kind of item.
    pub kind: ItemKind,
    /// Its name, if it has one, cut to a length that can be shown.
    pub name: Option<Box<str>>,
    /// The reason.
    pub reason: Box<str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_info_is_bounded() {
        let long = "é".repeat(1_000_000);
        let described = |capabilities: Raw| ServerDescription {
            server_info: Some(
                Raw::empty_object()
                    .with("name", &Raw::from_string("x"))
                    .with("icons", &Raw::from_string(&long)),
            ),
            capabilities: Some(capabilities),
            instructions: Some(Raw::from_string(&long)),
            ..ServerDescription::default()
        };
        let bounded = described(Raw::empty_object()).bounded().unwrap();
        assert_eq!(bounded.server_info.unwrap().text(), r#"{"name":"x"}"#);
        let instructions = bounded.instructions.unwrap();
        assert!(instructions.bytes().len() < MAX_INSTRUCTIONS_BYTES + 100);
        let marker = "[1934464 more bytes of instructions are left out]";
        assert!(instructions.as_str().unwrap().ends_with(marker), "{}", instructions.bytes().len());
        let too_much = Raw::empty_object().with("x", &Raw::from_string(&long));
        assert!(described(too_much).bounded().is_err());
    }
}
