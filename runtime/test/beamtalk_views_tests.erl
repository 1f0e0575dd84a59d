-module(beamtalk_views_tests).
-include("assertions.hrl").

-define(OPTIONS, #{from => 0, count => 100, sort => none, find => none, node => none, target => #{binding => <<"x">>},
                   path => []}).

names(Value) -> [Name || {Name, _} <- beamtalk_views:names(Value)].

show(Value, Name) -> show(Value, Name, #{}).

show(Value, Name, More) ->
    {ok, View} = beamtalk_views:show(Value, Name, maps:merge(?OPTIONS, More)),
    View.

refused(Show) ->
    try Show() of
        _ -> none
    catch throw:{op_failed, #{<<"kind">> := Kind}} -> Kind
    end.

texts(#{rows := Rows}) -> [[Text || #{text := Text} <- Cells] || #{cells := Cells} <- Rows].

%% Which views a value has follows from what it holds, and the first is the one to show.
names_test() ->
    beamtalk_image_ops_fixture:start(),
    ?assertEqual([<<"elements">>, <<"chart">>, <<"histogram">>], names([1, 2.5])),
    ?assertEqual([<<"elements">>, <<"table">>, <<"tree">>], names([#{a => 1}, #{a => 2}])),
    ?assertEqual([<<"elements">>], names([])),
    ?assertEqual([<<"elements">>], names([a, 1])),
    ?assertEqual([<<"elements">>], names({a, 1})),
    ?assertEqual([<<"entries">>], names(#{a => 1})),
    ?assertEqual([<<"entries">>, <<"tree">>], names(#{a => #{b => 1}})),
    ?assertEqual([<<"text">>, <<"lines">>, <<"bytes">>, <<"characters">>], names(<<"a">>)),
    ?assertEqual([<<"text">>, <<"lines">>, <<"bytes">>, <<"characters">>], names(a)),
    ?assertEqual([<<"hex">>], names(<<255, 1>>)),
    ?assertEqual([<<"hex">>, <<"image">>], names(<<137, "PNG\r\n", 26, "\n">>)),
    ?assertEqual([<<"decimal">>, <<"hex">>, <<"bits">>, <<"character">>], names(65)),
    ?assertEqual([<<"decimal">>, <<"hex">>, <<"bits">>], names(-1)),
    ?assertEqual([<<"decimal">>, <<"exact">>, <<"bits">>], names(0.1)),
    ?assertEqual([<<"fields">>], names(#{'$beamtalk_class' => 'Trap', x => 1})),
    ?assertEqual([<<"definition">>, <<"methods">>, <<"hierarchy">>, <<"instances">>, <<"state">>, <<"comment">>],
                 names(beamtalk_class:named('Lamp'))),
    ?assertEqual([<<"block">>], names(fun() -> 1 end)),
    ?assertEqual([<<"text">>], names(nil)),
    ?assertEqual([<<"result">>, <<"inside elements">>, <<"inside chart">>, <<"inside histogram">>],
                 names(beamtalk_result:ok([1]))).

%% A window costs what it shows, wherever in the collection it is.
windows_test() ->
    beamtalk_image_ops_fixture:start(),
    List = lists:seq(1, 100000),
    #{total := 100000, from := 99998, rows := Rows, order := sorted} = View = show(List, <<"elements">>, #{from => 99998}),
    ?assertEqual(2, length(Rows)),
    ?assertEqual([[<<"99999">>, <<"99999">>], [<<"100000">>, <<"100000">>]], texts(View)),
    ?assertEqual(#{binding => <<"x">>, path => [99999]}, maps:get(open, hd(Rows))),
    Interval = #{'$beamtalk_class' => 'Interval', from => 1, to => 10000000, step => 1},
    ?assertEqual([[<<"10000000">>, <<"10000000">>]], texts(show(Interval, <<"elements">>, #{from => 9999999}))),
    ?assertEqual([], texts(show(List, <<"elements">>, #{from => 200000}))),
    Large = maps:from_list([{N, N} || N <- lists:seq(1, 10001)]),
    #{order := unsorted, total := 10001} = show(Large, <<"entries">>),
    ?assertEqual([[<<"1">>, <<"2">>], [<<"2">>, <<"1">>]],
                 texts(show(#{'$beamtalk_class' => 'Bag', counts => #{1 => 2, 2 => 1}}, <<"elements">>))).

sorting_and_finding_test() ->
    beamtalk_image_ops_fixture:start(),
    List = [#{name => <<"b">>, n => 10}, #{name => <<"a">>, n => 9}, #{name => <<"c">>}],
    ?assertEqual([[<<"2">>, <<"9">>, <<"\"a\"">>], [<<"1">>, <<"10">>, <<"\"b\"">>], [<<"3">>, <<>>, <<"\"c\"">>]],
                 texts(show(List, <<"table">>, #{sort => <<"n">>}))),
    ?assertEqual([<<"3">>, <<"1">>, <<"2">>], [hd(Row) || Row <- texts(show(List, <<"table">>, #{sort => <<"-name">>}))]),
    #{total := 1} = Found = show(List, <<"table">>, #{find => <<"B">>}),
    ?assertEqual([[<<"1">>, <<"10">>, <<"\"b\"">>]], texts(Found)),
    ?assertEqual(<<"invalid_parameter">>, refused(fun() -> show(List, <<"table">>, #{sort => <<"x">>}) end)),
    #{note := Note} = show(lists:seq(1, 100001), <<"elements">>, #{sort => <<"value">>}),
    ?assertEqual(<<"sorting needs all 100,001 rows">>, Note).

%% A chart sends few points and loses no peak.
charts_test() ->
    beamtalk_image_ops_fixture:start(),
    Numbers = [0 || _ <- lists:seq(1, 50000)] ++ [7] ++ [0 || _ <- lists:seq(1, 50000)],
    #{mark := <<"line">>, series := [#{x := X, y := Y}], shown := Shown, 'of' := 100001} = show(Numbers, <<"chart">>),
    ?assert(Shown =< 5000 andalso length(X) =:= Shown andalso length(Y) =:= Shown),
    ?assert(lists:member({50001, 7.0}, lists:zip(X, Y))),
    ?assertEqual(X, lists:sort(X)),
    #{series := [#{y := Counts}]} = show(Numbers, <<"histogram">>),
    ?assertEqual({30, 100001}, {length(Counts), lists:sum(Counts)}),
    #{series := [#{x := [3.0], y := [2]}]} = show([3, 3], <<"histogram">>).

texts_test() ->
    beamtalk_image_ops_fixture:start(),
    Long = binary:copy(<<"é"/utf8>>, 50000),
    #{text := First, 'end' := false, total := 100000} = show(Long, <<"text">>),
    #{text := Second, 'end' := true} = show(Long, <<"text">>, #{from => byte_size(First)}),
    ?assertEqual(Long, <<First/binary, Second/binary>>),
    ?assertEqual([[<<"1">>, <<"a">>], [<<"2">>, <<>>]], texts(show(<<"a\n">>, <<"lines">>))),
    ?assertEqual([[<<"0">>, <<"61 0a">>, <<"a.">>]], texts(show(<<"a\n">>, <<"bytes">>))),
    ?assertEqual([[<<"1">>, <<"A">>, <<"U+0041">>, <<"upper-case letter">>],
                  [<<"2">>, <<"\n">>, <<"U+000A">>, <<"newline">>]], texts(show(<<"A\n">>, <<"characters">>))),
    Text = fun(Value, Name) -> maps:get(text, show(Value, Name)) end,
    ?assertEqual(<<"-16rFF">>, Text(-255, <<"hex">>)),
    ?assertEqual(<<"2r101">>, Text(5, <<"bits">>)),
    ?assertEqual(<<"0.1000000000000000055511151231257827021181583404541015625">>, Text(0.1, <<"exact">>)),
    ?assertEqual(<<"-2.5">>, Text(-2.5, <<"exact">>)),
    ?assertEqual(<<"P1DT2H3.004S">>, Text(beamtalk_duration:make(86400000 + 7200000 + 3004), <<"iso">>)),
    ?assertEqual(<<"-PT1M">>, Text(beamtalk_duration:make(-60000), <<"iso">>)),
    ?assertEqual(<<"PT0S">>, Text(beamtalk_duration:make(0), <<"iso">>)).

trees_test() ->
    beamtalk_image_ops_fixture:start(),
    Value = #{a => #{b => [1, [2]]}, c => 3},
    #{nodes := [#{node := A, parent := nil, has_children := true}, #{has_children := false}]} = show(Value, <<"tree">>),
    #{nodes := [#{node := B, parent := A}]} = show(Value, <<"tree">>, #{node => A}),
    #{nodes := [_, #{node := Inner, open := #{path := Path}}]} = show(Value, <<"tree">>, #{node => B}),
    ?assertEqual([<<"#a">>, <<"#b">>, 2], Path),
    #{nodes := [#{text := <<"1: 2">>}]} = show(Value, <<"tree">>, #{node => Inner}),
    [?assertEqual(<<"invalid_parameter">>, refused(fun() -> show(Value, <<"tree">>, #{node => Bad}) end))
     || Bad <- [<<"[\"#x\"]">>, <<"[]x">>, <<"{}">>, <<"[{}]">>]].

%% Every view of everything can be shown, and runs nothing.
every_view_runs_nothing_test() ->
    beamtalk_image_ops_fixture:start(),
    Trap = #{'$beamtalk_class' => 'Trap', x => 1},
    Lamp = beamtalk_image_ops_fixture:lamp(#{Trap => [Trap]}),
    Exception = try beamtalk_error:raise(does_not_understand, 'Trap', toggle, undefined, <<"hint">>, #{receiver => Trap, arguments => [1]})
                catch error:Raised:Stack -> beamtalk_error:from_caught(error, Raised, Stack)
                end,
    Table = #{'$beamtalk_class' => 'Ets', name => traps, table => ets:new(traps, [public])},
    ets:insert(maps:get(table, Table), [{N, Trap} || N <- lists:seq(1, 2500)]),
    Values = [Trap, [Trap, Trap], {Trap}, #{Trap => Trap}, #{a => #{Trap => Trap}}, Lamp, beamtalk_class:named('Trap'),
              Exception, Table, beamtalk_result:ok(Trap), beamtalk_result:error(Exception), fun(_) -> Trap end, self(), nil, true,
              1, -3, 2.5, <<"text">>, sym, <<1:3>>, <<255>>, 1 bsl 100000, beamtalk_duration:make(5),
              beamtalk_date_time:from_timestamp(0), beamtalk_stream:'class from:'(nil, 1),
              #{'$beamtalk_class' => 'Set', elements => [Trap]}, beamtalk_queue:'class new'(nil), #{'$beamtalk_class' => 'TrapList', items => [Trap]}],
    true = beamtalk_image_ops_fixture:is_quiet(),
    [begin
         #{kind := _, title := _, total := _} = View = show(Value, Name),
         ?assertEqual({Name, true}, {Name, is_binary(beamtalk_json:'class generate:'(nil, maps:map(fun(_, V) -> plain(V) end, View)))}),
         ?assertEqual({Name, true}, {Name, beamtalk_image_ops_fixture:is_quiet()})
     end || Value <- Values, Name <- names(Value)],
    ?assertEqual(unknown, beamtalk_views:show(Trap, <<"nothing">>, ?OPTIONS)),
    #{total := 2500, rows := Last} = show(Table, <<"rows">>, #{from => 2490}),
    ?assertEqual(10, length(Last)),
    beamtalk_support:stop_all([Lamp]).

plain(Value) when is_map(Value) -> maps:map(fun(_, Inner) -> plain(Inner) end, Value);
plain(Value) when is_list(Value) -> [plain(Inner) || Inner <- Value];
plain(Value) -> Value.

%% What is in an actor is found in the actor, and one that does not answer holds nobody up.
actors_test() ->
    beamtalk_image_ops_fixture:start(),
    Lamp = beamtalk_image_ops_fixture:lamp(#{a => [1, 2, 3]}),
    Pid = beamtalk_image_ops_fixture:pid(Lamp),
    #{view := #{kind := table, rows := [#{cells := [#{text := <<"on">>}, _], open := Open}]}} =
        beamtalk_image_ops_fixture:perform(<<"view">>, #{<<"actor">> => Pid}),
    ?assertEqual(#{actor => Pid, path => [<<"on">>]}, Open),
    #{view := #{id := Id, rows := [_, _, _]}} =
        beamtalk_image_ops_fixture:perform(<<"view">>, #{<<"actor">> => Pid, <<"path">> => [<<"on">>, <<"a">>]}),
    #{view := #{id := Id, from := 2, rows := [_]}} =
        beamtalk_image_ops_fixture:perform(<<"view">>, #{<<"view">> => Id, <<"from">> => 2}),
    ?assertEqual(invalid_parameter, beamtalk_image_ops_fixture:failure(<<"view">>, #{<<"view">> => <<"x">>})),
    ?assertEqual(not_found, beamtalk_image_ops_fixture:failure(<<"view">>, #{<<"actor">> => Pid, <<"name">> => <<"x">>})),
    ?assertEqual(invalid_parameter,
                 beamtalk_image_ops_fixture:failure(<<"views">>, #{<<"actor">> => Pid, <<"class">> => <<"Lamp">>})),
    #{views := [#{name := <<"state">>, origin := builtin} | _]} =
        beamtalk_image_ops_fixture:perform(<<"views">>, #{<<"actor">> => Pid}),
    beamtalk_support:stop_all([Lamp]).
