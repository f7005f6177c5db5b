//! How a server is doing, for everybody who wants to know (CON-11).

use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind};
use crate::item::ItemKind;
use crate::message::Raw;
use crate::transport::RemainingProcess;

/// Where a server is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Nobody has needed it yet.
    Idle,
    /// It is being started or reached.
    Starting,
    /// It can be called.
    Ready,
    /// It could not be started or reached, or it ended by itself.
    Failed,
    /// We ended it.
    Stopped,
}

impl State {
    /// The word for it.
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

/// How a server is doing.
#[derive(Clone, Debug)]
pub struct Status {
    /// Where it is in its life.
    pub state: State,
    /// What it is reached over: `stdio`, `http` or `sse`; known once it has been ready.
    pub transport: Option<&'static str>,
    /// The revision of the protocol that was agreed on.
    pub protocol: Option<Box<str>>,
    /// What it says it is: an object with `name` and `version`.
    pub server_info: Option<Raw>,
    /// What it says it can do: an object such as `{"tools":{"listChanged":true}}`.
    pub capabilities: Option<Raw>,
    /// How it says it is best used: a text.
    pub instructions: Option<Raw>,
    /// How many tools it has; those remembered from an earlier time, if it has not been started.
    pub tools: usize,
    /// What it has that cannot be used, and why.
    pub set_aside: Vec<RejectedItem>,
    /// Why it failed, the last time it did.
    pub last_error: Option<Error>,
    /// When it is started or reached again by itself.
    pub next_attempt: Option<Instant>,
    /// How often in a row it has been started again.
    pub restarts: u32,
    /// Why its tools could not be remembered for the next time.
    pub not_remembered: Option<Box<str>>,
    /// The last lines of its standard error.
    pub stderr: Vec<String>,
    /// The number of its process.
    pub process_id: Option<u32>,
    /// Processes of it that could not be ended when it was.
    pub remaining_processes: Vec<RemainingProcess>,
    /// Since when it is ready.
    pub ready_since: Option<Instant>,
    /// How many calls it got.
    pub calls: u64,
    /// How many of them got no answer.
    pub failures: u64,
    /// How many lines came that were no messages.
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

/// Bytes of what a server says it is, and of what it says it can do: kept for as long as it runs.
const MAX_DESCRIBED_BYTES: usize = 64 * 1024;

/// Bytes of the instructions of a server: about 16,000 words, more than any model should read of one.
const MAX_INSTRUCTIONS_BYTES: usize = 64 * 1024;

/// What a server says about itself.
#[derive(Default)]
pub(in crate::connection) struct ServerDescription {
    pub(in crate::connection) server_info: Option<Raw>,
    pub(in crate::connection) capabilities: Option<Raw>,
    pub(in crate::connection) instructions: Option<Raw>,
    /// Whether it says that it speaks the older era as well as the newer.
    pub(in crate::connection) speaks_both_eras: bool,
}

impl ServerDescription {
    /// The same within bounds, and apart from the message it came in. Of what the server is only its
    /// name and version stay if there is too much, and of its instructions the beginning.
    ///
    /// # Errors
    ///
    /// When there is too much of what it says it can do, of which no part can be left out.
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

/// Instructions that end with a word about what is missing of them, if they are too long.
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
    /// How long it has been ready.
    pub fn uptime(&self) -> Option<Duration> {
        self.ready_since.map(|since| since.elapsed())
    }
}

/// Something of a server that cannot be used (SEC-3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedItem {
    /// What it is.
    pub kind: ItemKind,
    /// Its name, if it has one, cut to a length that can be shown.
    pub name: Option<Box<str>>,
    /// What is wrong with it.
    pub reason: Box<str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_about_itself_is_bounded() {
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
