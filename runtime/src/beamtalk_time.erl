%% Primitives of Time: Unix time as an Integer.
-module(beamtalk_time).

-export(['class nowS'/1, 'class nowMs'/1, 'class nowUs'/1]).

-spec 'class nowS'(term()) -> integer().
'class nowS'(_Class) -> erlang:system_time(second).

-spec 'class nowMs'(term()) -> integer().
'class nowMs'(_Class) -> erlang:system_time(millisecond).

-spec 'class nowUs'(term()) -> integer().
'class nowUs'(_Class) -> erlang:system_time(microsecond).
