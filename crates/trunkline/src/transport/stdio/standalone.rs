//! The process of a stdio server on its own, without a session, for a program that starts it on behalf of another.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use tokio::process::Command;
use tokio::sync::mpsc;

use super::process::{ChildOptions, RemainingProcess, ServerProcess};
use super::{StdioTransport, program_secrets};
use crate::config::{CHAIN_VARIABLE, ResolvedStdio, Secret, have_same_chain};
use crate::error::{Error, ErrorKind};
use crate::transport::stderr_tail::StderrTail;
use crate::transport::{InboundEvent, MAX_MESSAGE_BYTES, MessageKind, OutboundMessage};

/// Limit on a line of such a process: more than that of its clients, which apply theirs.
const MAX_LINE_BYTES: usize = 4 * MAX_MESSAGE_BYTES;

/// Everything that a program is started with: [`ChildOptions::launch`] of one process describes it for another.
#[derive(Clone, PartialEq, Eq)]
pub struct ProgramLaunch {
    /// The program.
    pub command: Secret,
    /// Its arguments.
    pub args: Vec<Secret>,
    /// The directory it runs in.
    pub directory: PathBuf,
    /// All its variables, except the one for loops.
    pub variables: BTreeMap<OsString, OsString>,
    /// The value of `TRUNKLINE_CHAIN` that the process would have given it (CON-16).
    pub chain: String,
    /// Values that must not be shown.
    pub secrets: Vec<Secret>,
}

impl ProgramLaunch {
    /// Whether a process that was started with `other` is the same to its client.
    pub fn is_same(&self, other: &Self) -> bool {
        let without_chain = |launch: &Self| Self { chain: String::new(), ..launch.clone() };
        have_same_chain(&self.chain, &other.chain) && without_chain(self) == without_chain(other)
    }
}

impl fmt::Debug for ProgramLaunch {
    /// Prints no values: some are credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgramLaunch").finish_non_exhaustive()
    }
}

impl ChildOptions {
    /// Describes the start of a program, in a directory unless its entry says another one.
    pub fn launch(&self, program: &ResolvedStdio, directory: &Path) -> ProgramLaunch {
        let inherited = self.inherited(&program.inherit_env);
        let mut variables: BTreeMap<OsString, OsString> =
            inherited.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        for (name, value) in &program.env {
            match value {
                Some(value) => variables.insert((&**name).into(), value.expose().into()),
                None => variables.remove(&OsString::from(&**name)),
            };
        }
        variables.remove(&OsString::from(CHAIN_VARIABLE));
        let own = program.cwd.as_ref().map(Secret::expose);
        ProgramLaunch {
            command: program.command.clone(),
            args: program.args.clone(),
            directory: own.map_or_else(|| directory.to_owned(), |own| directory.join(own)),
            variables,
            chain: self.chain().variable(&program.identity),
            secrets: program_secrets(program, self),
        }
    }
}

/// The process of a stdio server, with all its descendants. Its messages go to its owner, who keeps the session.
pub struct StdioProcess {
    transport: StdioTransport,
}

/// The standard error of a process. Clones are the same.
#[derive(Clone)]
pub struct ProcessStderr(StderrTail);

impl ProcessStderr {
    /// The last lines, without secrets.
    pub fn lines(&self) -> Vec<String> {
        self.0.lines()
    }

    /// Sends a copy of what is written from now on, as far as the receiver keeps up. An earlier receiver gets
    /// nothing more.
    pub fn copy_to(&self, receiver: mpsc::Sender<Bytes>) {
        self.0.copy_to(receiver);
    }
}

/// An event of a process.
#[derive(Clone, Debug)]
pub enum ProcessEvent {
    /// It wrote a line, which should be a message.
    Line(Bytes),
    /// It ended, closed its streams, or cannot be used any more.
    Ended(Error),
}

impl StdioProcess {
    /// Starts the process below this one.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn start(launch: &ProgramLaunch, options: &ChildOptions) -> Result<Self, Error> {
        let mut command = Command::new(launch.command.expose());
        command.args(launch.args.iter().map(Secret::expose)).current_dir(&launch.directory);
        command.env_clear().envs(&launch.variables);
        options.set_chain(&mut command, &options.chain().variable_in_place(&launch.chain));
        let process = ServerProcess::spawn(command, options)
            .map_err(|error| Error::new(ErrorKind::StartFailed, error.to_string()))?;
        let tail = StderrTail::with_secrets(launch.secrets.iter().cloned());
        Ok(Self { transport: StdioTransport::new(process, tail, MAX_LINE_BYTES) })
    }

    /// The process ID, while it runs.
    pub fn id(&self) -> Option<u32> {
        self.transport.process_id()
    }

    /// Queues a line. Bytes move in [`next`](Self::next).
    pub fn send(&mut self, line: Bytes) {
        let purpose = MessageKind::Notification { method: "".into() };
        self.transport.send(OutboundMessage::new(line, purpose));
    }

    /// Whether so much is queued that nothing more should be sent.
    pub fn is_full(&self) -> bool {
        self.transport.is_full()
    }

    /// Whether it has written a part of a line.
    pub fn has_partial_line(&self) -> bool {
        self.transport.has_partial_line()
    }

    /// Moves bytes both ways until an event occurs. Cancel safe.
    pub async fn next(&mut self) -> ProcessEvent {
        loop {
            return match self.transport.next().await {
                InboundEvent::Message(line) | InboundEvent::OnRequestStream { line, .. } => {
                    ProcessEvent::Line(line)
                }
                InboundEvent::Response(_) | InboundEvent::RequestFailed { .. } => {
                    let megabytes = MAX_LINE_BYTES / 1024 / 1024;
                    let message = format!("the answer is longer than {megabytes} MiB");
                    let error = Error::new(ErrorKind::TooLarge, message);
                    ProcessEvent::Ended(error.with_hint("ask for less at once"))
                }
                InboundEvent::EmptyReply { .. } => continue,
                InboundEvent::Closed(error) => ProcessEvent::Ended(error),
            };
        }
    }

    /// Its standard error.
    pub fn stderr(&self) -> ProcessStderr {
        ProcessStderr(self.transport.tail().clone())
    }

    /// Stops the process and all its descendants. Returns those that could not be ended.
    pub async fn close(self, patience: Duration) -> Vec<RemainingProcess> {
        self.transport.close(patience).await
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::stdio::tests::program;

    /// A start of a shell by a process below those of a chain.
    fn launch(chain: &str, script: &str) -> ProgramLaunch {
        let variables = [("PATH", "/bin:/usr/bin"), ("UNRELATED", "x"), (CHAIN_VARIABLE, chain)];
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        let mut shell = program("sh", &["-c", script]);
        shell.env.insert("TOKEN".into(), Some(Secret::new("hunter22")));
        ChildOptions::from_environment(variables).launch(&shell, Path::new("/"))
    }

    async fn line(process: &mut StdioProcess) -> String {
        match process.next().await {
            ProcessEvent::Line(line) => String::from_utf8(line.to_vec()).unwrap(),
            ProcessEvent::Ended(error) => panic!("{error}"),
        }
    }

    #[tokio::test]
    async fn a_process_has_the_environment_of_the_other_program() {
        let script =
            "echo $PWD $TOKEN $UNRELATED; read line; echo $line; echo bad hunter22 >&2; exit 3";
        let launch = launch("", script);
        let mut process = StdioProcess::start(&launch, &ChildOptions::default()).unwrap();
        assert!(process.id().is_some());
        assert_eq!(line(&mut process).await, "/ hunter22");
        process.send(Bytes::from_static(b"hello"));
        assert_eq!(line(&mut process).await, "hello");
        let ProcessEvent::Ended(error) = process.next().await else { panic!() };
        assert_eq!(error.message(), "the process ended (exit status: 3)");
        assert_eq!(process.stderr().lines(), ["bad ***"]);
        assert!(process.close(Duration::from_secs(5)).await.is_empty());
    }

    #[tokio::test]
    async fn it_is_below_the_program_that_keeps_it() {
        let launch = launch("", &format!("echo ${CHAIN_VARIABLE}"));
        let mut process = StdioProcess::start(&launch, &ChildOptions::default()).unwrap();
        let chain = line(&mut process).await;
        assert!(!chain.is_empty() && chain != launch.chain, "{chain}");
        assert!(have_same_chain(&chain, &launch.chain));
        process.close(Duration::from_secs(5)).await;
    }

    #[test]
    fn starts_by_two_processes_are_the_same_if_they_mean_the_same() {
        let one = launch("", "exit");
        assert!(one.chain != launch("", "exit").chain && one.is_same(&launch("", "exit")));
        assert!(!one.is_same(&launch("", "exit 1")));
        let above = ChildOptions::default().chain().variable(&Default::default());
        assert!(!one.is_same(&launch(&above, "exit")), "a process above");
    }
}
