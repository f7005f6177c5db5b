//! How a server is doing, for everybody who wants to know (CON-11).

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::item::Kind;
use crate::message::Raw;

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
    pub set_aside: Vec<SetAside>,
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
            ready_since: None,
            calls: 0,
            failures: 0,
            noise: 0,
        }
    }
}

/// What a server says about itself.
#[derive(Default)]
pub(super) struct Described {
    pub(super) server_info: Option<Raw>,
    pub(super) capabilities: Option<Raw>,
    pub(super) instructions: Option<Raw>,
}

impl Status {
    /// How long it has been ready.
    pub fn uptime(&self) -> Option<Duration> {
        self.ready_since.map(|since| since.elapsed())
    }
}

/// Something of a server that cannot be used (SEC-3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// What it is.
    pub kind: Kind,
    /// Its name, if it has one, cut to a length that can be shown.
    pub name: Option<Box<str>>,
    /// What is wrong with it.
    pub reason: Box<str>,
}
