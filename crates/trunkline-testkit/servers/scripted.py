"""An MCP server over stdio that misbehaves in one way; it needs the standard library only.

    python scripted.py MODE [MARKER]

MARKER is not looked at: it lets a test find the process. The file `called` in the working directory says
that a tool was called.
"""

import itertools
import json
import pathlib
import signal
import sys
import time

MODE = sys.argv[1]

TOOL = {"name": "wait", "description": "Waits.", "inputSchema": {"type": "object"}}

calls = itertools.count(1)
pages = itertools.count(1)


def send(message):
    print(json.dumps(message), flush=True)


def tools():
    match MODE:
        case "same-cursor":
            return {"tools": [], "nextCursor": "again"}
        case "new-cursors":
            return {"tools": [], "nextCursor": str(next(pages))}
        case "crowd":
            return {"tools": [{**TOOL, "name": f"wait-{number}"} for number in range(100_000)]}
        case "crowd-in-pages":
            page = next(pages)
            names = range(page * 1_000, page * 1_000 + 1_000)
            cursor = {"nextCursor": str(page)} if page < 100 else {}
            return {"tools": [{**TOOL, "name": f"wait-{number}"} for number in names], **cursor}
        case "fat-crowd":
            fat = {**TOOL, "description": "x" * 1_000}
            return {"tools": [{**fat, "name": f"wait-{number}"} for number in range(100_000)]}
        case _:
            return {"tools": [TOOL]}


def result_of(request):
    match request["method"]:
        case "initialize":
            info = {"name": "scripted", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return tools()
        case "tools/call":
            return {"content": [{"type": "text", "text": "waited"}]}


def answer(request):
    result = result_of(request)
    if result is None:
        error = {"code": -32601, "message": "unknown method"}
        return {"jsonrpc": "2.0", "id": request["id"], "error": error}
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}


def send_half(request):
    text = json.dumps(answer(request))
    print(text[: len(text) // 2], end="", flush=True)


def send_huge(request):
    """An answer of 100 MB, on one line."""
    before, after = json.dumps(answer(request)).split("waited")
    sys.stdout.write(before)
    for _ in range(100):
        sys.stdout.write("x" * 1_000_000)
    print(after, flush=True)


def misbehaves_in_call(request):
    """Whether it did, in place of an answer."""
    match MODE:
        case "hang":
            pass
        case "stubborn":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(1000)
        case "die":
            print("out of cheese", file=sys.stderr, flush=True)
            sys.exit(7)
        case "half":
            send_half(request)
        case "rubbish":
            print(json.dumps(answer(request))[:-1] + "]", flush=True)
        case "latin-1":
            text = json.dumps(answer(request)).replace("waited", "gewartet \u00fc")
            sys.stdout.buffer.write(text.encode("latin-1") + b"\n")
            sys.stdout.buffer.flush()
        case "half-then-die":
            send_half(request)
            sys.exit(7)
        case "huge" if next(calls) == 1:
            send_huge(request)
        case _:
            return False
    return True


def serve(request):
    if request["method"] == "tools/call":
        pathlib.Path("called").touch()
        if misbehaves_in_call(request):
            return
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
