# The same programs in Elixir. Prints `name median-in-nanoseconds`.
defmodule Bench do
  def measure(name, run) do
    times =
      for _ <- 1..5 do
        started = System.monotonic_time(:nanosecond)
        run.()
        System.monotonic_time(:nanosecond) - started
      end

    IO.puts("#{name} #{Enum.at(Enum.sort(times), 2)}")
  end

  def fib(n) when n < 2, do: n
  def fib(n), do: fib(n - 1) + fib(n - 2)

  def count(i, sum, n) when i < n, do: count(i + 1, sum + i + 1, n)
  def count(_, sum, _), do: sum

  def sends(0, _, _, _, sum), do: sum
  def sends(n, a, b, c, sum), do: sends(n - 1, b, c, a, sum + a.__struct__.area(a))
end

defmodule Square do
  defstruct side: 3
  def area(shape), do: shape.side * shape.side
end

defmodule Disc do
  defstruct radius: 3
  def area(shape), do: shape.radius * 3
end

defmodule Strip do
  defstruct length: 3
  def area(shape), do: shape.length + 1
end

items = Enum.to_list(1..1_000_000)
Bench.measure("fib_class", fn -> Bench.fib(27) end)
Bench.measure("fib_value", fn -> Bench.fib(27) end)
Bench.measure("while_loop", fn -> Bench.count(0, 0, 10_000_000) end)
Bench.measure("collect", fn -> length(Enum.map(items, &(&1 + 1))) end)
Bench.measure("select", fn -> length(Enum.filter(items, &(rem(&1, 2) == 0))) end)
Bench.measure("inject", fn -> Enum.reduce(items, 0, &(&1 + &2)) end)
Bench.measure("sends", fn -> Bench.sends(5_000_000, struct(Square), struct(Disc), struct(Strip), 0) end)
