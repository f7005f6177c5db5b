//! The official conformance suite with the fixture server.

use trunkline_testkit::conformance::{ConformanceReport, Verdict, check_server};

use crate::support::http_fixture::Listening;

pub(crate) const LEGACY: &str = "2025-11-25";
pub(crate) const MODERN: &str = "2026-07-28";

/// The scenarios of the tasks extension.
const TASKS: &[&str] = &[
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    "tasks-required-task-error",
    "tasks-mrtr-composition",
];

async fn check(generation: &str, revision: &str) -> ConformanceReport {
    let server = Listening::new(generation);
    check_server(&server.url, revision).await
}

pub(crate) fn assert_legacy(report: &ConformanceReport) {
    let passed = (report.required_passed(), report.others_passed());
    assert_eq!((report.is_content, passed), (true, (30, 3)), "{report}");
}

pub(crate) fn assert_modern(report: &ConformanceReport) {
    let passed = (report.required_passed(), report.others_passed());
    assert_eq!((report.is_content, passed), (true, (37, 12)), "{report}");
    for scenario in TASKS {
        assert_eq!(report.verdict(scenario), Verdict::Passed, "{scenario}: {report}");
    }
    // The suite lists the scenario, but checks nothing in it yet.
    assert_eq!(report.verdict("tasks-status-notifications"), Verdict::Skipped);
}

// The suite mostly waits, so two concurrent runs take as long as one.

#[tokio::test]
async fn it_meets_everything_that_either_generation_requires_and_tasks() {
    let (legacy, modern) = tokio::join!(check("both", LEGACY), check("both", MODERN));
    assert_legacy(&legacy);
    assert_modern(&modern);
}

#[tokio::test]
async fn server_of_one_era_conforms_to_that_era() {
    let (legacy, modern) = tokio::join!(check("legacy", LEGACY), check("modern", MODERN));
    assert_legacy(&legacy);
    assert_modern(&modern);
}

/// The control: shows that the suite detects failures.
#[tokio::test]
async fn the_suite_notices_a_server_of_the_wrong_generation() {
    let (legacy, modern) = tokio::join!(check("legacy", MODERN), check("modern", LEGACY));
    for report in [&legacy, &modern] {
        assert!(!report.is_content, "{report}");
        assert!(report.required_passed() < 5, "{report}");
        assert!(report.to_string().contains("FAILURE"), "{report}");
    }
}
