%% A shape with an area.
-module(bench_square).
-export([area/1]).

area(#{side := Side}) -> Side * Side.
