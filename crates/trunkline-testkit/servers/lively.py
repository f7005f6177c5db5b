"""An MCP server over stdio whose life is in the files of a folder; it needs the standard library only.

    python lively.py FOLDER legacy|modern

`FOLDER/starts` gets a line at every start, `FOLDER/asked` one for every request, `FOLDER/said` every
call as it came. `FOLDER/tools` has the names of
more tools, one a line; they are announced when `change` is called. `FOLDER/unannounced` has
the name of one that is added at the first `subscriptions/listen`, before it is acknowledged. Such a tool `NAME` gives the text of `FOLDER/NAME.json`
as its result, byte for byte. `FOLDER/writing` has the names of tools that declare that they write, `FOLDER/prompts`
those of prompts, `FOLDER/mismatched` that of a tool whose next call is refused because of its headers,
`FOLDER/word` what `work` writes to the log, `FOLDER/server-request` the server request of `ask` in place of an elicitation. `FOLDER/dying`, if it is there, makes the server
end at its start; `slow` makes it wait for a second first; `requesting` makes it ask in requests in either generation; `noisy` makes it announce a change with every list; `loner`
makes it leave its group of processes and ignore every request to end; `telling` makes it refuse `initialize` with what
its variable TOKEN holds; `polite` makes it write `FOLDER/saved` when it is told to end, after a word. Tools: `change NAME`, `die`, `ask`, `work`, `wait`, `started`. Not listed: `stall`
asks and says nothing more, `deaf` makes it close its input and write `FOLDER/deafened` then, `tell` refuses with what its variable TOKEN holds.
"""

import json
import os
import pathlib
import signal
import sys
import time

FOLDER, GENERATION = pathlib.Path(sys.argv[1]), sys.argv[2]
TOOLS = ["ask", "change", "die", "started", "wait", "work"]
PROMPTS = FOLDER / "prompts"
CAPABILITIES = {"tools": {"listChanged": True}, **({"prompts": {}} if PROMPTS.exists() else {})}
listening = None
waiting = {}


def note(name, line):
    with open(FOLDER / name, "a") as file:
        file.write(line + "\n")


def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def names():
    more = FOLDER / "tools"
    return TOOLS + (more.read_text().split() if more.exists() else [])


def definition(name):
    writing = FOLDER / "writing"
    writes = writing.exists() and name in writing.read_text().split()
    hints = {"annotations": {"readOnlyHint": False}} if writes else {}
    return {"name": name, "inputSchema": {"type": "object"}, **hints}


def complete(**result):
    return {"resultType": "complete", **result} if GENERATION == "modern" else result


def text(words):
    return complete(content=[{"type": "text", "text": str(words)}])


def ask(request):
    params = request["params"]
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    question = {"method": "elicitation/create", "params": {"message": "How much?", "requestedSchema": schema}}
    other = FOLDER / "server-request"
    if other.exists():
        question = json.loads(other.read_text())
    if GENERATION == "legacy" or (FOLDER / "requesting").exists():
        waiting["q"] = None if params["name"] == "stall" else request["id"]
        send(id="q", **question)
        return None
    if params["name"] == "stall" and "inputResponses" in params:
        return None
    if "inputResponses" not in params:
        return {"resultType": "input_required", "inputRequests": {"q": question}, "requestState": "sealed: \u00e9"}
    if params.get("requestState") != "sealed: \u00e9":
        return text("the state was lost")
    return text(json.dumps(params["inputResponses"]["q"]))


def work(request):
    token = request["params"].get("_meta", {}).get("progressToken")
    for done in range(1, 4):
        if token is not None:
            send(method="notifications/progress", params={"progressToken": token, "progress": done, "total": 3})
    word = FOLDER / "word"
    said = word.read_text() if word.exists() else "worked"
    send(method="notifications/message", params={"level": "info", "data": said})
    return text("worked")


def change(request):
    note("tools", request["params"]["arguments"]["name"])
    meta = {} if listening is None else {"_meta": {"io.modelcontextprotocol/subscriptionId": listening}}
    if GENERATION == "legacy" or listening is not None:
        send(method="notifications/tools/list_changed", params=meta)
    return text("changed")


def is_mismatched(name):
    file = FOLDER / "mismatched"
    if not file.exists() or file.read_text() != name:
        return False
    file.unlink()
    return True


def call(request):
    if is_mismatched(request["params"]["name"]):
        return {"code": -32020, "message": "the headers say something else"}
    match request["params"]["name"]:
        case "change":
            return change(request)
        case "die":
            os._exit(3)
        case "deaf":
            os.close(0)
            note("deafened", "x")
            time.sleep(1000)
        case "ask" | "stall":
            return ask(request)
        case "work":
            return work(request)
        case "tell":
            return {"code": -32000, "message": "bad token " + os.environ["TOKEN"]}
        case "started":
            return text(len((FOLDER / "starts").read_text().split()))
        case "wait":
            return None


def result_of(request):
    global listening
    match request["method"]:
        case "initialize" if (FOLDER / "telling").exists():
            return {"code": -32000, "message": "bad token \u001b[2J\n" + os.environ["TOKEN"] + "x" * 3000}
        case "initialize" if GENERATION == "legacy":
            info = {"name": "lively", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": CAPABILITIES, "serverInfo": info}
        case "server/discover" if GENERATION == "modern":
            return complete(supportedVersions=["2026-07-28"], capabilities=CAPABILITIES)
        case "subscriptions/listen" if GENERATION == "modern":
            listening = request["id"]
            unannounced = FOLDER / "unannounced"
            if unannounced.exists():
                note("tools", unannounced.read_text())
                unannounced.unlink()
            send(method="notifications/subscriptions/acknowledged", params={})
            return None
        case "tools/list":
            if (FOLDER / "noisy").exists():
                send(method="notifications/tools/list_changed")
            ttl = FOLDER / "ttl"
            hint = {"ttlMs": int(ttl.read_text())} if ttl.exists() else {}
            return complete(tools=[definition(name) for name in names()], **hint)
        case "tools/call":
            return call(request)
        case "prompts/list" if PROMPTS.exists():
            return complete(prompts=[{"name": name} for name in PROMPTS.read_text().split()])
        case _:
            return {"code": -32601, "message": "unknown method"}


def is_written(message):
    """Answers a call whose result is in a file, if there is one."""
    file = FOLDER / f"{message['params']['name']}.json"
    if not file.exists():
        return False
    print(f'{{"jsonrpc":"2.0","id":{json.dumps(message["id"])},"result":{file.read_text()}}}', flush=True)
    return True


def serve(message):
    if "method" not in message:
        if waiting.get(message["id"]) is not None:
            response = message["result"] if "result" in message else message["error"]
            send(id=waiting.pop(message["id"]), result=text(json.dumps(response)))
        return
    note("asked", message["method"])
    if message["method"] == "tools/call":
        note("called", message["params"]["name"])
        if is_written(message):
            return
    if "id" not in message:
        return
    result = result_of(message)
    if result is not None:
        send(id=message["id"], **{"error" if "code" in result else "result": result})


note("starts", "x")
if (FOLDER / "dying").exists():
    print("cannot go on", file=sys.stderr, flush=True)
    sys.exit(4)
if (FOLDER / "polite").exists():

    def save(*_):
        print("saving", file=sys.stderr, flush=True)
        note("saved", "x")
        os._exit(0)

    signal.signal(signal.SIGTERM, save)
if (FOLDER / "slow").exists():
    time.sleep(1)
if (FOLDER / "loner").exists():
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
for line in sys.stdin:
    if '"tools/call"' in line:
        note("said", line.strip())
    serve(json.loads(line))
if (FOLDER / "loner").exists() or (FOLDER / "polite").exists():
    time.sleep(1000)
