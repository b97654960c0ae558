//! The client's side of a session, which is the same wherever the server runs.

use prx_runtime::Execution;
use rmcp::model::CallToolRequestParams;
use rmcp::service::RunningService;
use rmcp::{RoleClient, ServiceExt};
use serde_json::json;

pub(crate) type Client = RunningService<RoleClient, ()>;

/// The server.
pub(crate) const SERVER: &str = env!("CARGO_BIN_EXE_mcp_server");

/// Initializes a session over the streams of `execution`.
pub(crate) async fn connect(execution: &mut Execution) -> Client {
    let streams = (
        execution.stdout.take().unwrap(),
        execution.stdin.take().unwrap(),
    );
    ().serve(streams).await.unwrap()
}

pub(crate) async fn call(
    client: &Client,
    tool: &'static str,
    arguments: serde_json::Value,
) -> String {
    let mut params = CallToolRequestParams::new(tool);
    params.arguments = arguments.as_object().cloned();
    let result = client.call_tool(params).await.unwrap();
    assert_ne!(result.is_error, Some(true));
    result.content[0].as_text().unwrap().text.clone()
}

/// Asks who it is and what it has, and calls a tool a hundred times.
pub(crate) async fn converse(client: &Client) {
    let server = client.peer_info().unwrap();
    assert_eq!(server.server_info.as_ref().unwrap().name, "prx-e2e");

    let tools = client.list_all_tools().await.unwrap();
    let mut names: Vec<_> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    names.sort_unstable();
    assert_eq!(names, ["add", "pid"]);

    for number in 0..100 {
        let sum = call(client, "add", json!({"a": number, "b": 2})).await;
        assert_eq!(sum, (number + 2).to_string());
    }
}
