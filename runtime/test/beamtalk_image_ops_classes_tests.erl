-module(beamtalk_image_ops_classes_tests).
-include("assertions.hrl").

-import(beamtalk_image_ops_fixture, [start/0, perform/2, failure/2]).

-define(CLASS(Name), #{<<"class">> => Name}).

info_test() ->
    start(),
    #{info := Lamp} = perform(<<"info">>, #{<<"symbol">> => <<"Lamp">>}),
    ?assertMatch(#{found := true, symbol := <<"Lamp">>, kind := class, superclass := 'Actor',
                   superclass_chain := ['Actor', 'Object', 'ProtoObject'], line := 1, doc := <<"A lamp.">>}, Lamp),
    ?assert(lists:member(toggle, maps:get(methods, Lamp))),
    ?assertEqual(<<"Lamp.bt">>, filename:basename(maps:get(source, Lamp))),
    ?assertMatch(#{info := #{kind := selector, implementors := [#{class := 'Lamp', line := 3}]}},
                 perform(<<"info">>, #{<<"symbol">> => <<"toggle">>})),
    ?assertEqual(#{info => #{found => false, symbol => <<"Lmap">>}}, perform(<<"info">>, #{<<"symbol">> => <<"Lmap">>})),
    ?assertEqual(missing_parameter, failure(<<"info">>, #{})),
    ?assertEqual(invalid_parameter, failure(<<"info">>, #{<<"symbol">> => 3})).

modules_test() ->
    start(),
    Lamp = beamtalk_image_ops_fixture:lamp(),
    #{modules := Modules} = perform(<<"modules">>, #{}),
    [Row] = [Module || #{class := 'Lamp'} = Module <- Modules],
    ?assertMatch(#{name := 'bt@lamp', actor_count := 1, source_file := <<_/binary>>, load_time := _}, Row),
    ?assert(abs(maps:get(load_time, Row) - erlang:system_time(second)) < 600),
    ?assertEqual([], [M || #{class := 'Integer'} = M <- Modules]),
    beamtalk_support:stop_all([Lamp]).

list_classes_test() ->
    start(),
    Names = fun(Fields) -> [Name || #{name := Name} <- maps:get(class_list, perform(<<"list-classes">>, Fields))] end,
    ?assertEqual([true, true], [lists:member(N, Names(#{})) || N <- ['Lamp', 'Integer']]),
    ?assertEqual([true, false], [lists:member(N, Names(#{<<"filter">> => <<"user">>})) || N <- ['Lamp', 'Integer']]),
    ?assertEqual([false, true], [lists:member(N, Names(#{<<"filter">> => <<"stdlib">>})) || N <- ['Lamp', 'Integer']]),
    ?assertEqual(['LampTest'], Names(#{<<"filter">> => <<"TestCase">>})),
    #{class_list := [Row]} = perform(<<"list-classes">>, #{<<"filter">> => <<"TestCase">>}),
    ?assertMatch(#{superclass := 'TestCase', doc := <<_/binary>>, sealed := false, abstract := false}, Row),
    ?assertEqual(class_not_found, failure(<<"list-classes">>, #{<<"filter">> => <<"Nothing">>})),
    ?assertEqual(invalid_parameter, failure(<<"list-classes">>, #{<<"filter">> => 1})).

methods_test() ->
    start(),
    #{methods := Methods} = perform(<<"methods">>, ?CLASS(<<"Lamp">>)),
    ?assert(lists:member(#{selector => toggle, side => instance, line => 3}, Methods)),
    ?assertMatch(#{methods := [_ | _]}, perform(<<"methods">>, ?CLASS(<<"Entry">>))),
    ?assertEqual(class_not_found, failure(<<"methods">>, ?CLASS(<<"Lmap">>))),
    ?assertEqual(class_not_found, failure(<<"methods">>, ?CLASS(<<"other@Lamp">>))),
    ?assertMatch(#{methods := _}, perform(<<"methods">>, ?CLASS(<<"stdlib@Integer">>))),
    ?assertEqual(missing_parameter, failure(<<"methods">>, #{<<"class">> => nil})).

nav_query_test() ->
    start(),
    Query = fun(Kind, Key, Name) -> maps:get(sites, perform(<<"nav-query">>, #{<<"kind">> => Kind, Key => Name})) end,
    ?assertMatch([#{class := 'Lamp', class_side := false, method := toggle, line := 3, source_file := <<_/binary>>}],
                 Query(<<"implementors">>, <<"selector">>, <<"toggle">>)),
    ?assertMatch([#{class := 'Entry', class_side := true}], Query(<<"implementors">>, <<"selector">>, <<"#main:">>)),
    ?assertEqual([], Query(<<"implementors">>, <<"selector">>, <<"noSuchSelector">>)),
    ?assertMatch([#{class := 'Lamp', method := both, line := 20}, #{line := 22}],
                 Query(<<"senders">>, <<"selector">>, <<"toggle">>)),
    ?assertEqual([], Query(<<"senders">>, <<"selector">>, <<"printString">>)),
    ?assertMatch([#{method := both, line := 21}], Query(<<"references">>, <<"class">>, <<"Trap">>)),
    ?assertEqual(class_not_found, failure(<<"nav-query">>, #{<<"kind">> => <<"references">>, <<"class">> => <<"X">>})),
    ?assertEqual(missing_parameter, failure(<<"nav-query">>, #{<<"kind">> => <<"senders">>})),
    ?assertEqual(missing_parameter, failure(<<"nav-query">>, #{<<"selector">> => <<"toggle">>})),
    ?assertEqual(invalid_parameter, failure(<<"nav-query">>, #{<<"kind">> => <<"callers">>})).

nav_symbols_test() ->
    start(),
    #{classes := User} = perform(<<"nav-symbols">>, #{}),
    Names = [Name || #{name := Name} <- User],
    ?assertEqual(lists:sort(Names), Names),
    ?assertEqual([true, false], [lists:member(N, Names) || N <- ['Lamp', 'Integer']]),
    ?assertMatch([#{line := 1, source_file := <<_/binary>>, methods := [_ | _]}], [C || #{name := 'Lamp'} = C <- User]),
    #{classes := All} = perform(<<"nav-symbols">>, #{<<"scope">> => <<"all">>}),
    ?assert(lists:member('Integer', [Name || #{name := Name} <- All])),
    ?assertEqual(invalid_parameter, failure(<<"nav-symbols">>, #{<<"scope">> => <<"none">>})).

unload_test() ->
    start(),
    beamtalk_support:define(#{name => 'Fan', superclass => 'Actor', kind => actor}),
    {ok, Pid} = beamtalk_actor:start('Fan', #{}, false, undefined),
    ?assertEqual(actors_exist, failure(<<"unload">>, ?CLASS(<<"Fan">>))),
    ?assert(beamtalk_class:exists('Fan')),
    ?assertEqual(#{}, perform(<<"unload">>, #{<<"class">> => <<"Fan">>, <<"force">> => true})),
    ?assertNot(is_process_alive(Pid)),
    ?assertEqual(class_not_found, failure(<<"unload">>, ?CLASS(<<"Fan">>))),
    ?assertEqual(invalid_parameter, failure(<<"unload">>, ?CLASS(<<"Integer">>))),
    ?assertEqual(invalid_parameter, failure(<<"unload">>, #{<<"class">> => <<"Lamp">>, <<"force">> => 1})).

browse_classes_test() ->
    start(),
    #{rows := Rows} = perform(<<"browse-classes">>, #{}),
    Row = fun(Wanted) -> hd([R || #{name := Name} = R <- Rows, Name =:= Wanted]) end,
    ?assertMatch(#{superclass := 'Actor', comment := <<"A lamp.">>, origin := both, is_test := false, internal := false,
                   is_protocol := false, sealed := false, abstract := false, category := nil}, Row('Lamp')),
    ?assertMatch(#{is_test := true}, Row('LampTest')),
    ?assertMatch(#{is_test := false, category := <<"stdlib">>, origin := runtime, source_file := nil}, Row('TestCase')).

browse_protocols_test() ->
    start(),
    #{protocols := [#{name := <<"as yet unclassified">>, selectors := Selectors}]} =
        perform(<<"browse-protocols">>, #{<<"class">> => <<"Lamp">>, <<"side">> => <<"instance">>}),
    ?assert(lists:member(#{selector => toggle, line => 3, source_status => indexed, origin => both}, Selectors)),
    ?assertMatch([#{origin := runtime}], [S || #{selector := 'set:to:'} = S <- Selectors]),
    ?assertMatch([#{source_status := runtime}], [S || #{selector := wait} = S <- Selectors]),
    #{protocols := [#{selectors := ClassSide}]} =
        perform(<<"browse-protocols">>, #{<<"class">> => <<"Entry">>, <<"side">> => <<"class">>}),
    ?assert(lists:member('main:', [S || #{selector := S} <- ClassSide])),
    ?assertEqual(#{protocols => []}, perform(<<"browse-protocols">>, #{<<"class">> => <<"Lamp">>, <<"side">> => <<"class">>})),
    ?assertEqual(invalid_parameter, failure(<<"browse-protocols">>, #{<<"class">> => <<"Lamp">>, <<"side">> => <<"top">>})),
    ?assertEqual(class_not_found, failure(<<"browse-protocols">>, ?CLASS(<<"Lmap">>))).

browse_method_source_test() ->
    start(),
    Ask = fun(Selector) -> #{<<"class">> => <<"Lamp">>, <<"selector">> => Selector} end,
    ?assertEqual(#{source => <<"toggle => self.on := self.on not">>, doc => <<"Switch.\n\nThe other way.">>,
                   signature => <<"toggle -> Boolean">>, source_status => indexed, origin => both,
                   disk_differs => false},
                 perform(<<"browse-method-source">>, Ask(<<"toggle">>))),
    ?assertMatch(#{signature := <<"set: name to: value :: Object">>, disk_differs := true, origin := runtime},
                 perform(<<"browse-method-source">>, Ask(<<"set:to:">>))),
    ?assertMatch(#{disk_differs := nil, source := nil, source_status := runtime},
                 perform(<<"browse-method-source">>, #{<<"class">> => <<"Trap">>, <<"selector">> => <<"printString">>})),
    ?assertEqual(selector_not_found, failure(<<"browse-method-source">>, Ask(<<"stop">>))),
    ?assertEqual(selector_not_found, failure(<<"browse-method-source">>, Ask(<<"noSuchSelector">>))),
    ?assertEqual(missing_parameter, failure(<<"browse-method-source">>, ?CLASS(<<"Lamp">>))).

browse_class_definition_test() ->
    start(),
    ?assertEqual(#{definition => <<"Actor subclass: Lamp\n  state: on :: Boolean = false">>,
                   state => [#{name => on, type => <<"Boolean">>, default => <<"false">>}],
                   comment => <<"A lamp.">>, origin => both, disk_differs => true},
                 perform(<<"browse-class-definition">>, ?CLASS(<<"Lamp">>))),
    ?assertMatch(#{origin := runtime, disk_differs := nil}, perform(<<"browse-class-definition">>, ?CLASS(<<"Trap">>))),
    ?assertEqual(class_not_found, failure(<<"browse-class-definition">>, ?CLASS(<<"Lmap">>))).

browse_native_source_test() ->
    start(),
    beamtalk_support:define(#{name => 'Native', native => beamtalk_native_fixture}),
    {module, _} = code:ensure_loaded(beamtalk_native_fixture),
    #{module := Module, source := Source, clauses := Clauses} = perform(<<"browse-native-source">>, ?CLASS(<<"Native">>)),
    ?assertEqual(beamtalk_native_fixture, Module),
    ?assertMatch({_, _}, binary:match(Source, <<"-module(beamtalk_native_fixture)">>)),
    ?assertMatch([#{function := _, arity := _, line := _} | _], Clauses),
    ?assertEqual(no_source_file, failure(<<"browse-native-source">>, ?CLASS(<<"Lamp">>))),
    ?assertEqual(class_not_found, failure(<<"browse-native-source">>, ?CLASS(<<"Lmap">>))).

docs_test() ->
    start(),
    Docs = fun(Fields) -> maps:get(docs, perform(<<"docs">>, Fields)) end,
    Has = fun(Text, Part) -> ?assertMatch({_, _}, binary:match(Text, Part)) end,
    Class = Docs(?CLASS(<<"Lamp">>)),
    [Has(Class, Part) || Part <- [<<"# Lamp < Actor">>, <<"A lamp.">>, <<"- `toggle -> Boolean`: Switch.\n">>]],
    Method = Docs(#{<<"class">> => <<"Lamp">>, <<"selector">> => <<"toggle">>}),
    [Has(Method, Part) || Part <- [<<"# Lamp >> toggle">>, <<"The other way.">>]],
    Has(Docs(#{<<"class">> => <<"Lamp">>, <<"selector">> => <<"isNil">>}), <<"Inherited from Object">>),
    Has(Docs(#{<<"class">> => <<"Entry">>, <<"side">> => <<"class">>}), <<"main:">>),
    Has(Docs(#{<<"erlang_module">> => <<"lists">>}), <<"seq">>),
    Has(Docs(#{<<"erlang_module">> => <<"lists">>, <<"selector">> => <<"seq:to:">>}), <<"# lists:seq">>),
    ?assertEqual(selector_not_found, failure(<<"docs">>, #{<<"class">> => <<"Lamp">>, <<"selector">> => <<"frob">>})),
    ?assertEqual(selector_not_found, failure(<<"docs">>, #{<<"erlang_module">> => <<"lists">>, <<"selector">> => <<"frob">>})),
    ?assertEqual(module_not_loaded, failure(<<"docs">>, #{<<"erlang_module">> => <<"../etc">>})),
    ?assertEqual(class_not_found, failure(<<"docs">>, ?CLASS(<<"Lmap">>))),
    ?assertEqual(missing_parameter, failure(<<"docs">>, #{})).

%% Looking at an Erlang module does not load it, since that may run its code.
modules_are_not_loaded_by_looking_test() ->
    start(),
    code:purge(orddict),
    code:delete(orddict),
    ?assertMatch(#{docs := <<"# orddict", _/binary>>}, perform(<<"docs">>, #{<<"erlang_module">> => <<"orddict">>})),
    ?assertMatch(#{completions := [_ | _]}, perform(<<"erlang-complete">>, #{<<"module">> => <<"orddict">>})),
    ?assertEqual(false, code:is_loaded(orddict)).

erlang_complete_test() ->
    Texts = fun(Fields) -> [Text || #{text := Text} <- maps:get(completions, perform(<<"erlang-complete">>, Fields))] end,
    ?assert(lists:member(<<"lists">>, Texts(#{<<"prefix">> => <<"list">>}))),
    ?assertEqual([<<"seq:with:">>, <<"seq:with:with:">>], Texts(#{<<"module">> => <<"lists">>, <<"prefix">> => <<"seq">>})),
    ?assertEqual([], Texts(#{<<"module">> => <<"lists">>, <<"prefix">> => <<"zzz">>})),
    ?assertEqual(module_not_loaded, failure(<<"erlang-complete">>, #{<<"module">> => <<"no_such_module">>})),
    ?assertEqual(invalid_parameter, failure(<<"erlang-complete">>, #{<<"prefix">> => 1})).
