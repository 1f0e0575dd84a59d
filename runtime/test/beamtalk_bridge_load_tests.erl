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
    ?assertEqual(3, ?D:send(Lamp, answer)),
    beamtalk_support:stop_all([Lamp]).

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
