-module(beamtalk_image_ops_actors_tests).
-include("assertions.hrl").

-import(beamtalk_image_ops_fixture, [start/0, perform/2, failure/2, pid/1, lamp/0, lamp/1]).

-define(ACTOR(Pid), #{<<"actor">> => Pid}).

actors_test() ->
    start(),
    Lamp = lamp(),
    register(ops_lamp, element(4, Lamp)),
    #{actors := [Row]} = perform(<<"actors">>, #{<<"class">> => <<"Lamp">>}),
    Pid = pid(Lamp),
    ?assertMatch(#{pid := Pid, class := 'Lamp', module := 'bt@lamp', name := ops_lamp}, Row),
    ?assert(abs(maps:get(spawned_at, Row) - erlang:system_time(second)) < 60),
    ?assertMatch(#{actors := [_]}, perform(<<"actors">>, #{<<"class">> => <<"Actor">>})),
    ?assertEqual(#{actors => []}, perform(<<"actors">>, #{<<"class">> => <<"Trap">>})),
    ?assertMatch(#{actors := [_ | _]}, perform(<<"actors">>, #{})),
    ?assertEqual(class_not_found, failure(<<"actors">>, #{<<"class">> => <<"Lmap">>})),
    ?assertMatch(#{kind := actor}, perform(<<"inspect">>, ?ACTOR(<<"ops_lamp">>))),
    beamtalk_support:stop_all([Lamp]).

inspect_test() ->
    start(),
    Lamp = lamp(#{a => lists:seq(1, 120), <<"a">> => 7, 3 => {x}}),
    Pid = pid(Lamp),
    At = fun(Path) -> perform(<<"inspect">>, #{<<"actor">> => Pid, <<"path">> => Path}) end,
    #{kind := actor, class := 'Lamp', total := 1, fields := [Field]} = perform(<<"inspect">>, ?ACTOR(Pid)),
    ?assertMatch(#{name := <<"on">>, label := <<"on">>, class := 'Dictionary', drillable := true,
                   text := <<"#{", _/binary>>}, Field),
    #{kind := collection, total := 3, fields := Keys} = At([<<"on">>]),
    ?assertEqual([{3, <<"3">>}, {<<"#a">>, <<"a">>}, {<<"\"a\"">>, <<"a">>}],
                 [{Name, Label} || #{name := Name, label := Label} <- Keys]),
    #{total := 120, fields := First} = At([<<"on">>, <<"#a">>]),
    ?assertEqual({50, 1}, {length(First), maps:get(name, hd(First))}),
    #{fields := Last} = perform(<<"inspect">>, #{<<"actor">> => Pid, <<"path">> => [<<"on">>, <<"a">>], <<"page">> => 3}),
    ?assertEqual({20, 101}, {length(Last), maps:get(name, hd(Last))}),
    ?assertMatch(#{fields := []}, perform(<<"inspect">>, #{<<"actor">> => Pid, <<"path">> => [<<"on">>, <<"a">>],
                                                            <<"page">> => 4})),
    ?assertMatch(#{kind := value, class := 'Integer', fields := [], total := 0}, At([<<"on">>, <<"\"a\"">>])),
    ?assertMatch(#{class := 'Symbol'}, At([<<"on">>, 3, 1])),
    ?assertEqual(inspect_failed, failure(<<"inspect">>, #{<<"actor">> => Pid, <<"path">> => [<<"off">>]})),
    [?assertEqual(invalid_parameter, failure(<<"inspect">>, maps:merge(?ACTOR(Pid), Wrong)))
     || Wrong <- [#{<<"page">> => 0}, #{<<"path">> => <<"on">>}, #{<<"path">> => [#{}]}]],
    beamtalk_support:stop_all([Lamp]).

understands_test() ->
    start(),
    Lamp = lamp(),
    #{understands := [#{class := Own, selectors := Selectors} | _] = All, text := Text} =
        perform(<<"inspect">>, (?ACTOR(pid(Lamp)))#{<<"understands">> => true}),
    ?assertEqual(<<"Lamp">>, Own),
    ?assert(lists:member(toggle, Selectors)),
    ?assertMatch(<<"Actor(Lamp, ", _/binary>>, Text),
    Names = lists:append([S || #{selectors := S} <- All]),
    ?assertEqual(length(Names), length(lists:usort(Names))),
    ?assertNot(is_map_key(understands, perform(<<"inspect">>, ?ACTOR(pid(Lamp))))),
    beamtalk_support:stop_all([Lamp]).

top_actors_test() ->
    start(),
    {_, _, _, Busy} = Lamp = lamp(),
    Others = [lamp() || _ <- lists:seq(1, 300)],
    gen_server:cast(Busy, {cast, wait, []}),
    [gen_server:cast(Busy, {cast, toggle, []}) || _ <- lists:seq(1, 5)],
    Top = fun(Fields) -> perform(<<"top-actors">>, Fields) end,
    #{total := Total, classes := Classes, actors := [First | _] = Rows} = Top(#{}),
    ?assert(Total >= 301),
    ?assertEqual([301], [Count || #{class := 'Lamp', count := Count} <- Classes]),
    ?assertEqual(50, length(Rows)),
    ?assertMatch(#{class := 'Lamp', queue_len := Length, memory := Memory, reductions := Reductions}
                   when Length >= 4 andalso Memory > 0 andalso Reductions > 0, First),
    ?assertEqual(pid(Lamp), maps:get(pid, First)),
    ?assertMatch(#{actors := []}, Top(#{<<"limit">> => 0})),
    #{actors := Most} = Top(#{<<"limit">> => 100000, <<"sort">> => <<"reductions">>}),
    ?assertEqual(200, length(Most)),
    Sorted = [R || #{reductions := R} <- Most],
    ?assert(hd(Sorted) >= lists:last(Sorted)),
    [?assertMatch(#{actors := [_]}, Top(#{<<"sort">> => Sort, <<"limit">> => 1}))
     || Sort <- [<<"queue">>, <<"memory">>, <<"reductions">>, <<"class">>, <<"name">>]],
    ?assertEqual(invalid_parameter, failure(<<"top-actors">>, #{<<"sort">> => <<"size">>})),
    ?assertEqual(invalid_parameter, failure(<<"top-actors">>, #{<<"limit">> => -1})),
    beamtalk_support:stop_all([Lamp | Others]).

inspect_of_a_busy_actor_is_unavailable_test() ->
    start(),
    {_, _, _, Process} = Lamp = lamp(),
    gen_server:cast(Process, {cast, wait, []}),
    Started = erlang:monotonic_time(millisecond),
    ?assertMatch(#{fields := [#{name := <<"status">>, text := <<"#unavailable">>}]},
                 perform(<<"inspect">>, ?ACTOR(pid(Lamp)))),
    ?assert(erlang:monotonic_time(millisecond) - Started < 2000),
    beamtalk_support:stop_all([Lamp]).

inspect_binding_test() ->
    start(),
    beamtalk_image_ops_fixture:bind(numbers, [1, 2]),
    ?assertMatch(#{kind := collection, class := 'List', total := 2},
                 perform(<<"inspect">>, #{<<"binding">> => <<"numbers">>})),
    ?assertEqual(undefined_variable, failure(<<"inspect">>, #{<<"binding">> => <<"toggle">>})),
    ?assertEqual(undefined_variable, failure(<<"inspect">>, #{<<"binding">> => <<"noSuchNameAtAll">>})),
    ?assertEqual(missing_parameter, failure(<<"inspect">>, #{})).

only_actors_are_actors_test() ->
    start(),
    [?assertEqual({Op, Text, invalid_actor}, {Op, Text, failure(Op, ?ACTOR(Text))})
     || Op <- [<<"inspect">>, <<"pid-stats">>, <<"kill">>],
        Text <- [beamtalk_plain:pid(self()), <<"code_server">>, <<"0.1">>, <<"<0.1.2>; halt">>, <<"1.2.3">>,
                 <<"no such name">>]].

pid_stats_test() ->
    start(),
    Lamp = lamp(),
    Pid = pid(Lamp),
    ?assertMatch(#{queue_len := 0, memory := _, reductions := _, current_function := <<"beamtalk_actor_server:loop/2">>,
                   stats := #{queue_len := 0, memory := _, reductions := _, status := waiting,
                              current_function := <<"beamtalk_actor_server:loop/2">>}},
                 perform(<<"pid-stats">>, ?ACTOR(Pid))),
    ?assertEqual(#{value => true}, perform(<<"kill">>, #{<<"actor">> => <<"<", Pid/binary, ">">>, <<"graceful">> => false})),
    ?assertEqual(#{stats => #{status => dead}}, perform(<<"pid-stats">>, ?ACTOR(Pid))),
    ?assertEqual(missing_parameter, failure(<<"pid-stats">>, #{})).

%% A process that knows nothing of its class is an actor like any other.
native_actors_test() ->
    start(),
    beamtalk_support:define(#{name => 'OpsDisk', superclass => 'Actor', kind => actor, native => beamtalk_native_fixture}),
    {_, _, _, Process} = Disk = beamtalk_actor_class:spawn_with(beamtalk_class:named('OpsDisk'), #{size => 9}),
    Pid = beamtalk_plain:pid(Process),
    #{actors := [Row]} = perform(<<"actors">>, #{<<"class">> => <<"OpsDisk">>}),
    ?assertMatch(#{pid := Pid, class := 'OpsDisk', spawned_at := Seconds} when is_integer(Seconds), Row),
    ?assertEqual({ok, Disk}, beamtalk_actor_class:reference_of(Process)),
    ?assertMatch(#{kind := actor, class := 'OpsDisk', fields := [#{name := <<"size">>, text := <<"9">>}]},
                 perform(<<"inspect">>, ?ACTOR(Pid))),
    ?assertMatch(#{stats := #{status := waiting}}, perform(<<"pid-stats">>, ?ACTOR(Pid))),
    #{nodes := Nodes} = perform(<<"supervision-tree">>, #{}),
    ?assertMatch([#{kind := beamtalkActor, class := 'OpsDisk'}], [Node || #{pid := P} = Node <- Nodes, P =:= Pid]),
    unlink(Process),
    ?assertEqual(#{value => true}, perform(<<"kill">>, ?ACTOR(Pid))),
    ?assertNot(is_process_alive(Process)),
    ?assertEqual(#{actors => []}, perform(<<"actors">>, #{<<"class">> => <<"OpsDisk">>})).

kill_test() ->
    start(),
    Lamp = lamp(),
    Pid = pid(Lamp),
    ?assertEqual(invalid_parameter, failure(<<"kill">>, #{<<"actor">> => Pid, <<"graceful">> => <<"no">>})),
    ?assertEqual(#{value => true}, perform(<<"kill">>, ?ACTOR(Pid))),
    ?assertNot(is_process_alive(element(4, Lamp))),
    ?assertEqual(actor_not_alive, failure(<<"kill">>, ?ACTOR(Pid))),
    ?assertEqual(actor_not_alive, failure(<<"inspect">>, ?ACTOR(Pid))).

supervision_tree_test() ->
    start(),
    Lamp = lamp(),
    Pid = pid(Lamp),
    #{nodes := Nodes} = perform(<<"supervision-tree">>, #{}),
    ?assertMatch([#{class := 'Lamp', kind := beamtalkActor, parent := nil, name := nil, child_count := 0}],
                 [Node || #{pid := P} = Node <- Nodes, P =:= Pid]),
    #{nodes := System} = perform(<<"supervision-tree">>, #{<<"scope">> => <<"system">>}),
    [#{pid := Kernel}] = [Node || #{name := kernel_sup} = Node <- System],
    ?assertMatch([_], [Node || #{name := code_server, parent := P} = Node <- System, P =:= Kernel]),
    ?assertEqual(invalid_parameter, failure(<<"supervision-tree">>, #{<<"scope">> => <<"all">>})),
    beamtalk_support:stop_all([Lamp]).

%%% Traces, logs, health

traces_test() ->
    start(),
    Lamp = lamp(),
    ?assertEqual(#{}, perform(<<"clear-traces">>, #{})),
    ?assertEqual(#{}, perform(<<"enable-tracing">>, #{})),
    [beamtalk_dispatch:send(Lamp, toggle) || _ <- lists:seq(1, 3)],
    beamtalk_dispatch:send(Lamp, 'set:to:', 1, 2),
    ?assertEqual(#{}, perform(<<"disable-tracing">>, #{})),
    Pid = pid(Lamp),
    Get = fun(Fields) -> maps:get(traces, perform(<<"get-traces">>, Fields)) end,
    [Newest | _] = All = Get(#{}),
    ?assertEqual(4, length(All)),
    ?assertMatch(#{<<"selector">> := <<"set:to:">>, <<"actor">> := Pid, <<"class">> := 'Lamp', <<"mode">> := <<"sync">>,
                   <<"outcome">> := <<"ok">>, <<"duration_ns">> := _, <<"timestamp_ns">> := _}, Newest),
    ?assertEqual(3, length(Get(#{<<"selector">> => <<"toggle">>, <<"actor">> => Pid, <<"class">> => <<"Lamp">>}))),
    ?assertEqual(2, length(Get(#{<<"limit">> => 2}))),
    ?assertEqual([], Get(#{<<"outcome">> => <<"error">>})),
    ?assertEqual([], Get(#{<<"min_duration_ns">> => 1 bsl 60})),
    #{stats := Stats} = perform(<<"actor-stats">>, #{<<"actor">> => Pid}),
    ?assertMatch([#{<<"calls">> := 3, <<"errors">> := 0, <<"actor">> := Pid}],
                 [Row || #{<<"selector">> := <<"toggle">>} = Row <- Stats]),
    Path = unicode:characters_to_binary(filename:join(beamtalk_image_ops_fixture:directory(), "traces.jsonl")),
    %% No file is replaced, so that of an earlier run goes first.
    _ = file:delete(Path),
    ?assertEqual(#{path => Path, count => 3},
                 perform(<<"export-traces">>, #{<<"path">> => Path, <<"selector">> => <<"toggle">>})),
    {ok, Written} = file:read_file(Path),
    ?assertEqual(3, length(binary:matches(Written, <<"\n">>))),
    [?assertEqual(invalid_parameter, failure(<<"get-traces">>, Wrong))
     || Wrong <- [#{<<"outcome">> => <<"fine">>}, #{<<"limit">> => -1}, #{<<"selector">> => 1}]],
    ?assertEqual(write_failed, failure(<<"export-traces">>, #{<<"path">> => <<"/no/such/directory/t">>})),
    ?assertEqual(invalid_actor, failure(<<"actor-stats">>, ?ACTOR(<<"x">>))),
    perform(<<"clear-traces">>, #{}),
    ?assertEqual([], Get(#{})),
    beamtalk_support:stop_all([Lamp]).

export_needs_the_file_system_test() ->
    application:set_env(beamtalk, disabled_capabilities, [fs]),
    try ?assertEqual(capability_disabled, failure(<<"export-traces">>, #{}))
    after application:unset_env(beamtalk, disabled_capabilities)
    end.

log_level_test() ->
    #{level := Before} = perform(<<"log-level">>, #{}),
    ?assertEqual(#{level => debug}, perform(<<"log-level">>, #{<<"level">> => <<"debug">>})),
    ?assertEqual(invalid_parameter, failure(<<"log-level">>, #{<<"level">> => <<"loud">>})),
    ?assertEqual(#{level => debug}, perform(<<"log-level">>, #{})),
    logger:set_primary_config(level, Before).

health_test() ->
    ?assertMatch(#{memory := #{total := _, processes := _, binary := _, ets := _, atom := _, code := _}, processes := _,
                   run_queue := _}, perform(<<"health">>, #{})).
