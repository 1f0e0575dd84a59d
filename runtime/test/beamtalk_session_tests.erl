%% Sessions behind a pipe that gives back what is written to it.
-module(beamtalk_session_tests).
-include("assertions.hrl").

session_test_() ->
    {setup, fun start/0, fun(_) -> ok end,
     fun(Port) -> [{timeout, 20, fun() -> connected(Port, Test) end}
                   || Test <- [fun values_and_names/0, fun what_was_sent_counts_at_once/0, fun failures_keep_what_was_assigned/0, fun limits/0, fun what_was_there_is_not_held_against_the_next/0,
                               fun interrupting/0, fun output_is_joined_and_capped/0,
                               fun credit_pauses_the_writer/0, fun input/0, fun blocks_survive_a_kill/0,
                               fun large_variables_stay/0, fun unknown_sessions/0,
                               fun a_kill_is_not_a_limit/0, fun binaries_count/0, fun a_killed_keeper_comes_back/0]] end}.

start() ->
    beamtalk_support:start_workspace().

%% Frames come to the port's owner, and each test has a process of its own.
connected(Port, Test) ->
    erlang:port_connect(Port, self()),
    Session = integer_to_binary(erlang:unique_integer([positive])),
    put(session, Session),
    ok = beamtalk_bridge_request:start(0, Session, <<"session-start">>, #{}),
    {res, 0, _} = frame(),
    Test().

request(Id, Op, Args) -> beamtalk_session_keeper:request(Op, Id, get(session), Args).

frame() -> frame(30000).

frame(Time) ->
    receive {Port, {data, Frame}} when is_port(Port) -> binary_to_term(Frame)
    after Time -> none
    end.

forms(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text ++ "."),
    {ok, Forms} = erl_parse:parse_exprs(Tokens),
    term_to_binary(Forms).

eval(Text) -> eval(Text, #{}).

eval(Text, Args) ->
    Id = erlang:unique_integer([positive]),
    ok = request(Id, <<"eval">>, Args#{<<"expression">> => forms(Text)}),
    {Id, outcome(Id, [])}.

outcome(Id, Output) ->
    case frame() of
        {out, Id, Text} ->
            beamtalk_session_keeper:credit(Id, byte_size(Text)),
            outcome(Id, [Output, Text]);
        {Tag, Id, Map} when Tag =:= res; Tag =:= err -> {Tag, iolist_to_binary(Output), Map};
        Other -> {other, Other}
    end.

set(Name, Value) -> lists:concat(["beamtalk_cell:write(beamtalk_cell:session(", Name, "), ", Value, ")"]).
get_value(Name) -> lists:concat(["beamtalk_cell:read(beamtalk_cell:session(", Name, "))"]).

text(Text) ->
    {_, {res, _, #{<<"text">> := Shown}}} = eval(Text),
    Shown.

kind(Text, Args) ->
    {_, {err, _, Error}} = eval(Text, Args),
    {maps:get(<<"kind">>, Error), maps:get(<<"limit">>, maps:get(<<"details">>, Error, #{}), nil)}.

values_and_names() ->
    {_, {res, <<>>, First}} = eval(set(x, 7)),
    ?assertMatch(#{<<"value">> := 7, <<"text">> := <<"7">>, <<"class">> := <<"Integer">>, <<"names">> := [<<"x">>]}, First),
    {_, {res, <<>>, Second}} = eval(set(x, 8)),
    ?assertNot(is_map_key(<<"names">>, Second)),
    ?assertEqual(<<"8">>, text(get_value(x))),
    ok = request(90, <<"clear">>, #{}),
    ?assertMatch({res, 90, #{<<"names">> := []}}, frame()),
    ?assertEqual({<<"undefined_variable">>, nil}, kind(get_value(x), #{})).

%% Also by an input that fails, and in a session that has ended since.
what_was_sent_counts_at_once() ->
    Counted = spawn(fun() -> receive stop -> ok end end),
    Sends = "[beamtalk_tracing:record(list_to_pid(\"" ++ pid_to_list(Counted) ++ "\"), 'Counted', tick, sync, 0, ok)"
            " || _ <- lists:seq(1, 300)]",
    {_, {res, _, _}} = eval(Sends),
    ?assertMatch(#{<<"tick">> := #{<<"calls">> := 300}}, beamtalk_tracing:'class statsFor:'(nil, Counted)),
    {_, {err, _, _}} = eval(Sends ++ ", atom_to_list(3)"),
    ?assertMatch(#{<<"tick">> := #{<<"calls">> := 600}}, beamtalk_tracing:'class statsFor:'(nil, Counted)),
    Counted ! stop.

failures_keep_what_was_assigned() ->
    ?assertEqual({<<"argument_error">>, nil}, kind(set(x, 1) ++ ", atom_to_list(3)", #{})),
    ?assertEqual(<<"1">>, text(get_value(x))).

limits() ->
    text(set(x, 1)),
    Endless = set(x, 2) ++ ", (fun Loop() -> Loop() end)()",
    ?assertEqual({<<"eval_limit">>, <<"time">>}, kind(Endless, #{<<"time_ms">> => 50})),
    ?assertEqual(<<"1">>, text(get_value(x))),
    Large = set(x, 3) ++ ", length(lists:seq(1, 20000000))",
    ?assertEqual({<<"eval_limit">>, <<"heap">>}, kind(Large, #{<<"heap_words">> => 1000000})),
    ?assertEqual(<<"1">>, text(get_value(x))).

%% An evaluation is ended for what it takes itself: neither garbage nor variables of earlier ones count against it, and
%% the VM may collect as often as it likes.
what_was_there_is_not_held_against_the_next() ->
    Limit = #{<<"heap_words">> => 8000000},
    Busy = "lists:foldl(fun(N, _) -> erlang:garbage_collect(), length(lists:seq(1, N)) end, 0, lists:duplicate(5, 1000))",
    {_, {res, _, _}} = eval(set(big, "lists:seq(1, 2500000)")),
    ?assertMatch({_, {res, _, #{<<"text">> := <<"1000">>}}}, eval(Busy, Limit)),
    {_, {res, _, _}} = eval(set(big, "nil"), Limit),
    ?assertMatch({_, {res, _, #{<<"text">> := <<"1000">>}}}, eval(Busy, Limit)),
    ?assertEqual({<<"eval_limit">>, <<"heap">>}, kind("length(lists:seq(1, 100000000))", Limit)).

interrupting() ->
    ok = request(1000, <<"eval">>, #{<<"expression">> => forms("timer:sleep(infinity)")}),
    ok = request(1001, <<"eval">>, #{<<"expression">> => forms("1")}),
    ?assertMatch({err, 1001, #{<<"kind">> := <<"busy">>}}, frame()),
    ok = request(1002, <<"interrupt">>, #{<<"for">> => 7}),
    ?assertMatch({res, 1002, #{<<"value">> := false}}, frame()),
    ok = request(1003, <<"interrupt">>, #{}),
    ?assertMatch({res, 1003, #{<<"value">> := true}}, frame()),
    ?assertMatch({err, 1000, #{<<"kind">> := <<"interrupted">>}}, frame()),
    ?assertEqual(<<"2">>, text("1 + 1")).

output_is_joined_and_capped() ->
    {_, {res, Output, _}} = eval("[io:put_chars(integer_to_list(N)) || N <- lists:seq(1, 9)]"),
    ?assertEqual(<<"123456789">>, Output),
    {_, {res, Capped, _}} = eval("[io:put_chars(<<\"abcdefg\">>) || _ <- lists:seq(1, 100)], ok",
                                 #{<<"output_bytes">> => 20}),
    ?assertEqual(<<"abcdefgabcdefgabcdef… output truncated (20 bytes)"/utf8>>, Capped).

credit_pauses_the_writer() ->
    Text = "[io:put_chars(binary:copy(<<\"x\">>, 1000)) || _ <- lists:seq(1, 400)], ok",
    ok = request(2000, <<"eval">>, #{<<"expression">> => forms(Text)}),
    Taken = taken(2000, 0),
    ?assertEqual(262144, Taken),
    beamtalk_session_keeper:credit(2000, 1000000),
    {res, Rest, _} = outcome(2000, []),
    ?assertEqual(400000, Taken + byte_size(Rest)).

taken(Id, Size) ->
    case frame(300) of
        {out, Id, Text} -> taken(Id, Size + byte_size(Text));
        none -> Size
    end.

input() ->
    ok = request(3000, <<"eval">>, #{<<"expression">> => forms("{io:get_line(\"name: \"), io:get_line(\"\")}")}),
    ?assertEqual({need_input, 3000, <<"name: ">>}, frame()),
    ok = request(3001, <<"stdin">>, #{<<"value">> => <<"Ada\n">>}),
    ?assertEqual({res, 3001, #{}}, frame()),
    ?assertEqual({need_input, 3000, <<>>}, frame()),
    ok = request(3002, <<"stdin">>, #{<<"eof">> => true}),
    %% The keeper answers the reader first, so the two frames may come in any order.
    Frames = lists:sort([frame(), frame()]),
    ?assertMatch([{res, 3000, _}, {res, 3002, _}], Frames),
    ok = request(3003, <<"stdin">>, #{<<"value">> => <<"late">>}),
    ?assertMatch({err, 3003, #{<<"kind">> := <<"no_input_pending">>}}, frame()).

%% A block in a variable shares the session's variables with whoever uses them, also after a new start.
blocks_survive_a_kill() ->
    text(set(n, 0)),
    Maker = "fun(Env) -> fun() -> beamtalk_cell:write(Env, 1, beamtalk_cell:read(Env, 1) + 1) end end",
    {_, {res, _, _}} = eval(set(b, "beamtalk_cell:block(" ++ Maker ++ ", {beamtalk_cell:session(n)})")),
    ?assertEqual({<<"eval_limit">>, <<"time">>}, kind("timer:sleep(infinity)", #{<<"time_ms">> => 30})),
    ?assertEqual(<<"1">>, text("(" ++ get_value(b) ++ ")()")),
    ?assertEqual(<<"2">>, text("(" ++ get_value(b) ++ ")()")),
    ?assertEqual(<<"2">>, text(get_value(n))).

large_variables_stay() ->
    eval(set(big, "lists:seq(1, 100000)")),
    {ok, Copy} = beamtalk_session_keeper:own_variable(get(session), big),
    ?assertEqual(100000, length(Copy)),
    text(set(small, 1)),
    ?assertEqual(<<"100000">>, text("length(" ++ get_value(big) ++ ")")).

unknown_sessions() ->
    ok = beamtalk_session_keeper:request(<<"eval">>, 4000, <<"nobody">>, #{}),
    ?assertMatch({err, 4000, #{<<"kind">> := <<"session_not_found">>}}, frame()),
    ?assertEqual(not_mine, beamtalk_session_keeper:request(<<"other">>, 4001, get(session), #{})).

a_kill_is_not_a_limit() ->
    ?assertMatch({<<"erlang_exit">>, nil}, kind("exit(self(), kill)", #{<<"heap_words">> => 1000000})),
    ?assertEqual({<<"eval_limit">>, <<"heap">>},
                 kind("length(lists:seq(1, 100000000))", #{<<"heap_words">> => 1000000})),
    ?assertEqual(<<"3">>, text("1 + 2")).

%% A string that is doubled lives outside the heap.
binaries_count() ->
    Double = "lists:foldl(fun(_, B) -> <<B/binary, B/binary>> end, <<0:4096>>, lists:seq(1, 16))",
    Limit = #{<<"heap_words">> => 1000000},
    ?assertEqual({<<"eval_limit">>, <<"heap">>}, kind(set("big", Double), Limit)),
    ?assertMatch({_, {res, _, _}}, eval("byte_size(lists:foldl(fun(_, B) -> <<B/binary, B/binary>> end, <<0:4096>>, [1, 2]))",
                                        Limit)),
    %% What was garbage long ago does not count.
    ?assertMatch({_, {res, _, _}}, eval("[byte_size(binary:copy(<<0>>, 1000000)) || _ <- lists:seq(1, 100)]", Limit)).

a_killed_keeper_comes_back() ->
    eval(set("kept", "7")),
    [{_, Keeper, _, _}] = ets:lookup(beamtalk_sessions, get(session)),
    Id = erlang:unique_integer([positive]),
    ok = request(Id, <<"eval">>, #{<<"expression">> => forms("receive after infinity -> ok end")}),
    beamtalk_support:await(fun() -> ets:member(beamtalk_running, Id) end),
    [{_, _, Evaluator, _}] = ets:lookup(beamtalk_running, Id),
    beamtalk_session_keeper:replace(get(session)),
    beamtalk_support:await(fun() ->
        [{_, New, _, _}] = ets:lookup(beamtalk_sessions, get(session)),
        New =/= Keeper
    end),
    ?assertMatch({err, Id, #{<<"kind">> := <<"interrupted">>}}, frame()),
    beamtalk_support:await(fun() -> not is_process_alive(Evaluator) end),
    ?assertEqual(<<"7">>, text(get_value("kept"))).
