%% Circles of those who wait, whatever they wait for: an answer, blocks in processes of their own, the start or the end of
%% an actor, handlers of an announcement, the lock of a class.
-module(beamtalk_actor_waits_tests).
-include("assertions.hrl").

-define(D, beamtalk_dispatch).

setup() ->
    beamtalk_support:start(),
    beamtalk_support:define(#{name => 'Knot', superclass => 'Actor', kind => actor, slots => [{hook, "nil"}],
        methods => [{initialize, 0, "fun(_) -> case beamtalk_actor:get_field(hook) of nil -> nil; Hook -> Hook() end end"},
                    {n, 0, "fun(_) -> 7 end"},
                    {'run:', 1, "fun(_, B) -> B() end"}],
        class_methods => [{'spawnWith:', 1, "fun(S, D) -> beamtalk_actor_class:spawn_with(S, D) end"}]}),
    [beamtalk_support:define(#{name => Name, superclass => 'Object', kind => object, class_slots => [{last, "0"}],
        class_methods => [{'run:', 1, "fun(S, B) -> beamtalk_class_state:locked(S, fun() -> B() end) end"}]})
     || Name <- ['Lock', 'OtherLock']],
    beamtalk_support:define(#{name => 'Announcement', superclass => 'Value', kind => value}).

waits_test_() ->
    {setup, fun setup/0,
     [{"two that wait in the same way, begun by different callers", {timeout, 120, fun crossing/0}},
      {"one way against every other", {timeout, 120, fun mixed/0}},
      {"a question that comes back is seen at once", fun at_once/0},
      {"any one that can go on is enough", {timeout, 60, fun any_can_go_on/0}},
      {"all that could go on wait in a circle", {timeout, 60, fun none_can_go_on/0}},
      {"a start inside a start", {timeout, 60, fun nested_starts/0}},
      {"class locks in a circle", {timeout, 60, fun class_locks/0}},
      {"slow is no circle", {timeout, 60, fun slow/0}},
      {"no rows are left", fun no_rows/0}]}.

knot() ->
    {_, _, _, Pid} = Knot = ?D:send(beamtalk_class:named('Knot'), spawn),
    unlink(Pid),
    Knot.

ask(Knot) -> beamtalk_actor:send(Knot, n, [], infinity).

%% Each way to wait for another actor.
ways() ->
    [{ask, fun ask/1},
     {parallel_all, fun(Other) -> results(beamtalk_parallel:'class all:'(nil, [fun() -> 1 end, fun() -> ask(Other) end])) end},
     {parallel_any, fun(Other) -> results([beamtalk_parallel:'class any:'(nil, [fun() -> ask(Other) end])]) end},
     {nested, fun(Other) ->
          results(beamtalk_parallel:'class all:'(nil, [fun() -> beamtalk_parallel:map(fun ask/1, [Other], 1) end]))
      end},
     {start, fun(Other) -> start(fun() -> ask(Other) end) end},
     {announce, fun announce/1},
     {lock, fun(Other) -> ?D:send(beamtalk_class:named('Lock'), 'run:', fun() -> ask(Other) end) end},
     {stop, fun(Other) -> beamtalk_actor_class:stop(Other) end}].

results(Results) -> [case R of #{isOk := true} -> ok; #{errReason := E} -> raise(E) end || R <- Results].

raise([E | _]) -> error(E);
raise(E) -> error(E).

start(Hook) ->
    {_, _, _, Pid} = ?D:send(beamtalk_class:named('Knot'), 'spawnWith:', #{hook => Hook}),
    unlink(Pid),
    exit(Pid, kill).

%% What happened in a handler is not told to who announced.
announce(Other) ->
    Bus = beamtalk_announcer:'class new'(nil),
    Me = self(),
    beamtalk_announcer:'when:do:'(Bus, beamtalk_class:named('Announcement'),
                                  fun() -> Me ! {handled, catch ask(Other)} end),
    beamtalk_announcer:'announceAndWait:timeout:'(Bus, #{'$beamtalk_class' => 'Announcement'}, 60000),
    receive {handled, {'EXIT', {E, _}}} -> error(E); {handled, _} -> ok end.

%% Actors that are all at work before each does its part; answers the kinds of the errors, and takes less than any limit.
circle(Parts) ->
    Me = self(),
    Started = erlang:monotonic_time(millisecond),
    Askers = [spawn_monitor(fun() ->
                  Work = fun() ->
                      Me ! {ready, self()},
                      receive go -> ok end,
                      Part()
                  end,
                  exit({seen, try beamtalk_actor:send(Knot, 'run:', [Work], infinity) of _ -> ok
                              catch error:E -> cause(E)
                              end})
              end) || {Knot, Part} <- Parts],
    Ready = [receive {ready, Pid} -> Pid end || _ <- Parts],
    [Pid ! go || Pid <- Ready],
    Kinds = [receive {'DOWN', Monitor, _, _, {seen, Kind}} -> Kind end || {_, Monitor} <- Askers],
    ?assert(erlang:monotonic_time(millisecond) - Started < 4000),
    beamtalk_support:stop_all([Knot || {Knot, _} <- Parts]),
    Kinds.

cause(E) ->
    case beamtalk_error:field(E, details) of
        #{cause := Kind} -> Kind;
        _ -> beamtalk_error:field(E, kind)
    end.

-define(assertCircle(Ways, Kinds),
        ?assertEqual({Ways, [deadlock_detected]}, {Ways, lists:usort(Kinds) -- [ok, actor_dead]})).

crossing() ->
    [begin
         A = knot(), B = knot(),
         Kinds = circle([{A, fun() -> Way(B) end}, {B, fun() -> Way(A) end}]),
         ?assertCircle(Name, Kinds)
     end || {Name, Way} <- ways(), Name =/= lock].

mixed() ->
    [begin
         Ring = [knot(), knot(), knot()],
         [A, B, C] = Ring,
         Kinds = circle([{A, fun() -> Way(B) end}, {B, fun() -> OtherWay(C) end}, {C, fun() -> ask(A) end}]),
         ?assertCircle({Name, Other}, Kinds)
     end || {Name, Way} <- ways(), {Other, OtherWay} <- ways(), {Name, Other} =/= {lock, lock}].

%% The chain that travels with the question says it.
at_once() ->
    [begin
         A = knot(),
         Asked = erlang:monotonic_time(millisecond),
         E = beamtalk_support:catch_error(fun() -> beamtalk_actor:send(A, 'run:', [fun() -> Way(A) end], infinity) end),
         ?assertEqual({Name, deadlock_detected}, {Name, cause(E)}),
         ?assert(erlang:monotonic_time(millisecond) - Asked < 2000),
         beamtalk_support:stop_all([A])
     end || {Name, Way} <- ways(), not lists:member(Name, [ask, lock, stop])].

any_can_go_on() ->
    A = knot(), B = knot(),
    Any = fun() ->
        #{okValue := Value} = beamtalk_parallel:'class any:'(nil, [fun() -> ask(B) end, fun() -> receive after 300 -> 3 end end]),
        Value
    end,
    ?assertEqual([ok, ok], circle([{A, Any}, {B, fun() -> ask(A) end}])).

none_can_go_on() ->
    [A, B, C] = [knot(), knot(), knot()],
    Any = fun() ->
        #{isOk := IsOk} = beamtalk_parallel:'class any:'(nil,
            [fun() -> ask(B) end, fun() -> ask(C) end, fun() -> receive after 100 -> error(no) end end]),
        IsOk
    end,
    Kinds = circle([{A, Any}, {B, fun() -> ask(A) end}, {C, fun() -> ask(A) end}]),
    %% Whoever saw it, nobody waited for ever.
    ?assertEqual([], lists:usort(Kinds) -- [ok, deadlock_detected]).

nested_starts() ->
    A = knot(), B = knot(),
    Kinds = circle([{A, fun() -> start(fun() -> start(fun() -> ask(B) end) end) end}, {B, fun() -> ask(A) end}]),
    ?assertCircle(nested_starts, Kinds).

class_locks() ->
    Locked = fun(Name, Body) -> ?D:send(beamtalk_class:named(Name), 'run:', Body) end,
    Me = self(),
    %% A waits for the lock that B holds, who asks A.
    A = knot(), B = knot(),
    Holds = fun() ->
        Locked('Lock', fun() -> Me ! {holds, self()}, receive wanted -> ok end, ask(A) end)
    end,
    Wants = fun() ->
        receive {wait_for, Pid} -> Pid ! wanted end,
        Locked('Lock', fun() -> 1 end)
    end,
    {_, _, _, PidA} = A,
    spawn_link(fun() -> Me ! {first, catch beamtalk_actor:send(B, 'run:', [Holds], infinity)} end),
    spawn_link(fun() -> Me ! {second, catch beamtalk_actor:send(A, 'run:', [Wants], infinity)} end),
    receive {holds, PidB} -> PidA ! {wait_for, PidB} end,
    ?assertEqual([deadlock_detected], kinds([first, second])),
    beamtalk_support:stop_all([A, B]),
    %% Two locks in two orders.
    Both = fun(Tag, First, Second) ->
        Me ! {Tag, catch Locked(First, fun() -> Me ! {holds, self()}, receive go -> ok end, Locked(Second, fun() -> 1 end) end)}
    end,
    [spawn_link(fun() -> Both(Tag, First, Second) end)
     || {Tag, First, Second} <- [{first, 'Lock', 'OtherLock'}, {second, 'OtherLock', 'Lock'}]],
    Holders = [receive {holds, Pid} -> Pid end || _ <- [1, 2]],
    [Pid ! go || Pid <- Holders],
    ?assertEqual([deadlock_detected], kinds([first, second])),
    %% A block in a process of its own does not have the lock of who waits for it.
    #{errReason := E} = Locked('Lock', fun() ->
        hd(beamtalk_parallel:'class all:'(nil, [fun() -> Locked('Lock', fun() -> 1 end) end]))
    end),
    ?assertEqual(deadlock_detected, beamtalk_error:field(E, kind)).

kinds(Tags) ->
    lists:usort([beamtalk_error:field(E, kind)
                 || Tag <- Tags, {'EXIT', {#{error := _} = E, _}} <- [receive {Tag, Outcome} -> Outcome after 4000 -> error(Tag) end]]).

%% Everybody gets an answer, only late: the one asked is busy for a while, and waits for others itself.
slow() ->
    Busy = knot(), A = knot(), B = knot(),
    Sleep = fun() -> beamtalk_actor:send(Busy, 'run:', [fun() -> receive after 60 -> slept end end], infinity) end,
    Parts = [{A, fun() -> beamtalk_parallel:map(fun(_) -> Sleep() end, [1, 2], 2) end},
             {B, fun() -> start(Sleep) end},
             {knot(), fun() -> ask(A), ask(B) end},
             {knot(), fun() -> ?D:send(beamtalk_class:named('Lock'), 'run:', Sleep) end},
             {knot(), fun() -> ?D:send(beamtalk_class:named('Lock'), 'run:', Sleep) end}],
    ?assertEqual([ok, ok, ok, ok, ok], circle(Parts)),
    beamtalk_support:stop_all([Busy]).

no_rows() ->
    Rows = [Row || {Pid, _, _} = Row <- ets:tab2list(beamtalk_actor_waits), is_process_alive(Pid)],
    ?assertEqual([], Rows).
