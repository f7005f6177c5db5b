"""An MCP server over stdio that says when its resources change; it needs the standard library only.

    python announcing.py FOLDER legacy|modern

`FOLDER/heard` gets every message, one a line. Addresses that begin with `bad:` cannot be watched. `FOLDER/plain`, if it is
there, makes it declare nothing but tools; `strict` makes it refuse a subscription that has a bad address in it; `silent`
makes it acknowledge nothing; `held` makes it hold its answer to a subscription until the file is gone (legacy); `rooted` makes it ask for roots as soon as it can; `resources` has the addresses of
resources, one a line. Tools: `touch URI` changes a resource, `watched` says what is watched, `begin` begins a task (modern)
and `advance TASK STATUS` says how far it is, `break` ends all subscriptions, `die`, `ask` asks its client something, `wait` does not
answer, `params` says with what it was called.
"""

import json
import os
import pathlib
import sys
import time

FOLDER, GENERATION = pathlib.Path(sys.argv[1]), sys.argv[2]
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
TOOLS = ["advance", "ask", "begin", "break", "die", "params", "touch", "wait", "watched"]
# What is watched: by the id of the subscription, and under nothing in the older generation.
watched = {None: []} if GENERATION == "legacy" else {}
waiting = {}
# The tasks of which subscriptions hear.
tasks = {}


def has(name):
    return (FOLDER / name).exists()


def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def complete(**result):
    return {"resultType": "complete", **result} if GENERATION == "modern" else result


def text(words):
    return complete(content=[{"type": "text", "text": words}])


def capabilities():
    return {"tools": {}} if has("plain") else {"tools": {}, "logging": {}, "resources": {"subscribe": True}}


def listen(request):
    wanted = request["params"]["notifications"].get("resourceSubscriptions", [])
    honoured = [uri for uri in wanted if not uri.startswith("bad:")]
    if has("strict") and honoured != wanted:
        return {"code": -32602, "message": "there is no such resource"}
    watched[request["id"]] = honoured
    capabilities = request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
    wanted = request["params"]["notifications"].get("taskIds", [])
    if wanted and "io.modelcontextprotocol/tasks" not in capabilities.get("extensions", {}):
        return {"code": -32021, "message": "this needs tasks"}
    tasks[request["id"]] = [task for task in wanted if task.startswith("task-")]
    if not has("silent"):
        honoured = {"resourceSubscriptions": honoured, "taskIds": tasks[request["id"]]}
        params = {"notifications": honoured, "_meta": {SUBSCRIPTION: request["id"]}}
        send(method="notifications/subscriptions/acknowledged", params=params)
    return None


def touch(uri):
    for subscription in [it for it, uris in watched.items() if uri in uris]:
        meta = {} if subscription is None else {"_meta": {SUBSCRIPTION: subscription}}
        send(method="notifications/resources/updated", params={"uri": uri, **meta})


def task(identifier, status):
    moment = "2026-07-28T00:00:00Z"
    return {"taskId": identifier, "status": status, "createdAt": moment, "lastUpdatedAt": moment, "ttlMs": None}


def advance(arguments):
    for subscription in [it for it, ids in tasks.items() if arguments["task"] in ids]:
        params = {**task(arguments["task"], arguments["status"]), "_meta": {SUBSCRIPTION: subscription, "x": 1}}
        send(method="notifications/tasks", params=params)


def ask(request):
    question = {"message": "How much?", "requestedSchema": {"type": "object", "properties": {}}}
    if GENERATION == "legacy":
        waiting["q"] = request["id"]
        return send(id="q", method="elicitation/create", params=question)
    questions = {"q": {"method": "elicitation/create", "params": question}}
    return {"resultType": "input_required", "inputRequests": questions, "requestState": "sealed"}


def call(request):
    match request["params"]["name"]:
        case "touch":
            touch(request["params"]["arguments"]["uri"])
            return text("touched")
        case "watched":
            return text(" | ".join(" ".join(uris) for uris in watched.values()))
        case "break":
            for subscription in list(watched):
                watched.pop(subscription)
                send(id=subscription, result=complete())
            return text("broken")
        case "begin":
            return {"resultType": "task", **task("task-" + request["params"]["arguments"]["name"], "working")}
        case "advance":
            advance(request["params"]["arguments"])
            return text("advanced")
        case "die":
            os._exit(3)
        case "ask":
            return ask(request)
        case "params":
            return text(json.dumps(request["params"]))
        case "wait":
            return None


def subscribe(method, uri):
    if uri.startswith("bad:"):
        return {"code": -32602, "message": "there is no such resource"}
    while method == "resources/subscribe" and has("held"):
        time.sleep(0.02)
    uris = watched[None]
    uris.append(uri) if method == "resources/subscribe" else uris.remove(uri)
    return {}


def result_of(request):
    params = request.get("params", {})
    match request["method"], GENERATION:
        case "initialize", "legacy":
            info = {"name": "announcing", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": capabilities(), "serverInfo": info}
        case "server/discover", "modern":
            return complete(supportedVersions=["2026-07-28"], capabilities=capabilities())
        case "subscriptions/listen", "modern":
            return listen(request)
        case "resources/subscribe" | "resources/unsubscribe" as method, "legacy":
            return subscribe(method, params["uri"])
        case "resources/list", _ if has("resources"):
            addresses = (FOLDER / "resources").read_text().split()
            return complete(resources=[{"uri": uri, "name": uri} for uri in addresses])
        case "logging/setLevel", "legacy":
            return {}
        case "tools/list", _:
            return complete(tools=[{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS])
        case "tools/call", _:
            return call(request)
        case _:
            return {"code": -32601, "message": "unknown method"}


def serve(message):
    match message.get("method"):
        case None if message["id"] in waiting:
            send(id=waiting.pop(message["id"]), result=text(json.dumps(message.get("result") or message["error"])))
        case "notifications/initialized" if has("rooted"):
            send(id="r", method="roots/list")
        case "notifications/cancelled":
            watched.pop(message["params"]["requestId"], None)
            tasks.pop(message["params"]["requestId"], None)
    if "method" in message and "id" in message:
        result = result_of(message)
        if result is not None:
            send(id=message["id"], **{"error" if "code" in result else "result": result})


for line in sys.stdin:
    with open(FOLDER / "heard", "a") as file:
        file.write(line)
    serve(json.loads(line))
