"""An MCP server over HTTP that misbehaves in one way; it needs the standard library only.

    python scripted_http.py WHEN MODE [CERTIFICATE KEY]

WHEN is the method of the requests it misbehaves in, or `always`. MODE `well` is none; `request` is a server of the
newer era that sends a request of its own and waits for the answer; `request-both` speaks both eras, asks for a name in
either, and says it, or why there is none. It prints its port
once it listens. With the files of a certificate and its key it speaks TLS.
"""

import collections
import http.server
import itertools
import json
import os
import queue
import socket
import ssl
import struct
import sys
import time

WHEN, MODE, *TLS = sys.argv[1:]

TOOL = {"name": "wait", "description": "Waits.", "inputSchema": {"type": "object"}}

sessions = itertools.count(1)
# Where the answer to each request of its own goes.
answers = collections.defaultdict(queue.Queue)
questions = itertools.count(1)


def result_of(request):
    match request["method"]:
        case "initialize":
            info = {"name": "scripted", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        case "server/discover" if MODE in ("request", "request-both"):
            versions = ["2026-07-28", "2025-11-25"] if MODE == "request-both" else ["2026-07-28"]
            return {"resultType": "complete", "supportedVersions": versions, "capabilities": {"tools": {}}}
        case "tools/list" if MODE in ("request", "request-both"):
            return {"resultType": "complete", "tools": [TOOL], "ttlMs": 0, "cacheScope": "private"}
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


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "method" not in message:
            answers[message["id"]].put(message)
            self.reply(202)
            return
        if self.misbehaves(message["method"], message):
            return
        if "id" not in message:
            self.reply(202)
            return
        session = {}
        if message["method"] == "initialize":
            session = {"mcp-session-id": str(next(sessions))}
        body = json.dumps(answer(message)).encode()
        self.reply(200, body, {"content-type": "application/json", **session})

    def do_GET(self):
        if not self.misbehaves(None):
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

    def misbehaves(self, method, message=None):
        """Whether it did, in place of an answer."""
        if WHEN not in ("always", method):
            return False
        match MODE:
            case "429":
                self.reply(429, headers={"retry-after": "7"})
            case "500":
                self.reply(500, b"out of cheese")
            case "redirect-in-circles":
                self.reply(307, headers={"location": self.path})
            case "redirect-away":
                self.reply(307, headers={"location": "http://other.invalid/mcp"})
            case "reset":
                self.reset()
            case "half":
                self.begin_body()
                self.close_connection = True
            case "slow-head":
                self.wfile.write(b"HTTP/1.1 200 OK\r\nx-slow: ")
                self.drip()
            case "slow-body":
                self.begin_body()
                self.drip()
            case "huge":
                self.begin_body(length=100_000_000)
                self.wfile.write(b"x" * 100_000_000)
            case "say-headers" if method == "tools/call":
                said = json.dumps(dict(self.headers.items()))
                result = {"content": [{"type": "text", "text": said}]}
                body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
                self.reply(200, body, {"content-type": "application/json"})
            case "request":
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                asked = {"jsonrpc": "2.0", "id": "q", "method": "sampling/createMessage", "params": {"messages": []}}
                self.wfile.write(f"data: {json.dumps(asked)}\n\n".encode())
                time.sleep(60)
            case "request-both":
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                self.ask_name(message["id"])
            case "long" | "long-stream":
                result = {"content": [{"type": "text", "text": "x" * 20_000_000}], "isError": False}
                body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
                if MODE == "long":
                    self.reply(200, body, {"content-type": "application/json"})
                else:
                    self.reply(200, b"data: " + body + b"\n\n", {"content-type": "text/event-stream"})
            case "empty":
                self.reply(200)
            case "empty-stream":
                self.reply(200, headers={"content-type": "text/event-stream"})
            case "accepted":
                self.reply(202)
            case "dead-session" if self.headers["mcp-session-id"] == "1":
                self.reply(200)
            case "forget-second" if method == "tools/call":
                session = self.headers["mcp-session-id"]
                if session == "2":
                    self.reply(404)
                    return True
                result = {"content": [{"type": "text", "text": session}]}
                body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
                self.reply(200, body, {"content-type": "application/json"})
            case "forget-session" if self.headers["mcp-session-id"] == "1":
                self.reply(404)
            case _:
                return False
        return True

    def ask_name(self, call):
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        params = {"message": "Who?", "requestedSchema": schema}
        number = f"q-{next(questions)}"
        asked = {"jsonrpc": "2.0", "id": number, "method": "elicitation/create", "params": params}
        self.wfile.write(f"data: {json.dumps(asked)}\n\n".encode())
        answer = answers[number].get(timeout=60)
        said = answer["error"]["message"] if "error" in answer else answer["result"]["content"]["name"]
        result = {"content": [{"type": "text", "text": said}]}
        self.wfile.write(f"data: {json.dumps({'jsonrpc': '2.0', 'id': call, 'result': result})}\n\n".encode())
        self.close_connection = True

    def begin_body(self, length=1_000):
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(length))
        self.end_headers()
        self.wfile.write(b'{"jsonrpc":')

    def drip(self):
        """A byte per second, until the client has enough."""
        while True:
            self.wfile.write(b" ")
            time.sleep(1)

    def reset(self):
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(self.connection.detach())

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
if TLS:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*TLS)
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
