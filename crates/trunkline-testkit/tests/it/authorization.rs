//! The scenarios of the conformance suite about authorization of clients.

use trunkline_testkit::conformance::{self, ConformanceReport, Verdict};

use crate::CLIENT;

/// Scenarios that both revisions require.
pub(crate) const BOTH_REVISIONS: &[&str] = &[
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
];

/// Scenarios that only 2026-07-28 requires.
pub(crate) const MODERN_REVISION: &[&str] = &[
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
    "auth/authorization-server-migration",
    "auth/iss-supported",
    "auth/iss-not-advertised",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
];

/// Scenarios of extensions, which the suite runs with both revisions and does not require.
pub(crate) const EXTENSIONS: &[&str] = &[
    "auth/client-credentials-jwt",
    "auth/client-credentials-basic",
    "auth/enterprise-managed-authorization",
    "auth/dpop",
    "auth/dpop-nonce",
    "auth/wif-jwt-bearer",
];

/// Scenarios of servers from before protected resource metadata, which no revision requires.
const BEFORE_RESOURCE_METADATA: &[&str] =
    &["auth/2025-03-26-oauth-metadata-backcompat", "auth/2025-03-26-oauth-endpoint-fallback"];

/// Scenarios in which the client has to refuse the server, so that the program may fail.
const REFUSALS: &[&str] = &[
    "auth/scope-retry-limit",
    "auth/resource-mismatch",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
];

/// Asserts that the client passes scenarios, and finishes where it does not have to refuse.
fn assert_passed<'a>(report: &ConformanceReport, scenarios: impl Iterator<Item = &'a &'a str>) {
    for scenario in scenarios {
        assert_eq!(report.verdict(scenario), Verdict::Passed, "{scenario}: {report}");
        let has_finished = report.printed(scenario) == "finished\n";
        assert!(has_finished || REFUSALS.contains(scenario), "{scenario} did not finish");
    }
}

#[tokio::test]
async fn the_library_conforms_to_authorization_of_2025_11_25() {
    let report = conformance::check_client(CLIENT, "2025-11-25").await;
    assert_passed(&report, BOTH_REVISIONS.iter().chain(EXTENSIONS));
}

#[tokio::test]
async fn the_library_conforms_to_authorization_of_2026_07_28() {
    let report = conformance::check_client(CLIENT, "2026-07-28").await;
    assert_passed(&report, BOTH_REVISIONS.iter().chain(MODERN_REVISION).chain(EXTENSIONS));
}

#[tokio::test]
async fn the_library_logs_in_to_servers_without_resource_metadata() {
    for scenario in BEFORE_RESOURCE_METADATA {
        let report = conformance::check_client_scenario(CLIENT, scenario, "2025-03-26").await;
        assert_passed(&report, [scenario].into_iter());
    }
}
