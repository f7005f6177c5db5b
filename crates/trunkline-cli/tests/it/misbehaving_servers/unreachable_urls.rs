//! URLs at which no server can be reached.

use serde_json::json;

use super::{assert_fails, assert_fails_as, impatiently};
use crate::support::listening_server;
use crate::support::program::Folder;

/// Asserts the error for a URL that misbehaves in every request, with and without `type: "http"`.
fn assert_address_fails(mode: &str, error: &str, hint: &str) {
    let server = listening_server::scripted("always", mode);
    for entry in [json!({ "type": "http", "url": server.url }), json!({ "url": server.url })] {
        assert_fails(&impatiently(entry), error, hint);
    }
}

#[test]
fn an_address_without_a_listener() {
    let port = listening_server::free_port();
    let server = json!({ "type": "http", "url": format!("http://127.0.0.1:{port}/mcp") });
    let hint = format!("is the server running at 127.0.0.1:{port}?");
    assert_fails(&server, "refuses connections", &hint);
}

#[test]
fn an_address_that_does_not_exist() {
    let url = listening_server::always(
        "HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    );
    let hint = "is the path of the address right?";
    assert_fails(&json!({ "type": "http", "url": url }), "answered 404 Not Found", hint);
    assert_fails(&json!({ "url": url }), "answered 404 Not Found", hint);
    assert_fails(&json!({ "type": "sse", "url": url }), "answered 404 Not Found", hint);
}

#[test]
fn an_address_that_wants_credentials() {
    let at = |scheme: &str| {
        let head = "HTTP/1.1 401 Unauthorized\r\nconnection: close\r\ncontent-length: 0";
        listening_server::always(format!("{head}\r\nwww-authenticate: {scheme}\r\n\r\n"))
    };
    let hint = "run `trunkline login faulty`, or set its credentials in `headers`";
    let bearer = at("Bearer");
    for entry in [json!({ "type": "http", "url": bearer }), json!({ "url": bearer })] {
        assert_fails_as("needs-login", &entry, "it needs a login", hint);
    }
    let hint = "the server wants credentials (it asks for `Bearer`)";
    let without_oauth = json!({ "type": "http", "url": bearer, "oauth": false });
    assert_fails(&without_oauth, "answered 401 Unauthorized", hint);
    let hint = "the server wants credentials (it asks for `Basic`)";
    assert_fails(&json!({ "url": at("Basic") }), "answered 401 Unauthorized", hint);
}

#[test]
fn an_address_of_a_web_page() {
    let url = listening_server::always(
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/html\r\n\r\n<p>Welcome</p>",
    );
    let hint = "is the path of the address right?";
    assert_fails(&json!({ "type": "http", "url": url }), "something that is not MCP", hint);
    assert_fails(&json!({ "url": url }), "something that is not MCP", hint);
}

#[test]
fn an_address_that_responds_too_many_requests() {
    assert_address_fails("429", "answered 429 Too Many Requests: try again in 7 s", "");
}

#[test]
fn an_address_whose_server_is_broken() {
    assert_address_fails("500", "answered 500 Internal Server Error: out of cheese", "");
}

#[test]
fn an_address_that_redirects_to_itself() {
    let hint = "check the path of the address";
    assert_address_fails("redirect-in-circles", "redirects again and again", hint);
}

#[test]
fn an_address_that_redirects_to_another_server() {
    let error = "redirects to another server, http://other.invalid";
    let hint = "if http://other.invalid is meant, configure it as the address";
    assert_address_fails("redirect-away", error, hint);
}

#[test]
fn an_address_that_resets_connections() {
    assert_address_fails("reset", "broke the connection", "");
}

#[test]
fn an_address_that_ends_in_the_middle_of_an_answer() {
    assert_address_fails("half", "broke the connection", "");
}

#[test]
fn an_address_that_answers_a_byte_per_second() {
    for mode in ["slow-head", "slow-body"] {
        let server = listening_server::scripted("always", mode);
        let entry = impatiently(json!({ "type": "http", "url": server.url }));
        assert_fails(&entry, "it did not answer in time", "`timeouts.handshake`");
    }
}

#[test]
fn an_address_that_answers_more_than_fits() {
    assert_address_fails("huge", "sent a message of more than 16 MiB", "");
}

#[test]
fn an_address_with_an_untrusted_certificate() {
    let place = Folder::new();
    let server = listening_server::scripted_with_tls(&place);
    let hint =
        "if its certificate comes from an authority of your own, name the file with that one in";
    let error = "shows a certificate of an unknown authority";
    assert_fails(&json!({ "type": "http", "url": server.url }), error, hint);
    assert_fails(&json!({ "type": "sse", "url": server.url }), error, hint);
}

#[test]
fn a_certificate_that_is_named_is_trusted() {
    let folder = Folder::new();
    let server = listening_server::scripted_with_tls(&folder);
    let servers = json!({ "safe": { "url": server.url } });
    let folder = folder.file("trunkline.json", json!({ "mcpServers": servers }).to_string());
    let mut command = folder.command(&["call", "safe_wait"]);
    command.env("SSL_CERT_FILE", folder.project().join("certificate.pem"));
    let run = folder.finish(&mut command);
    assert_eq!((run.code, run.output.trim()), (0, "waited"), "{run}");
}

#[test]
fn an_address_that_does_not_speak_tls() {
    let server = listening_server::scripted("never", "well");
    let url = server.url.replace("http:", "https:");
    let entry = json!({ "type": "http", "url": url });
    assert_fails(&entry, "does not speak TLS", "is it an `http` address?");
}
