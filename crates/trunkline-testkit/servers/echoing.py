"""An MCP server over stdio that says what it is told, when it is told to; it needs the standard library only.

    python echoing.py legacy|modern [watched|deaf]

Answers come out of order if calls say so. Tools: `echo TOKEN [WAIT]` says the token, after so many milliseconds;
`hang TOKEN` never answers; `long TOKEN SIZE` says so many letters; `hung` says which calls of these two there were, and
what was taken back, and which calls of `echo` wait for a file; `cancelled` says which of the former were cancelled; `chatter COUNT SIZE` says a lot before it
answers; `announce` adds a tool and says that the list has changed; `ask [WAIT] [TOKEN]` asks the user for a name, after so
many milliseconds, and says it, or why there is none; `ask_or_fail` asks, and fails with an error of its own; `ask_after
WAIT` answers at once and asks then; `answers` says what came of that; `take_back WAIT [THEN]` asks, says after so many
milliseconds that it does not want to know any more, and answers after so many more; `give_up WAIT` asks, and answers
without waiting any longer than that; `say METHOD [WAIT]` sends a notification before it answers, or after so many
milliseconds; `visit ID [WAIT]` is refused until an address was visited, and says after so many milliseconds that it
was; `begin_task WAIT` makes a task of the call, as revision 2025-11-25 does, which asks after so many milliseconds;
`ask_visit ID` asks the user for such a visit, and says that it was made before it answers; `touch` says that
everything changed that somebody wants to hear of; `level` says how much of its log is wanted; `exit` ends the server.
With `watched` it has a resource `x://note` that can be subscribed to; with `deaf` five, and whoever subscribes to one
of them is never answered. It logs a line and asks for a name about every notification that begins with
`notifications/acme/`. With `watched nosy` it logs a line and asks for a name while it subscribes, unsubscribes or
sets its level, without saying for which request. It appends a line to the file that the variable ANSWERED names for
every answer to a question of its own, and for the answer to the `ping` that follows a notification of `say` that waited
for a file. Every WAIT may be the path of a file instead of a number: then it lasts until there is such a file.
"""

import heapq
import itertools
import json
import os
import select
import sys
import time

GENERATION, EXTRA = sys.argv[1], sys.argv[2:]
URIS = ["x://note"] if "watched" in EXTRA else [f"x://deaf-{number}" for number in range(5)] if "deaf" in EXTRA else []
REGION = {"type": "string", "x-mcp-header": "Region"}
SCHEMAS = {"regional": {"type": "object", "properties": {"region": REGION}}}
TOOLS = ["announce", "answers", "ask", "ask_after", "cancelled", "chatter", "echo", "exit", "hang", "hung"]
TOOLS += ["ask_or_fail", "level", "long", "regional", "say", "touch", "visit", "ask_visit", "take_back", "give_up"]
TOOLS += ["begin_task"]
CAPABILITIES = {"tools": {"listChanged": True}}
if URIS:
    CAPABILITIES |= {"logging": {}, "resources": {"subscribe": True}}
READ_ONLY = {"readOnlyHint": True}
# How often it looks for a file that a message waits for, in seconds.
FILE_INTERVAL = 0.01
RELATED_TASK = "io.modelcontextprotocol/related-task"

# What is said later: when, a number that keeps the order, and the message.
later = []
numbers = itertools.count()
# What is said once there is a file: its path, and the message.
held = []
hanging = {}
hung = []
cancelled = []
# What was asked, and the call it was asked for, if there was one.
asked = {}
answers = []
# Requests that are answered once a question is, by the number of the question.
unanswered = {}
# Calls that fail whatever is answered.
failing = set()
subscribed = []
level = "none"


def send(**message):
    line = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
    while line:
        line = line[os.write(1, line) :]


def complete(**result):
    return {"resultType": "complete", **result} if GENERATION == "modern" else result


def text(words):
    return complete(content=[{"type": "text", "text": words}])


def chatter(request):
    arguments = request["params"]["arguments"]
    token = request["params"].get("_meta", {}).get("progressToken")
    for number in range(arguments["count"]):
        message = "x" * arguments["size"]
        send(method="notifications/progress", params={"progressToken": token, "progress": number, "message": message})
    return text("done")


def send_after(wait, message):
    """Says something after so many milliseconds, or once there is a file at a path."""
    if isinstance(wait, str):
        return held.append((wait, message))
    heapq.heappush(later, (time.monotonic() + wait / 1000, next(numbers), message))


def ask(about, wait, meta=None):
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    number = f"question-{next(numbers)}"
    asked[number] = about
    params = {"message": "Who?", "requestedSchema": schema} | ({"_meta": meta} if meta else {})
    send_after(wait, {"id": number, "method": "elicitation/create", "params": params})
    return number


def take_back(request, wait, then):
    params = {"requestId": ask(None, 0), "reason": "bored"}
    send_after(wait, {"method": "notifications/cancelled", "params": params})
    send_after(wait + then, {"id": request["id"], "result": text("taken back")})


def visit(number):
    return {"mode": "url", "elicitationId": number, "url": "https://visit.example/", "message": "Go there."}


def visited(number):
    return {"method": "notifications/elicitation/complete", "params": {"elicitationId": number}}


def call(request):
    arguments = request["params"].get("arguments", {})
    match request["params"]["name"]:
        case "echo" if "wait" in arguments:
            hung.extend([arguments["token"]] if isinstance(arguments["wait"], str) else [])
            send_after(arguments["wait"], {"id": request["id"], "result": text(arguments["token"])})
        case "echo":
            return text(arguments["token"])
        case "regional":
            return text(arguments["region"])
        case "hang":
            hanging[request["id"]] = arguments["token"]
            hung.append(arguments["token"])
        case "long":
            hung.append(arguments["token"])
            return text("x" * arguments["size"])
        case "hung":
            return text(json.dumps(hung))
        case "cancelled":
            return text(json.dumps(cancelled))
        case "chatter":
            return chatter(request)
        case "announce":
            TOOLS.append(f"news-{len(TOOLS)}")
            send(method="notifications/tools/list_changed")
            return text("announced")
        case "ask":
            hung.extend([arguments["token"]] if "token" in arguments else [])
            ask(request["id"], arguments.get("wait", 0))
        case "ask_or_fail":
            failing.add(request["id"])
            ask(request["id"], 0)
        case "ask_after":
            ask(None, arguments["wait"])
            return text("later")
        case "begin_task":
            task = {"taskId": "task-1", "status": "working", "createdAt": "2025-11-25T10:30:00Z", "ttl": 60000}
            ask(None, arguments["wait"], {RELATED_TASK: {"taskId": task["taskId"]}})
            return {"task": task}
        case "take_back":
            take_back(request, arguments["wait"], arguments.get("then", 300))
        case "give_up":
            ask(None, 0)
            send_after(arguments["wait"], {"id": request["id"], "result": text("given up")})
        case "say":
            said = {"method": arguments["method"], "params": {"said": arguments["method"]}}
            if "wait" in arguments:
                send_after(arguments["wait"], said)
                if isinstance(arguments["wait"], str):
                    send_after(arguments["wait"], {"id": f"ping-{next(numbers)}", "method": "ping"})
            else:
                send(**said)
            return text("said")
        case "visit":
            send_after(arguments.get("wait", 0), visited(arguments["id"]))
            return {"code": -32042, "message": "visit", "data": {"elicitations": [visit(arguments["id"])]}}
        case "ask_visit":
            asked[arguments["id"]] = request["id"]
            send(id=arguments["id"], method="elicitation/create", params=visit(arguments["id"]))
        case "touch":
            for uri in subscribed:
                send(method="notifications/resources/updated", params={"uri": uri})
            return text(json.dumps(subscribed))
        case "level":
            return text(level)
        case "answers":
            return text(json.dumps(answers))
        case "exit":
            os._exit(3)


def record_answer(answer):
    """Tells a test of an answer without a call, which would change to whom the next question can go."""
    if path := os.environ.get("ANSWERED"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{answer}\n")


def nosy(request):
    """Logs and asks about a request without naming it, and answers it once it has an answer itself."""
    send(method="notifications/message", params={"level": "error", "data": f"about {request['method']}"})
    unanswered[ask(None, 0)] = request["id"]


def result_of(request):
    global level
    match request["method"]:
        case "initialize" if GENERATION == "legacy":
            info = {"name": "echoing", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": CAPABILITIES, "serverInfo": info}
        case "server/discover" if GENERATION == "modern":
            return complete(supportedVersions=["2026-07-28"], capabilities=CAPABILITIES)
        case "tools/list":
            schema = {"type": "object"}
            tools = [
                {"name": name, "inputSchema": SCHEMAS.get(name, schema), "annotations": READ_ONLY} for name in TOOLS
            ]
            return complete(tools=tools)
        case "tools/call":
            return call(request)
        case "subscriptions/listen" if GENERATION == "modern":
            send(method="notifications/subscriptions/acknowledged", params={})
        case "resources/list" if URIS:
            return complete(resources=[{"uri": uri, "name": uri} for uri in URIS])
        case "resources/read" if URIS:
            uri = request["params"]["uri"]
            return complete(contents=[{"uri": uri, "text": f"what {uri} says"}])
        case "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel" if "nosy" in EXTRA:
            nosy(request)
        case "resources/subscribe" if "watched" in EXTRA:
            subscribed.append(request["params"]["uri"])
            return {}
        case "resources/subscribe" if "deaf" in EXTRA:
            return None
        case "logging/setLevel" if URIS:
            level = request["params"]["level"]
            return {}
        case "x/repeat":
            return complete(said=request.get("params"))
        case "ping":
            return {}
        case _:
            return {"code": -32601, "message": "unknown method"}


def serve(message):
    if message.get("method") == "notifications/cancelled":
        token = hanging.pop(message["params"]["requestId"], None)
        if token is not None:
            cancelled.append(token)
        if message["params"]["requestId"] in asked.values():
            cancelled.append("asked")
    elif message.get("method", "").startswith("notifications/acme/"):
        send(method="notifications/message", params={"level": "error", "data": f"about {message['method']}"})
        ask(None, 0)
    elif "method" not in message and message["id"].startswith("ping-"):
        record_answer("pong")
    elif "method" not in message:
        answer = message["error"]["message"] if "error" in message else message["result"].get("content", {}).get("name")
        about = asked.pop(message["id"])
        record_answer(answer)
        if about is None:
            answers.append(answer)
            if message["id"] in unanswered:
                send(id=unanswered.pop(message["id"]), result={})
        elif about in failing:
            send(id=about, error={"code": -32601, "message": "its own words", "data": {"ticket": 42}})
        else:
            if message["id"].startswith("visit"):
                send(**visited(message["id"]))
            send(id=about, result=text(f"{answer}"))
    elif "id" in message:
        result = result_of(message)
        if result is not None:
            send(id=message["id"], **{"error" if "code" in result else "result": result})


def send_waiting():
    """Says what is due, and returns for how many seconds nothing else will be."""
    now = time.monotonic()
    due = [it for it in held if os.path.exists(it[0])]
    held[:] = [it for it in held if it not in due]
    messages = [message for _, message in due]
    while later and later[0][0] <= now:
        messages.append(heapq.heappop(later)[2])
    for message in messages:
        send(**message)
        if message.get("method") == "notifications/cancelled":
            hung.append("taken back")
    waits = ([later[0][0] - now] if later else []) + ([FILE_INTERVAL] if held else [])
    return min(waits, default=None)


unread = b""
while True:
    if select.select([0], [], [], send_waiting())[0]:
        read = os.read(0, 1 << 16)
        if not read:
            break
        *lines, unread = (unread + read).split(b"\n")
        for line in lines:
            serve(json.loads(line))
