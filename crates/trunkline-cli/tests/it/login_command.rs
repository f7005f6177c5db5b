//! `trunkline login` and `logout`, against a real authorization server (CON-12).

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use serde_json::json;
use tokio::task::block_in_place;
use trunkline_testkit::browser;
use trunkline_testkit::oauth_server::{OAuthServer, OAuthServerOptions};

use crate::support::program::{Folder, Run};
use crate::support::secrets;
use crate::support::wait::{LONGEST_START, wait_until};

/// A project with one server that needs a login.
fn project(server: &OAuthServer, oauth: &serde_json::Value) -> Folder {
    let config = json!({ "mcpServers": { "docs": { "url": server.mcp_url, "oauth": oauth } } });
    let folder = Folder::new().file("trunkline.json", config.to_string());
    // Notes the page instead of opening it.
    let browser = folder.project().join("../bin/xdg-open");
    fs::create_dir_all(browser.parent().unwrap()).unwrap();
    let page = folder.project().join("../page");
    let script =
        format!("#!/bin/sh\necho \"$1\" > '{0}.new' && mv '{0}.new' '{0}'\n", page.display());
    fs::write(&browser, script).unwrap();
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn command(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = secrets::command(folder, arguments);
    let own = folder.project().join("../bin");
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", own.display()));
    command
}

fn run(folder: &Folder, arguments: &[&str]) -> Run {
    block_in_place(|| folder.finish(&mut command(folder, arguments)))
}

/// Logs in with the browser: the program opens the page, and the test follows it back.
async fn login(folder: &Folder, arguments: &[&str]) -> Run {
    let page = folder.project().join("../page");
    let _ = fs::remove_file(&page);
    let mut command = command(folder, &[&["login", "docs"], arguments].concat());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let program = command.spawn().unwrap();
    block_in_place(|| wait_until("the page is opened", LONGEST_START, || page.exists()));
    let callback = browser::open(fs::read_to_string(&page).unwrap().trim()).await;
    let answer = block_in_place(|| get(&callback));
    assert!(answer.contains("You can close this page"), "{answer}");
    folder.ended(block_in_place(|| program.wait_with_output()).unwrap())
}

/// Follows a redirect to a loopback port.
fn get(url: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {host}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_is_used_shown_and_ended() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let folder = project(&server, &json!({}));
    let before = run(&folder, &["call", "docs_whoami"]);
    assert_eq!(before.code, 5, "{before}");
    assert!(before.messages.contains("it needs a login\n  run `trunkline login docs`"), "{before}");
    let status = run(&folder, &["status", "--format", "json"]).json();
    assert_eq!(status["servers"][0]["state"], "needs-login", "{status}");

    let done = login(&folder, &[]).await;
    assert_eq!(done.code, 0, "{done}");
    assert!(done.messages.contains("Logged in to `docs` at http://127.0.0.1"), "{done}");
    assert!(done.messages.contains("It is renewed by itself."), "{done}");
    let whoami = run(&folder, &["call", "docs_whoami"]);
    assert!(whoami.output.contains("\"subject\":\"alice\""), "{whoami}");
    let logins = run(&folder, &["login", "--status", "--format", "json"]).json();
    assert_eq!(logins["logins"][0]["login"], "logged in", "{logins}");

    let more = run(&folder, &["call", "docs_write", "--arg", "text=x"]);
    assert!(more.messages.contains("run `trunkline login docs --scope write`"), "{more}");
    assert_eq!(login(&folder, &["--scope", "write"]).await.code, 0);
    assert_eq!(run(&folder, &["call", "docs_write", "--arg", "text=x"]).output, "wrote x\n");

    let ended = run(&folder, &["logout", "docs"]);
    assert!(ended.messages.contains("has revoked the tokens"), "{ended}");
    assert!(server.statistics().await.count("revocation") > 0);
    assert_eq!(run(&folder, &["call", "docs_whoami"]).code, 5);
    let again = run(&folder, &["logout", "docs"]);
    assert_eq!((again.code, &*again.messages), (0, "There is no login to `docs`.\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_from_another_machine_can_be_pasted() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let folder = project(&server, &json!({}));
    for (wrong, message) in [
        ("", "no address was pasted"),
        ("hello", "this is not the address that the browser shows"),
        ("http://127.0.0.1:33418/callback?code=x&state=y", "does not belong to this login"),
    ] {
        let command = command(&folder, &["login", "docs", "--headless"]);
        let run = block_in_place(|| {
            secrets::run_with_input(&folder, command, format!("{wrong}\n").as_bytes())
        });
        assert!(run.code != 0 && run.messages.contains(message), "{wrong}: {run}");
    }
    let mut command = command(&folder, &["login", "docs", "--headless"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut program = command.spawn().unwrap();
    let mut messages = BufReader::new(program.stderr.take().unwrap());
    let mut input = program.stdin.take().unwrap();
    let mut page = String::new();
    while !page.trim().starts_with("http") {
        page.clear();
        assert!(block_in_place(|| messages.read_line(&mut page)).unwrap() > 0, "no link");
    }
    let callback = browser::open(page.trim()).await;
    writeln!(input, "{callback}").unwrap();
    let mut rest = String::new();
    block_in_place(|| messages.read_to_string(&mut rest)).unwrap();
    assert!(rest.contains("Logged in to `docs`"), "{rest}");
    assert!(block_in_place(|| program.wait()).unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn logins_that_cannot_begin_say_why() {
    let server = OAuthServer::start(OAuthServerOptions::new().without_registration()).await;
    let folder = project(&server, &json!({}));
    let refused = run(&folder, &["login", "docs"]);
    assert!(refused.messages.contains("does not register clients"), "{refused}");
    assert!(refused.messages.contains("`oauth.clientId`"), "{refused}");
    let unknown = run(&folder, &["login", "dosc"]);
    assert!(unknown.messages.contains("did you mean `docs`?"), "{unknown}");

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let folder = project(&server, &json!({ "clientId": "public-client", "callbackPort": port }));
    let busy = run(&folder, &["login", "docs"]);
    assert!(
        busy.messages.contains(&format!("cannot wait for the browser on port {port}")),
        "{busy}"
    );

    let folder = project(&server, &json!(false));
    let off = run(&folder, &["login", "docs"]);
    assert!(off.messages.contains("OAuth is switched off for it"), "{off}");
}

/// The store must not be opened, nor its key be made, for servers that have no login.
#[tokio::test(flavor = "multi_thread")]
async fn servers_without_a_login_leave_the_store_alone() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let folder = project(&server, &json!({}));
    assert_eq!(run(&folder, &["call", "docs_whoami"]).code, 5);
    run(&folder, &["login", "--status"]);
    let state = folder.project().join("../home/.local/state/trunkline");
    assert!(!state.join("secrets").exists() && !state.join("secrets-key.txt").exists());
}
