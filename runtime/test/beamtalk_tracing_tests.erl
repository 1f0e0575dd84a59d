-module(beamtalk_tracing_tests).
-include("assertions.hrl").

-define(D, beamtalk_dispatch).

setup() ->
    beamtalk_support:start(),
    beamtalk_support:define(#{name => 'Traced', superclass => 'Actor', kind => actor,
        methods => [{ping, 0, "fun(_) -> pong end"}, {die, 0, "fun(_) -> exit(burnt) end"}]}).

traced() ->
    {_, _, _, Pid} = Actor = ?D:send(beamtalk_class:named('Traced'), spawn),
    unlink(Pid),
    Actor.

start_test_() ->
    {setup, fun setup/0,
     [{"a start is told however an actor ends", fun ends/0},
      {"what was dropped does not come back", fun dropped/0},
      {"every call is counted, in whatever order actors are asked", fun counted/0},
      {"others see what was sent", fun seen_by_others/0}]}.

selectors(Actor) -> maps:keys(beamtalk_tracing:'class statsFor:'(nil, Actor)).

has_start(Actor) -> lists:member(<<"start">>, selectors(Actor)).

%% Ways to end, with a message before and without. An exit signal to one that was never asked leaves nothing.
ways() ->
    [{stop, fun beamtalk_actor_class:stop/1, [asked, unasked]},
     {kill, fun beamtalk_actor_class:kill/1, [asked, unasked]},
     {die, fun(Actor) -> catch ?D:send(Actor, die) end, [asked, unasked]},
     {killed_by_others, fun(Actor) -> exited(Actor, kill) end, [asked]},
     {signal, fun(Actor) -> exited(Actor, burnt) end, [asked]}].

exited({_, _, _, Pid}, Reason) ->
    Monitor = monitor(process, Pid),
    exit(Pid, Reason),
    receive {'DOWN', Monitor, _, _, _} -> ok end.

ask(Actor, asked) -> pong = ?D:send(Actor, ping);
ask(_, unasked) -> ok.

ends() ->
    [begin
         Actor = traced(),
         ask(Actor, Asked),
         ?assertEqual({Way, Asked, true}, {Way, Asked, has_start(Actor)}),
         End(Actor),
         ?assertEqual({Way, Asked, true}, {Way, Asked, has_start(Actor)}),
         #{<<"start">> := #{<<"calls">> := 1}} = beamtalk_tracing:'class statsFor:'(nil, Actor)
     end || {Way, End, Cases} <- ways(), Asked <- Cases].

dropped() ->
    [begin
         Actor = traced(),
         ask(Actor, Before),
         beamtalk_tracing:'class clear'(nil),
         ?assertEqual([], selectors(Actor)),
         ask(Actor, After),
         End(Actor),
         ?assertEqual({Way, Before, After, false}, {Way, Before, After, has_start(Actor)})
     end || {Way, End, _} <- ways(), Before <- [asked, unasked], After <- [asked, unasked]],
    Ended = traced(),
    ask(Ended, asked),
    beamtalk_actor_class:kill(Ended),
    beamtalk_tracing:'class clear'(nil),
    ?assertEqual([], selectors(Ended)),
    beamtalk_actor_class:kill(Ended),
    ?assertEqual([], selectors(Ended)).

%% Each once, in turn, and several times in a row, over more calls than a sender keeps; the second time there are rows already.
counted() ->
    Orders = [fun(Actors) -> Actors end,
              fun(Actors) -> lists:append(lists:duplicate(300, lists:sublist(Actors, 3))) end,
              fun(Actors) -> lists:append([lists:duplicate(1 + N rem 5, Actor)
                                           || {N, Actor} <- lists:zip(lists:seq(1, length(Actors)), Actors)]) end],
    [begin
         Actors = [traced() || _ <- lists:seq(1, 300)],
         [begin
              Asked = Order(Actors),
              [ask(Actor, asked) || Actor <- Asked],
              [counts(Actor, Round * length([A || A <- Asked, A =:= Actor])) || Actor <- Actors]
          end || Round <- [1, 2]],
         [beamtalk_actor_class:kill(Actor) || Actor <- Actors]
     end || Order <- Orders].

counts(Actor, 0) -> ?assertEqual([<<"start">>], selectors(Actor));
counts(Actor, Calls) ->
    #{<<"ping">> := #{<<"calls">> := Counted, <<"ok">> := Ok, <<"min_duration_ns">> := Min, <<"max_duration_ns">> := Max,
                      <<"avg_duration_ns">> := Mean}} = beamtalk_tracing:'class statsFor:'(nil, Actor),
    ?assertEqual({Calls, Calls}, {Counted, Ok}),
    ?assert(Min =< Mean andalso Mean =< Max).

%% What one process sends others see soon, though it neither asks nor ends: a slow message at once, others when they are old.
seen_by_others() ->
    Ago = fun(Milliseconds) -> os:perf_counter() - erlang:convert_time_unit(Milliseconds, millisecond, perf_counter) end,
    {Asked, Tester} = {spawn(fun() -> receive stop -> ok end end), self()},
    Send = fun(Selector, Milliseconds) -> beamtalk_tracing:record(Asked, 'Asked', Selector, sync, Ago(Milliseconds), ok) end,
    Sender = spawn_link(fun() ->
        Send(slow, 150),
        Send(first, 99),
        Tester ! {self(), kept},
        receive later -> ok end,
        Send(second, 0),
        Tester ! {self(), told},
        receive stop -> ok end
    end),
    receive {Sender, kept} -> ok end,
    ?assertEqual([<<"slow">>], selectors(Asked)),
    erlang:send_after(5, Sender, later),
    receive {Sender, told} -> ok end,
    ?assertEqual([<<"first">>, <<"second">>, <<"slow">>], lists:sort(selectors(Asked))),
    [Process ! stop || Process <- [Sender, Asked]].

%% A pass that takes long is rare where it finds nothing, and only there: rows of ended actors do not pile up.
pause_test() ->
    ?assertEqual(2000, beamtalk_tracing:pause(60000, 0, 10000)),
    ?assertEqual(20000, beamtalk_tracing:pause(1000000, 0, 1000000)),
    ?assertEqual(20000, beamtalk_tracing:pause(1000000, 99999, 1000000)),
    ?assertEqual(2000, beamtalk_tracing:pause(1000000, 100000, 1000000)),
    ?assertEqual(2000, beamtalk_tracing:pause(0, 0, 0)).
