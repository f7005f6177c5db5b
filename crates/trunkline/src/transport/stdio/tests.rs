//! Tests of the stdio transport with processes that behave, and processes that do not.

use super::*;
use crate::config::{ConfigIdentity, InheritEnv};
use crate::name::NamePattern;
use crate::transport::MessageKind;

/// Timeout for events that must occur.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn program(command: &str, args: &[&str]) -> ResolvedStdio {
    ResolvedStdio {
        command: Secret::new(command),
        shown: command.into(),
        shown_path: command.into(),
        args: args.iter().map(|arg| Secret::new(*arg)).collect(),
        cwd: None,
        shown_cwd: None,
        env: std::collections::BTreeMap::new(),
        inherit_env: InheritEnv::default(),
        filled_in: Vec::new(),
        credentials: Vec::new(),
        identity: ConfigIdentity::default(),
    }
}

fn options() -> ChildOptions {
    ChildOptions::from_environment(std::env::vars_os())
}

fn shell(script: &str) -> StdioTransport {
    StdioTransport::start(&program("sh", &["-c", script]), &options()).unwrap()
}

fn message(line: &str) -> OutboundMessage {
    let purpose = MessageKind::Notification { method: "test".into() };
    OutboundMessage::new(bytes::Bytes::copy_from_slice(line.as_bytes()), purpose)
}

async fn next(transport: &mut StdioTransport) -> InboundEvent {
    timeout(PATIENCE, transport.next()).await.expect("something happens")
}

async fn next_line(transport: &mut StdioTransport) -> String {
    match next(transport).await {
        InboundEvent::Message(line) => String::from_utf8(line.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    }
}

async fn end(transport: &mut StdioTransport) -> Error {
    match next(transport).await {
        InboundEvent::Closed(error) => error,
        other => panic!("{other:?}"),
    }
}

/// Whether a process exists and is no zombie.
fn is_running(process: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = status.rsplit_once(") ").map(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some(Some('Z' | 'X') | None))
}

async fn is_gone(process: &str) -> bool {
    for _ in 0..500 {
        if !is_running(process) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

#[tokio::test]
async fn lines_go_in_and_come_out() {
    let mut transport = shell("cat");
    for number in 0..1000 {
        transport.send(message(&format!("line {number}")));
    }
    for number in 0..1000 {
        assert_eq!(next_line(&mut transport).await, format!("line {number}"));
    }
    transport.close(PATIENCE).await;
}

#[tokio::test]
async fn both_ways_at_once_do_not_lock_up() {
    let mut transport = shell("cat");
    let long = "x".repeat(1024 * 1024);
    for _ in 0..8 {
        transport.send(message(&long));
    }
    for _ in 0..8 {
        assert_eq!(next_line(&mut transport).await.len(), long.len());
    }
    transport.close(PATIENCE).await;
}

#[tokio::test]
async fn next_may_be_dropped_without_losing_anything() {
    let mut transport = shell("cat");
    for number in 0..200 {
        transport.send(message(&format!("{number}{}", "x".repeat(5000))));
    }
    let mut lines = Vec::new();
    while lines.len() < 200 {
        let wait = Duration::from_micros(lines.len() as u64 % 7);
        if let Ok(InboundEvent::Message(line)) = timeout(wait, transport.next()).await {
            lines.push(line);
        }
    }
    for (number, line) in lines.iter().enumerate() {
        assert!(line.starts_with(number.to_string().as_bytes()));
    }
    transport.close(PATIENCE).await;
}

#[tokio::test]
async fn process_exit_is_reported_after_its_stderr() {
    let mut transport = shell("echo first; echo trouble >&2; printf last; exit 3");
    assert_eq!(next_line(&mut transport).await, "first");
    assert_eq!(next_line(&mut transport).await, "last");
    let error = end(&mut transport).await;
    assert_eq!(error.kind(), ErrorKind::Exited);
    assert!(error.to_string().contains("exit status: 3"), "{error}");
    assert_eq!(transport.tail().lines(), ["trouble"]);
    transport.close(PATIENCE).await;
}

/// A process may print the resolved part of an argument on its own.
#[tokio::test]
async fn resolved_values_are_masked_in_stderr() {
    let script = "echo no such key: ${1#--key=} >&2; exit 1";
    let program = ResolvedStdio {
        filled_in: vec![Secret::new("hunter22")],
        ..program("sh", &["-c", script, "sh", "--key=hunter22"])
    };
    let mut transport = StdioTransport::start(&program, &options()).unwrap();
    end(&mut transport).await;
    assert_eq!(transport.tail().lines(), ["no such key: ***"]);
    transport.close(PATIENCE).await;
}

#[tokio::test]
async fn a_process_that_ends_while_others_hold_its_output_is_ended() {
    let mut transport = shell("sleep 1000 & echo $!");
    let grandchild = next_line(&mut transport).await;
    assert_eq!(end(&mut transport).await.kind(), ErrorKind::Exited);
    transport.close(Duration::from_secs(1)).await;
    assert!(is_gone(&grandchild).await);
}

#[tokio::test]
async fn a_process_that_closes_its_output_and_lives_is_ended() {
    let mut transport = shell("exec >&-; sleep 1000");
    let error = end(&mut transport).await;
    assert_eq!(error.kind(), ErrorKind::ProtocolViolation);
    transport.close(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn a_flood_on_standard_error_is_drained_and_bounded() {
    let mut transport = shell("yes trouble | head -c 20000000 >&2; echo done");
    assert_eq!(next_line(&mut transport).await, "done");
    assert!(transport.tail().lines().len() <= 21);
    transport.close(PATIENCE).await;
}

#[tokio::test]
async fn a_line_too_long_fails_only_the_request_it_answers() {
    let script = r#"printf '{"jsonrpc":"2.0","id":5,"result":"'; head -c 20000000 /dev/zero | tr '\0' x; echo '"}'; echo next"#;
    let mut transport = shell(script);
    match next(&mut transport).await {
        InboundEvent::RequestFailed { id: 5, error } => {
            assert_eq!(error.kind(), ErrorKind::TooLarge);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(next_line(&mut transport).await, "next");
    transport.close(PATIENCE).await;
}

#[tokio::test]
async fn close_stops_a_process_that_ignores_signals_and_its_children() {
    let mut transport = shell(
        "trap '' TERM; sh -c 'trap \"\" TERM; echo $$; sleep 1000' & echo $$; while :; do sleep 1; done",
    );
    let processes = [next_line(&mut transport).await, next_line(&mut transport).await];
    transport.close(Duration::from_millis(700)).await;
    for process in processes {
        assert!(!is_running(&process), "{process} is left");
    }
}

#[tokio::test]
async fn process_that_ends_with_stdin_gets_no_signal() {
    let transport = shell("trap 'echo told > /dev/null; exit 9' TERM; cat > /dev/null; exit 0");
    let process = transport.process_id().unwrap().to_string();
    transport.close(PATIENCE).await;
    assert!(!is_running(&process));
}

#[tokio::test]
async fn an_abandoned_wire_leaves_nothing_behind() {
    let mut transport = shell("sleep 1000 & echo $!; echo $$; wait");
    let processes = [next_line(&mut transport).await, next_line(&mut transport).await];
    drop(transport);
    for process in processes {
        assert!(is_gone(&process).await, "{process} is left");
    }
}

/// The leader of a group, which has reserved it for the server.
fn first_of_group(process: &str) -> std::path::PathBuf {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let group = status.rsplit_once(") ").unwrap().1.split(' ').nth(2).unwrap();
    assert_ne!(group, process, "it leads its group itself");
    format!("/proc/{group}").into()
}

#[tokio::test]
async fn group_keeper_ends_after_the_first_message() {
    let mut transport = shell("echo $$; cat");
    let first = first_of_group(&next_line(&mut transport).await);
    assert!(!first.exists(), "{first:?} is left, also if only to be asked after");
    transport.close(PATIENCE).await;
}

#[tokio::test]
async fn group_keeper_ends_with_a_silent_server() {
    let closed = shell("exec cat > /dev/null");
    let dropped = shell("exec cat > /dev/null");
    let firsts =
        [&closed, &dropped].map(|it| first_of_group(&it.process_id().unwrap().to_string()));
    closed.close(PATIENCE).await;
    drop(dropped);
    for first in firsts {
        assert!(!first.exists(), "{first:?} is left");
    }
}

#[tokio::test]
async fn a_panic_leaves_nothing_behind() {
    let mut transport = shell("sleep 1000 & echo $!; wait");
    let process = next_line(&mut transport).await;
    let task = tokio::spawn(async move {
        let _wire = transport;
        panic!("on purpose");
    });
    assert!(task.await.is_err());
    assert!(is_gone(&process).await);
}

/// A server with a child in a session of its own, and with one that has lost its parent too. They
/// start with some shell commands.
#[cfg(target_os = "linux")]
async fn escaping(first: &str) -> (StdioTransport, Vec<String>) {
    let away = format!("setsid sh -c '{first} echo $$; exec sleep 1000'");
    let mut transport = shell(&format!("{away} & ({away} &); echo $$; cat"));
    let mut processes = Vec::new();
    for _ in 0..3 {
        processes.push(next_line(&mut transport).await);
    }
    (transport, processes)
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn close_stops_processes_outside_the_group() {
    let (transport, processes) = escaping("").await;
    assert_eq!(transport.close(Duration::from_secs(1)).await, []);
    for process in processes {
        assert!(!is_running(&process), "{process} is left");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_abandoned_wire_leaves_nothing_behind_that_has_left_the_group() {
    let (transport, processes) = escaping("").await;
    drop(transport);
    for process in processes {
        assert!(is_gone(&process).await, "{process} is left");
    }
}

/// The shutdown of a server is dropped half way, as by a runtime that is shutting down.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn dropped_close_leaves_no_process() {
    let (transport, processes) = escaping("trap \"\" TERM;").await;
    let server = transport.process_id().unwrap().to_string();
    let closing = tokio::spawn(transport.close(PATIENCE));
    // The server has ended, and the others are given until the deadline.
    assert!(is_gone(&server).await);
    assert!(!closing.is_finished());
    closing.abort();
    for process in processes {
        assert!(is_gone(&process).await, "{process} is left");
    }
}

#[tokio::test]
async fn child_environment_is_limited() {
    let variables = [("PATH", "/usr/bin:/bin"), ("AWS_SECRET", "x"), ("LANG", "C")];
    let variables = variables.map(|(name, value)| (name.into(), value.into()));
    let mut program = program("sh", &["-c", "env | sort"]);
    program.env.insert("OWN".into(), Some(Secret::new("1")));
    program.env.insert("LANG".into(), None);
    let options = ChildOptions::from_environment(variables);
    let mut transport = StdioTransport::start(&program, &options).unwrap();
    let mut seen = Vec::new();
    while let InboundEvent::Message(line) = next(&mut transport).await {
        seen.push(String::from_utf8(line.to_vec()).unwrap());
    }
    seen.retain(|line| {
        !line.starts_with("PWD=") && !line.starts_with("_=") && !line.starts_with("SHLVL=")
    });
    let mark = seen.pop().unwrap();
    let chain = seen.pop().unwrap();
    let own = options.chain().variable(&program.identity);
    assert_eq!(chain.strip_prefix("TRUNKLINE_CHAIN="), Some(own.as_str()));
    assert_eq!(seen, ["OWN=1", "PATH=/usr/bin:/bin"]);
    assert_eq!(mark.strip_prefix("TRUNKLINE_SPAWN_ID=").map(str::len), Some(32), "{mark}");
    transport.close(PATIENCE).await;
}

/// CON-7: patterns add variables, and their values are masked like every secret.
#[tokio::test]
async fn children_inherit_matching_variables_without_secrets() {
    let variables = [
        ("PATH", "/usr/bin:/bin"),
        ("HTTPS_PROXY", "http://ann:hunter2hunter2@proxy:1"),
        ("APP_TOKEN", "sup3rs3cret"),
        ("APP_MODE", "fast"),
        ("OTHER_TOKEN", "x"),
        // No server inherits the key of all secrets.
        ("TRUNKLINE_SECRETS_KEY", "k"),
    ];
    let variables = variables.map(|(name, value)| (name.into(), value.into()));
    let options = ChildOptions::from_environment(variables);
    assert!(!format!("{options:?}").contains("hunter2"));
    let script = "echo $APP_MODE $OTHER_TOKEN $HTTPS_PROXY $APP_TOKEN >&2";
    let mut program = program("sh", &["-c", script]);
    program.inherit_env = InheritEnv::Matching(vec![NamePattern::new("APP_*").unwrap()]);
    let mut transport = StdioTransport::start(&program, &options).unwrap();
    end(&mut transport).await;
    assert_eq!(transport.tail().lines(), ["fast http://***@proxy:1 ***"]);
    transport.close(PATIENCE).await;
    program.inherit_env = InheritEnv::Everything;
    let names = options.inherited(&program.inherit_env).count();
    assert_eq!(names, 5);
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_explained() {
    let error = |program: ResolvedStdio| match StdioTransport::start(&program, &options()) {
        Err(error) => (error.kind(), format!("{error}; {}", error.hint().unwrap_or_default())),
        Ok(_) => panic!("it started"),
    };
    let (kind, text) = error(program("npx-that-is-not-there", &[]));
    assert_eq!(kind, ErrorKind::CommandNotFound);
    assert_eq!(
        text,
        "the program `npx-that-is-not-there` was not found; install it on the PATH, or write its \
         path as `command`"
    );
    let (kind, text) = error(program("python3 /srv/s.py", &[]));
    assert_eq!(kind, ErrorKind::CommandNotFound);
    assert!(text.contains("whole command line") && text.contains("the rest as `args`"), "{text}");
    let mut lost = program("sh", &[]);
    lost.cwd = Some(Secret::new("/nowhere"));
    assert!(error(lost).1.contains("directory"));
    assert!(
        error(program(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"), &[]))
            .1
            .contains("executable")
    );
}
