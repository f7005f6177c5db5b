//! The scenarios of the conformance suite about authorization of clients.

use trunkline_testkit::conformance;

use crate::{CLIENT, assert_passed};

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
pub(crate) const REFUSALS: &[&str] = &[
    "auth/scope-retry-limit",
    "auth/resource-mismatch",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
];

/// Servers from before protected resource metadata. One by one, because no revision runs them.
#[tokio::test]
async fn the_library_logs_in_to_servers_without_resource_metadata() {
    for scenario in BEFORE_RESOURCE_METADATA {
        let report = conformance::check_client_scenario(CLIENT, scenario, "2025-03-26").await;
        assert_passed(&report, scenario);
    }
}
