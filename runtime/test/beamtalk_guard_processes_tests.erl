-module(beamtalk_guard_processes_tests).
-include("assertions.hrl").

-define(LEAST, 75).

rows(Kind, Leader, Count) -> [{make_ref(), Kind, Leader, self()} || _ <- lists:seq(1, Count)].

the_largest_group_is_blamed_test() ->
    Groups = #{a => rows(raw, a, 100), b => rows(raw, b, 300)},
    ?assertEqual(b, beamtalk_guard_processes:blamed(Groups, [], 0, ?LEAST)).

a_small_group_is_left_alone_test() ->
    ?assertEqual(none, beamtalk_guard_processes:blamed(#{a => rows(raw, a, 74)}, [], 0, ?LEAST)),
    ?assertEqual(none, beamtalk_guard_processes:blamed(#{}, [], 9000, ?LEAST)).

%% Nobody is blamed for many that say nothing, unless their like did.
the_silent_are_what_their_like_are_test() ->
    Old = rows(raw, old, 200),
    New = rows(raw, new, 30),
    Groups = #{old => Old, new => New},
    ?assertEqual(none, beamtalk_guard_processes:blamed(#{old => Old}, [], 9000, ?LEAST)),
    ?assertEqual(new, beamtalk_guard_processes:blamed(Groups, New, 9000, ?LEAST)),
    ?assertEqual(none, beamtalk_guard_processes:blamed(Groups, lists:sublist(New, 19), 9000, ?LEAST)).

%% New actors that answer are no sign against anybody.
answers_of_actors_blame_nobody_test() ->
    Groups = #{old => rows(raw, old, 200)},
    ?assertEqual(none, beamtalk_guard_processes:blamed(Groups, rows(known, old, 100), 9000, ?LEAST)).

%% An actor begins under the leader of the evaluation that makes it: seen at that moment, it is not taken for a process of
%% the evaluation for good.
an_actor_seen_while_it_starts_is_known_later_test() ->
    apart(fun() ->
              Test = self(),
              Workspace = group_leader(),
              ok = beamtalk_workspace:adopt(Test),
              ok = beamtalk_guard_processes:start_link([]),
              Actor = proc_lib:spawn(fun() ->
                                         group_leader(Test, self()),
                                         Test ! under_the_evaluation,
                                         receive leave -> group_leader(Workspace, self()) end,
                                         receive after infinity -> ok end
                                     end),
              receive under_the_evaluation -> ok end,
              ets:delete(beamtalk_census, Actor),
              ?assertEqual({young, Test}, written(Actor, fun({Kind, _}) -> Kind =/= none end)),
              Actor ! leave,
              ?assertEqual({known, Workspace}, written(Actor, fun({Kind, _}) -> Kind =:= known end))
          end).

written(Pid, IsExpected) ->
    Now = case ets:lookup(beamtalk_census, Pid) of
        [{_, Kind, Leader, _}] -> {Kind, Leader};
        [] -> {none, none}
    end,
    case IsExpected(Now) of
        true -> Now;
        false ->
            timer:sleep(10),
            written(Pid, IsExpected)
    end.

%% A node that does nothing is looked at rarely. All who look are told when an evaluation begins, and of work that nobody asked
%% for as well.
whoever_looks_is_woken_test() ->
    apart(fun() ->
              ets:info(beamtalk_running) =:= undefined andalso ets:new(beamtalk_running, [named_table, public]),
              ok = beamtalk_guard_processes:start_link([self()]),
              until(fun beamtalk_guard_processes:is_quiet/0),
              ok = beamtalk_guard_processes:wake(),
              receive busy -> ok end,
              until(fun beamtalk_guard_processes:is_quiet/0),
              Worker = spawn_link(fun work/0),
              receive busy -> ok end,
              unlink(Worker),
              exit(Worker, kill)
          end).

work() -> work().

%% In a process whose end takes with it what it started.
apart(Test) ->
    {Pid, Monitor} = spawn_monitor(fun() ->
                                       Test(),
                                       exit(done)
                                   end),
    receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual(done, Reason) end,
    until(fun() -> ets:info(beamtalk_census) =:= undefined andalso whereis(beamtalk_guard_watch) =:= undefined end).

until(Is) -> Is() orelse begin timer:sleep(10), until(Is) end.
