-module(beamtalk_bridge_load_tests).
-include("assertions.hrl").

-define(D, beamtalk_dispatch).

lamp(Slots, Answer) ->
    #{name => 'LoadedLamp', superclass => 'Actor', kind => actor, slots => Slots,
      methods => [{state, 0, "fun(_) -> get('$bt_state') end"}, {answer, 0, "fun(_) -> " ++ Answer ++ " end"}]}.

load(Specs) ->
    beamtalk_bridge_load:load([{forms, term_to_binary(beamtalk_support:forms(Spec))} || Spec <- Specs], #{}).

classes_are_answered_test() ->
    beamtalk_support:start(),
    ?assertEqual({ok, #{<<"classes">> => [<<"LoadedLamp">>]}}, load([lamp([{on, "false"}], "1")])).

actors_migrate_test() ->
    beamtalk_support:start(),
    {ok, _} = load([lamp([{on, "false"}, {old, "1"}], "1")]),
    Lamp = ?D:send(beamtalk_class:named('LoadedLamp'), spawn),
    ?assertMatch({ok, #{<<"affected_actors">> := 1, <<"migration_failures">> := []}},
                 load([lamp([{on, "false"}, {watts, "40"}], "2")])),
    ?assertEqual(#{'$beamtalk_class' => 'LoadedLamp', on => false, watts => 40}, ?D:send(Lamp, state)),
    {ok, #{<<"migration_failures">> := [#{<<"actor">> := Actor, <<"reason">> := Reason}]}} =
        load([lamp([{on, "false"}, {watts, "40"}, {bad, "1 / 0"}], "3")]),
    ?assertEqual(beamtalk_plain:pid(element(4, Lamp)), Actor),
    ?assertMatch({_, _}, binary:match(Reason, <<"arithmetic">>)),
    ?assertEqual(2, ?D:send(Lamp, answer)),
    beamtalk_support:stop_all([Lamp]).

%% An actor that cannot follow keeps its code and its state; it is asked again at the next change.
failed_actors_keep_code_and_state_test() ->
    beamtalk_support:start(),
    Base = fun(Answer) ->
        #{name => 'FormerBase', superclass => 'Actor', kind => actor,
          methods => [{base, 0, "fun(_) -> " ++ Answer ++ " end"}]}
    end,
    Lamp = fun(Slots, Answer) ->
        Own = lamp(Slots, Answer),
        Own#{name => 'FormerLamp', superclass => 'FormerBase',
             methods => [{through, 0, "fun(S) -> beamtalk_dispatch:send(S, answer) end"},
                         {above, 0, "fun(S) -> beamtalk_dispatch:super(S, 'FormerLamp', instance, base, []) end"}
                         | maps:get(methods, Own)]}
    end,
    Good = [{on, "false"}],
    Bad = [{on, "false"}, {bad, "error(later)"}],
    Wanting = fun(Answer) ->
        #{methods := Methods} = Spec = Lamp(Bad, Answer),
        Spec#{methods := [{bad, 0, "fun(_) -> beamtalk_actor:get_field(bad) end"}, {value, 0, "fun(_) -> 1 end"} | Methods]}
    end,
    {ok, _} = load([Base("1"), Lamp(Good, "1")]),
    Old = ?D:send(beamtalk_class:named('FormerLamp'), spawn),
    Says = fun(Actor) -> [?D:send(Actor, Selector) || Selector <- [answer, through, above, base]] end,
    ?assertMatch({ok, #{<<"migration_failures">> := [_]}}, load([Base("2"), Lamp(Bad, "2")])),
    ?assertEqual([1, 1, 1, 1], Says(Old)),
    ?assertEqual(#{'$beamtalk_class' => 'FormerLamp', on => false}, ?D:send(Old, state)),
    %% Again and again: its code is never loaded over, and nobody else is held back.
    [begin
         ?assertMatch({ok, #{<<"migration_failures">> := [_]}}, load([Base(N), Wanting(N)])),
         ?assertEqual([1, 1, 1, 1], Says(Old)),
         ?assertError(#{error := {beamtalk_error, does_not_understand, _, bad, _, _, _}}, ?D:send(Old, bad)),
         %% It is told why, and not to send what it just did not understand.
         [?assertEqual({<<"FormerLamp does not understand '", (atom_to_binary(Selector))/binary, "'">>,
                        <<"This actor still runs FormerLamp as it was before, since the default of a new slot failed: "
                          "define the class again with one that does not, and the actor follows">>},
                       beamtalk_error_words:told(beamtalk_support:catch_error(fun() -> ?D:send(Old, Selector) end)))
          || Selector <- [bad, value]]
     end || N <- ["3", "4", "5", "6"]],
    {ok, #{<<"migration_failures">> := []}} = load([Lamp(Good, "7")]),
    ?assertEqual([7, 7, 6, 6], Says(Old)),
    ?assertNot(beamtalk_former:is_remembered('FormerLamp')),
    New = ?D:send(beamtalk_class:named('FormerLamp'), spawn),
    ?assertEqual([7, 7, 6, 6], Says(New)),
    beamtalk_support:stop_all([Old, New]).

%% One that is busy while its class changes twice goes on with the code it had.
busy_actors_keep_their_own_code_test_() ->
    {timeout, 30, fun() ->
        beamtalk_support:start(),
        Lamp = fun(Slots, Answer) ->
            Own = lamp(Slots, Answer),
            Own#{name => 'BusyLamp',
                 methods => [{'wait:', 1, "fun(_, P) -> P ! self(), receive go -> nil end end"}
                             | maps:get(methods, Own)]}
        end,
        {ok, _} = load([Lamp([{on, "false"}], "1")]),
        Busy = ?D:send(beamtalk_class:named('BusyLamp'), spawn),
        ?D:cast(Busy, 'wait:', [self()]),
        Pid = receive P -> P end,
        {ok, _} = load([Lamp([{on, "false"}, {bad, "error(later)"}], "2")]),
        {ok, _} = load([Lamp([{on, "false"}, {worse, "error(later)"}], "3")]),
        Pid ! go,
        ?assertEqual(1, ?D:send(Busy, answer)),
        ?assertEqual(#{'$beamtalk_class' => 'BusyLamp', on => false}, ?D:send(Busy, state)),
        beamtalk_support:stop_all([Busy])
    end}.

%% A block outlives the code it was made in, wherever it is kept; so do any number of versions.
blocks_outlive_reloads_test() ->
    beamtalk_support:start(),
    Maker = fun(N) ->
        #{name => 'LoadedMaker', superclass => 'Object',
          class_methods => [{'block:', 1, "fun(_, K) -> fun(X) -> X + K + " ++ integer_to_list(N) ++ " end end"},
                            {plain, 0, "fun(_) -> fun() -> " ++ integer_to_list(N) ++ " end end"}]}
    end,
    Table = ets:new(kept, [public]),
    [begin
         {ok, _} = load([Maker(N)]),
         Class = beamtalk_class:named('LoadedMaker'),
         ets:insert(Table, {N, ?D:send(Class, 'block:', 100), ?D:send(Class, plain)})
     end || N <- lists:seq(1, 6)],
    [?assertEqual({N, 101 + N, N}, {N, Block(1), Plain()}) || {N, Block, Plain} <- ets:tab2list(Table)],
    Used = length([Code || {Code, _} <- code:all_loaded(), lists:prefix("bt@loadedmaker", atom_to_list(Code))]),
    ?assert(Used > 1),
    ets:delete(Table),
    garbage_collect(),
    %% Names are used again once nothing is left.
    [{ok, _} = load([Maker(N)]) || N <- lists:seq(7, 20)],
    ?assert(Used >= length([Code || {Code, _} <- code:all_loaded(), lists:prefix("bt@loadedmaker", atom_to_list(Code))])).

all_or_nothing_test() ->
    beamtalk_support:start(),
    {ok, _} = load([lamp([{on, "false"}], "1")]),
    Lamp = ?D:send(beamtalk_class:named('LoadedLamp'), spawn),
    Orphan = #{name => 'LoadedOrphan', superclass => 'NoSuchClass', kind => value},
    ?assertMatch({error, #{<<"kind">> := <<"class_not_found">>}}, load([lamp([{on, "false"}], "2"), Orphan])),
    ?assertEqual(1, ?D:send(Lamp, answer)),
    Value = #{name => 'LoadedLamp', superclass => 'Value', kind => value},
    ?assertMatch({error, #{<<"kind">> := <<"incompatible_reload">>}}, load([Value])),
    ?assertEqual(1, ?D:send(Lamp, answer)),
    Damaged = {forms, <<"no forms">>},
    ?assertMatch({error, #{<<"kind">> := <<"compile_failed">>}}, beamtalk_bridge_load:load([Damaged], #{})),
    ?assertMatch({error, #{<<"kind">> := <<"read_error">>}}, beamtalk_bridge_load:load([{beam, <<"/no/such.beam">>}], #{})),
    beamtalk_support:stop_all([Lamp]).

%% A change that was asked for is made whole, even if whoever asked is killed meanwhile.
loading_outlives_the_asker_test() ->
    beamtalk_support:start(),
    Forms = [{forms, term_to_binary(beamtalk_support:forms((lamp([], "7"))#{name => 'LoadedAlone'}))}],
    Pid = spawn(fun() -> beamtalk_bridge_load:load(Forms, #{}) end),
    timer:sleep(1),
    exit(Pid, kill),
    ?assertEqual(ok, wait_for('LoadedAlone', 200)).

wait_for(_, 0) -> never;
wait_for(Class, Tries) ->
    case beamtalk_class:exists(Class) of
        true -> ok;
        false ->
            timer:sleep(10),
            wait_for(Class, Tries - 1)
    end.
