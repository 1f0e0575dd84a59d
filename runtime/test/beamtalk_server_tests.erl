-module(beamtalk_server_tests).
-include("assertions.hrl").

%% A server first started inside a test must survive the end of that test.
servers_do_not_keep_the_group_leader_of_their_starter_test() ->
    Leader = spawn(fun() -> receive stop -> ok end end),
    {Pid, Monitor} = spawn_monitor(fun() ->
                                           group_leader(Leader, self()),
                                           beamtalk_announcer:ensure_started(),
                                           beamtalk_tracing:ensure_started(),
                                           beamtalk_resource:ensure_started()
                                   end),
    receive {'DOWN', Monitor, process, Pid, _} -> ok end,
    [?assertNot({group_leader, Leader} =:= process_info(whereis(Name), group_leader))
     || Name <- [beamtalk_announcer, beamtalk_tracing, beamtalk_resource]],
    Leader ! stop.
