"""Stands between the conformance suite, which knows only URLs and no secrets, and a server.

    bridge.py PORT_FILE --http URL --token-file FILE     adds the secret and sets the host
    bridge.py PORT_FILE --stdio -- COMMAND...            turns each POST into a line, and each answer into JSON or events

Listens on loopback, on a port that it writes into PORT_FILE.
"""

import argparse
import base64
import http.client
import http.server
import itertools
import json
import queue
import select
import subprocess
import sys
import threading
import urllib.parse
import uuid

OWN = {"host", "connection", "accept-encoding", "authorization"}
META = "io.modelcontextprotocol/"
# How an error of the protocol is told by HTTP; any other comes with 200.
STATUS = {-32700: 400, -32600: 400, -32601: 404, -32020: 400, -32021: 400, -32022: 400}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def chunk(self, piece):
        # A body whose length is not said before is sent in pieces with their lengths, never ended by the connection.
        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.flush()

    def log_message(self, *words):
        pass


class Passing(Handler):
    """A server that speaks HTTP."""

    def pass_on(self):
        body, target = self.body() or None, self.server.target
        there = http.client.HTTPConnection(target.hostname, target.port)
        there.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        own, other = f":{self.server.server_port}", f":{target.port}"
        # A name that is ours becomes theirs; any other stays what it is.
        there.putheader("Host", self.headers.get("Host", "").replace(own, other))
        for name, value in self.headers.items():
            if name.lower() not in OWN:
                there.putheader(name, value.replace(own, other) if name.lower() == "origin" else value)
        there.putheader("Authorization", f"Bearer {self.server.secret}")
        there.endheaders(body)
        answer = there.getresponse()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection"):
                self.send_header(name, value)
        is_stream = answer.getheader("Content-Length") is None and answer.status not in (204, 304)
        if is_stream:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            while piece := answer.read1(65536):
                self.chunk(piece) if is_stream else self.wfile.write(piece)
            if is_stream:
                self.chunk(b"")
        except OSError:
            self.close_connection = True
        there.close()

    do_POST = do_GET = do_DELETE = pass_on


class Process:
    """A server that speaks lines. Requests of many clients get names of their own, and their answers the old ones."""

    def __init__(self, command, renames):
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.renames, self.numbers, self.lock = renames, itertools.count(1), threading.Lock()
        self.open, self.unasked = {}, queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def say(self, message):
        with self.lock:
            self.child.stdin.write(json.dumps(message).encode() + b"\n")
            self.child.stdin.flush()

    def ask(self, message):
        """What belongs to a request comes in the queue that is answered, with the name it has here."""
        name, found = message["id"], queue.Queue()
        token = ((message.get("params") or {}).get("_meta") or {}).get("progressToken")
        if self.renames:
            name = f"b{next(self.numbers)}"
            message = json.loads(json.dumps(message))
            if token is not None:
                message["params"]["_meta"]["progressToken"] = name
        self.open[name] = (found, message["id"], token)
        self.say({**message, "id": name})
        return name, found

    def read(self):
        for line in self.child.stdout:
            message = json.loads(line)
            params = message.get("params") or {}
            watch = params.get("_meta", {}).get(META + "subscriptionId")
            if "method" not in message:
                # What could not be read has no name; it belongs to whoever waits longest.
                name = message.get("id", next(iter(self.open), None))
            elif message["method"] == "notifications/progress":
                name = next((name for name, (_, _, token) in self.open.items() if params["progressToken"] in (name, token)), None)
            elif message["method"] == "notifications/cancelled":
                name = params.get("requestId")
            elif watch is not None:
                name = watch
            else:
                # A question to an old client belongs to the call that waits; what is told unasked to nobody.
                name = next(reversed(self.open), None) if "id" in message else None
            found, own, token = self.open.get(name, (self.unasked, name, None))
            if self.renames and name in self.open:
                if "method" not in message:
                    message["id"] = own
                if message.get("method") == "notifications/progress":
                    params["progressToken"] = token
                if message.get("method") == "notifications/cancelled":
                    params["requestId"] = own
                for holder in (params, message.get("result") or {}):
                    if META + "subscriptionId" in (holder.get("_meta") or {}):
                        holder["_meta"][META + "subscriptionId"] = own
            found.put(message)

    def end(self):
        self.child.stdin.close()
        self.child.wait(10)


def meant(value):
    """A header's value; what cannot stand in one is coded."""
    if value.startswith("=?base64?") and value.endswith("?="):
        try:
            return base64.b64decode(value[9:-2], validate=True).decode()
        except ValueError:
            return None
    return value.strip(" \t")


class Lines(Handler):
    """A server that speaks lines: one process for each session of old clients, and one for all modern ones."""

    def message(self, body):
        try:
            return json.loads(body)
        except ValueError:
            return None

    def is_stranger(self):
        """Another name for this place, or a page from elsewhere."""
        own = {f"{name}:{self.server.server_port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        origin = self.headers.get("Origin")
        return self.headers.get("Host") not in own or (origin is not None and origin.removeprefix("http://") not in own)

    def is_at_odds(self, message):
        """Whether the headers of a modern request do not say what its body says."""
        params = message.get("params") or {}
        version = (params.get("_meta") or {}).get(META + "protocolVersion")
        if version is None:
            return False
        named = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
        named |= {f"tasks/{what}": "taskId" for what in ("get", "update", "cancel")}
        wanted = {"MCP-Protocol-Version": version, "Mcp-Method": message["method"]}
        if message["method"] in named:
            wanted["Mcp-Name"] = params.get(named[message["method"]])
        return any([meant(value) for value in self.headers.get_all(name) or []] != [body] for name, body in wanted.items())

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def event(self, message):
        self.chunk(b"event: message\ndata: %s\n\n" % json.dumps(message).encode())

    def begin_events(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def is_gone(self):
        ready, _, _ = select.select([self.connection], [], [], 0)
        return bool(ready) and not self.connection.recv(1, 2)

    def next(self, found):
        """The next message; none when the client has left."""
        while True:
            try:
                return found.get(timeout=0.05)
            except queue.Empty:
                if self.is_gone():
                    return None

    def do_POST(self):
        sessions, message = self.server.sessions, self.message(self.body())
        if self.is_stranger():
            return self.answer(403)
        name = self.headers.get("Mcp-Session-Id")
        if name is not None and name not in sessions:
            return self.answer(404)
        process, headers = sessions.get(name, self.server.modern), {}
        if not isinstance(message, dict) or ("method" in message and message.get("id", "") is None):
            code = -32700 if message is None else -32600
            return self.answer(400, json.dumps({"jsonrpc": "2.0", "error": {"code": code, "message": "no message"}}).encode())
        if "id" not in message or "method" not in message:
            process.say(message)
            return self.answer(202)
        if self.is_at_odds(message):
            fault = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32020, "message": "headers and body differ"}}
            return self.answer(400, json.dumps(fault).encode(), Content_Type="application/json")
        if message["method"] == "initialize" and name is None:
            name, process = uuid.uuid4().hex, Process(self.server.command, renames=False)
            sessions[name] = process
            headers["Mcp-Session-Id"] = name
        try:
            self.converse(process, message, headers)
        except OSError:
            self.close_connection = True

    def converse(self, process, message, headers):
        asked, found = process.ask(message)
        is_modern = process is self.server.modern
        try:
            first = self.next(found)
            if first is not None and "method" not in first:
                code = first.get("error", {}).get("code")
                is_lacking = code == -32602 and "_meta" in first["error"].get("message", "")
                status = 400 if is_modern and is_lacking else STATUS.get(code, 200)
                return self.answer(status, json.dumps(first).encode(), Content_Type="application/json", **headers)
            if first is not None:
                self.begin_events()
            while first is not None:
                self.event(first)
                if "method" not in first:
                    return self.chunk(b"")
                first = self.next(found)
            raise OSError("the client left")
        except OSError:
            if is_modern:
                process.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": asked}})
            raise
        finally:
            process.open.pop(asked, None)

    def do_GET(self):
        process = self.server.sessions.get(self.headers.get("Mcp-Session-Id"))
        if process is None:
            return self.answer(405, Allow="POST")
        try:
            self.begin_events()
            self.chunk(b":\n\n")
            while (message := self.next(process.unasked)) is not None:
                self.event(message)
        except OSError:
            pass
        self.close_connection = True

    def do_DELETE(self):
        process = self.server.sessions.pop(self.headers.get("Mcp-Session-Id"), None)
        if process is None:
            return self.answer(404)
        process.end()
        self.answer(204)


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *words):
        """A client that leaves is no fault."""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("port_file")
    parser.add_argument("--http")
    parser.add_argument("--token-file")
    parser.add_argument("--stdio", action="store_true")
    words, command = sys.argv[1:], []
    if "--" in words:
        words, command = words[: words.index("--")], words[words.index("--") + 1 :]
    options = parser.parse_args(words)
    server = Server(("127.0.0.1", 0), Lines if options.stdio else Passing)
    if options.stdio:
        server.command, server.sessions = command, {}
        server.modern = Process(command, renames=True)
    else:
        server.target = urllib.parse.urlsplit(options.http)
        with open(options.token_file) as file:
            server.secret = file.read().strip()
    with open(options.port_file, "w") as file:
        file.write(str(server.server_port))
    server.serve_forever()


main()
