//! Third-party clients that share one server process of the background service.

use serde_json::Value;
use trunkline_testkit::clients::{
    Endpoint, Era, Expectations, RealClient, Report, assert_report, run,
};

use crate::support::program::Program;

async fn look(client: RealClient, program: &Program) -> Report {
    let words = program.command(&["connect"]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    run(client, &Endpoint::Command(&words)).await
}

/// The process of the only server.
fn server_process(program: &Program) -> u64 {
    let status: Value = serde_json::from_str(&program.run(&["ps", "--format", "json"])).unwrap();
    assert_eq!(status["connections"], 1, "{status}");
    status["projects"][0]["servers"][0]["pid"].as_u64().unwrap_or_else(|| panic!("{status}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn sdk_clients_of_both_eras_share_one_process() {
    let program = Program::to("both");
    program.run(&["up"]);
    let clients = [
        RealClient::TypeScriptSdk,
        RealClient::PythonSdk(Era::Modern),
        RealClient::TypeScriptClient(Era::Auto),
    ];
    let expected = Expectations { server: "trunkline", ..Expectations::of_fixture() };
    let first = look(clients[0], &program).await;
    let process = server_process(&program);
    let (second, third) = tokio::join!(look(clients[1], &program), look(clients[2], &program));
    for (client, report) in clients.into_iter().zip([first, second, third]) {
        assert_report(client, &report, &expected);
    }
    assert_eq!(server_process(&program), process);
    program.run(&["down"]);
}
