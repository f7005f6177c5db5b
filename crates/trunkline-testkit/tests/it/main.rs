//! The library as a client, judged by the conformance suite of the protocol.

mod exchanges;
mod oauth_server;
mod authorization;

use trunkline_testkit::conformance::{self, Verdict};

use crate::authorization::{BOTH_REVISIONS, EXTENSIONS, MODERN_REVISION};

/// The client under test, which uses nothing but the public interface of the library.
const CLIENT: &str = env!("CARGO_BIN_EXE_trunkline-conformance");

/// Everything that a revision requires of clients, but for authorization, which is not there yet.
async fn assert_conforms(revision: &str, scenarios: &[&str], authorization: &[&[&str]]) {
    let report = conformance::check_client(CLIENT, revision).await;
    let (other, required): (Vec<_>, Vec<_>) =
        report.required().partition(|name| name.starts_with("auth/"));
    assert_eq!(other, authorization.concat(), "the suite asks for something else than it did");
    assert_eq!(required, scenarios, "the suite asks for something else than it did");
    for scenario in required.into_iter().chain(["json-schema-2020-12-preservation"]) {
        assert_eq!(report.verdict(scenario), Verdict::Passed, "{scenario}: {report}");
        assert_eq!(report.printed(scenario), "finished\n", "{scenario}: {report}");
    }
}

#[tokio::test]
async fn the_library_conforms_to_2025_11_25() {
    let scenarios =
        ["initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"];
    assert_conforms("2025-11-25", &scenarios, &[BOTH_REVISIONS]).await;
}

#[tokio::test]
async fn the_library_conforms_to_2026_07_28() {
    let scenarios = [
        "tools_call",
        "request-metadata",
        "sep-2322-client-request-state",
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "json-schema-ref-no-deref",
    ];
    assert_conforms("2026-07-28", &scenarios, &[BOTH_REVISIONS, MODERN_REVISION]).await;
}

/// The suite is not content with anything: a client that does nothing fails what it can see, and does
/// not count as one that refuses a hostile authorization server.
#[tokio::test]
async fn a_client_that_does_nothing_does_not_conform() {
    let report = conformance::check_client("true", "2026-07-28").await;
    assert!(!report.is_content);
    let others = ["tools_call", "sep-2322-client-request-state", "http-custom-headers"];
    for scenario in [BOTH_REVISIONS, MODERN_REVISION, EXTENSIONS, &others].concat() {
        assert_eq!(report.verdict(scenario), Verdict::Failed, "{scenario}");
    }
}
