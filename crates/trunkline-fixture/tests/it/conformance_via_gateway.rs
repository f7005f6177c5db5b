//! The official conformance suite through the gateway: with each transport and era behind it, the
//! same as the client's or the other.

use std::collections::BTreeSet;

use trunkline_testkit::conformance::{ConformanceReport, Verdict, check_server};

use crate::conformance::{LEGACY, MODERN, assert_legacy, assert_modern};
use crate::support::gateway::{Gateway, Shared, Upstream};

/// Features of modern clients that a legacy server cannot support, each with its reason.
const CROSSED: &str = include_str!("crossed.txt");

async fn check(upstream: Upstream, generation: &str, revision: &str) -> ConformanceReport {
    let gateway = Gateway::to(upstream, generation, Shared::ByAll).await;
    let report = check_server(&gateway.url, revision).await;
    gateway.end().await;
    report
}

/// All required scenarios pass, and all others but one: an immediate response needs no stream, so
/// none can be resumed.
fn assert_legacy_at_once(report: &ConformanceReport) {
    assert_eq!(report.verdict("server-sse-polling"), Verdict::Skipped, "{report}");
    let passed = (report.required_passed(), report.others_passed());
    assert_eq!((report.is_content, passed), (true, (30, 2)), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_over_stdio_meets_everything_through_the_gateway() {
    let stdio = Upstream::Stdio;
    let (legacy, modern) = tokio::join!(check(stdio, "both", LEGACY), check(stdio, "both", MODERN));
    assert_legacy_at_once(&legacy);
    assert_modern(&modern);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_over_http_meets_everything_through_the_gateway() {
    let http = Upstream::Http;
    let (legacy, modern) = tokio::join!(check(http, "both", LEGACY), check(http, "both", MODERN));
    // Legacy clients get a legacy connection to the server, with its streams.
    assert_legacy(&legacy);
    assert_modern(&modern);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn servers_of_one_generation_meet_everything_that_clients_of_it_expect() {
    let http = Upstream::Http;
    let (legacy, modern) =
        tokio::join!(check(http, "legacy", LEGACY), check(http, "modern", MODERN));
    assert_legacy(&legacy);
    assert_modern(&modern);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn legacy_clients_miss_nothing_of_a_modern_server() {
    let (stdio, http) = tokio::join!(
        check(Upstream::Stdio, "modern", LEGACY),
        check(Upstream::Http, "modern", LEGACY)
    );
    assert_legacy_at_once(&stdio);
    assert_legacy_at_once(&http);
}

/// CALL-8, TOOL-14: a dual-era server that sends requests to clients of either era, and does not
/// list the resources that clients may subscribe to, like the example server of the official Rust
/// SDK.
async fn check_sdk_example(
    upstream: Upstream,
    shared: Shared,
    revision: &str,
) -> ConformanceReport {
    let options = ["--profile", "sdk-example"];
    let gateway = Gateway::to_server(upstream, &options, shared).await;
    let report = check_server(&gateway.url, revision).await;
    gateway.end().await;
    report
}

/// Over stdio a server request is not attributed to a call. Each scenario of the suite is another
/// client, so each needs a dedicated process.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_sdk_example_over_stdio_meets_everything_through_the_gateway() {
    let stdio = Upstream::Stdio;
    let (legacy, modern) = tokio::join!(
        check_sdk_example(stdio, Shared::ByNobody, LEGACY),
        check_sdk_example(stdio, Shared::ByAll, MODERN)
    );
    assert_legacy_at_once(&legacy);
    assert_modern(&modern);
}

/// Over HTTP the modern era has no responses to server requests: legacy clients that support server
/// requests are served in their own era.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_sdk_example_over_http_meets_everything_through_the_gateway() {
    let http = Upstream::Http;
    let (legacy, modern) = tokio::join!(
        check_sdk_example(http, Shared::ByAll, LEGACY),
        check_sdk_example(http, Shared::ByAll, MODERN)
    );
    assert_eq!((legacy.is_content, legacy.required_passed()), (true, 30), "{legacy}");
    assert_modern(&modern);
}

/// The scenarios of one of the lists, each with a reason.
fn expected(list: &str) -> BTreeSet<&'static str> {
    let lines = CROSSED.lines().skip_while(|line| *line != format!("[{list}]")).skip(1);
    let named = |line: &'static str| {
        let (scenario, reason) = line.split_once(": ").expect("a scenario and a reason");
        assert!(reason.len() > 20, "{scenario} says why");
        scenario
    };
    lines.take_while(|line| !line.starts_with('[')).filter(|it| !it.is_empty()).map(named).collect()
}

fn failed(report: &ConformanceReport) -> BTreeSet<&str> {
    report.verdicts().filter(|(_, it)| *it == Verdict::Failed).map(|(name, _)| name).collect()
}

async fn check_crossed(upstream: Upstream, shared: Shared) -> ConformanceReport {
    let gateway = Gateway::to(upstream, "legacy", shared).await;
    let report = check_server(&gateway.url, MODERN).await;
    gateway.end().await;
    report
}

/// Over HTTP a server request is attributed to a call by its stream; over stdio only by a dedicated
/// process.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn modern_clients_of_a_legacy_server_conform_except_missing_features() {
    let (shared, alone) = tokio::join!(
        check_crossed(Upstream::Http, Shared::ByAll),
        check_crossed(Upstream::Stdio, Shared::ByNobody)
    );
    assert_eq!(failed(&shared), expected("one process for all clients"), "{shared}");
    assert_eq!(failed(&alone), expected("a process for each client"), "{alone}");
}

/// The control: shows that the suite detects a faulty gateway.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_suite_notices_a_gateway_that_loses_something() {
    let gateway = Gateway::broken().await;
    let (legacy, modern) =
        tokio::join!(check_server(&gateway.url, LEGACY), check_server(&gateway.url, MODERN));
    gateway.end().await;
    for report in [&legacy, &modern] {
        assert!(!report.is_content, "{report}");
        assert!(failed(report).contains("tools-call-image"), "{report}");
        assert!(failed(report).contains("prompts-get-simple"), "{report}");
    }
}
