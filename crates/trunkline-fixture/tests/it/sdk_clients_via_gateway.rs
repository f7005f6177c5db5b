//! Third-party clients with the gateway and the fixture server behind it: they see the same as of
//! the server itself.

use trunkline_testkit::clients::{
    Endpoint, Era, Expectations, RealClient, Report, assert_report, run,
};

use crate::support::gateway::{Gateway, Shared, Upstream};
use crate::support::program::Program;

/// The expectations of the fixture, with the gateway's server name.
fn expected() -> Expectations<'static> {
    Expectations { server: "trunkline", ..Expectations::of_fixture() }
}

async fn look(client: RealClient, upstream: Upstream, generation: &str, shared: Shared) -> Report {
    let gateway = Gateway::to(upstream, generation, shared).await;
    let report = run(client, &Endpoint::Url(&gateway.url)).await;
    gateway.end().await;
    report
}

async fn look_at_program(client: RealClient, generation: &str) -> Report {
    let program = Program::to(generation);
    let words = program.words();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    run(client, &Endpoint::Command(&words)).await
}

/// Over HTTP through the library, and over stdio through the program.
async fn exercise(client: RealClient) {
    let (http, stdio) = tokio::join!(
        look(client, Upstream::Stdio, "both", Shared::ByAll),
        look_at_program(client, "both")
    );
    assert_report(client, &http, &expected());
    assert_report(client, &stdio, &expected());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_typescript_sdk_sees_everything_through_the_gateway() {
    exercise(RealClient::TypeScriptSdk).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn typescript_sdk_sees_everything_via_gateway_in_the_legacy_era() {
    exercise(RealClient::TypeScriptClient(Era::Legacy)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn typescript_sdk_sees_everything_via_gateway_in_its_preferred_era() {
    exercise(RealClient::TypeScriptClient(Era::Auto)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn typescript_sdk_sees_everything_via_gateway_in_the_modern_era() {
    exercise(RealClient::TypeScriptClient(Era::Modern)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn python_sdk_sees_everything_via_gateway_in_the_legacy_era() {
    exercise(RealClient::PythonSdk(Era::Legacy)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_python_sdk_sees_everything_through_the_gateway_by_its_own_choice() {
    exercise(RealClient::PythonSdk(Era::Auto)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn python_sdk_sees_everything_via_gateway_in_the_modern_era() {
    exercise(RealClient::PythonSdk(Era::Modern)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn inspector_sees_supported_features_via_gateway_in_the_legacy_era() {
    exercise(RealClient::Inspector(Era::Legacy)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn inspector_sees_supported_features_via_gateway_in_the_modern_era() {
    exercise(RealClient::Inspector(Era::Modern)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn mcporter_sees_supported_features_via_gateway() {
    exercise(RealClient::Mcporter).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn fastmcp_sees_supported_features_via_gateway() {
    exercise(RealClient::FastMcp).await;
}

/// Modern input requests become legacy server requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn legacy_clients_see_everything_of_a_modern_server() {
    for client in [
        RealClient::TypeScriptSdk,
        RealClient::TypeScriptClient(Era::Legacy),
        RealClient::PythonSdk(Era::Legacy),
    ] {
        let (stdio, http, program) = tokio::join!(
            look(client, Upstream::Stdio, "modern", Shared::ByAll),
            look(client, Upstream::Http, "modern", Shared::ByAll),
            look_at_program(client, "modern")
        );
        for report in [stdio, http, program] {
            assert_report(client, &report, &expected());
        }
    }
}

/// Legacy server requests become modern input requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn modern_clients_see_everything_of_a_legacy_server() {
    for client in [RealClient::TypeScriptClient(Era::Modern), RealClient::PythonSdk(Era::Modern)] {
        let (http, alone, program) = tokio::join!(
            look(client, Upstream::Http, "legacy", Shared::ByAll),
            look(client, Upstream::Stdio, "legacy", Shared::ByNobody),
            look_at_program(client, "legacy")
        );
        for report in [http, alone, program] {
            assert_report(client, &report, &expected());
        }
    }
}
