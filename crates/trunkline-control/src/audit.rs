//! The audit log: one line of JSON per request, appended. Lines of one process are numbered, each with a digest over all
//! before it.
//!
//! Lines are written by a thread of their own. A disk that is full or slow loses lines, which the next line counts,
//! and holds no call.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Value, json};
use trunkline::message::Raw;
use trunkline::name::{ConversationName, ServerName};
use trunkline_gateway::RequestRecord;

use crate::clock::rfc3339;
use crate::rotated_file::RotatedFile;

/// Size of a file, in bytes.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// Older files.
const KEPT: usize = 8;

/// Lines that wait to be written.
const MAX_WAITING: usize = 4096;

/// Whether lines contain arguments and results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Payloads {
    /// Only their digests.
    #[default]
    Digests,
    /// As they are. They may contain secrets.
    Full,
}

/// An append-only log of requests. Clones write to the same file.
#[derive(Clone, Debug)]
pub struct AuditLog {
    lines: SyncSender<Value>,
    payloads: Payloads,
    lost: Arc<Mutex<u64>>,
}

impl AuditLog {
    /// Starts a log in a file.
    ///
    /// # Errors
    ///
    /// When no thread can be started for it.
    pub fn start(path: impl Into<PathBuf>, payloads: Payloads) -> std::io::Result<Self> {
        let (lines, waiting) = sync_channel(MAX_WAITING);
        let file = RotatedFile::new(path, MAX_BYTES, KEPT);
        let writer = move || write(file, &waiting);
        thread::Builder::new().name("trunkline-audit".to_owned()).spawn(writer)?;
        Ok(Self { lines, payloads, lost: Arc::default() })
    }

    /// The same log for a project with other settings.
    #[must_use]
    pub fn with_payloads(&self, payloads: Payloads) -> Self {
        Self { payloads, ..self.clone() }
    }

    /// Whether lines contain arguments and results.
    pub(crate) fn payloads(&self) -> Payloads {
        self.payloads
    }

    /// Appends a line for a request.
    pub(crate) fn add(&self, project: &str, record: &RequestRecord) {
        let mut line = line_of(project, record);
        if self.payloads == Payloads::Full {
            line["arguments"] =
                record.params.get("arguments").map_or(Value::Null, |it| it.to_value());
            line["result"] = record.result.as_ref().map_or(Value::Null, Raw::to_value);
        }
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        if *lost > 0 {
            line["lostBefore"] = json!(*lost);
        }
        match self.lines.try_send(line) {
            Ok(()) => *lost = 0,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => *lost += 1,
        }
    }
}

fn line_of(project: &str, record: &RequestRecord) -> Value {
    let of_raw = |raw: &Raw| hex(digest(&SHA256, raw.bytes()).as_ref());
    json!({
        "time": rfc3339(record.started),
        "project": project,
        "client": record.client.as_deref(),
        "token": record.token,
        "conversation": record.conversation.as_ref().map(ConversationName::as_str),
        "method": record.method,
        "name": record.subject,
        "server": record.server.as_ref().map(ServerName::as_str),
        "outcome": record.outcome.as_str(),
        "code": record.code,
        "durationMs": milliseconds(record.duration),
        "paramsSha256": of_raw(&record.params),
        "resultSha256": record.result.as_ref().map(of_raw),
    })
}

/// Milliseconds with two decimals.
pub(crate) fn milliseconds(duration: std::time::Duration) -> f64 {
    (duration.as_secs_f64() * 1e5).round() / 100.0
}

/// Writes lines until all senders are gone.
fn write(mut file: RotatedFile, waiting: &Receiver<Value>) {
    // Several processes write to one file.
    let run = hex(&run_id());
    let mut chain = run.clone();
    let mut sequence = 0_u64;
    while let Ok(mut line) = waiting.recv() {
        sequence += 1;
        line["run"] = json!(run);
        line["sequence"] = json!(sequence);
        if file.dropped() > 0 {
            line["notWrittenBefore"] = json!(file.dropped());
        }
        // Over the digest before and this line: a removed or changed line breaks the chain.
        chain = hex(digest(&SHA256, format!("{chain}{line}").as_bytes()).as_ref());
        line["chain"] = json!(chain);
        let _ = file.write_line(&line.to_string());
    }
}

/// Names the lines of this process.
fn run_id() -> [u8; 8] {
    let mut bytes = [0; 8];
    SystemRandom::new().fill(&mut bytes).expect("invariant: the system has randomness");
    bytes
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
