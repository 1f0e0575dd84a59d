# The rows that Elixir has, as Elixir programs are written.
defmodule Bench do
  def rows, do: ~w(fib_class fib_value while_loop collect select inject chain sends dictionary actor_send)a

  def prepare(row) when row in [:collect, :select, :inject, :chain], do: Enum.to_list(1..1_000_000)
  def prepare(:sends), do: {struct(Bench.Square), struct(Bench.Disc), struct(Bench.Strip)}

  def prepare(:actor_send) do
    {:ok, echo} = GenServer.start_link(Bench.Echo, nil)
    echo
  end

  def prepare(_), do: nil

  def run(:fib_class, _), do: fib(27)
  def run(:fib_value, _), do: fib(27)
  def run(:while_loop, _), do: count(0, 0, 10_000_000)
  def run(:collect, items), do: Enum.map(items, &(&1 + 1))
  def run(:select, items), do: Enum.filter(items, &(rem(&1, 2) == 0))
  def run(:inject, items), do: Enum.reduce(items, 0, &(&1 + &2))

  def run(:chain, items) do
    items |> Enum.filter(&(rem(&1, 2) == 0)) |> Enum.map(&(&1 * 3)) |> Enum.reduce(0, &(&1 + &2))
  end

  def run(:sends, {a, b, c}), do: sends(5_000_000, a, b, c, 0)
  def run(:actor_send, echo), do: Enum.each(1..100_000, &GenServer.call(echo, {:echo, &1}))

  def run(:dictionary, _) do
    table = Enum.reduce(1..200_000, %{}, &Map.put(&2, &1, &1))
    Enum.reduce(1..200_000, 0, &(&2 + Map.fetch!(table, &1)))
  end

  def fib(n) when n < 2, do: n
  def fib(n), do: fib(n - 1) + fib(n - 2)

  def count(i, sum, n) when i < n, do: count(i + 1, sum + i + 1, n)
  def count(_, sum, _), do: sum

  def sends(0, _, _, _, sum), do: sum
  def sends(n, a, b, c, sum), do: sends(n - 1, b, c, a, sum + a.__struct__.area(a))
end

defmodule Bench.Square do
  defstruct side: 3
  def area(shape), do: shape.side * shape.side
end

defmodule Bench.Disc do
  defstruct radius: 3
  def area(shape), do: shape.radius * 3
end

defmodule Bench.Strip do
  defstruct length: 3
  def area(shape), do: shape.length + 1
end

defmodule Bench.Echo do
  use GenServer
  def init(state), do: {:ok, state}
  def handle_call({:echo, x}, _from, state), do: {:reply, x, state}
end
