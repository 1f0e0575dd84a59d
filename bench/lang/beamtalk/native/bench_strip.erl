%% A shape with an area.
-module(bench_strip).
-export([area/1]).

area(#{length := Length}) -> Length + 1.
