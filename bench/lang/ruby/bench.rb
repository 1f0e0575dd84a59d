# The same programs in Ruby. Prints `name median-in-nanoseconds`.
def measure(name)
  times = Array.new(15) do
    started = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    yield
    Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - started
  end
  puts "#{name} #{times.sort[7]}"
  $stdout.flush
end

def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)

class FibValue
  def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
end

def count(n)
  i = sum = 0
  while i < n
    i += 1
    sum += i
  end
  sum
end

Square = Struct.new(:side) { def area = side * side }
Disc = Struct.new(:radius) { def area = radius * 3 }
Strip = Struct.new(:length) { def area = length + 1 }

def sends(n)
  a, b, c, sum = Square.new(3), Disc.new(3), Strip.new(3), 0
  while n > 0
    sum += a.area
    a, b, c = b, c, a
    n -= 1
  end
  sum
end

items = (1..1_000_000).to_a
measure("fib_class") { fib(27) }
measure("fib_value") { FibValue.new.fib(27) }
measure("while_loop") { count(10_000_000) }
measure("collect") { items.map { |x| x + 1 }.size }
measure("select") { items.select { |x| x % 2 == 0 }.size }
measure("inject") { items.inject(0) { |sum, x| sum + x } }
measure("chain") { items.select { |x| x % 2 == 0 }.map { |x| x * 3 }.inject(0) { |sum, x| sum + x } }
measure("sends") { sends(5_000_000) }
