//! Third-party clients with the fixture server: the controls for the tests through the gateway.

use trunkline_testkit::clients::{
    Endpoint, Era, Expectations, RealClient, Report, assert_report, run,
};

use crate::support::http_fixture::{Listening, PROGRAM};

/// The reports of a client over HTTP and over stdio, run concurrently.
async fn look(client: RealClient, generation: &str) -> [Report; 2] {
    let listening = Listening::new(generation);
    let http = Endpoint::Url(&listening.url);
    let words = [PROGRAM, "stdio", "--generation", generation];
    let stdio = Endpoint::Command(&words);
    tokio::join!(run(client, &http), run(client, &stdio)).into()
}

async fn exercise(client: RealClient) {
    for report in look(client, "both").await {
        assert_report(client, &report, &Expectations::of_fixture());
    }
}

#[tokio::test]
async fn the_typescript_sdk_sees_everything() {
    exercise(RealClient::TypeScriptSdk).await;
}

#[tokio::test]
async fn the_typescript_client_sees_everything_in_the_older_generation() {
    exercise(RealClient::TypeScriptClient(Era::Legacy)).await;
}

#[tokio::test]
async fn the_typescript_client_sees_everything_by_its_own_choice() {
    exercise(RealClient::TypeScriptClient(Era::Auto)).await;
}

#[tokio::test]
async fn the_typescript_client_sees_everything_in_the_newer_generation() {
    exercise(RealClient::TypeScriptClient(Era::Modern)).await;
}

#[tokio::test]
async fn the_python_sdk_sees_everything_in_the_older_generation() {
    exercise(RealClient::PythonSdk(Era::Legacy)).await;
}

#[tokio::test]
async fn the_python_sdk_sees_everything_by_its_own_choice() {
    exercise(RealClient::PythonSdk(Era::Auto)).await;
}

#[tokio::test]
async fn the_python_sdk_sees_everything_in_the_newer_generation() {
    exercise(RealClient::PythonSdk(Era::Modern)).await;
}

#[tokio::test]
async fn inspector_sees_supported_features_in_the_legacy_era() {
    exercise(RealClient::Inspector(Era::Legacy)).await;
}

#[tokio::test]
async fn inspector_sees_supported_features_in_the_modern_era() {
    exercise(RealClient::Inspector(Era::Modern)).await;
}

#[tokio::test]
async fn mcporter_sees_supported_features() {
    exercise(RealClient::Mcporter).await;
}

#[tokio::test]
async fn fastmcp_sees_supported_features() {
    exercise(RealClient::FastMcp).await;
}

#[tokio::test]
async fn clients_with_a_choice_find_the_only_generation_there_is() {
    for client in [RealClient::TypeScriptClient(Era::Auto), RealClient::PythonSdk(Era::Auto)] {
        for (generation, is_modern) in [("legacy", false), ("modern", true)] {
            let expected = Expectations { is_modern, ..Expectations::of_fixture() };
            for report in look(client, generation).await {
                assert_report(client, &report, &expected);
            }
        }
    }
}

/// The control: shows that clients report a wrong era as a failure.
#[tokio::test]
async fn clients_say_when_they_are_not_understood() {
    for (client, generation) in [
        (RealClient::TypeScriptSdk, "modern"),
        (RealClient::TypeScriptClient(Era::Modern), "legacy"),
        (RealClient::PythonSdk(Era::Legacy), "modern"),
        (RealClient::Mcporter, "modern"),
        (RealClient::Inspector(Era::Modern), "legacy"),
    ] {
        for report in look(client, generation).await {
            assert!(!report.failures.is_empty(), "{client:?}: {report:#?}");
            assert_eq!((&report.tools, &report.text), (&None, &None), "{client:?}");
        }
    }
}
