"""Stands between the conformance suite and a workspace: listens on loopback, adds the secret, sets the host.

    bridge.py PORT_FILE TARGET_PORT SECRET
"""

import http.client
import http.server
import sys

PORT_FILE, TARGET, SECRET = sys.argv[1], int(sys.argv[2]), sys.argv[3]
OWN = {"host", "connection", "accept-encoding", "authorization"}


class Passing(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def pass_on(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else None
        target = http.client.HTTPConnection("127.0.0.1", TARGET)
        target.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        own, other = f":{self.server.server_port}", f":{TARGET}"
        # A name that is ours becomes theirs; any other stays what it is.
        target.putheader("Host", self.headers.get("Host", "").replace(own, other))
        for name, value in self.headers.items():
            if name.lower() not in OWN:
                target.putheader(name, value.replace(own, other) if name.lower() == "origin" else value)
        target.putheader("Authorization", f"Bearer {SECRET}")
        target.endheaders(body)
        answer = target.getresponse()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection"):
                self.send_header(name, value)
        # A body whose length is not said before is sent in pieces with their lengths, never ended by the connection.
        is_stream = answer.getheader("Content-Length") is None and answer.status not in (204, 304)
        if is_stream:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            while piece := answer.read1(65536):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if is_stream else piece)
                self.wfile.flush()
            if is_stream:
                self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True
        target.close()

    do_POST = do_GET = do_DELETE = pass_on

    def log_message(self, *words):
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *words):
        """A client that leaves is no fault."""


server = Server(("127.0.0.1", 0), Passing)
with open(PORT_FILE, "w") as file:
    file.write(str(server.server_port))
server.serve_forever()
