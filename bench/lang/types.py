#!/usr/bin/env python3
"""How long `beamtalk check` takes on generated packages, and what types add to it.

Usage: bench/lang/types.py [path of the beamtalk binary]

Each row is the fastest of some runs of the whole command, so starting the program and reading the library are in it;
`check` is from nothing, without results of an earlier run; `parse` is the same package formatted with `fmt --check`,
which reads and parses every file too.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

CLASS = """Value subclass: Item{n}
  field: size :: Integer = 0
  field: name :: String = ""
  field: other :: Item{m} | Nil = nil

  grow: by :: Integer -> Item{n} => self withSize: self.size + by
  label => "{{self.name}}: {{self.size}}"
  total: items :: List(Item{n}) -> Integer =>
    items inject: 0 into: [:sum :item | sum + item size]
  names: items :: List(Item{n}) => items collect: [:item | item label]
  longest: items :: List(Item{n}) =>
    best := nil
    items do: [:item |
      best isNil
        ifTrue: [best := item]
        ifFalse: [item size > best size ifTrue: [best := item]]
    ]
    best
  next -> Integer =>
    self.other isNil ifTrue: [^0]
    self.other size + 1
  kind: s :: #small | #large -> String => s match: [#small -> "small"; #large -> "large"]
  chain => (self grow: 3) label size + self next
"""


def package(directory, lines):
    count = max(1, lines // (CLASS.count("\n") + 1))
    os.makedirs(os.path.join(directory, "src"))
    with open(os.path.join(directory, "beamtalk.toml"), "w") as manifest:
        manifest.write('[package]\nname = "items"\nversion = "0.1.0"\n')
    for n in range(count):
        with open(os.path.join(directory, "src", f"Item{n}.bt"), "w") as source:
            source.write(CLASS.format(n=n, m=(n + 1) % count))
    return count


def fastest(command, directory, before=lambda number: None, times=3):
    best = None
    for number in range(times):
        before(number)
        start = time.monotonic()
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=600)
        took = time.monotonic() - start
        if done.returncode not in (0, 1):
            sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
        best = took if best is None else min(best, took)
    return best * 1000


def main():
    binary = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "target", "release", "beamtalk"))
    print(f"{'lines':>8} {'check':>10} {'parse':>10} {'one method changed':>20} {'a promise changed':>19} {'nothing changed':>17}")
    for lines in (5_000, 100_000):
        with tempfile.TemporaryDirectory() as directory:
            package(directory, lines)
            path = os.path.join(directory, "src", "Item0.bt")
            text = open(path).read()

            def forget(_):
                shutil.rmtree(os.path.join(directory, "_build"), ignore_errors=True)

            def rewrite(old, new):
                def change(number):
                    # What was written just now is read again whatever its time says: wait until times tell.
                    time.sleep(0.2)
                    with open(path, "w") as source:
                        source.write(text.replace(old, new.format(number)))
                return change

            check = fastest([binary, "check"], directory, forget)
            parse = fastest([binary, "fmt", "--check"], directory)
            body = rewrite("sum + item size", "sum + item size + {}")
            fastest([binary, "check"], directory, body, 1)
            changed = fastest([binary, "check"], directory, body, 5)
            promise = fastest([binary, "check"], directory, rewrite("label =>", "label: x{} =>"), 5)
            fastest([binary, "check"], directory, lambda _: time.sleep(0.2), 1)
            nothing = fastest([binary, "check"], directory, times=5)
            print(
                f"{lines:>8} {check:>8.0f}ms {parse:>8.0f}ms {changed:>18.1f}ms {promise:>17.1f}ms {nothing:>15.1f}ms",
                flush=True,
            )


if __name__ == "__main__":
    main()
