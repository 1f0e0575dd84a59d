-module(beamtalk_class_tests).
-include("assertions.hrl").

-define(D, beamtalk_dispatch).

version(N) ->
    #{name => 'Ticker', superclass => 'Actor', kind => actor, slots => [{n, "0"}],
      methods => [{version, 0, integer("fun(_) -> ", N)},
                  {wait, 0, "fun(_) -> receive go -> ok end end"},
                  {bump, 0, "fun(_) -> beamtalk_actor:put_field(n, beamtalk_actor:get_field(n) + 1) end"},
                  {remember, 0, integer("fun(_) -> B = fun() -> ", N) ++ ", beamtalk_actor:put_field(n, B) end"}]}.

integer(Prefix, N) -> Prefix ++ integer_to_list(N) ++ " end".

reload_test_() ->
    {timeout, 120, {"a thousand reloads with an actor inside old code", fun reload/0}}.

reload() ->
    Class = beamtalk_support:define(version(0)),
    {_, _, _, Pid} = Sitting = ?D:send(Class, spawn),
    {_, _, _, Holding} = Holder = ?D:send(Class, spawn),
    ?D:send(Holder, remember),
    Atoms = erlang:system_info(atom_count),
    ?D:cast(Sitting, wait, []),
    {ok, _} = {ok, wait_until(fun() -> element(2, process_info(Pid, status)) =:= waiting end)},
    [begin
         beamtalk_support:define(version(N)),
         N rem 50 =:= 0 andalso ?assertEqual(N, ?D:send(Holder, version))
     end || N <- lists:seq(1, 1000)],
    ?assert(is_process_alive(Pid)),
    ?assert(is_process_alive(Holding)),
    Pid ! go,
    ?assertEqual(1000, ?D:send(Sitting, version)),
    ?assert(erlang:system_info(atom_count) - Atoms < 200),
    beamtalk_support:stop_all([Sitting, Holder]).

%% The same with compiled code that carries no debug information.
reload_beams_test() ->
    beamtalk_support:start(),
    Spec = fun(N) -> (version(N))#{name => 'Pulse', module => bt@pulse} end,
    Load = fun(S) ->
        {ok, bt@pulse, Beam} = beamtalk_code:compile_forms(beamtalk_support:forms(S)),
        beamtalk_class:load(bt@pulse, Beam)
    end,
    {ok, bt@pulse} = Load(Spec(0)),
    {_, _, _, Pid} = Pulse = ?D:send(beamtalk_class:named('Pulse'), spawn),
    ?D:cast(Pulse, wait, []),
    wait_until(fun() -> element(2, process_info(Pid, status)) =:= waiting end),
    Other = ?D:send(beamtalk_class:named('Pulse'), spawn),
    [begin
         {ok, bt@pulse} = Load(Spec(N)),
         ?assertEqual(N, ?D:send(Other, version))
     end || N <- lists:seq(1, 20)],
    {error, E} = Load((Spec(21))#{superclass => 'NoSuchClass'}),
    ?assertEqual(class_not_found, beamtalk_error:field(E, kind)),
    ?assertEqual(20, ?D:send(Other, version)),
    Pid ! go,
    ?assertEqual(20, ?D:send(Pulse, version)),
    beamtalk_support:stop_all([Pulse, Other]).

wait_until(Condition) ->
    case Condition() of
        true -> ok;
        false -> erlang:yield(), wait_until(Condition)
    end.

%% A block kept in class state still works after its maker was reloaded often.
stored_block_test() ->
    Spec = fun(N) -> #{name => 'Maker', superclass => 'Object', kind => object,
                       class_methods => [{make, 0, "fun(S) -> fun() -> {S, " ++ integer_to_list(N) ++ "} end end"}]} end,
    Keeper = beamtalk_support:define(#{name => 'Keeper', superclass => 'Object', kind => object, class_slots => [{block, "nil"}],
        class_methods => [{'keep:', 1, "fun(S, B) -> beamtalk_class_state:locked_put(S, block, B) end"},
                          {run, 0, "fun(S) -> (beamtalk_class_state:get(S, block))() end"}]}),
    Maker = beamtalk_support:define(Spec(0)),
    ?D:send(Keeper, 'keep:', ?D:send(Maker, make)),
    [beamtalk_support:define(Spec(N)) || N <- lists:seq(1, 5)],
    erlang:garbage_collect(),
    ?assertEqual({Maker, 0}, ?D:send(Keeper, run)).

migration_test() ->
    Spec = fun(Slots) -> #{name => 'Tank', superclass => 'Actor', kind => actor, slots => Slots,
                           methods => [{state, 0, "fun(_) -> get('$bt_state') end"},
                                       {'set:', 1, "fun(_, V) -> beamtalk_actor:put_field(level, V) end"}]} end,
    Class = beamtalk_support:define(Spec([{level, "0"}, {old, "1"}])),
    Tank = ?D:send(Class, spawn),
    5 = ?D:send(Tank, 'set:', 5),
    beamtalk_support:define(Spec([{level, "0"}, {colour, "red"}])),
    ?assertEqual(#{'$beamtalk_class' => 'Tank', level => 5, colour => red}, ?D:send(Tank, state)),
    beamtalk_support:define(Spec([{level, "0"}, {colour, "red"}, {bad, "1 / 0"}])),
    %% A default that fails: code and state stay, until the class changes again.
    ?assertEqual(#{'$beamtalk_class' => 'Tank', level => 5, colour => red}, ?D:send(Tank, state)),
    beamtalk_support:define(Spec([{level, "1 / 0"}, {colour, "red"}, {good, "2"}])),
    %% Only the defaults of new slots are asked for.
    ?assertEqual(#{'$beamtalk_class' => 'Tank', level => 5, colour => red, good => 2}, ?D:send(Tank, state)),
    beamtalk_support:stop_all([Tank]).

refused_changes_nothing_test() ->
    Good = #{name => 'Steady', superclass => 'Value', kind => value, methods => [{one, 0, "fun(_) -> 1 end"}]},
    Class = beamtalk_support:define(Good),
    Bad = Good#{superclass => 'NoSuchClass', methods => [{one, 0, "fun(_) -> 2 end"}]},
    {error, E} = beamtalk_class:load_forms(beamtalk_support:forms(Bad)),
    ?assertEqual(class_not_found, beamtalk_error:field(E, kind)),
    ?assertEqual(1, ?D:send(?D:send(Class, new), one)),
    {error, S} = beamtalk_class:load_forms(beamtalk_support:forms(#{name => 'Integer', superclass => 'Object', module => bt@mine})),
    ?assertEqual(stdlib_shadowing, beamtalk_error:field(S, kind)),
    ?assertEqual(3, ?D:send(1, '+', 2)).

subclasses_follow_test() ->
    Base = fun(N) -> #{name => 'Stem', superclass => 'Value', kind => value, methods => [{v, 0, integer("fun(_) -> ", N)}]} end,
    beamtalk_support:define(Base(1)),
    Sub = beamtalk_support:define(#{name => 'Twig', superclass => 'Stem', kind => value}),
    ?assertEqual(1, ?D:send(?D:send(Sub, new), v)),
    beamtalk_support:define(Base(2)),
    ?assertEqual(2, ?D:send(?D:send(Sub, new), v)),
    ?assertEqual(['Twig'], beamtalk_class:subclasses('Stem')).

removal_test() ->
    Class = beamtalk_support:define(#{name => 'Shelf', superclass => 'Value', kind => value,
                                      methods => [{printString, 0, "fun(_) -> <<\"mine\">> end"}]}),
    Shelf = ?D:send(Class, new),
    ?assertEqual(<<"mine">>, beamtalk_display:print(Shelf)),
    ok = beamtalk_class:remove_method('Shelf', instance, printString),
    ?assertEqual(<<"Shelf()">>, beamtalk_display:print(Shelf)),
    not_found = beamtalk_class:remove_method('Shelf', instance, printString),
    nil = beamtalk_behaviour:removeFromSystem(Class),
    ?assertEqual(none, beamtalk_class:find('Shelf')),
    E = beamtalk_support:catch_error(fun() -> beamtalk_class:named('Shelf') end),
    ?assertEqual(<<"Class 'Shelf' not found">>, beamtalk_error:field(E, message)).

patch_test() ->
    Class = beamtalk_support:define(#{name => 'Patched', superclass => 'Value', kind => value,
                                      methods => [{v, 0, "fun(_) -> 1 end"}]}),
    patch('Patched', v, "fun(_) -> 2 end"),
    ?assertEqual(2, ?D:send(?D:send(Class, new), v)).

patches_flat_test_() ->
    {timeout, 120, {"a thousand patches of one method with a process inside an old one", fun patches_flat/0}}.

patches_flat() ->
    Class = beamtalk_support:define(#{name => 'Often', superclass => 'Value', kind => value,
                                      methods => [{v, 0, "fun(_) -> 0 end"}]}),
    Value = ?D:send(Class, new),
    patch('Often', v, "fun(_) -> receive go -> sat end end"),
    {Pid, Monitor} = spawn_monitor(fun() -> exit(?D:send(Value, v)) end),
    wait_until(fun() -> element(2, process_info(Pid, status)) =:= waiting end),
    [patch('Often', v, integer("fun(_) -> ", N)) || N <- lists:seq(1, 5)],
    {Atoms, Modules} = {erlang:system_info(atom_count), length(code:all_loaded())},
    [begin
         patch('Often', v, integer("fun(_) -> ", N)),
         N rem 100 =:= 0 andalso ?assertEqual(N, ?D:send(Value, v))
     end || N <- lists:seq(1, 1000)],
    ?assertEqual(Atoms, erlang:system_info(atom_count)),
    ?assertEqual(Modules, length(code:all_loaded())),
    Pid ! go,
    ?assertEqual(sat, receive {'DOWN', Monitor, process, _, Reason} -> Reason end).

patch_dropped_test() ->
    Define = fun() ->
        beamtalk_support:define(#{name => 'Dropped', superclass => 'Value', kind => value,
                                  methods => [{v, 0, "fun(_) -> 1 end"}, {w, 0, "fun(_) -> 1 end"}]})
    end,
    Class = Define(),
    Value = ?D:send(Class, new),
    patch('Dropped', v, "fun(_) -> 2 end"),
    ?assertEqual(2, ?D:send(Value, v)),
    Define(),
    ?assertEqual(1, ?D:send(Value, v)),
    ?assertNot(code:is_loaded(patch_module('Dropped', v)) =/= false),
    patch('Dropped', w, "fun(_) -> 3 end"),
    ?assertEqual(3, ?D:send(Value, w)),
    ok = beamtalk_class:remove_method('Dropped', instance, w),
    ?assertEqual(false, code:is_loaded(patch_module('Dropped', w))),
    E = beamtalk_support:catch_error(fun() -> ?D:send(Value, w) end),
    ?assertEqual(does_not_understand, beamtalk_error:field(E, kind)),
    patch('Dropped', w, "fun(_) -> 4 end"),
    ?assertEqual(4, ?D:send(Value, w)).

patch_module(Class, Selector) -> list_to_atom(lists:concat(["bt@patch@", Class, "@", Selector])).

patch(Class, Selector, Body) ->
    Spec = #{name => none, module => patch_module(Class, Selector), only_extensions => true,
             extensions => [{Class, instance, Selector, 0, Body}]},
    Forms = [case F of
                 {function, L, '__beamtalk_extensions', 0, [{clause, C, [], [], [Abstract]}]} ->
                     Entries = [E#{kind => patch} || E <- erl_parse:normalise(Abstract)],
                     {function, L, '__beamtalk_extensions', 0, [{clause, C, [], [], [erl_parse:abstract(Entries)]}]};
                 _ -> F
             end || F <- beamtalk_support:forms(Spec)],
    ok = beamtalk_class:load_forms(Forms).

image_test() ->
    beamtalk_support:start(),
    Ebin = filename:absname("beamtalk_image_test_" ++ os:getpid()),
    ok = file:make_dir(Ebin),
    Image = filename:join(Ebin, "library.image"),
    ok = beamtalk_class:write_image(Ebin, Image),
    {Micros, ok} = timer:tc(fun() -> beamtalk_class:boot(Image) end),
    ?assert(Micros < 100000),
    ?assertEqual(7, ?D:send(3, '+', 4)),
    true = code:del_path(Ebin),
    ok = file:del_dir_r(Ebin).
