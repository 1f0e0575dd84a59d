-module(beamtalk_limited_tests).
-include("assertions.hrl").

work_that_ends_test() ->
    ?assertEqual({ok, 3}, beamtalk_limited:run(fun() -> 1 + 2 end)).

memory_test() ->
    Grow = fun() -> length(lists:seq(1, 50000000)) end,
    ?assertEqual({limit, memory}, beamtalk_limited:run(Grow, 1000000, 30000)).

time_test() ->
    ?assertEqual({limit, time}, beamtalk_limited:run(fun() -> timer:sleep(5000) end, 1000000, 50)).

crash_test() ->
    ?assertMatch({crashed, {_, _}}, beamtalk_limited:run(fun() -> error(oops) end)),
    ?assertEqual({crashed, refused}, beamtalk_limited:run(fun() -> exit(refused) end)).

nothing_is_left_in_the_mailbox_test() ->
    [beamtalk_limited:run(Work, 1000000, 20) || Work <- [fun() -> ok end, fun() -> timer:sleep(100) end]],
    timer:sleep(50),
    ?assertEqual({messages, []}, process_info(self(), messages)).
