"""An MCP server over HTTP, of the older generation, that forgets its first session; it needs the standard library only.

    python forgetful.py [PORT]

It prints its port once it listens, or listens on the one that is given. Tools: `slow` takes a second, or until `lose` has
worked, and says how often it was called; `slow_calls`, which is not listed, says the same at once; `lose` is answered
with 404 in the first session and works in others; `announce` says on its stream that the tools have changed, which they
have then; `subscribed`, which is not listed, says in which sessions something was subscribed to. It has a
resource, `x://note`.
"""

import http.server
import itertools
import json
import sys
import threading

sessions = itertools.count(1)
names = ["announce", "lose", "slow"]
slow_calls = []
has_lost = threading.Event()
subscribed = []


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def result_of(request):
    match request["method"]:
        case "initialize":
            info = {"name": "forgetful", "version": "1"}
            capabilities = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
            return {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}
        case "tools/list":
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
        case "tools/call" if request["params"]["name"] == "slow":
            slow_calls.append(request["id"])
            count = len(slow_calls)
            has_lost.wait(1)
            return text(f"call {count}")
        case "tools/call" if request["params"]["name"] == "slow_calls":
            return text(f"{len(slow_calls)}")
        case "tools/call" if request["params"]["name"] == "lose":
            has_lost.set()
            return text("found")
        case "tools/call" if request["params"]["name"] == "subscribed":
            return text(" ".join(subscribed))
        case "tools/call":
            return text("found")
        case "resources/list":
            return {"resources": [{"uri": "x://note", "name": "note"}]}
        case "resources/subscribe":
            return {}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in message:
            return self.reply(202)
        name = message.get("params", {}).get("name")
        if name == "lose" and self.headers["mcp-session-id"] == "1":
            return self.reply(404)
        if message["method"] == "resources/subscribe":
            subscribed.append(self.headers["mcp-session-id"])
        result = result_of(message)
        outcome = {"result": result} if result is not None else {"error": {"code": -32601, "message": "unknown method"}}
        answer = {"jsonrpc": "2.0", "id": message["id"], **outcome}
        if name == "announce":
            names.append("new")
            changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
            events = "".join(f"data: {json.dumps(it)}\n\n" for it in (changed, answer))
            return self.reply(200, events.encode(), {"content-type": "text/event-stream"})
        session = {"mcp-session-id": str(next(sessions))} if message["method"] == "initialize" else {}
        self.reply(200, json.dumps(answer).encode(), {"content-type": "application/json", **session})

    def do_GET(self):
        self.reply(405)

    def do_DELETE(self):
        self.reply(200)

    def reply(self, status, body=b"", headers={}):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()
