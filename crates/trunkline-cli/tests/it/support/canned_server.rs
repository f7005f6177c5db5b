//! A server that answers each method with a prepared result.

use serde_json::{Value, json};
use trunkline_testkit::peers;

use super::program::Folder;

/// Answers with the results of its argument. `@PARAMS` in them becomes the parameters of the request, as text.
const SERVER: &str = r#"
import json, sys
results = json.loads(sys.argv[1])
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    params = message.get("params", {})
    if message["method"] == "initialize":
        capabilities = {"tools": {}, "prompts": {}, "resources": {}, "completions": {}}
        answer["result"] = {"protocolVersion": params["protocolVersion"], "capabilities": capabilities,
                            "serverInfo": {"name": "canned", "version": "1"}}
    elif message["method"] in results:
        sent = {key: value for key, value in params.items() if key != "_meta"}
        text = json.dumps(results[message["method"]])
        answer["result"] = json.loads(text.replace("@PARAMS", json.dumps(json.dumps(sent))[1:-1]))
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
"#;

/// The entry of a server with these results.
pub(crate) fn canned_server(results: &Value) -> Value {
    let results = results.to_string();
    json!({ "command": peers::python(), "args": ["-I", "-c", SERVER, results] })
}

/// A directory with one such server, `s`.
pub(crate) fn with_canned_server(results: &Value) -> Folder {
    let config = json!({ "mcpServers": { "s": canned_server(results) } });
    Folder::new().file("trunkline.json", config.to_string())
}
