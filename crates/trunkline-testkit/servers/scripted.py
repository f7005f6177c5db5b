"""An MCP server over stdio that misbehaves in one way; it needs the standard library only.

    python scripted.py MODE [MARKER]

MARKER is not looked at: it lets a test find the process. The file `called` in the working directory says
that a tool was called.
"""

import json
import pathlib
import signal
import sys
import time

MODE = sys.argv[1]

TOOL = {"name": "wait", "description": "Waits.", "inputSchema": {"type": "object"}}


def send(message):
    print(json.dumps(message), flush=True)


def result_of(request):
    match request["method"]:
        case "initialize":
            info = {"name": "scripted", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            return {"content": [{"type": "text", "text": "waited"}]}


def answer(request):
    result = result_of(request)
    if result is None:
        error = {"code": -32601, "message": "unknown method"}
        return {"jsonrpc": "2.0", "id": request["id"], "error": error}
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}


def serve(request):
    if request["method"] == "tools/call":
        pathlib.Path("called").touch()
        match MODE:
            case "hang":
                return
            case "stubborn":
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                time.sleep(1000)
            case "die":
                print("out of cheese", file=sys.stderr, flush=True)
                sys.exit(7)
    match MODE:
        case "not-rpc":
            send({"id": request["id"], "hello": "world"})
        case "wrong-id":
            send({**answer(request), "id": 999_999})
            send({**answer(request), "id": str(request["id"])})
            send(answer(request))
        case "twice":
            send(answer(request))
            send(answer(request))
        case _:
            send(answer(request))


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        serve(message)
