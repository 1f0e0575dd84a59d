%% Supervision trees whose children die, one after the other and at random.
-module(beamtalk_supervision_faults_tests).
-include("assertions.hrl").

-define(S, beamtalk_supervisor).

faults_test_() ->
    {setup, fun setup/0,
     [{"a thousand crashes within the policy", {timeout, 60, fun a_thousand_crashes/0}},
      {"children of a pool are replaced", {timeout, 60, fun pool/0}},
      {"killed at random", {timeout, 60, fun at_random/0}},
      {"too many crashes", fun too_many/0},
      {"too many crashes in a part of a tree", fun too_many_below/0}]}.

setup() ->
    beamtalk_support:start(),
    beamtalk_support:define(#{name => 'Spec', superclass => 'Value', kind => value,
                              methods => [{childSpec, 0, "fun(#{spec := S}) -> S end"}]}),
    actor('Crasher', "spawn", "[]"),
    actor('Steady', "spawn", "[]"),
    actor('Named', "'spawnAs:'", "[faults_named]"),
    supervisor('Supervisor', 'Object', 10, oneForOne, []),
    supervisor('DynamicSupervisor', 'Object', 10, oneForOne, []),
    supervisor('Patient', 'Supervisor', 100000, oneForOne, ['Crasher', 'Steady']),
    supervisor('Strict', 'Supervisor', 3, oneForOne, ['Crasher', 'Steady']),
    supervisor('Inner', 'Supervisor', 100000, oneForAll, ['Crasher', 'Steady']),
    supervisor('Outer', 'Supervisor', 100000, restForOne, ['Named', 'Inner']),
    supervisor('Parent', 'Supervisor', 10, oneForOne, ['Strict']),
    beamtalk_support:define(#{name => 'Crowd', superclass => 'DynamicSupervisor', kind => object,
                              class_methods => [{childClass, 0, "fun(_) -> beamtalk_class:named('Crasher') end"},
                                                {maxRestarts, 0, "fun(_) -> 100000 end"}]}).

actor(Name, Function, Arguments) ->
    Start = "#{'$beamtalk_class' => 'Array', data => #{1 => C, 2 => " ++ Function ++ ", 3 => " ++ Arguments ++ "}}",
    Spec = "fun({_, _, _, N} = C) -> #{'$beamtalk_class' => 'Spec', spec => #{id => N, start => " ++ Start
        ++ ", restart => permanent, shutdown => 5000, type => worker}} end",
    beamtalk_support:define(#{name => Name, superclass => 'Actor', kind => actor,
                              methods => [{crash, 0, "fun(_) -> exit(crashed) end"}, {ping, 0, "fun(_) -> pong end"}],
                              class_methods => [{supervisionPolicy, 0, "fun(_) -> permanent end"},
                                                {isSupervisor, 0, "fun(_) -> false end"},
                                                {supervisionSpec, 0, Spec}]}).

supervisor(Name, Superclass, Restarts, Strategy, Children) ->
    Constant = fun(Value) -> lists:flatten(io_lib:format("fun(_) -> ~p end", [Value])) end,
    List = lists:join(", ", [io_lib:format("beamtalk_class:named(~p)", [Child]) || Child <- Children]),
    beamtalk_support:define(#{name => Name, superclass => Superclass, kind => object,
                              class_methods => [{maxRestarts, 0, Constant(Restarts)}, {restartWindow, 0, Constant(60)},
                                                {strategy, 0, Constant(Strategy)}, {isSupervisor, 0, Constant(true)},
                                                {children, 0, lists:flatten(["fun(_) -> [", List, "] end"])},
                                                {'initialize:', 1, "fun(_, _) -> nil end"}]}).

a_thousand_crashes() ->
    Tree = start('Patient'),
    Steady = child(Tree, 'Steady'),
    Last = lists:foldl(fun(_, Before) ->
                               catch beamtalk_dispatch:send(Before, crash),
                               After = replacement(Tree, 'Crasher', Before),
                               ?assertEqual(pong, beamtalk_dispatch:send(After, ping)),
                               After
                       end, child(Tree, 'Crasher'), lists:seq(1, 1000)),
    ?assert(beamtalk_actor_class:isAlive(Last)),
    ?assertEqual(Steady, child(Tree, 'Steady')),
    ?assertEqual(['Crasher', 'Steady'], ?S:children(Tree)),
    stop(Tree).

pool() ->
    Pool = start('Crowd'),
    Actors = [maps:get(okValue, ?S:startChild(Pool)) || _ <- lists:seq(1, 10)],
    [exit(Pid, kill) || {_, _, _, Pid} <- Actors],
    await(fun() -> ?S:count(Pool) =:= 10 andalso living(Pool) -- pids(Actors) =:= living(Pool) end),
    stop(Pool).

%% Actors and the inner supervisor alike. A number of kills and no length of time: how many fit into a second depends
%% on what else the machine does.
at_random() ->
    Tree = start('Outer'),
    kill_at_random(Tree, 200),
    await(fun() -> is_complete(Tree) end),
    ?assertEqual(Tree, ?S:'class current'(beamtalk_class:named('Outer'))),
    ?assertEqual(['Named', 'Inner'], ?S:children(Tree)),
    Inner = ?S:'class current'(beamtalk_class:named('Inner')),
    [?assertEqual(pong, beamtalk_dispatch:send(Child, ping))
     || Child <- [child(Tree, 'Named'), child(Inner, 'Crasher'), child(Inner, 'Steady')]],
    ?assertEqual(element(4, child(Tree, 'Named')), whereis(faults_named)),
    stop(Tree),
    ?assertEqual([undefined, nil], [whereis(faults_named), ?S:'class current'(beamtalk_class:named('Inner'))]).

kill_at_random(_, 0) ->
    ok;
kill_at_random(Tree, Left) ->
    Inner = ?S:'class current'(beamtalk_class:named('Inner')),
    Below = case Inner of
                nil -> [];
                _ -> try living(Inner) catch error:#{error := _} -> [] end
            end,
    Killed = case living(Tree) ++ Below of
                 [] -> 0;
                 Pids -> exit(lists:nth(rand:uniform(length(Pids)), Pids), kill), 1
             end,
    timer:sleep(rand:uniform(5) - 1),
    kill_at_random(Tree, Left - Killed).

%% Two on each level, and none of them one that was killed and not yet missed. The inner supervisor may be such a one
%% while it is asked.
is_complete(Tree) ->
    case ?S:'class current'(beamtalk_class:named('Inner')) of
        nil -> false;
        {_, _, _, Pid} = Inner ->
            Upper = living(Tree),
            Lower = living(Inner),
            lists:member(Pid, Upper) andalso length(Upper) =:= 2 andalso length(Lower) =:= 2
                andalso lists:all(fun is_process_alive/1, Upper ++ Lower)
    end.

%% Three restarts are tolerated; the fourth crash ends the supervisor, its children and the process
%% that started it.
too_many() ->
    Test = self(),
    {Owner, Monitor} = spawn_monitor(fun() -> Test ! {tree, start('Strict')}, receive never -> ok end end),
    Tree = receive {tree, T} -> T end,
    Steady = child(Tree, 'Steady'),
    Third = lists:foldl(fun(_, Before) ->
                                catch beamtalk_dispatch:send(Before, crash),
                                replacement(Tree, 'Crasher', Before)
                        end, child(Tree, 'Crasher'), [1, 2, 3]),
    ?assert(beamtalk_actor_class:isAlive(Steady)),
    catch beamtalk_dispatch:send(Third, crash),
    receive {'DOWN', Monitor, process, Owner, Reason} -> ?assertEqual(shutdown, Reason) after 5000 -> error(alive) end,
    ?assertEqual(nil, ?S:'class current'(beamtalk_class:named('Strict'))),
    ?assertNot(beamtalk_actor_class:isAlive(Steady)),
    ?assertRaises(stale_handle, ?S:count(Tree)),
    ?assertRaises(stale_handle, ?S:children(Tree)),
    #{isOk := false, errReason := E} = ?S:'which:'(Tree, beamtalk_class:named('Steady')),
    ?assertEqual(stale_handle, beamtalk_error:field(E, kind)),
    ?assertEqual(nil, ?S:stop(Tree)),
    stop(start('Strict')).

%% The supervisor above starts the part again, complete.
too_many_below() ->
    Tree = start('Parent'),
    {_, _, _, Part} = Strict = ?S:'class current'(beamtalk_class:named('Strict')),
    Monitor = monitor(process, Part),
    [begin catch beamtalk_dispatch:send(child(Strict, 'Crasher'), crash), timer:sleep(20) end || _ <- [1, 2, 3]],
    catch beamtalk_dispatch:send(child(Strict, 'Crasher'), crash),
    receive {'DOWN', Monitor, process, Part, _} -> ok after 5000 -> error(alive) end,
    await(fun() -> ?S:'class current'(beamtalk_class:named('Strict')) =/= nil end),
    ?assertEqual(['Crasher', 'Steady'], ?S:children(?S:'class current'(beamtalk_class:named('Strict')))),
    ?assertEqual(['Strict'], ?S:children(Tree)),
    stop(Tree).

start(Class) ->
    #{isOk := true, okValue := Tree} = ?S:'class supervise'(beamtalk_class:named(Class)),
    Tree.

stop(Tree) ->
    ?assertEqual(nil, ?S:stop(Tree)).

child(Tree, Class) ->
    #{isOk := true, okValue := Child} = ?S:'which:'(Tree, beamtalk_class:named(Class)),
    Child.

replacement(Tree, Class, Before) ->
    await(fun() -> not lists:member(child(Tree, Class), [Before, nil]) end),
    child(Tree, Class).

living({_, _, _, Pid}) ->
    try [Child || {_, Child, _, _} <- supervisor:which_children(Pid), is_pid(Child)]
    catch exit:_ -> []
    end.

pids(Actors) -> [Pid || {_, _, _, Pid} <- Actors].

await(Condition) -> await(Condition, 2000).

await(Condition, Tries) ->
    case Condition() of
        true -> ok;
        false when Tries > 0 -> timer:sleep(1), await(Condition, Tries - 1);
        false -> error(timeout)
    end.
