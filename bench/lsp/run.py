#!/usr/bin/env python3
"""The language server against its figures: a scripted client types in generated projects.

usage: run.py BEAMTALK [--peer PYRIGHT_LANGSERVER] [--rounds N]

Projects of 300 classes and of 100,000 lines are written to a temporary directory. Each row is measured over N rounds
(200 by default); p99 is of all rounds. With --peer, pyright's server (npm: pyright) is measured in the same run on a
Python project of the same size, for the rows both have.
"""

import argparse
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

LIMITS = {
    "start to first diagnostics of the open file": (300, 1500),
    "keystroke to diagnostics, p99": (20, 50),
    "completion, p99": (10, 30),
    "hover, p99": (5, 15),
    "definition, p99": (5, 15),
    "references across the project": (50, 300),
    "rename across the project": (50, 300),
    "memory (MB)": (80, 400),
}


def beamtalk_class(number, methods, count):
    """A class that uses its neighbours, about 8 lines for each method."""
    other, third = (number + 1) % count, (number * 7 + 3) % count
    lines = [
        f"/// Part {number} of a generated program.",
        f"Actor subclass: Part{number}",
        "  state: total :: Integer = 0",
        "  state: names :: List(String) = #()",
        "",
    ]
    for index in range(methods):
        lines += [
            f"  /// Step {index} of part {number}.",
            f"  step{index}: amount :: Integer with: part :: Part{other} -> Integer =>",
            "    sum := self.total + amount",
            f"    other := Part{third} spawn",
            f"    part step{index}: sum with: (Part{(other + 1) % count} spawn)",
            f"    #(1, 2, 3) do: [:each | self.total := self.total + each * {index + 1}]",
            "    other describe size + sum",
            "",
        ]
    lines += [f'  describe -> String => "part {number}: {{self.total}}"', ""]
    return "\n".join(lines)


def python_class(number, methods, count):
    other, third = (number + 1) % count, (number * 7 + 3) % count
    lines = [
        "from __future__ import annotations",
        "from typing import TYPE_CHECKING",
        "if TYPE_CHECKING:",
        f"    from part{other} import Part{other}",
        "",
        f"class Part{number}:",
        f'    """Part {number} of a generated program."""',
        "    def __init__(self) -> None:",
        "        self.total: int = 0",
        "        self.names: list[str] = []",
        "",
    ]
    for index in range(methods):
        lines += [
            f"    def step{index}(self, amount: int, part: Part{other}) -> int:",
            f"        from part{third} import Part{third}",
            "        sum = self.total + amount",
            f"        other = Part{third}()",
            f"        for each in [1, 2, 3]: self.total += each * {index + 1}",
            "        return len(other.describe()) + sum",
            "",
        ]
    lines += ["    def describe(self) -> str:", f'        return f"part {number}: {{self.total}}"', ""]
    return "\n".join(lines)


class Language:
    def __init__(self, name, identifier, command, write, folder, suffix, edit, at):
        self.name, self.identifier, self.command = name, identifier, command
        self.write, self.folder, self.suffix = write, folder, suffix
        # What is typed, and where a local, a message and a class are looked at: texts to search for.
        self.edit, self.at = edit, at

    def project(self, root, count, methods):
        folder = root / self.folder if self.folder else root
        folder.mkdir(parents=True, exist_ok=True)
        lines = 0
        for number in range(count):
            text = self.write(number, methods, count)
            lines += text.count("\n")
            name = f"Part{number}" if self.suffix == "bt" else f"part{number}"
            (folder / f"{name}.{self.suffix}").write_text(text)
        return folder, lines


class Server:
    def __init__(self, command, root):
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=root)
        self.messages, self.next = queue.Queue(), 0
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        out = self.child.stdout
        while True:
            length = None
            while True:
                line = out.readline()
                if not line:
                    return self.messages.put(None)
                if not line.strip():
                    break
                key, value = line.split(b":", 1)
                if key.lower() == b"content-length":
                    length = int(value)
            self.messages.put(json.loads(out.read(length)))

    def send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.child.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.child.stdin.flush()

    def notify(self, method, params):
        self.send({"method": method, "params": params})

    def wait(self, is_meant, limit=120):
        deadline = time.monotonic() + limit
        while True:
            message = self.messages.get(timeout=max(0.01, deadline - time.monotonic()))
            if message is None:
                raise RuntimeError("the server ended")
            if "method" in message and "id" in message:
                # A request of the server: its sections of settings, or nothing.
                items = message.get("params", {}).get("items") if isinstance(message.get("params"), dict) else None
                self.send({"id": message["id"], "result": [None] * len(items) if items else None})
            if is_meant(message):
                return message

    def request(self, method, params):
        self.next += 1
        identity = self.next
        self.send({"id": identity, "method": method, "params": params})
        answer = self.wait(lambda message: message.get("id") == identity and "method" not in message)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer.get("result")

    def memory(self):
        total, todo = 0, [self.child.pid]
        while todo:
            pid = todo.pop()
            try:
                status = Path(f"/proc/{pid}/status").read_text()
                total += int(status.split("VmRSS:")[1].split()[0])
                todo += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
            except (OSError, IndexError):
                pass
        return total / 1024

    def stop(self):
        try:
            self.request("shutdown", None)
            self.notify("exit", None)
            self.child.wait(10)
        finally:
            self.child.kill()


def place(text, needle, shift=0):
    offset = text.index(needle) + shift
    before = text[:offset]
    return {"line": before.count("\n"), "character": len(before) - before.rfind("\n") - 1}


def p99(times):
    return sorted(times)[min(len(times) - 1, int(len(times) * 0.99))]


def timed(work):
    start = time.perf_counter()
    result = work()
    return (time.perf_counter() - start) * 1000, result


def measure(language, root, folder, rounds, pulls):
    rows = {}
    name = "Part0" if language.suffix == "bt" else "part0"
    path = folder / f"{name}.{language.suffix}"
    uri, text = path.as_uri(), path.read_text()
    start = time.perf_counter()
    server = Server(language.command, root)
    capabilities = {"workspace": {"workspaceEdit": {"documentChanges": True, "changeAnnotationSupport": {}, "resourceOperations": ["rename"]}, "configuration": True}}
    folders = [{"uri": root.as_uri(), "name": "bench"}]
    options = {"maxPreloadFiles": 1_000_000}
    server.request("initialize", {"processId": os.getpid(), "rootUri": root.as_uri(), "workspaceFolders": folders, "capabilities": capabilities, "initializationOptions": options})
    server.notify("initialized", {})
    document = {"uri": uri, "languageId": language.identifier, "version": 1, "text": text}
    server.notify("textDocument/didOpen", {"textDocument": document})
    server.wait(lambda message: message.get("method") == "textDocument/publishDiagnostics" and message["params"]["uri"] == uri)
    rows["start to first diagnostics of the open file"] = (time.perf_counter() - start) * 1000
    # Everything is read before the rest is measured.
    server.request("workspace/symbol", {"query": "zzz"})
    time.sleep(1)
    here = lambda position: {"textDocument": {"uri": uri}, "position": position}
    typed, version, current = [], 1, text
    where = text.index(language.edit[0]) + len(language.edit[0])
    for number in range(rounds):
        version += 1
        word = language.edit[1][: number % len(language.edit[1]) + 1]
        current = text[:where] + word + text[where:]
        def keystroke():
            server.notify("textDocument/didChange", {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": current}]})
            if pulls:
                return server.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})
            return server.wait(lambda message: message.get("method") == "textDocument/publishDiagnostics" and message["params"].get("version", version) == version)
        typed.append(timed(keystroke)[0])
    rows["keystroke to diagnostics, p99"] = p99(typed)
    completions = []
    for number in range(rounds):
        version += 1
        word = language.edit[2][: number % len(language.edit[2]) + 1]
        current = text[:where] + word + text[where:]
        server.notify("textDocument/didChange", {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": current}]})
        cursor = place(current, language.edit[0] + word, len(language.edit[0] + word))
        completions.append(timed(lambda: server.request("textDocument/completion", here(cursor)))[0])
    rows["completion, p99"] = p99(completions)
    server.notify("textDocument/didChange", {"textDocument": {"uri": uri, "version": version + 1}, "contentChanges": [{"text": text}]})
    for kind in ("hover", "definition"):
        times = []
        for number in range(rounds):
            needle, shift = language.at[number % len(language.at)]
            took, answer = timed(lambda: server.request(f"textDocument/{kind}", here(place(text, needle, shift))))
            assert answer, (kind, needle)
            times.append(took)
        rows[f"{kind}, p99"] = p99(times)
    method = place(text, language.at[0][0], language.at[0][1])
    took, found = timed(lambda: server.request("textDocument/references", {**here(method), "context": {"includeDeclaration": True}}))
    rows["references across the project"] = took
    took, renamed = timed(lambda: server.request("textDocument/rename", {**here(method), "newName": "renamedStep"}))
    rows["rename across the project"] = took
    rows["memory (MB)"] = server.memory()
    server.stop()
    edits = renamed.get("documentChanges") or list((renamed.get("changes") or {}).values())
    print(f"  {language.name}: {len(found)} references, edits in {len(edits)} files", file=sys.stderr)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("beamtalk")
    parser.add_argument("--peer")
    parser.add_argument("--rounds", type=int, default=200)
    arguments = parser.parse_args()
    ours = Language(
        "beamtalk", "beamtalk", [os.path.abspath(arguments.beamtalk), "lsp"], beamtalk_class, "src", "bt",
        ("    sum := self.total + amount\n", "    other describe size + amount\n", "    part des"),
        [("describe -> String", 2), ("    sum := self", 5), ("Part", 2), ("self.total + amount", 6)],
    )
    peer = Language(
        "pyright", "python", [arguments.peer, "--stdio"], python_class, "", "py",
        ("        sum = self.total + amount\n", "        len(other.describe())\n", "        part.des"),
        [("def describe", 5), ("        sum = self", 9), ("class Part", 7), ("self.total + amount", 6)],
    )
    results = {}
    with tempfile.TemporaryDirectory(prefix="beamtalk-bench-lsp-") as directory:
        for size, (count, methods) in {"300 classes": (300, 6), "100,000 lines": (1250, 10)}.items():
            for language in [ours] + ([peer] if arguments.peer else []):
                root = Path(directory).resolve() / f"{language.name}-{count}"
                root.mkdir()
                if language is ours:
                    (root / "beamtalk.toml").write_text('[package]\nname = "bench"\nversion = "0.1.0"\n')
                folder, lines = language.project(root, count, methods)
                print(f"{language.name}, {count} files, {lines} lines", file=sys.stderr)
                results[language.name, size] = measure(language, root, folder, arguments.rounds, language is ours)
    names = ["beamtalk"] + (["pyright"] if arguments.peer else [])
    sizes = ["300 classes", "100,000 lines"]
    print("| work | " + " | ".join(f"{size}: limit | " + " | ".join(names) for size in sizes) + " |")
    print("|---|" + "---|" * (len(sizes) * (1 + len(names))))
    missed = 0
    for row, limits in LIMITS.items():
        cells = []
        for size, limit in zip(sizes, limits):
            cells.append(str(limit))
            for name in names:
                value = results[name, size].get(row)
                cells.append("-" if value is None else f"{value:.1f}")
                missed += name == "beamtalk" and value is not None and value > limit
        print(f"| {row} | " + " | ".join(cells) + " |")
    print(f"{missed} rows over their limit" if missed else "every row within its limit")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
