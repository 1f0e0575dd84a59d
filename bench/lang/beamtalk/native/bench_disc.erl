%% A shape with an area.
-module(bench_disc).
-export([area/1]).

area(#{radius := Radius}) -> Radius * 3.
