-module(beamtalk_walk_tests).
-include("assertions.hrl").
-export([hot/2]).

forms(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    {ok, Forms} = erl_parse:parse_exprs(Tokens),
    term_to_binary(Forms).

%% The value of a text with code made after so many turns, and waited for.
hot(Threshold, Text) ->
    ok = beamtalk_walk:set_threshold({Threshold, wait}),
    try run(Text) after beamtalk_walk:set_threshold(default) end.

walked(Text) ->
    ok = beamtalk_walk:set_threshold(infinity),
    try run(Text) after beamtalk_walk:set_threshold(default) end.

run(Text) ->
    beamtalk_support:start(),
    beamtalk_eval:value(forms(Text)).

loop_test() ->
    Text = "X = 3, (fun Loop(S, I) -> case I =< 100 of true -> Loop(S + I * X, I + 1); false -> S end end)(0, 1).",
    ?assertEqual({value, 15150}, walked(Text)),
    [?assertEqual({value, 15150}, hot(N, Text)) || N <- [1, 2, 50, 101, 102]].
