//! The examples do what they say: each checks itself.

#[expect(dead_code, reason = "its `main` is for those who run it alone")]
#[path = "../../examples/boocode.rs"]
mod boocode;
#[expect(dead_code, reason = "its `main` is for those who run it alone")]
#[path = "../../examples/dispatch.rs"]
mod dispatch;
#[expect(dead_code, reason = "its `main` is for those who run it alone")]
#[path = "../../examples/toolloop.rs"]
mod toolloop;

use crate::lively::within;

#[tokio::test]
async fn a_registry_of_its_own_takes_tools_of_servers() {
    within(boocode::run()).await.unwrap();
}

#[tokio::test]
async fn a_client_manager_runs_a_loop() {
    within(toolloop::run()).await.unwrap();
}

#[tokio::test]
async fn tools_are_defined_once_and_filtered_per_turn() {
    within(dispatch::run()).await.unwrap();
}
