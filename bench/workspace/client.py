"""A small client of the workspace protocol: WebSocket with the cookie of a local workspace, or with a token."""
import base64
import glob
import json
import os
import socket
import struct


class Client:
    def __init__(self, home, token=None):
        directory = os.path.dirname(glob.glob(home + "/workspaces/*/node.info")[0])
        with open(directory + "/node.info") as file:
            port = json.load(file)["port"]
        with open(directory + "/cookie") as file:
            cookie = file.read().strip()
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
                             f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
                             "Sec-WebSocket-Version: 13\r\n\r\n").encode())
        self.stream = self.socket.makefile("rb")
        while self.stream.readline().strip():
            pass
        self.receive()
        secret = {"token": token} if token else {"cookie": cookie}
        self.send({"type": "auth", **secret, "client": "repl", "protocol": "1.0"})
        assert self.receive()["type"] == "auth_ok"
        self.session = self.receive()["session"]
        self.number = 0

    def send(self, message):
        data = json.dumps(message).encode()
        mask = os.urandom(4)
        length = len(data)
        if length < 126:
            head = struct.pack(">BB", 0x81, 0x80 | length)
        elif length < 65536:
            head = struct.pack(">BBH", 0x81, 0xFE, length)
        else:
            head = struct.pack(">BBQ", 0x81, 0xFF, length)
        whole = int.from_bytes(data, "big") ^ int.from_bytes((mask * (length // 4 + 1))[:length], "big")
        self.socket.sendall(head + mask + whole.to_bytes(length, "big"))

    def receive(self):
        while True:
            first, second = self.stream.read(2)
            length = second & 127
            if length == 126:
                length = struct.unpack(">H", self.stream.read(2))[0]
            elif length == 127:
                length = struct.unpack(">Q", self.stream.read(8))[0]
            data = self.stream.read(length)
            if first & 15 == 1:
                return json.loads(data)
            if first & 15 == 8:
                raise ConnectionError(data)
            if first & 15 == 9:
                self.socket.sendall(b"\x8a\x80" + os.urandom(4))

    def request(self, op, **fields):
        self.number += 1
        identity = str(self.number)
        self.send({"op": op, "id": identity, **fields})
        while True:
            answer = self.receive()
            if answer.get("id") == identity and "done" in answer.get("status", []):
                return answer

    def evaluate(self, code):
        return self.request("eval", code=code)

    def close(self):
        self.socket.close()
