"""An MCP server over stdio whose results are files; it needs the standard library only.

    python canned.py FOLDER legacy|modern

The result of a request is `FOLDER/METHOD.json`, byte for byte, with dots for the slashes of the method. Calls of a tool
look for `FOLDER/tools.call.NAME.json` first. Without a file a call says with what it was called, lists are empty, and
everything else is an unknown method. Lines of `FOLDER/METHOD.before` are messages that are sent before the result.
`FOLDER/heard` gets every message, one a line.
"""

import json
import pathlib
import sys

FOLDER, GENERATION = pathlib.Path(sys.argv[1]), sys.argv[2]
CAPABILITIES = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "completions": {},
    "logging": {},
}
LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


def say(line):
    sys.stdout.write(line.replace("\n", " ") + "\n")
    sys.stdout.flush()


def complete(**result):
    return json.dumps({"resultType": "complete", **result} if GENERATION == "modern" else result)


def canned(names, ending):
    files = [FOLDER / f"{name}{ending}" for name in names]
    return next((file.read_text() for file in files if file.exists()), None)


def names_of(message):
    method = message["method"].replace("/", ".")
    name = (message.get("params") or {}).get("name")
    return [f"{method}.{name}", method] if method == "tools.call" else [method]


def result_of(message):
    method, result = message["method"], canned(names_of(message), ".json")
    match method, GENERATION:
        case _ if result is not None:
            return result
        case "initialize", "legacy":
            info = {"name": "canned", "version": "1"}
            return complete(protocolVersion="2025-11-25", capabilities=CAPABILITIES, serverInfo=info)
        case "server/discover", "modern":
            return complete(supportedVersions=["2026-07-28"], capabilities=CAPABILITIES)
        case "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" | "ping", "legacy":
            return "{}"
        case "tools/call", _:
            return complete(content=[{"type": "text", "text": json.dumps(message["params"])}])
        case _ if method in LISTS:
            return complete(**{LISTS[method]: []})


for line in sys.stdin:
    with open(FOLDER / "heard", "a") as file:
        file.write(line)
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    for before in (canned(names_of(message), ".before") or "").splitlines():
        say(before)
    result, id = result_of(message), json.dumps(message["id"])
    if result is None:
        error = json.dumps({"code": -32601, "message": "unknown method"})
        say(f'{{"jsonrpc":"2.0","id":{id},"error":{error}}}')
    else:
        say(f'{{"jsonrpc":"2.0","id":{id},"result":{result}}}')
