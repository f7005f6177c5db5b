"""An MCP server over stdio that repeats its variable TOKEN wherever it can; it needs the standard library only."""

import json
import os
import sys

TOKEN = os.environ["TOKEN"]


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def tool(name):
    return {"name": name, "description": f"Knows {TOKEN}.", "inputSchema": {"type": "object"}}


def result_of(request):
    match request["method"]:
        case "initialize":
            info = {"name": f"repeating {TOKEN}", "version": "1"}
            return {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}, "logging": {}},
                "serverInfo": info,
            }
        case "tools/list":
            return {"tools": [tool("say"), tool("log"), tool("fail"), {"name": f"{TOKEN}", "inputSchema": 1}]}
        case "logging/setLevel":
            return {}
        case "tools/call":
            return called(request["params"]["name"])


def called(name):
    if name == "log":
        params = {"level": "info", "data": f"using {TOKEN}"}
        send({"method": "notifications/message", "params": params})
    text = "done" if name == "log" else f"it is {TOKEN}"
    return {"content": [{"type": "text", "text": text}]}


print(json.dumps({"token": TOKEN}), "from", sys.argv[1], file=sys.stderr, flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = result_of(request)
    fails = request["method"] == "tools/call" and request["params"]["name"] == "fail"
    if result is None or fails:
        error = {"code": -32000 if fails else -32601, "message": f"no {request['method']}, {TOKEN}"}
        send({"id": request["id"], "error": error})
    else:
        send({"id": request["id"], "result": result})
