-module(beamtalk_parallel_tests).
-include("assertions.hrl").

results_keep_their_order_test() ->
    ?assertEqual([1, 4, 9], beamtalk_parallel:map(fun(N) -> N * N end, [1, 2, 3], 2)).

no_message_and_no_process_is_left_behind_test() ->
    Before = length(processes()),
    Blocks = [fun() -> timer:sleep(10000) end, fun() -> 1 end],
    [Slow, Fast] = beamtalk_parallel:'class all:timeout:'(nil, Blocks, 30),
    ?assertMatch(#{isOk := false}, Slow),
    ?assertMatch(#{isOk := true, okValue := 1}, Fast),
    receive Message -> ?assertEqual(nothing, Message) after 0 -> ok end,
    ?assert(length(processes()) =< Before + 1).

the_first_success_wins_test() ->
    ?assertMatch(#{isOk := true, okValue := 7},
                 beamtalk_parallel:'class any:'(nil, [fun() -> error(no) end, fun() -> 7 end,
                                                      fun() -> timer:sleep(10000) end])).

workers_die_with_their_caller_test() ->
    Test = self(),
    Caller = spawn(fun() ->
                           beamtalk_parallel:'class all:'(nil, [fun() -> Test ! {worker, self()},
                                                                         timer:sleep(10000) end])
                   end),
    Worker = receive {worker, Pid} -> Pid after 1000 -> error(no_worker) end,
    Monitor = monitor(process, Worker),
    exit(Caller, kill),
    receive {'DOWN', Monitor, process, Worker, _} -> ok after 1000 -> error(worker_lives) end.
