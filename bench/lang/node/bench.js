// The same programs in JavaScript. Prints `name median-in-nanoseconds`.
const measure = (name, run) => {
  const times = [];
  for (let i = 0; i < 15; i++) {
    const started = process.hrtime.bigint();
    run();
    times.push(process.hrtime.bigint() - started);
  }
  times.sort((a, b) => (a < b ? -1 : 1));
  console.log(`${name} ${times[7]}`);
};

const fib = (n) => (n < 2 ? n : fib(n - 1) + fib(n - 2));

class FibValue {
  fib(n) {
    return n < 2 ? n : this.fib(n - 1) + this.fib(n - 2);
  }
}

const count = (n) => {
  let i = 0;
  let sum = 0;
  while (i < n) {
    i += 1;
    sum += i;
  }
  return sum;
};

class Square {
  side = 3;
  area() {
    return this.side * this.side;
  }
}

class Disc {
  radius = 3;
  area() {
    return this.radius * 3;
  }
}

class Strip {
  length = 3;
  area() {
    return this.length + 1;
  }
}

const sends = (n) => {
  let [a, b, c, sum] = [new Square(), new Disc(), new Strip(), 0];
  for (; n > 0; n--) {
    sum += a.area();
    [a, b, c] = [b, c, a];
  }
  return sum;
};

const items = Array.from({ length: 1_000_000 }, (_, i) => i + 1);
const isEven = (x) => x % 2 === 0;
measure("fib_class", () => fib(27));
measure("fib_value", () => new FibValue().fib(27));
measure("while_loop", () => count(10_000_000));
measure("collect", () => items.map((x) => x + 1).length);
measure("select", () => items.filter(isEven).length);
measure("inject", () => items.reduce((sum, x) => sum + x, 0));
measure("chain", () => items.filter(isEven).map((x) => x * 3).reduce((sum, x) => sum + x, 0));
measure("sends", () => sends(5_000_000));
