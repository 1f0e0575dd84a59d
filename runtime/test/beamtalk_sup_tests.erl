%% Every process of the runtime's tree is killed once; what its users had is still there.
-module(beamtalk_sup_tests).
-include("assertions.hrl").

tree_test_() ->
    {setup, fun beamtalk_support:start_workspace/0, fun(_) -> ok end,
     [{timeout, 20, Test}
      || Test <- [fun every_child_comes_back/0, fun classes_and_locks_survive_the_registry/0,
                  fun tables_survive_their_server/0, fun subscriptions_survive_the_announcer/0,
                  fun measures_survive_tracing/0, fun programs_are_told_of_a_lost_helper/0,
                  fun output_finds_the_workspace_again/0, fun the_transcript_is_current_again/0]]}.

every_child_comes_back() ->
    Names = [Name || {Name, Pid, _, _} <- supervisor:which_children(beamtalk_sup), is_pid(Pid),
                     whereis(Name) =:= Pid],
    ?assertEqual([], [beamtalk_registry, beamtalk_resource, beamtalk_announcer, beamtalk_tracing, beamtalk_port_helper,
                      beamtalk_guard, beamtalk_workspace, beamtalk_session_sup, beamtalk_bridge_writer] -- Names),
    %% The others have tests of their own.
    [begin
         Former = whereis(Name),
         ?assert(Former =/= beamtalk_support:kill_child(Name))
     end || Name <- [beamtalk_guard, beamtalk_session_sup, beamtalk_bridge_writer]],
    ?assert(is_pid(whereis(beamtalk_sup))).

classes_and_locks_survive_the_registry() ->
    Test = self(),
    Holder = spawn(fun() ->
        ok = beamtalk_registry:acquire(eunit_lock, 1000),
        Test ! held,
        receive release -> beamtalk_registry:release(eunit_lock) end
    end),
    receive held -> ok end,
    spawn(fun() -> Test ! {waiter, beamtalk_registry:acquire(eunit_lock, 5000)} end),
    beamtalk_support:await(fun() ->
        ets:lookup_element(beamtalk_locks, eunit_lock, 4) =:= true
    end),
    beamtalk_support:kill_child(beamtalk_registry),
    ?assert(beamtalk_class:exists('ProtoObject')),
    Holder ! release,
    ?assertEqual(ok, receive {waiter, Outcome} -> Outcome after 5000 -> none end).

tables_survive_their_server() ->
    {ok, Table} = beamtalk_resource:create(ets, eunit_survivor, [set], [{a, 1}]),
    beamtalk_support:kill_child(beamtalk_resource),
    ?assertEqual({ok, ets, Table}, beamtalk_resource:find(eunit_survivor)),
    ?assertEqual([{a, 1}], ets:lookup(Table, a)),
    ?assertEqual(ok, beamtalk_resource:delete(eunit_survivor, Table)),
    ?assertEqual(undefined, ets:info(Table)),
    %% Tables of a process that ends later still go with it.
    Owner = spawn(fun() ->
        {ok, _} = beamtalk_resource:create(ets, eunit_owned, [set], []),
        receive stop -> ok end
    end),
    beamtalk_support:await(fun() -> beamtalk_resource:find(eunit_owned) =/= none end),
    beamtalk_support:kill_child(beamtalk_resource),
    Owner ! stop,
    beamtalk_support:await(fun() -> beamtalk_resource:find(eunit_owned) =:= none end).

subscriptions_survive_the_announcer() ->
    beamtalk_support:define(#{name => 'Announcement', superclass => 'Value', kind => value}),
    Rows = fun() -> ets:info(beamtalk_announcer, size) end,
    Before = Rows(),
    Bus = beamtalk_announcer:'class new'(nil),
    Subscriber = spawn(fun() ->
        beamtalk_announcer:'when:do:'(Bus, beamtalk_class:named('Announcement'), fun() -> ok end),
        receive stop -> ok end
    end),
    beamtalk_support:await(fun() -> Rows() =:= Before + 1 end),
    beamtalk_support:kill_child(beamtalk_announcer),
    ?assertEqual(Before + 1, Rows()),
    Subscriber ! stop,
    beamtalk_support:await(fun() -> Rows() =:= Before end).

measures_survive_tracing() ->
    beamtalk_tracing:record(self(), 'Lamp', toggle, sync, erlang:monotonic_time(), ok),
    beamtalk_tracing:flush(),
    beamtalk_support:kill_child(beamtalk_tracing),
    ?assertMatch(#{<<"toggle">> := #{<<"calls">> := 1}}, beamtalk_tracing:'class statsFor:'(nil, self())).

programs_are_told_of_a_lost_helper() ->
    ets:insert(beamtalk_port_helper, {77, self()}),
    beamtalk_support:kill_child(beamtalk_port_helper),
    ?assertEqual({exit, 137}, receive {child, 77, Event} -> Event after 5000 -> none end).

output_finds_the_workspace_again() ->
    Pid = spawn(fun() -> receive stop -> ok end end),
    group_leader(whereis(beamtalk_workspace), Pid),
    New = beamtalk_support:kill_child(beamtalk_workspace),
    ?assertEqual({group_leader, New}, process_info(Pid, group_leader)),
    ?assert(beamtalk_workspace:is_live()),
    Pid ! stop.

the_transcript_is_current_again() ->
    {_, _, _, Former} = beamtalk_transcript_stream:'class current'(nil),
    Monitor = monitor(process, Former),
    exit(Former, kill),
    receive {'DOWN', Monitor, process, _, _} -> ok end,
    beamtalk_support:await(fun() ->
        {_, _, _, Now} = beamtalk_transcript_stream:'class current'(nil),
        Now =/= Former
    end),
    Current = beamtalk_transcript_stream:'class current'(nil),
    beamtalk_transcript_stream:'show:'(Current, <<"again">>),
    ?assertEqual([<<"again">>], beamtalk_transcript_stream:recent(Current)).

%% A limit of processes is told, and nothing is started above it.
process_limit_test() ->
    beamtalk_support:start(),
    beamtalk_support:define(#{name => 'Mite', superclass => 'Actor', kind => actor}),
    beamtalk_guard:configure(#{<<"max_processes">> => erlang:system_info(process_count) + 5}),
    Before = erlang:system_info(process_count),
    Spawn = fun() -> beamtalk_dispatch:send(beamtalk_class:named('Mite'), spawn) end,
    #{error := {_, Kind, _, _, _, _, _}} = beamtalk_support:catch_error(fun() -> [Spawn() || _ <- lists:seq(1, 100)] end),
    ?assertEqual(process_limit, Kind),
    ?assert(erlang:system_info(process_count) =< Before + 5),
    beamtalk_guard:configure(#{<<"max_processes">> => 250000}).
