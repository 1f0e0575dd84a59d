"""The same programs in Python. Prints `name median-in-nanoseconds`."""
import functools
import time


def measure(name, run):
    times = []
    for _ in range(15):
        started = time.perf_counter_ns()
        run()
        times.append(time.perf_counter_ns() - started)
    print(name, sorted(times)[7], flush=True)


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


class FibValue:
    def fib(self, n):
        return n if n < 2 else self.fib(n - 1) + self.fib(n - 2)


def count(n):
    i = total = 0
    while i < n:
        i += 1
        total += i
    return total


class Square:
    side = 3

    def area(self):
        return self.side * self.side


class Disc:
    radius = 3

    def area(self):
        return self.radius * 3


class Strip:
    length = 3

    def area(self):
        return self.length + 1


def sends(n):
    a, b, c, total = Square(), Disc(), Strip(), 0
    while n:
        total += a.area()
        a, b, c = b, c, a
        n -= 1
    return total


items = list(range(1, 1_000_001))
measure("fib_class", lambda: fib(27))
measure("fib_value", lambda: FibValue().fib(27))
measure("while_loop", lambda: count(10_000_000))
measure("collect", lambda: len(list(map(lambda x: x + 1, items))))
measure("select", lambda: len(list(filter(lambda x: x % 2 == 0, items))))
measure("inject", lambda: functools.reduce(lambda total, x: total + x, items, 0))
measure("chain", lambda: sum(x * 3 for x in items if x % 2 == 0))
measure("sends", lambda: sends(5_000_000))
