#!/usr/bin/env python3
"""Run the language benchmarks and print what one run can tell.

Usage: bench/lang/run.py [--quick] [--samples N] [--rows a,b] [--json FILE] [path of the beamtalk binary]

Erlang, Beamtalk and Elixir run in one node, in turn, every sample in a fresh process. Programs of other languages run in
processes of their own; their column is for the reader and has no ratio. A ratio comes with the interval in which it lies
for 95 of 100 runs. Where the limit lies inside that interval nothing is claimed: "not settled". The column `Erlang again`
is the same program as `Erlang`: its distance from 1.00 is what a run cannot tell apart.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

from stats import ratio, spread, verdict

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PROJECT = os.path.join(HERE, "beamtalk")

# Rows: name, what it does, the most it may cost as a ratio, and to whom: the fastest of these.
ERLANG = ("Erlang",)
BEST = ("Erlang", "Elixir")
ROWS = [
    ("fib_class", "recursive fib 27, class method", 1.15, ERLANG),
    ("fib_value", "recursive fib 27, method of a Value", 1.15, ERLANG),
    ("while_loop", "whileTrue: loop, 10,000,000 turns", 1.05, ERLANG),
    ("collect", "collect: over 1,000,000 elements", 1.0, BEST),
    ("select", "select: over 1,000,000 elements", 1.0, BEST),
    ("inject", "inject:into: over 1,000,000 elements", 1.0, BEST),
    ("chain", "select:, collect:, inject:into: over 1,000,000 against one recursion", 1.2, ERLANG),
    ("sends", "5,000,000 sends, three classes in turn", 1.25, ERLANG),
    ("actor_send", "100,000 synchronous actor sends", 1.15, ERLANG),
    ("actor_spawn", "50,000 actors with two slots started", 1.2, ERLANG),
    ("dictionary", "200,000 at:put: and at:", 1.1, ERLANG),
    ("concatenation", "100,000 pieces joined by ++ and interpolation", 1.1, ERLANG),
    ("sort_block", "sort: of 200,000 elements", 1.1, ERLANG),
    ("json", "JSON text of 1 MB, written and read", 1.1, ERLANG),
    ("file_lines", "File lines: over 100 MB", 1.1, ERLANG),
    ("subprocess", "200 runs of `true`", 1.1, ERLANG),
    ("many_actors", "1,000,000 actors started and asked", 1.2, ERLANG),
]
# Too long for every day.
SLOW_ROWS = {"many_actors", "file_lines", "subprocess"}
OTHERS = [
    ("Python", [sys.executable, "python/bench.py"]),
    ("Ruby", ["ruby", "ruby/bench.rb"]),
    ("Node", ["node", "node/bench.js"]),
]


def elixir_paths(out):
    """Directories with the Elixir rows and what they need; none when Elixir is not installed."""
    if shutil.which("elixirc") is None:
        return []
    subprocess.run(["elixirc", "-o", out, os.path.join(HERE, "elixir", "bench.ex")], check=True, stdout=subprocess.DEVNULL)
    libraries = subprocess.run(["elixir", "-e", "IO.write(:code.lib_dir(:elixir))"], check=True, capture_output=True, text=True)
    return [out, os.path.join(libraries.stdout.strip(), "ebin")]


def samples_of(binary, rows, samples, paths):
    """Row to contender to its samples (nanoseconds, milliseconds of all cores, reductions, bytes), in the order they were taken."""
    environment = dict(os.environ, BENCH_ROWS=" ".join(rows), BENCH_SAMPLES=str(samples), BENCH_PATHS=":".join(paths))
    done = subprocess.run(
        [binary, "run", "Bench", "main"], cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=7200
    )
    if done.returncode != 0:
        sys.exit(f"beamtalk run Bench main failed:\n{done.stdout}{done.stderr}")
    taken = {}
    for line in done.stdout.splitlines():
        cells = line.split("\t")
        if len(cells) == 6:
            row, contender, *numbers = cells
            taken.setdefault(row, {}).setdefault(contender, []).append([int(number) for number in numbers])
    return taken


def others(rows):
    """The median of each row in the languages outside the BEAM."""
    columns = {}
    for name, command in OTHERS:
        if shutil.which(command[0]) is None:
            continue
        done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=600, check=True)
        medians = dict(line.split() for line in done.stdout.splitlines())
        columns[name] = {row: int(medians[row]) for row in rows if row in medians}
    return columns


def milliseconds(nanoseconds):
    return f"{nanoseconds / 1e6:.1f} ms"


def column(contenders, name, index):
    return [sample[index] for sample in contenders[name]]


def judged(row, limit, rivals, contenders):
    """What the samples of a row say, as data: printed now, compared later."""
    ours = column(contenders, "Beamtalk", 0)
    rivals = [name for name in rivals if name in contenders]
    rival = min(rivals, key=lambda name: statistics.median(column(contenders, name, 0)))
    middle, low, high = ratio(ours, column(contenders, rival, 0))
    again = ratio(column(contenders, "Erlang again", 0), column(contenders, "Erlang", 0))

    def share(index):
        theirs = statistics.mean(column(contenders, rival, index))
        return statistics.mean(column(contenders, "Beamtalk", index)) / theirs if theirs else None

    return {
        "row": row,
        "limit": limit,
        "rival": rival,
        "ratio": [middle, low, high],
        "again": again,
        "cores": share(1),
        "reductions": share(2),
        "memory": share(3),
        "verdict": verdict(low, high, limit),
        "median": {name: statistics.median(column(contenders, name, 0)) for name in contenders},
        "spread": {name: spread(column(contenders, name, 0)) for name in contenders},
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", nargs="?", default=os.path.join(ROOT, "target", "release", "beamtalk"))
    parser.add_argument("--quick", action="store_true", help="the rows that take little, with fewer samples")
    parser.add_argument("--samples", type=int)
    parser.add_argument("--rows", help="names of rows, with commas")
    parser.add_argument("--json", help="a file for the results, for bench/compare")
    options = parser.parse_args()
    chosen = options.rows.split(",") if options.rows else [row[0] for row in ROWS]
    if options.quick:
        chosen = [row for row in chosen if row not in SLOW_ROWS]
    samples = options.samples or (7 if options.quick else 15)
    os.makedirs(os.path.join(PROJECT, "_build"), exist_ok=True)
    lines = os.path.join(PROJECT, "_build", "lines.txt")
    if "file_lines" in chosen:
        with open(lines, "w") as file:
            file.write("a line of text that is neither long nor short, as they are\n" * 1_700_000)
    with tempfile.TemporaryDirectory() as out:
        taken = samples_of(os.path.abspath(options.binary), chosen, samples, elixir_paths(out))
    if os.path.exists(lines):
        os.remove(lines)
    outside = {} if options.quick else others(chosen)
    names = ["Erlang", "Beamtalk"] + (["Elixir"] if any("Elixir" in row for row in taken.values()) else []) + list(outside)
    print(f"| work | {' | '.join(names)} | ratio | 95 % interval | Erlang again | cores | reductions | memory | at most | |")
    print(f"|---|{'---:|' * (len(names) + 7)}---|")
    results = []
    for row, about, limit, rivals in ROWS:
        if row not in taken:
            continue
        result = judged(row, limit, rivals, taken[row])
        results.append(result)
        cells = []
        for name in names:
            if name in result["median"]:
                cells.append(f"{milliseconds(result['median'][name])} ±{result['spread'][name]:.0%}")
            else:
                time = outside.get(name, {}).get(row)
                cells.append(milliseconds(time) if time else "—")
        middle, low, high = result["ratio"]
        ours = "—" if result["verdict"] == "not settled" else f"{middle:.2f}×"
        whom = "" if result["rival"] == "Erlang" else f" of {result['rival']}"
        shares = [f"{share:.2f}×" if share is not None else "—" for share in (result["cores"], result["reductions"], result["memory"])]
        print(
            f"| {about} | {' | '.join(cells)} | {ours}{whom} | {low:.2f}–{high:.2f} | {result['again'][0]:.2f}× "
            f"| {' | '.join(shares)} | {limit}× | {result['verdict']} |"
        )
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)
    missed = [result["row"] for result in results if result["verdict"] == "missed"]
    if missed:
        print(f"\nover the limit: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
