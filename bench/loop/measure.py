#!/usr/bin/env python3
"""Measure the loop, and watchexec and entr where they are installed, in one run.

    bench/loop/measure.py [--binary PATH] [--rounds N] [--files N]

Prints one table: our figure, the figures of the others, the ratio, the limit. Ends with 1 when a
limit is not kept. Uses loopback and a temporary directory only.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

DEBOUNCE = 50
# The moment it starts, as little as possible around it.
HOOK = ["date", "+%s%N"]


def wait_for(what, ready, limit=60):
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        found = ready()
        if found:
            return found
        time.sleep(0.002)
    raise SystemExit(f"gave up waiting for {what}")


def lines(path):
    try:
        return path.read_text().splitlines()
    except FileNotFoundError:
        return []


def stop(process):
    process.send_signal(signal.SIGTERM)
    process.wait(30)


def loop(binary, place, config, ready="loop ready"):
    (place / "devloop.toml").write_text(config)
    log = open(place / "log", "w")
    process = subprocess.Popen(
        [binary, "loop", "run"], cwd=place, stdin=subprocess.DEVNULL, stdout=open(place / "stamps", "w"), stderr=log
    )
    wait_for("the loop", lambda: ready in (place / "log").read_text())
    return process


def latency(place, number, debounce):
    """Milliseconds from a save to the start of the command, beyond the debounce."""
    file, stamps = place / "src" / "a.txt", place / "stamps"
    before = len(lines(stamps))
    began = time.time_ns()
    file.write_text(str(number))
    wait_for("the command", lambda: len(lines(stamps)) > before)
    return (int(lines(stamps)[before].split()[-1]) - began) / 1e6 - debounce


def fresh():
    place = pathlib.Path(tempfile.mkdtemp(prefix="loop-bench-"))
    (place / "src").mkdir()
    (place / "src" / "a.txt").write_text("0")
    return place


def measure_latency(binary, rounds):
    """All tools run at once and take turns, so that each meets the same machine."""
    tools = {}
    place = fresh()
    process = loop(
        binary,
        place,
        f"debounce_ms = {DEBOUNCE}\nwatch.w.paths = ['src/*.txt']\n"
        f"hook.h.command = {json.dumps(HOOK)}\nworkflow.w.steps = [{{ action = 'run_hook', hook = 'h' }}]\n",
    )
    tools["loop"] = (process, place, DEBOUNCE)
    if shutil.which("watchexec"):
        place = fresh()
        process = subprocess.Popen(
            ["watchexec", "--debounce", f"{DEBOUNCE}ms", "--postpone", "--watch", "src", "--shell=none", "--", *HOOK],
            cwd=place, stdin=subprocess.DEVNULL, stdout=open(place / "stamps", "w"), stderr=subprocess.DEVNULL,
        )
        tools["watchexec"] = (process, place, DEBOUNCE)
    if shutil.which("entr"):
        place = fresh()
        process = subprocess.Popen(
            ["entr", "-n", "-p", *HOOK], cwd=place, stdin=subprocess.PIPE,
            stdout=open(place / "stamps", "w"), stderr=subprocess.DEVNULL,
        )
        process.stdin.write(b"src/a.txt\n")
        process.stdin.close()
        # It has no window to wait for.
        tools["entr"] = (process, place, 0)
    time.sleep(1)
    found = {name: [] for name in tools}
    for number in range(rounds + 5):
        for name, (_, place, debounce) in tools.items():
            taken = latency(place, number, debounce)
            if number >= 5:
                found[name].append(taken)
            time.sleep((number % 7) * 0.011)
        # entr swallows changes that come too soon after a run.
        time.sleep(0.2 if "entr" in tools else 0.03)
    for process, place, _ in tools.values():
        stop(process)
        shutil.rmtree(place)
    return found


def resident(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def ticks(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def idle(pid, seconds=10):
    before = ticks(pid)
    time.sleep(seconds)
    return (ticks(pid) - before) / os.sysconf("SC_CLK_TCK") / seconds * 100


def measure_scale(binary, files):
    place = fresh()
    for directory in range(files // 10):
        path = place / "src" / f"d{directory // 100}" / f"e{directory % 100}"
        path.mkdir(parents=True)
        for file in range(10):
            (path / f"file-number-{file}.txt").touch()
    found = {}
    began = time.monotonic()
    process = loop(binary, place, "watch.w.paths = ['src/']\nworkflow.w.steps = [{ action = 'log', message = 'x' }]\n")
    found["start"] = time.monotonic() - began
    time.sleep(1)
    found["idle"], found["resident"] = idle(process.pid), resident(process.pid)
    began = time.monotonic()
    (place / "src" / "d7" / "e7" / "file-number-3.txt").write_text("x")
    wait_for("the run", lambda: "running workflow w" in (place / "log").read_text())
    found["edit"] = (time.monotonic() - began) * 1000 - 250
    stop(process)
    peers = {}
    if shutil.which("watchexec"):
        process = subprocess.Popen(
            ["watchexec", "--debounce", "250ms", "--postpone", "--no-vcs-ignore", "--watch", "src", "--", "true"],
            cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        time.sleep(8)
        peers["idle"], peers["resident"] = idle(process.pid), resident(process.pid)
        stop(process)
    shutil.rmtree(place)
    return found, peers


def measure_events(binary, rounds):
    place = fresh()
    process = loop(
        binary,
        place,
        "watch.w.paths = ['src/']\nworkflow.w.steps = [{ action = 'log', message = 'x' }]\n"
        "process.p.command = ['sh', '-c', 'env > vars.tmp; mv vars.tmp vars; sleep 1000']\n"
        "event.e = { state_key = 'k', workflow = 'w', max_per_second = 1000 }\n",
    )
    wait_for("the variables", lambda: (place / "vars").exists())
    values = dict(line.split("=", 1) for line in lines(place / "vars") if "=" in line)
    host, port = values["DEVLOOP_EVENTS_BASE_URL"].removeprefix("http://").split(":")
    token = values["DEVLOOP_EVENTS_TOKEN"]
    stream = socket.create_connection((host, int(port)))
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    taken = []
    for number in range(rounds):
        body = json.dumps({"value": f"value {number}"})
        request = (
            f"POST /events/e HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        )
        began = time.perf_counter()
        stream.sendall(request.encode())
        answer = stream.recv(4096)
        taken.append((time.perf_counter() - began) * 1000)
        if not answer.startswith(b"HTTP/1.1 204"):
            raise SystemExit(f"unexpected answer: {answer!r}")
        time.sleep(0.002)
    stop(process)
    shutil.rmtree(place)
    return taken


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def main():
    here = pathlib.Path(__file__).resolve().parents[2]
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", here / "target"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default=str(target / "release" / "beamtalk"))
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--files", type=int, default=100_000)
    arguments = parser.parse_args()
    if not pathlib.Path(arguments.binary).exists():
        raise SystemExit(f"{arguments.binary} is not there; build it with: cargo build --release")

    rows, broken = [], []

    def row(work, ours, unit, limit, peers):
        ratios = ", ".join(f"{name} {value:.2f} ({value / ours:.1f}x)" if ours > 0 else f"{name} {value:.2f}" for name, value in peers.items())
        kept = ours <= limit
        rows.append((work, f"{ours:.2f} {unit}", f"{limit:g} {unit}", "yes" if kept else "NO", ratios or "-"))
        if not kept:
            broken.append(work)

    taken = measure_latency(arguments.binary, arguments.rounds)
    for label, limit, figure in (
        ("median", 3.5, statistics.median),
        ("p99", 10, lambda values: percentile(values, 0.99)),
    ):
        peers = {name: figure(values) for name, values in taken.items() if name != "loop"}
        row(f"save to hook start, beyond the window, {label}", figure(taken["loop"]), "ms", limit, peers)
    if "watchexec" in taken and statistics.median(taken["watchexec"]) < statistics.median(taken["loop"]):
        broken.append("ahead of watchexec")
    events = measure_events(arguments.binary, arguments.rounds)
    row("event POST to answer, p50", statistics.median(events), "ms", 2, {})
    found, peers = measure_scale(arguments.binary, arguments.files)
    only = lambda key: {"watchexec": peers[key]} if key in peers else {}
    row(f"start with {arguments.files} files", found["start"], "s", 2, {})
    row(f"idle with {arguments.files} files", found["idle"], "% of a core", 0.05, only("idle"))
    row(f"resident with {arguments.files} files", found["resident"], "MiB", 40, only("resident"))
    row("one edit among them to its run, beyond the window", found["edit"], "ms", 200, {})

    head = ("work", "loop", "at most", "kept", "others (ratio to loop)")
    widths = [max(len(line[column]) for line in [head, *rows]) for column in range(len(head))]
    for line in [head, tuple("-" * width for width in widths), *rows]:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |")
    if broken:
        print("not kept: " + "; ".join(broken), file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
