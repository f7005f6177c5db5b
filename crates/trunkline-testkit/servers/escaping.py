"""An MCP server over stdio whose processes leave its process group; it needs the standard library only.

    python escaping.py MODE END MARKER

MODE says how a process gets away, with the first message: see `escape`. END says what a call does: `hang`
or `die`. The file `called` in the working directory says that a tool was called. MARKER is on the command
line of every process, so that a test finds them.
"""

import json
import os
import pathlib
import sys
import time

MODE, END, MARKER = sys.argv[1:4]

TOOL = {"name": "wait", "description": "Waits.", "inputSchema": {"type": "object"}}

# Ends neither with its input nor when it is asked to.
STUBBORN = ["/bin/sh", "-c", f"trap '' HUP TERM; sleep {MARKER}; :"]

BARE = {"PATH": "/usr/bin:/bin"}


def become(environment):
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)
    os.execve(STUBBORN[0], STUBBORN, environment)


def start(prepare, environment):
    if os.fork() == 0:
        prepare()
        become(environment)


def daemon(environment):
    """A process whose parent is gone, in a session of its own."""
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            become(environment)
        os._exit(0)
    os.waitpid(child, 0)


def escape():
    match MODE:
        case "group":
            start(os.setpgrp, os.environ)
        case "session":
            start(os.setsid, os.environ)
        case "session-bare":
            start(os.setsid, BARE)
        case "daemon":
            daemon(os.environ)
        case "daemon-bare":
            daemon(BARE)
        case "itself" | "itself-bare":
            os.setsid()
        case "joins-host":
            os.setpgid(0, os.getpgid(os.getppid()))


def result_of(request):
    match request["method"]:
        case "initialize":
            info = {"name": "escaping", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            pathlib.Path("called").touch()
            if END == "die":
                sys.exit(7)
            time.sleep(1000)


if MODE == "itself-bare" and os.environ.get("BARE") != "1":
    os.execve(sys.executable, [sys.executable, "-I", *sys.argv], {**BARE, "BARE": "1"})

has_escaped = False
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = result_of(request)
    error = {"code": -32601, "message": "unknown method"}
    said = {"error": error} if result is None else {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **said}), flush=True)
    if request["method"] == "initialize" and not has_escaped:
        has_escaped = True
        escape()
