%% The classes of a built project are there before their code is, and nobody can tell.
-module(beamtalk_summary_tests).
-include("assertions.hrl").

-define(D, beamtalk_dispatch).

lamp(Name, Answer) ->
    #{name => Name, superclass => 'Value', kind => value, slots => [{watts, "40"}],
      methods => [{answer, 0, "fun(_) -> " ++ Answer ++ " end"},
                  {block, 0, "fun(S) -> fun() -> {" ++ Answer ++ ", map_get(watts, S)} end end"}],
      class_methods => [{made, 0, "fun(_) -> " ++ Answer ++ " end"}]}.

%% Files as a build writes them.
write(Directory, Specs) ->
    [begin
         Forms = term_to_binary(beamtalk_support:forms(Spec)),
         {ok, Module, Beam} = beamtalk_forms:compile_with_summary(Forms),
         Path = filename:join(Directory, atom_to_list(Module) ++ ".beam"),
         ok = file:write_file(Path, Beam),
         {Module, {beam, list_to_binary(Path)}}
     end || Spec <- Specs].

in_directory(Test) ->
    beamtalk_support:start(),
    Directory = filename:join("/tmp", "beamtalk-summary-" ++ os:getpid() ++ integer_to_list(erlang:unique_integer([positive]))),
    ok = file:make_dir(Directory),
    try Test(Directory)
    after file:del_dir_r(Directory)
    end.

new(Class) -> ?D:send(beamtalk_class:named(Class), new).

code_comes_when_it_is_called_test() ->
    in_directory(fun(Directory) ->
        Files = write(Directory, [lamp(list_to_atom("LaterLamp" ++ integer_to_list(N)), integer_to_list(N))
                                  || N <- lists:seq(1, 30)]),
        {Modules, Units} = lists:unzip(Files),
        {ok, #{<<"classes">> := Names}} = beamtalk_bridge_load:load(Units, #{}),
        ?assertEqual(30, length(Names)),
        ?assertEqual(3, ?D:send(new('LaterLamp3'), answer)),
        ?assertEqual({7, 40}, (?D:send(new('LaterLamp7'), block))()),
        ?assertEqual(9, ?D:send(beamtalk_class:named('LaterLamp9'), made)),
        %% The rest follows by itself, from what was read: the files are not needed any more.
        [ok = file:delete(Path) || {beam, Path} <- Units],
        beamtalk_support:await(fun() -> lists:all(fun erlang:module_loaded/1, Modules) end),
        ?assertEqual(30, ?D:send(new('LaterLamp30'), answer))
    end).

%% A block of code that came by itself lives on, however often its class is replaced.
blocks_of_it_survive_replacements_test() ->
    in_directory(fun(Directory) ->
        [{Module, Unit}] = write(Directory, [lamp('LaterBlock', "1")]),
        {ok, _} = beamtalk_bridge_load:load([Unit], #{}),
        Block = ?D:send(new('LaterBlock'), block),
        [begin
             Forms = term_to_binary(beamtalk_support:forms(lamp('LaterBlock', integer_to_list(N)))),
             {ok, _} = beamtalk_bridge_load:load([{forms, Forms}], #{}),
             ?assertEqual({1, 40}, Block()),
             ?assertEqual(N, ?D:send(new('LaterBlock'), answer))
         end || N <- lists:seq(2, 6)],
        ?assert(erlang:module_loaded(Module))
    end).

%% What is replaced before its first call is not brought back by what waits.
a_replacement_stays_test() ->
    in_directory(fun(Directory) ->
        [{_, Unit}] = write(Directory, [lamp('LaterReplaced', "1")]),
        {ok, _} = beamtalk_bridge_load:load([Unit], #{}),
        Forms = term_to_binary(beamtalk_support:forms(lamp('LaterReplaced', "2"))),
        {ok, _} = beamtalk_bridge_load:load([{forms, Forms}], #{}),
        beamtalk_code:load_waiting(),
        ?assertEqual(2, ?D:send(new('LaterReplaced'), answer))
    end).

%% What is refused leaves nothing.
a_class_without_its_superclass_is_refused_test() ->
    in_directory(fun(Directory) ->
        [{Module, Unit}] = write(Directory, [(lamp('LaterOrphan', "1"))#{superclass => 'NobodyKnows'}]),
        ?assertMatch({error, _}, beamtalk_bridge_load:load([Unit], #{})),
        ?assertNot(beamtalk_class:exists('LaterOrphan')),
        ?assertNot(erlang:module_loaded(Module))
    end).

any_bytes_have_no_summary_test() ->
    [?assertEqual(none, beamtalk_summary:read(Bytes))
     || Bytes <- [<<>>, <<"FOR1">>, <<"FOR1", 0:32, "BEAM">>, <<"FOR1", 0:32, "BEAM", "Code", 99:32, 1, 2>>,
                  <<"FOR1", 0:32, "BEAM", "BtSm", 3:32, 1, 2, 3, 0>>, binary:copy(<<"x">>, 5000)]].
