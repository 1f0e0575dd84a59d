#!/usr/bin/env python3
"""What a large project costs: building it, starting in it, and working in it beside an empty one.

Usage: bench/size/run.py [--classes N] [path of the beamtalk binary]

Medians; every clean build starts from nothing, every first evaluation with nothing running.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "workspace"))

from client import Client  # noqa: E402

METHODS = 20
# Seconds after which all code is loaded.
LOADED = 5


def class_text(number, answer=1):
    """A class of 20 methods: arithmetic, text, a loop, a block and a message to the next class."""
    lines = [f"/// Class {number} of a large project.", f"Value subclass: Item{number}", "  field: size = 0", ""]
    for method in range(METHODS):
        kind = method % 5
        if kind == 0:
            body = f"self.size + {method * answer}"
        elif kind == 1:
            body = f'"item {{self.size}} of {method}"'
        elif kind == 2:
            body = f"(1 to: {method}) inject: 0 into: [:sum :each | sum + each]"
        elif kind == 3:
            body = f"self.size > {method} ifTrue: [self m0] ifFalse: [self m1]"
        else:
            body = f"Item{number // 2} new m{method - 4}"
        lines.append(f"  m{method} => {body}")
    return "\n".join(lines) + "\n"


def project(directory, classes):
    os.makedirs(os.path.join(directory, "src"))
    with open(os.path.join(directory, "beamtalk.toml"), "w") as file:
        file.write('[package]\nname = "large"\nversion = "0.1.0"\n')
    for number in range(classes):
        with open(os.path.join(directory, "src", f"Item{number}.bt"), "w") as file:
            file.write(class_text(number))


def answers(client, count):
    """How long each `1 + 2` and each completion took."""
    times = [[], []]
    for _ in range(count):
        for index, request in enumerate(({"op": "eval", "code": "1 + 2"}, {"op": "complete", "code": "Lis"})):
            started = time.perf_counter()
            client.request(**request)
            times[index].append(time.perf_counter() - started)
    return times


class Place:
    """A project with a home of its own, so that nothing else is running in it."""

    def __init__(self, binary, directory):
        self.binary, self.directory, self.home = binary, directory, directory + "-home"
        os.makedirs(self.home, mode=0o700)

    def run(self, *words):
        environment = dict(os.environ, BEAMTALK_HOME=self.home)
        done = subprocess.run([self.binary, *words], cwd=self.directory, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"beamtalk {' '.join(words)} failed:\n{done.stdout}{done.stderr}")

    def timed(self, *words):
        started = time.perf_counter()
        self.run(*words)
        return time.perf_counter() - started

    def first_evaluation(self):
        taken = self.timed("eval", "1 + 2")
        self.run("workspace", "stop")
        return taken

    def client(self):
        """A client of the workspace, which has answered once."""
        self.run("eval", "1 + 2")
        return Client(self.home)


def warm(large, empty, rounds=5):
    """Medians of `1 + 2` and of a completion, in seconds: in the large project just started, while the code of its classes is loaded; then
    in both, in turns."""
    clients = [place.client() for place in (empty, large)]
    early = [statistics.median(each) for each in answers(clients[1], 300)]
    time.sleep(LOADED)
    times = [([], []), ([], [])]
    for _ in range(rounds):
        for client, known in zip(clients, times):
            for some, more in zip(known, answers(client, 100)):
                some.extend(more)
    for place in (empty, large):
        place.run("workspace", "stop")
    return early, *([statistics.median(each) for each in known] for known in times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", nargs="?", default=os.path.join(ROOT, "target", "release", "beamtalk"))
    parser.add_argument("--classes", type=int, default=1000)
    options = parser.parse_args()
    binary = os.path.abspath(options.binary)
    rows = []
    with tempfile.TemporaryDirectory() as base:
        large, empty = (Place(binary, os.path.join(base, name)) for name in ("large", "empty"))
        project(large.directory, options.classes)
        project(empty.directory, 0)
        clean = []
        for _ in range(3):
            shutil.rmtree(os.path.join(large.directory, "_build"), ignore_errors=True)
            clean.append(large.timed("build"))
        one = []
        for turn in range(5):
            with open(os.path.join(large.directory, "src", "Item7.bt"), "w") as file:
                file.write(class_text(7, turn + 2))
            one.append(large.timed("build"))
        nothing = [large.timed("build") for _ in range(9)]
        empty.run("build")
        first = [large.first_evaluation() for _ in range(5)]
        first_empty = [empty.first_evaluation() for _ in range(5)]
        early, (one_empty, complete_empty), (one_large, complete) = warm(large, empty)
        name = f"{options.classes:,} classes × {METHODS} methods"
        rows = [
            (f"build {name}, clean", statistics.median(clean), 9.0, "s", 1),
            ("one file changed", statistics.median(one), 0.3, "s", 1),
            ("nothing changed", statistics.median(nothing), 0.03, "s", 1),
            ("first evaluation, built, nothing running", statistics.median(first), 0.6, "s", 1),
            ("the same in an empty project", statistics.median(first_empty), None, "s", 1),
            ("warm `1 + 2`", one_large, 1.2 * one_empty, "ms", 1000),
            ("the same in an empty project", one_empty, None, "ms", 1000),
            ("the same just started, while code is loaded", early[0], None, "ms", 1000),
            ("completion", complete, 1.2 * complete_empty, "ms", 1000),
            ("the same in an empty project", complete_empty, None, "ms", 1000),
            ("the same just started, while code is loaded", early[1], None, "ms", 1000),
        ]
    print("| work | measured | at most | |\n|---|---:|---:|---|")
    missed = False
    for work, seconds, limit, unit, scale in rows:
        verdict = "" if limit is None else "kept" if seconds <= limit else "missed"
        missed = missed or verdict == "missed"
        most = "" if limit is None else f"{limit * scale:.2f} {unit}"
        print(f"| {work} | {seconds * scale:.2f} {unit} | {most} | {verdict} |")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
