#!/usr/bin/env python3
"""The MCP server against its figures, with a bare rmcp server as the floor.

    bench/mcp/run.py [--binary target/release/beamtalk] [--echo PATH] [--calls 5000] [--soak SECONDS]
"""

import argparse
import http.client
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
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
        status = pathlib.Path(f"/proc/{self.child.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024

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


def soak(pipes, session, seconds):
    """Sixteen at a time at 1,000 calls a second, 70 % reading."""
    errors, found, stop = [], [], time.perf_counter() + seconds
    lock = threading.Lock()

    def work(pipe, place):
        turn = 0
        while time.perf_counter() < stop:
            began = time.perf_counter()
            is_read = turn % 10 < 7
            result = pipe.call("describe", {}) if is_read else pipe.call("evaluate", {"code": "1 + 2"})
            with lock:
                found.append((time.perf_counter() - began) * 1000)
                if result["isError"]:
                    errors.append(result)
            turn += 1
            time.sleep(max(0, 0.016 - (time.perf_counter() - began)))

    threads = [threading.Thread(target=work, args=(pipe, place)) for place, pipe in enumerate(pipes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found.sort()
    return len(found) / seconds, len(errors), found[len(found) * 99 // 100]


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
        def start():
            pipe = Pipe([binary, "mcp"], environment, project)
            pipe.ask("tools/list", {})
            pipe.end()

        p50, p99 = times(start, 50)
        rows.append(("process start → list, without a workspace", p50, p99, "25 / 60"))
        run("workspace", "start", "--mcp-http")
        port = json.loads(run("--json", "workspace", "status").stdout)["port"]
        token = run("workspace", "token", "create", "bench", "--mcp", "edit").stdout.decode().strip()
        p50, p99 = times(start, 50)
        rows.append(("process start → list", p50, p99, "25 / 60"))
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
        if options.soak:
            pipes = [Pipe([binary, "mcp"], environment, project) for _ in range(16)]
            rate, errors, p99 = soak(pipes, session, options.soak)
            rows.append((f"soak: {rate:.0f} calls/s for {options.soak} s, {errors} errors", 0, p99, "– / 25"))
            for one in pipes:
                one.end()
        loaded = pipe.resident()
        pipe.end()
        print("| what | p50 ms | p99 ms | at most |\n|---|---:|---:|---:|")
        for what, p50, p99, most in rows:
            print(f"| {what} | {p50:.2f} | {p99:.2f} | {most} |")
        print(f"| memory, MiB: idle, after the calls | {idle:.1f} | {loaded:.1f} | 16 / 32 |")
    finally:
        subprocess.run([binary, "workspace", "stop", "--force"], cwd=project, env=environment, capture_output=True)
        shutil.rmtree(work, ignore_errors=True)


main()
