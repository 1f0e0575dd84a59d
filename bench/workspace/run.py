#!/usr/bin/env python3
"""The workspace against its figures, and against a Jupyter kernel in the same run.

usage: run.py [BINARY] [--quick] [--terminal | --house | --loops | --recheck | --editing | --strangers]

`--terminal` measures the rows of a person at a terminal alone, `--house` those of the loop and the agents in the image,
`--loops` those of loops at the prompt, `--recheck` that of checking senders again after a live change, `--editing` those
of loading and redefining classes, and of the idle workspace, `--strangers` that of the owner while others hold connections.

Starts workspaces of its own in a temporary state directory. The Jupyter rows need `ipykernel` (pip install
ipykernel) for the python that runs this; without it they are left out.
"""
import fcntl
import glob
import json
import os
import pty
import resource
import select
import selectors
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

from client import Client

QUICK = "--quick" in sys.argv
arguments = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.path.abspath(arguments[0] if arguments else os.path.join(ROOT, "target/release/beamtalk"))
rows = []


def row(work, measured, limit, is_kept):
    rows.append((work, measured, limit, is_kept))
    print(f"{'  ' if is_kept else '! '}{work}: {measured} (at most {limit})", flush=True)


def beamtalk(*words, home, directory, check=True):
    environment = dict(os.environ, BEAMTALK_HOME=home)
    return subprocess.run([BINARY, *words], cwd=directory, env=environment, check=check,
                          capture_output=True, text=True, timeout=120)


def median_of(action, count):
    times = []
    for _ in range(count):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times), sorted(times)[int(count * 0.99)]


def processes_of(home):
    """Every process of the workspace: the daemon and all below it."""
    with open(glob.glob(home + "/workspaces/*/node.info")[0]) as file:
        daemon = json.load(file)["pid"]
    found, todo = [], [daemon]
    while todo:
        pid = todo.pop()
        found.append(pid)
        for task in glob.glob(f"/proc/{pid}/task/*/children"):
            with open(task) as file:
                todo += [int(child) for child in file.read().split()]
    return found


def megabytes(pids, name, field):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/{name}") as file:
            total += next(int(line.split()[1]) for line in file if line.startswith(field))
    return total / 1024


def resident(pids):
    return megabytes(pids, "status", "VmRSS:")


def share(pids):
    """Memory by shares: a page that several processes have counts for each as its part."""
    return megabytes(pids, "smaps_rollup", "Pss:")


def processor_time(pids):
    ticks = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def jupyter(count):
    try:
        from jupyter_client.manager import start_new_kernel
    except ImportError:
        print("(no ipykernel: the comparison with Jupyter is left out)")
        return None
    manager, kernel = start_new_kernel(kernel_name="python3")
    try:
        def evaluate():
            kernel.execute_interactive("1 + 2", output_hook=lambda message: None)
        for _ in range(20):
            evaluate()
        return median_of(evaluate, count)[0]
    finally:
        kernel.stop_channels()
        manager.shutdown_kernel(now=True)


def big_class():
    methods = "".join(f"  m{n}: x => x + {n}\n" for n in range(100))
    return f"Actor subclass: Big\n  state: total = 0\n{methods}"


def heavy_class():
    """100 methods of four statements with a loop, a block and a `^` in each."""
    methods = "".join(
        f"  m{n}: x =>\n    sum := {n}\n    1 to: x do: [:i | sum := sum + i]\n"
        f"    #(1, 2, 3) do: [:each | each > x ifTrue: [^sum]]\n    sum + {n}\n"
        for n in range(100))
    return f"Actor subclass: Heavy\n  state: total = 0\n{methods}"


def warm(client):
    for _ in range(200):
        client.evaluate("1 + 2")
    count = 200 if QUICK else 2000
    ours, tail = median_of(lambda: client.evaluate("1 + 2"), count)
    theirs = jupyter(100 if QUICK else 300)
    row("warm `1 + 2`", f"{ours * 1e3:.2f} ms (p99 {tail * 1e3:.2f})", "0.5 ms", ours <= 0.0005)
    if theirs:
        row("  against a Jupyter kernel", f"{theirs * 1e3:.2f} ms, {theirs / ours:.1f}× slower", "8× faster", theirs / ours >= 8)
    # Known inputs are compiled once; new ones each time.
    number = [0]

    def another():
        number[0] += 1
        answer = client.evaluate(f"1 + {number[0]}")
        assert answer["value"] == number[0] + 1, answer
    fresh, tail = median_of(another, count)
    row("warm `1 + n`, each time another n", f"{fresh * 1e3:.2f} ms (p99 {tail * 1e3:.2f})", "0.5 ms", fresh <= 0.0005)
    sum_of = "(1 to: 100) asList inject: 0 into: [:a :b | a + b]"
    for _ in range(20):
        client.evaluate(sum_of)
    ours, _ = median_of(lambda: client.evaluate(sum_of), count // 4)
    row("warm inject:into: over 100 elements", f"{ours * 1e3:.2f} ms", "1 ms", ours <= 0.001)


# The same work at the prompt and as a class method. Every input at the prompt is new: N differs each time.
LOOPS = [
    ("(1 to: 1000000) inject:into:", "(1 to: 1000000) inject: N into: [:a :b | a + b]",
     "(1 to: 1000000) inject: 0 into: [:a :b | a + b]"),
    ("whileTrue:, 1,000,000 turns", "[k := N. [k < 1000000] whileTrue: [k := k + 1]. k] value",
     "k := 0. [k < 1000000] whileTrue: [k := k + 1]. k"),
    ("whileTrue: over a variable of the session", "k := N. [k < 1000000] whileTrue: [k := k + 1]. k",
     "k := 0. [k < 1000000] whileTrue: [k := k + 1]. k"),
    ("1 to: 1000000 do: over a variable of the session", "s := N. 1 to: 1000000 do: [:k | s := s + k]. s",
     "s := 0. 1 to: 1000000 do: [:k | s := s + k]. s"),
    ("the same with floats", "s := N / 3. 1 to: 1000000 do: [:k | s := s + (k / 3)]. s",
     "s := 1 / 3. 1 to: 1000000 do: [:k | s := s + (k / 3)]. s"),
    ("nested loops over a variable of the session",
     "s := N. 1 to: 1000 do: [:k | 1 to: 1000 do: [:m | s := s + (k * m)]]. s",
     "s := 0. 1 to: 1000 do: [:k | 1 to: 1000 do: [:m | s := s + (k * m)]]. s"),
    ("(1 to: 1000000) do: with a block that assigns one", "s := N. (1 to: 1000000) do: [:k | s := s + k]. s",
     "s := 0. (1 to: 1000000) do: [:k | s := s + k]. s"),
    ("1 to: 1000000 do:", "[sum := N. 1 to: 1000000 do: [:k | sum := sum + k]. sum] value",
     "sum := 0. 1 to: 1000000 do: [:k | sum := sum + k]. sum"),
    ("1000000 timesRepeat:", "[sum := N. 1000000 timesRepeat: [sum := sum + 3]. sum] value",
     "sum := 0. 1000000 timesRepeat: [sum := sum + 3]. sum"),
    ("nested loops, 1,000 by 1,000",
     "[sum := N. 1 to: 1000 do: [:k | 1 to: 1000 do: [:m | sum := sum + (k * m)]]. sum] value",
     "sum := 0. 1 to: 1000 do: [:k | 1 to: 1000 do: [:m | sum := sum + (k * m)]]. sum"),
    ("recursive block, fib 24",
     "[fib := nil. fib := [:n | n < 2 ifTrue: [n] ifFalse: [(fib value: n - 1) + (fib value: n - 2)]]. N + (fib value: 24)] value",
     "fib := nil. fib := [:n | n < 2 ifTrue: [n] ifFalse: [(fib value: n - 1) + (fib value: n - 2)]]. fib value: 24"),
    ("collect: over 300,000 elements", "((1 to: 300000) collect: [:k | k * 2 + N]) size",
     "((1 to: 300000) collect: [:k | k * 2]) size"),
]


def loops(client):
    methods = "".join(f"  class m{index} =>\n    {body}\n" for index, (_, _, body) in enumerate(LOOPS))
    client.evaluate(f"Object subclass: Loops\n{methods}")
    # The first hot input of a node loads the Erlang compiler.
    client.evaluate("(1 to: 1000000) inject: -1 into: [:a :b | a + b]")
    number = [0]

    def prompt(text):
        number[0] += 1
        answer = client.evaluate(text.replace("N", str(number[0])))
        assert "value" in answer, answer
    for index, (name, text, _) in enumerate(LOOPS):
        count = 5 if QUICK else 15
        inside, _ = median_of(lambda: client.evaluate(f"Loops m{index}"), count)
        ours, _ = median_of(lambda: prompt(text), count)
        row(f"{name}, at the prompt", f"{ours * 1e3:.1f} ms, in a class {inside * 1e3:.1f} ms", "3× the class + 10 ms",
            ours <= 3 * inside + 0.01)


def editing(client):
    for name, text, about, limit, method in (
        ("Big", big_class(), "of 100 methods of one line", 60, "x + {}"),
        ("Heavy", heavy_class(), "of 100 methods with loops and blocks", 150,
         "sum := {}. 1 to: x do: [:i | sum := sum + i]. #(1, 2, 3) do: [:each | each < x ifTrue: [^nil]]. sum"),
    ):
        loaded, _ = median_of(lambda: client.evaluate(text), 5 if QUICK else 15)
        row(f"load a class {about}", f"{loaded * 1e3:.1f} ms", f"{limit} ms", loaded * 1e3 <= limit)
        client.evaluate(f"actor := {name} spawn")
        number = [1000]

        def redefine():
            number[0] += 1
            client.evaluate(f"{name} >> m7: x => {method.format(number[0])}")
            answer = client.evaluate("actor m7: 0")
            assert answer["value"] == number[0], answer
        for _ in range(5):
            redefine()
        ours, _ = median_of(redefine, 20 if QUICK else 100)
        row("redefine one method of it, until a running actor answers", f"{ours * 1e3:.1f} ms", "8 ms", ours <= 0.008)


def rechecking():
    """A method of a project of 300 classes promises something else; its senders are checked until findings are pushed."""
    home = tempfile.mkdtemp(prefix="bt")
    os.chmod(home, 0o700)
    directory, root = project_of(0)
    for n in range(300):
        with open(f"{root}/src/Part{n:03}.bt", "w") as file:
            other = (n + 1) % 300
            methods = "".join(f"  step{m}: x :: Integer with: other :: Part{other:03} -> Integer => x + other weight\n"
                              for m in range(6))
            file.write(f"/// Part {n}.\nObject subclass: Part{n:03}\n  weight -> Integer => {n}\n{methods}")
    beamtalk("build", home=home, directory=root)
    beamtalk("workspace", "start", "--persistent", home=home, directory=root)
    try:
        client = Client(home)
        client.request("subscribe", channels=["reload_check"])
        number = [1000]

        def change():
            number[0] += 1
            kind, value = ("String", '"a"') if number[0] % 2 else ("Integer", "7")
            client.send({"op": "eval", "id": str(number[0]), "code": f"Part007 >> weight -> {kind} => {value}"})
            while True:
                message = client.receive()
                if message.get("channel") == "reload_check":
                    return message["data"]
        start = time.perf_counter()
        change()
        first = time.perf_counter() - start
        change()
        found = change()
        assert found["findings"], found
        ours, tail = median_of(change, 20 if QUICK else 100)
        row("a method promises something else: evaluated, its senders among 300 classes checked, findings pushed",
            f"{ours * 1e3:.1f} ms (p99 {tail * 1e3:.1f}, the first {first * 1e3:.0f})", "20 ms", ours <= 0.02)
        client.close()
    finally:
        beamtalk("workspace", "stop", "--force", home=home, directory=root, check=False)
        shutil.rmtree(directory, ignore_errors=True)
        shutil.rmtree(home, ignore_errors=True)


def idle(home):
    pids = processes_of(home)
    time.sleep(3)
    before = processor_time(pids)
    seconds = 10 if QUICK else 60
    time.sleep(seconds)
    used = processor_time(pids) - before
    megabytes = share(pids)
    row("idle, all processes, by shares", f"{megabytes:.0f} MB, {100 * used / seconds:.2f} % CPU "
        f"(resident {resident(pids):.0f} MB)", "60 MB, 0 % CPU", megabytes <= 60 and used / seconds < 0.001)


def endurance(client, home):
    inputs = ["1 + 2", "x := 7", "x * 2", "#(1, 2, 3) collect: [:each | each * 2]",
              "total := 0. 1 to: 50 do: [:i | total := total + i]. total", '"text" size', "3 frobnicate"]

    def settle():
        client.evaluate("Erlang erlang garbage_collect")
        time.sleep(2)
        atoms = client.evaluate("Erlang erlang system_info: #atom_count")["value"]
        memory = client.request("health")["memory"]
        return atoms, memory["code"], memory["total"], resident(processes_of(home))
    for n in range(2000):
        client.evaluate(inputs[n % len(inputs)])
    before = settle()
    count = 5_000 if QUICK else 100_000
    for n in range(count):
        client.evaluate(inputs[n % len(inputs)])
    after = settle()
    change = [100 * (now / then - 1) for then, now in zip(before, after)]
    text = ", ".join(f"{name} {percent:+.1f} %" for name, percent in
                     zip(["atoms", "code", "memory of the node", "resident"], change))
    row(f"{count:,} evaluations", text, "±1 %", all(percent <= 1 for percent in change))


def crowd(home, directory):
    seconds = 10 if QUICK else 60
    beamtalk("workspace", "status", home=home, directory=directory)
    times, errors, stop = [], [], time.time() + seconds

    def work():
        try:
            client = Client(home)
            while time.time() < stop:
                start = time.perf_counter()
                answer = client.evaluate("1 + 2")
                times.append(time.perf_counter() - start)
                if answer.get("value") != 3:
                    errors.append(answer)
                # A person or a tool, not a flood: 20 requests a second each.
                time.sleep(0.05)
            client.close()
        except Exception as error:
            errors.append(repr(error))
    threads = [threading.Thread(target=work) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    times.sort()
    tail = times[int(len(times) * 0.99)]
    row(f"100 connections for {seconds} s", f"{len(times):,} evaluations, {len(errors)} errors, p99 {tail * 1e3:.1f} ms",
        "no error, p99 50 ms", not errors and tail <= 0.05)
    if errors:
        print(errors[:3])


def observed(home, directory):
    """The owner while an observer asks for all it may, as much of it as it may, as often as it may."""
    token = beamtalk("workspace", "token", "create", "worst", "--role", "observer", home=home,
                     directory=directory).stdout.strip()
    seconds = 5 if QUICK else 20
    stop = time.time() + seconds
    large = "\n".join(f"x{n} := {n} + #s{n} size." for n in range(20000))

    def ask(op, fields):
        try:
            observer = Client(home, token)
            while time.time() < stop:
                observer.request(op, **fields)
            observer.close()
        except (ConnectionError, OSError, ValueError):
            pass
    questions = [("show-codegen", {"code": large, "form": "core"}), ("show-codegen", {"code": large}),
                 ("diagnostics", {"code": large}), ("recheck-image", {}), ("nav-symbols", {"scope": "all"}),
                 ("browse-classes", {}), ("supervision-tree", {}), ("health", {}), ("describe", {})]
    threads = [threading.Thread(target=ask, args=question, daemon=True) for question in questions]
    for thread in threads:
        thread.start()
    client = Client(home)
    times = []
    while time.time() < stop:
        start = time.perf_counter()
        assert client.evaluate("1 + 1")["value"] == 2
        times.append(time.perf_counter() - start)
        time.sleep(0.02)
    client.close()
    ours = statistics.median(times)
    row(f"`1 + 1` while an observer does its worst for {seconds} s", f"median {ours * 1e3:.1f} ms",
        "50 ms", ours <= 0.05)


STRANGERS = 2000


def strangers(home):
    """The owner while strangers hold connections: silent ones, halves of a request, WebSockets that do not say who they are, and
    wrong cookies. Whoever is let go comes back at once."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 2 * STRANGERS), most))
    seconds = 5 if QUICK else 20
    client = Client(home)
    port = client.socket.getpeername()[1]
    upgrade = (f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
               "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n").encode()
    wrong = json.dumps({"type": "auth", "cookie": "0" * 64, "client": "repl", "protocol": "1.0"}).encode()
    words = [b"", upgrade[:40], upgrade, upgrade + bytes([0x81, 0xFE]) + struct.pack(">H", len(wrong)) + bytes(4) + wrong]
    selector, stop = selectors.DefaultSelector(), threading.Event()
    refused = [0]

    def come(number):
        stranger = socket.create_connection(("127.0.0.1", port), timeout=10)
        stranger.sendall(words[number % len(words)])
        stranger.setblocking(False)
        selector.register(stranger, selectors.EVENT_READ, number)

    def stay():
        while not stop.is_set():
            for key, _ in selector.select(0.1):
                try:
                    is_over = not key.fileobj.recv(4096)
                except OSError:
                    is_over = True
                if is_over:
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
                    refused[0] += 1
                    come(key.data)
    for number in range(STRANGERS):
        come(number)
    thread = threading.Thread(target=stay, daemon=True)
    thread.start()
    times, joins, end = [], [], time.time() + seconds
    while time.time() < end:
        start = time.perf_counter()
        assert client.evaluate("1 + 1")["value"] == 2
        times.append(time.perf_counter() - start)
        if len(times) % 20 == 0:
            start = time.perf_counter()
            Client(home).close()
            joins.append(time.perf_counter() - start)
        time.sleep(0.02)
    stop.set()
    thread.join()
    for key in list(selector.get_map().values()):
        key.fileobj.close()
    client.close()
    ours = statistics.median(times)
    row(f"`1 + 1` while {STRANGERS:,} strangers hold connections for {seconds} s ({refused[0]:,} were let go and came back)",
        f"median {ours * 1e3:.1f} ms, a new connection of the owner {statistics.median(joins) * 1e3:.1f} ms (most {max(joins) * 1e3:.0f})",
        "50 ms", ours <= 0.05)


def commands(directory):
    def cold():
        home = tempfile.mkdtemp(prefix="bt")
        prepared = os.path.join(shared, "runtime")
        # The runtime is unpacked once for each version, not once for each workspace.
        if os.path.isdir(prepared):
            shutil.copytree(prepared, home + "/runtime", symlinks=True)
        os.chmod(home, 0o700)
        start = time.perf_counter()
        assert beamtalk("repl", "-e", "1 + 2", home=home, directory=directory).stdout.strip() == "3"
        elapsed = time.perf_counter() - start
        beamtalk("workspace", "stop", "--force", home=home, directory=directory)
        shutil.rmtree(home, ignore_errors=True)
        return elapsed
    shared = tempfile.mkdtemp(prefix="bt")
    os.chmod(shared, 0o700)
    beamtalk("repl", "-e", "1 + 2", home=shared, directory=directory)
    ours = statistics.median(cold() for _ in range(3 if QUICK else 7))
    row("`beamtalk repl -e '1 + 2'`, nothing running", f"{ours:.2f} s", "0.7 s", ours <= 0.7)
    ours, _ = median_of(lambda: beamtalk("repl", "-e", "1 + 2", home=shared, directory=directory), 10 if QUICK else 40)
    row("the same with the workspace running", f"{ours * 1e3:.1f} ms", "25 ms", ours <= 0.025)
    beamtalk("workspace", "stop", "--force", home=shared, directory=directory)
    shutil.rmtree(shared, ignore_errors=True)


class Terminal:
    """A session in a terminal of its own, as a person has it."""

    def __init__(self, home, directory):
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            os.chdir(directory)
            # A screen of 80 columns and 24 rows.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            os.environ.update(BEAMTALK_HOME=home, TERM="xterm-256color", PAGER="cat", NO_COLOR="1")
            os.execv(BINARY, [BINARY, "repl"])
        self.seen = b""

    def type(self, text):
        self.seen = b""
        os.write(self.file, text.encode())

    def until(self, text, limit=60):
        """Wait until the text is on the screen."""
        end = time.perf_counter() + limit
        while text.encode() not in self.seen:
            left = end - time.perf_counter()
            if left <= 0 or not select.select([self.file], [], [], left)[0]:
                raise TimeoutError(f"never {text!r}: {self.seen[-300:]!r}")
            self.seen += os.read(self.file, 65536)

    def close(self):
        self.type(":exit\r")
        try:
            # Somebody who cannot write does not leave.
            while os.read(self.file, 65536):
                pass
        except OSError:
            pass
        os.waitpid(self.pid, 0)
        os.close(self.file)


def project_of(count):
    directory = tempfile.mkdtemp(prefix="bt-project")
    beamtalk("new", "parts", home=directory, directory=directory)
    root = os.path.join(directory, "parts")
    for n in range(count):
        with open(f"{root}/src/Part{n:03}End.bt", "w") as file:
            methods = "".join(f"  method{m}: x => x + {m}\n" for m in range(10))
            file.write(f"/// Part {n}.\nObject subclass: Part{n:03}End\n{methods}")
    return directory, root


def terminal():
    home = tempfile.mkdtemp(prefix="bt")
    os.chmod(home, 0o700)
    directory, root = project_of(50)
    beamtalk("build", home=home, directory=root)

    def cold():
        start = time.perf_counter()
        session = Terminal(home, root)
        session.until("> ")
        elapsed = time.perf_counter() - start
        session.close()
        beamtalk("workspace", "stop", "--force", home=home, directory=root)
        return elapsed
    cold()
    ours = statistics.median(cold() for _ in range(3 if QUICK else 9))
    row("`beamtalk repl` to its prompt, 50 classes built, nothing running", f"{ours:.2f} s", "0.6 s", ours <= 0.6)
    shutil.rmtree(directory, ignore_errors=True)
    directory, root = project_of(300)
    beamtalk("build", home=home, directory=root)
    session = Terminal(home, root)
    session.until("> ")
    times = []
    for n in range(20 if QUICK else 200):
        session.type(f"Part{n:03}")
        session.until(f"Part{n:03}")
        start = time.perf_counter()
        session.type("\t")
        session.until("End")
        times.append(time.perf_counter() - start)
        session.type("\x03")
        session.until("> ")
    times.sort()
    tail = times[int(len(times) * 0.99)]
    row("Tab to its candidate, 300 classes", f"median {statistics.median(times) * 1e3:.1f} ms, p99 {tail * 1e3:.1f} ms",
        "20 ms p99", tail <= 0.02)
    times = []
    for _ in range(5 if QUICK else 30):
        start = time.perf_counter()
        session.type(":help String\r")
        session.until("grapheme clusters")
        times.append(time.perf_counter() - start)
        # The page has `>` and more in it: what follows it is known by an answer that nothing else has.
        session.type("6 * 7007\r")
        session.until("42042")
    ours = statistics.median(times)
    row("`:help String` to its first lines", f"{ours * 1e3:.1f} ms", "50 ms", ours <= 0.05)
    session.close()
    beamtalk("workspace", "stop", "--force", home=home, directory=root)
    shutil.rmtree(directory, ignore_errors=True)
    shutil.rmtree(home, ignore_errors=True)


HOUSE = """[process.server]
command = ["sleep", "1000"]
[watch.css]
paths = ["css/**"]
workflow = "nothing"
[workflow.nothing]
steps = [{ action = "log", message = "nothing" }]
"""

# Microseconds; the last is from an agent's answer to the announcement that it is idle again.
IN_IMAGE = [
    "now := [Erlang erlang monotonic_time: #microsecond]",
    "middle := [:all | (all sort: [:a :b | a < b]) at: (all size / 2) ceiling]",
    "times := [:count :block | (1 to: count) asList collect: [:i | began := now value. block value. now value - began]]",
    "process := Loop process: #server",
    "middle value: (times value: COUNT value: [process state])",
    "agent := (Agents new: \"echo\" in: File cwd) unwrap",
    "middle value: (times value: COUNT value: [agent state])",
    "at := Ets new: #announced type: #set",
    "SystemAnnouncer current when: AgentTurnEnded do: [:e | at at: e turn put: now value]",
    "turn := [:i | (agent prompt: \"x\") unwrap. ended := now value. [(at at: i ifAbsent: [nil]) isNil] whileTrue: [Timer sleep: 1]. ((at at: i) - ended) abs]",
    "middle value: ((1 to: 20) asList collect: turn)",
]


def house():
    directory = tempfile.mkdtemp(prefix="bt-house")
    os.makedirs(os.path.join(directory, "project/css"))
    root, home = os.path.join(directory, "project"), os.path.join(directory, "home")
    os.makedirs(home, 0o700)
    with open(os.path.join(root, "devloop.toml"), "w") as file:
        file.write(HOUSE)
    os.environ.update(NAMESPACE=os.path.join(directory, "ns"))
    beamtalk("agents", "start", home=home, directory=root)
    attached = subprocess.Popen([BINARY, "loop", "run", "--workspace", "--json"], cwd=root, text=True,
                                env=dict(os.environ, BEAMTALK_HOME=home), stdout=subprocess.PIPE)
    try:
        while '"kind":"ready"' not in attached.stdout.readline():
            pass
        lines = "\n".join(IN_IMAGE).replace("COUNT", "100" if QUICK else "1000")
        asked = subprocess.run([BINARY, "repl"], cwd=root, env=dict(os.environ, BEAMTALK_HOME=home), check=True,
                               input=lines, capture_output=True, text=True, timeout=300)
        state, agent, announced = [int(line) for line in asked.stdout.splitlines() if line.isdigit()]
    finally:
        attached.terminate()
        attached.wait(30)
        beamtalk("agents", "stop", "--kill-sessions", home=home, directory=root, check=False)
        beamtalk("workspace", "stop", "--force", home=home, directory=root, check=False)
        shutil.rmtree(directory, ignore_errors=True)
    row("`(Loop process: #server) state`", f"{state / 1e3:.2f} ms", "1 ms", state <= 1000)
    row("`agent state`", f"{agent / 1e3:.2f} ms", "1 ms", agent <= 1000)
    row("an agent's turn to its announcement in the image", f"{announced / 1e3:.2f} ms", "20 ms", announced <= 20000)


def main():
    if "--house" in sys.argv:
        house()
        return 0 if all(is_kept for *_, is_kept in rows) else 1
    if "--recheck" in sys.argv:
        rechecking()
        return 0 if all(is_kept for *_, is_kept in rows) else 1
    if "--terminal" in sys.argv:
        terminal()
        return 0 if all(is_kept for *_, is_kept in rows) else 1
    directory = tempfile.mkdtemp(prefix="bt-project")
    home = tempfile.mkdtemp(prefix="bt")
    os.chmod(home, 0o700)
    try:
        if "--loops" in sys.argv:
            beamtalk("workspace", "start", "--persistent", home=home, directory=directory)
            loops(Client(home))
            return 0 if all(is_kept for *_, is_kept in rows) else 1
        if "--editing" in sys.argv:
            beamtalk("workspace", "start", "--persistent", home=home, directory=directory)
            idle(home)
            editing(Client(home))
            return 0 if all(is_kept for *_, is_kept in rows) else 1
        if "--strangers" in sys.argv:
            beamtalk("workspace", "start", "--persistent", home=home, directory=directory)
            strangers(home)
            return 0 if all(is_kept for *_, is_kept in rows) else 1
        commands(directory)
        terminal()
        house()
        rechecking()
        beamtalk("workspace", "start", "--persistent", home=home, directory=directory)
        idle(home)
        client = Client(home)
        warm(client)
        loops(client)
        editing(client)
        crowd(home, directory)
        observed(home, directory)
        strangers(home)
        # A client of its own: the other was not read while the crowd worked.
        endurance(Client(home), home)
    finally:
        beamtalk("workspace", "stop", "--force", home=home, directory=directory, check=False)
        shutil.rmtree(home, ignore_errors=True)
        shutil.rmtree(directory, ignore_errors=True)
    print("\n| work | measured | at most | kept |\n|---|---:|---:|---|")
    for work, measured, limit, is_kept in rows:
        print(f"| {work} | {measured} | {limit} | {'yes' if is_kept else 'no'} |")
    return 0 if all(is_kept for *_, is_kept in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
