"""An MCP server over stdio that says more than anybody should keep; it needs the standard library only.

    python flooding.py MODE

`pings`: asks for signs of life under long ids, and does not read the answers. `questions`: asks the client
of a call for something again and again, with much beside each question. `lists`: lists tools of 900 KB
each, and a small one. `instructions`: says at length how it is to be used. `results`: answers each call
with 4.9 MB. `progress`: reports progress of each call with 900 KB, twelve times, and does not answer it.
`many`: lists 9,999 small tools. `updates`: announces twelve changes of its one resource with 900 KB each, in
each call.
"""

import json
import sys
import threading
import time

MODE = sys.argv[1]

LONG = "x" * 8_000_000
LARGE = "x" * 900_000

PAGES = 12
TOOLS_OF_A_PAGE = 16

lock = threading.Lock()


def send(message):
    text = json.dumps({"jsonrpc": "2.0", **message})
    with lock:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def tool(name, description):
    return {"name": name, "description": description, "inputSchema": {"type": "object"}}


def tools(params):
    if MODE == "many":
        return {"tools": [tool(f"tool-{number}", "Does little.") for number in range(9_999)]}
    if MODE != "lists":
        return {"tools": [tool("small", "Does little.")]}
    page = int(params.get("cursor", "0"))
    names = [f"large-{page}-{number}" for number in range(TOOLS_OF_A_PAGE)]
    listed = [tool(name, LARGE) for name in names]
    more = {"nextCursor": str(page + 1)} if page + 1 < PAGES else {}
    return {"tools": [*listed, tool(f"small-{page}", "Does little.")], **more}


def initialized(params):
    instructions = LONG if MODE == "instructions" else "Nothing."
    info = {"name": "flooding", "version": "1"}
    capabilities = {"tools": {}, "resources": {"subscribe": True}} if MODE == "updates" else {"tools": {}}
    version = params.get("protocolVersion", "2025-11-25")
    return {
        "protocolVersion": version, "capabilities": capabilities, "serverInfo": info, "instructions": instructions,
    }


def flood():
    """Asks, and does not listen."""
    for number in range(80):
        if MODE == "pings":
            send({"id": f"{number}-{LONG}", "method": "ping"})
        else:
            params = {"message": "Yes?", "requestedSchema": {"type": "object", "properties": {}}}
            send({"id": f"question-{number}", "method": "elicitation/create", "params": params, "beside": LONG})


def report_progress(params):
    token = params.get("_meta", {}).get("progressToken")
    for number in range(12 if token is not None else 0):
        progress = {"progressToken": token, "progress": number, "message": LARGE}
        send({"method": "notifications/progress", "params": progress})


def announce_changes():
    for _ in range(12):
        send({"method": "notifications/resources/updated", "params": {"uri": "flood://one", "beside": LARGE}})


def answer(request):
    params = request.get("params", {})
    match request["method"]:
        case "initialize":
            return initialized(params)
        case "tools/list":
            return tools(params)
        case "resources/list" if MODE == "updates":
            return {"resources": [{"uri": "flood://one", "name": "one"}]}
        case "resources/templates/list" if MODE == "updates":
            return {"resourceTemplates": []}
        case "resources/subscribe" | "resources/unsubscribe" if MODE == "updates":
            return {}
        case "tools/call":
            if MODE in ("pings", "questions"):
                flood()
            if MODE == "updates":
                announce_changes()
            if MODE == "results":
                return {"content": [{"type": "text", "text": "x" * 4_900_000}]}
            return {"content": [{"type": "text", "text": "done"}]}


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request or "method" not in request:
        continue
    if request["method"] == "tools/call" and MODE == "progress":
        report_progress(request["params"])
        continue
    result = answer(request)
    if result is None:
        send({"id": request["id"], "error": {"code": -32601, "message": "unknown method"}})
        continue
    if request["method"] == "tools/call" and MODE == "questions":
        # The questions stay open for as long as the call.
        time.sleep(5)
    send({"id": request["id"], "result": result})
