#!/usr/bin/env python3
"""Run the language benchmarks in every language that is installed and print ratios from this one run.

Usage: bench/lang/run.py [path of the beamtalk binary]
"""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# Rows: name, what it does, the most it may cost as a ratio to plain Erlang.
ROWS = [
    ("fib_class", "recursive fib 27, class method", 2.0),
    ("fib_value", "recursive fib 27, method of a Value", 2.0),
    ("while_loop", "whileTrue: loop, 10,000,000 turns", 1.5),
    ("collect", "collect: over 1,000,000 elements", 1.5),
    ("select", "select: over 1,000,000 elements", 1.5),
    ("inject", "inject:into: over 1,000,000 elements", 1.5),
    ("sends", "5,000,000 sends, three classes in turn", 2.5),
    ("actor_send", "200,000 synchronous actor sends", 1.5),
    ("actor_spawn", "50,000 actors with two slots started", 2.0),
    ("dictionary", "200,000 at:put: and at:", 1.5),
    ("concatenation", "100,000 pieces joined by ++ and interpolation", 2.0),
    ("sort_block", "sort: of 200,000 elements", 2.0),
    ("json", "JSON text of 1 MB, written and read", 1.3),
    ("file_lines", "File lines: over 100 MB", 2.0),
    ("subprocess", "200 runs of `true`", 1.5),
]


def measure(command, directory):
    """Lines `name nanoseconds` as a dictionary; empty when the program is not installed."""
    if shutil.which(command[0]) is None:
        return {}
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    times = {}
    for line in done.stdout.splitlines():
        words = line.split()
        if len(words) == 2 and words[1].isdigit():
            times[words[0]] = int(words[1])
    return times


def erlang(binary):
    """Plain Erlang; the runtime's modules are on the path for the one row that needs its JSON codec."""
    sysroot = subprocess.run([binary, "--print-sysroot"], capture_output=True, text=True, check=True).stdout.strip()
    with tempfile.TemporaryDirectory() as out:
        sources = [os.path.join(HERE, "erlang", name) for name in sorted(os.listdir(os.path.join(HERE, "erlang")))]
        subprocess.run(["erlc", "-o", out, *sources], check=True)
        return measure(["erl", "-noshell", "-pa", out, os.path.join(sysroot, "ebin"), "-eval", "bench:main()."], out)


def main():
    binary = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "target", "release", "beamtalk"))
    columns = {
        "Erlang": erlang(binary),
        "Beamtalk": measure([binary, "run", "Bench", "main"], os.path.join(HERE, "beamtalk")),
        "Elixir": measure(["elixir", "bench.exs"], os.path.join(HERE, "elixir")),
        "Ruby": measure(["ruby", "bench.rb"], os.path.join(HERE, "ruby")),
        "Python": measure([sys.executable, "bench.py"], os.path.join(HERE, "python")),
    }
    names = [name for name in columns if name in ("Erlang", "Beamtalk") or columns[name]]
    print(f"| work | {' | '.join(names)} | Beamtalk / Erlang | at most |")
    print(f"|---|{'---:|' * (len(names) + 2)}")
    slow = []
    for row, about, limit in ROWS:
        cells = []
        for name in names:
            time = columns[name].get(row)
            cells.append(f"{time / 1e6:.1f} ms" if time else "—")
        ours, theirs = columns["Beamtalk"].get(row), columns["Erlang"].get(row)
        if not ours or not theirs:
            continue
        ratio = ours / theirs
        if ratio > limit:
            slow.append(row)
        print(f"| {about} | {' | '.join(cells)} | {ratio:.2f}× | {limit}× |")
    if slow:
        print(f"\nover the limit: {', '.join(slow)}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
