//! The library as a client, judged by the conformance suite of the protocol.

mod exchanges;
mod oauth_server;
mod authorization;

use trunkline_testkit::conformance::{self, ConformanceReport, Verdict};

use crate::authorization::{BOTH_REVISIONS, EXTENSIONS, MODERN_REVISION, REFUSALS};

/// The client under test, which uses nothing but the public interface of the library.
const CLIENT: &str = env!("CARGO_BIN_EXE_trunkline-conformance");

/// Asserts that a client passes a scenario, and finishes unless it has to refuse the server.
fn assert_passed(report: &ConformanceReport, scenario: &str) {
    assert_eq!(report.verdict(scenario), Verdict::Passed, "{scenario}: {report}");
    let has_finished = report.printed(scenario) == "finished\n";
    assert!(has_finished || REFUSALS.contains(&scenario), "{scenario}: the client failed");
}

/// Everything that a revision requires of clients, and the extensions.
async fn assert_conforms(revision: &str, scenarios: &[&str], authorization: &[&[&str]]) {
    let report = conformance::check_client(CLIENT, revision).await;
    let (login, other): (Vec<_>, Vec<_>) =
        report.required().partition(|name| name.starts_with("auth/"));
    assert_eq!(login, authorization.concat(), "the suite asks for something else than it did");
    assert_eq!(other, scenarios, "the suite asks for something else than it did");
    for scenario in [&login, &other, EXTENSIONS, &["json-schema-2020-12-preservation"]].concat() {
        assert_passed(&report, scenario);
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
