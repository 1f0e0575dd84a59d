-module(beamtalk_resource_tests).
-include("assertions.hrl").

tables_end_with_their_owner_test() ->
    Test = self(),
    {Owner, Monitor} = spawn_monitor(fun() ->
                                             {ok, _} = beamtalk_resource:create(ets, eunit_table, [set], []),
                                             Test ! made,
                                             receive stop -> ok end
                                     end),
    receive made -> ok end,
    {ok, ets, Table} = beamtalk_resource:find(eunit_table),
    ?assertEqual(exists, beamtalk_resource:create(counter, eunit_table, [set], [])),
    ?assertEqual(not_owner, beamtalk_resource:delete(eunit_table, Table)),
    Owner ! stop,
    receive {'DOWN', Monitor, process, Owner, _} -> ok end,
    ?assertEqual(ok, await(fun() -> beamtalk_resource:find(eunit_table) =:= none end, 100)).

open_files_are_listed_while_their_owner_lives_test() ->
    Path = <<"/tmp/beamtalk_resource_tests">>,
    #{okValue := Handle} = beamtalk_file_handle:'class open:mode:'(nil, Path, write),
    ?assert(lists:member({Path, write, nil}, beamtalk_resource:handles())),
    ?assert(beamtalk_file_handle:isOpen(Handle)),
    beamtalk_file_handle:close(Handle),
    ?assertNot(beamtalk_file_handle:isOpen(Handle)),
    ?assertNot(lists:member({Path, write, nil}, beamtalk_resource:handles())),
    ok = file:delete(Path).

await(Condition, Tries) ->
    case Condition() of
        true -> ok;
        false when Tries > 0 -> timer:sleep(5), await(Condition, Tries - 1);
        false -> timeout
    end.
