-module(beamtalk_image_ops_tests).
-include("assertions.hrl").

-import(beamtalk_image_ops_fixture, [perform/2, failure/2]).

-define(CLASS(Name), #{<<"class">> => Name}).

%%% The requests as a whole

unknown_op_test() ->
    ?assertEqual(unknown_op, failure(<<"eval">>, #{})).

%% A class whose display methods have effects is looked at by every request that only reads.
read_ops_run_no_user_code_test() ->
    beamtalk_image_ops_fixture:start(),
    Trap = #{'$beamtalk_class' => 'Trap', x => 1},
    List = #{'$beamtalk_class' => 'TrapList', items => [Trap]},
    Lamp = beamtalk_image_ops_fixture:lamp(#{Trap => List, a => [Trap, {Trap}], <<"b">> => List}),
    Pid = beamtalk_image_ops_fixture:pid(Lamp),
    beamtalk_image_ops_fixture:bind(trap, Trap),
    Requests = [{<<"info">>, #{<<"symbol">> => <<"Trap">>}}, {<<"info">>, #{<<"symbol">> => <<"printString">>}},
                {<<"modules">>, #{}}, {<<"list-classes">>, #{}}, {<<"methods">>, ?CLASS(<<"Trap">>)},
                {<<"nav-query">>, #{<<"kind">> => <<"senders">>, <<"selector">> => <<"printString">>}},
                {<<"nav-query">>, #{<<"kind">> => <<"implementors">>, <<"selector">> => <<"printString">>}},
                {<<"nav-query">>, #{<<"kind">> => <<"references">>, <<"class">> => <<"Trap">>}},
                {<<"nav-symbols">>, #{<<"scope">> => <<"all">>}}, {<<"browse-classes">>, #{}},
                {<<"browse-class">>, ?CLASS(<<"Trap">>)},
                {<<"browse-protocols">>, ?CLASS(<<"Trap">>)},
                {<<"browse-method-source">>, #{<<"class">> => <<"Trap">>, <<"selector">> => <<"printString">>}},
                {<<"browse-class-definition">>, ?CLASS(<<"Trap">>)}, {<<"browse-native-source">>, ?CLASS(<<"Trap">>)},
                {<<"docs">>, ?CLASS(<<"Trap">>)}, {<<"docs">>, #{<<"erlang_module">> => <<"lists">>}},
                {<<"erlang-complete">>, #{<<"module">> => <<"lists">>}}, {<<"actors">>, #{}},
                {<<"inspect">>, #{<<"actor">> => Pid}}, {<<"inspect">>, #{<<"binding">> => <<"trap">>}},
                {<<"inspect">>, #{<<"actor">> => Pid, <<"path">> => [<<"on">>]}},
                {<<"inspect">>, #{<<"actor">> => Pid, <<"path">> => [<<"on">>, <<"b">>]}},
                {<<"inspect">>, #{<<"actor">> => Pid, <<"path">> => [<<"on">>, <<"b">>, <<"items">>, 1]}},
                {<<"inspect">>, #{<<"binding">> => <<"trap">>, <<"understands">> => true}},
                {<<"top-actors">>, #{<<"sort">> => <<"memory">>}}, {<<"pid-stats">>, #{<<"actor">> => Pid}}, {<<"supervision-tree">>, #{}}, {<<"list-tests">>, #{}},
                {<<"views">>, #{<<"actor">> => Pid}}, {<<"view">>, #{<<"actor">> => Pid}},
                {<<"view">>, #{<<"binding">> => <<"trap">>}}, {<<"vitals">>, #{}},
                {<<"actors">>, #{<<"stats">> => true, <<"sort">> => <<"queue">>, <<"find">> => <<"lamp">>}},
                {<<"inspect">>, #{<<"actor">> => Pid, <<"path">> => [<<"on">>], <<"find">> => <<"b">>}},
                {<<"get-traces">>, #{}}, {<<"actor-stats">>, #{}}, {<<"health">>, #{}}, {<<"work">>, #{}}],
    true = beamtalk_image_ops_fixture:is_quiet(),
    [begin
         Answer = beamtalk_image_ops:perform(Op, Fields, <<"s-1">>),
         ?assertEqual({Op, true}, {Op, element(1, Answer) =:= ok orelse Op =:= <<"browse-native-source">>}),
         ?assertEqual({Op, true}, {Op, beamtalk_image_ops_fixture:is_quiet()})
     end || {Op, Fields} <- Requests],
    Changing = [<<"unload">>, <<"kill">>, <<"test">>, <<"test-all">>, <<"run-entry">>, <<"enable-tracing">>,
                <<"disable-tracing">>, <<"clear-traces">>, <<"export-traces">>, <<"log-level">>],
    %% The traps do tell.
    <<"loud">> = beamtalk_display:print(Trap),
    ?assertNot(beamtalk_image_ops_fixture:is_quiet()),
    ?assertEqual(beamtalk_image_ops:names(), lists:usort([Op || {Op, _} <- Requests] ++ Changing)),
    beamtalk_support:stop_all([Lamp]).

%% Names from outside never become atoms.
no_atoms_are_made_test() ->
    beamtalk_image_ops_fixture:start(),
    [beamtalk_image_ops:perform(Op, #{}, <<"s-1">>) || Op <- [<<"info">>, <<"docs">>, <<"inspect">>]],
    Before = erlang:system_info(atom_count),
    [begin
         Name = <<"NoSuchName", (integer_to_binary(N))/binary>>,
         [beamtalk_image_ops:perform(Op, Fields, Name)
          || {Op, Fields} <- [{<<"info">>, #{<<"symbol">> => Name}}, {<<"methods">>, ?CLASS(Name)},
                              {<<"docs">>, #{<<"class">> => <<"Lamp">>, <<"selector">> => Name}},
                              {<<"docs">>, #{<<"erlang_module">> => string:lowercase(Name)}},
                              {<<"inspect">>, #{<<"actor">> => Name}}, {<<"inspect">>, #{<<"binding">> => Name}},
                              {<<"nav-query">>, #{<<"kind">> => Name, <<"selector">> => Name}},
                              {<<"run-entry">>, #{<<"class">> => <<"Entry">>, <<"selector">> => Name}},
                              {<<"test">>, #{<<"class">> => <<"LampTest">>, <<"method">> => Name}},
                              {<<"log-level">>, #{<<"level">> => Name}}, {Name, #{Name => Name}}]]
     end || N <- lists:seq(1, 50)],
    ?assertEqual(Before, erlang:system_info(atom_count)).

%% A field of any wrong type is refused, not a fault of ours.
wrong_fields_are_refused_test() ->
    beamtalk_image_ops_fixture:start(),
    Keys = [<<"symbol">>, <<"class">>, <<"selector">>, <<"side">>, <<"kind">>, <<"filter">>, <<"scope">>, <<"actor">>,
            <<"binding">>, <<"path">>, <<"page">>, <<"method">>, <<"file">>, <<"jobs">>, <<"test_timeout_ms">>, <<"args">>, <<"prefix">>,
            <<"module">>, <<"erlang_module">>, <<"force">>, <<"graceful">>, <<"limit">>, <<"outcome">>,
            <<"min_duration_ns">>, <<"level">>],
    Values = [17, -1, 1.5, true, <<>>, <<"x">>, <<255>>, [], [[1]], #{}, #{<<"a">> => nil}, nil],
    [case beamtalk_image_ops:perform(Op, maps:from_list([{Key, Value} || Key <- Keys]), <<"s-1">>) of
         {ok, _} -> ok;
         {error, #{<<"kind">> := Kind}} ->
             ?assertEqual({Op, Value, true}, {Op, Value, Kind =/= <<"internal_error">>})
     end || Op <- beamtalk_image_ops:names() -- [<<"export-traces">>, <<"log-level">>], Value <- Values],
    ok.

bindings_run_no_user_code_test() ->
    beamtalk_image_ops_fixture:start(),
    Table = ets:new(variables, [public]),
    Trap = #{'$beamtalk_class' => 'Trap', x => 1},
    ets:insert(Table, [{one, Trap}, {many, [Trap, #{Trap => Trap}]}]),
    true = beamtalk_image_ops_fixture:is_quiet(),
    ?assertEqual(#{<<"bindings">> =>
                       #{<<"one">> => #{<<"text">> => <<"Trap(x: 1)">>, <<"class">> => <<"Trap">>},
                         <<"many">> => #{<<"text">> => <<"#(Trap(x: 1), #{Trap(x: 1) => Trap(x: 1)})">>,
                                         <<"class">> => <<"List">>}}},
                 beamtalk_session_view:bindings(Table, [many, one], #{})),
    ?assert(beamtalk_image_ops_fixture:is_quiet()).

%%% Printing without sending

plain_text_test() ->
    beamtalk_image_ops_fixture:start(),
    Text = fun beamtalk_plain:text/1,
    ?assertEqual(<<"3">>, Text(3)),
    ?assertEqual(<<"#(1, #a, \"b\")">>, Text([1, a, <<"b">>])),
    ?assertEqual(<<"#(1, | 2)">>, Text([1 | 2])),
    ?assertEqual(<<"{1, nil}">>, Text({1, nil})),
    ?assertEqual(<<"#{\"a\" => 1, #b => 2}">>, Text(#{b => 2, <<"a">> => 1})),
    ?assertEqual(<<"Trap(x: 1)">>, Text(#{'$beamtalk_class' => 'Trap', x => 1})),
    ?assertEqual(<<"Result ok: 1">>, Text(#{'$beamtalk_class' => 'Result', isOk => true, okValue => 1, errReason => nil})),
    ?assertEqual(<<"{#beamtalk_object, 1, 2, 3}">>, Text({beamtalk_object, 1, 2, 3})),
    ?assertEqual(<<"Lamp">>, Text(beamtalk_class:named('Lamp'))),
    ?assertEqual(<<"a very large Integer">>, Text(1 bsl 100000)).

plain_text_is_bounded_test() ->
    beamtalk_image_ops_fixture:start(),
    Deep = lists:foldl(fun(_, Inner) -> [Inner, Inner] end, [], lists:seq(1, 60)),
    Wide = lists:foldl(fun(_, Inner) -> lists:duplicate(50, Inner) end, 1, lists:seq(1, 8)),
    [?assert(byte_size(beamtalk_plain:text(Term)) < 20000)
     || Term <- [Deep, Wide, binary:copy(<<"é"/utf8>>, 1000000), lists:seq(1, 1000000),
                 maps:from_list([{N, N} || N <- lists:seq(1, 100000)])]],
    ?assert(beamtalk_dispatch:is_text(beamtalk_plain:text(binary:copy(<<"aé"/utf8>>, 100000)))).
