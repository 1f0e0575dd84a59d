-module(beamtalk_class_state_tests).
-include("assertions.hrl").

-define(D, beamtalk_dispatch).

setup() ->
    Locked = fun(Body) -> "fun(S) -> beamtalk_class_state:locked(S, fun() -> " ++ Body ++ " end) end" end,
    beamtalk_support:define(#{name => 'Ticket', superclass => 'Object', kind => object,
        class_slots => [{last, "0"}],
        class_methods =>
            [{next, 0, Locked("beamtalk_class_state:put(S, last, beamtalk_class_state:get(S, last) + 1)")},
             {issued, 0, "fun(S) -> beamtalk_class_state:get(S, last) end"},
             {three, 0, Locked("[beamtalk_dispatch:send(S, next) || _ <- [1, 2, 3]]")},
             {fail, 0, Locked("beamtalk_class_state:put(S, last, 99), error(bad)")},
             {'run:', 1, "fun(S, B) -> beamtalk_class_state:locked(S, fun() -> beamtalk_class_state:put(S, last, 50), B() end) end"},
             {leave, 0, "fun(S) -> beamtalk_return:run(fun(H) -> beamtalk_dispatch:send(S, 'run:', fun() -> beamtalk_return:return(H, left) end) end, leave) end"},
             {later, 0, "fun(S) -> fun() -> beamtalk_class_state:locked_put(S, last, 77) end end"}]}),
    beamtalk_support:define(#{name => 'Special', superclass => 'Ticket', kind => object}),
    beamtalk_support:define(#{name => 'Clerk', superclass => 'Actor', kind => actor,
        methods => [{next, 0, "fun(_) -> beamtalk_dispatch:send(beamtalk_class:named('Ticket'), next) end"},
                    {issued, 0, "fun(_) -> beamtalk_dispatch:send(beamtalk_class:named('Ticket'), issued) end"},
                    {'run:', 1, "fun(_, B) -> B() end"}]}),
    beamtalk_support:define(#{name => 'Opener', superclass => 'Clerk', kind => actor,
        methods => [{initialize, 0, "fun(_) -> beamtalk_dispatch:send(beamtalk_class:named('Ticket'), next) end"}]}).

ticket() -> beamtalk_class:named('Ticket').

class_state_test_() ->
    {setup, fun setup/0,
     [{"reading, assigning, re-entry", fun basics/0},
      {"each subclass has its own", fun subclasses/0},
      {"a raising method publishes nothing", fun rollback/0},
      {"a return publishes", fun return/0},
      {"a block after its method", fun later/0},
      {"an actor in the chain enters", fun chain/0},
      {"others see published values only", fun isolation/0},
      {"many processes", {timeout, 30, fun contention/0}},
      {"the lock goes on when its holder dies", fun dying/0},
      {"waiting ends with a timeout", {timeout, 30, fun waiting/0}},
      {"reload keeps values", fun reload/0}]}.

basics() ->
    ?assertEqual([1, 2, 3], ?D:send(ticket(), three)),
    ?assertEqual(3, ?D:send(ticket(), issued)),
    ?assertEqual(undefined, get('$bt_locks')).

subclasses() ->
    ?assertEqual(1, ?D:send(beamtalk_class:named('Special'), next)),
    ?assertEqual(3, ?D:send(ticket(), issued)).

rollback() ->
    ?assertMatch({'EXIT', _}, catch ?D:send(ticket(), fail)),
    ?assertEqual(3, ?D:send(ticket(), issued)),
    ?assertEqual(4, ?D:send(ticket(), next)).

return() ->
    ?assertEqual(left, ?D:send(ticket(), leave)),
    ?assertEqual(50, ?D:send(ticket(), issued)).

later() ->
    Block = ?D:send(ticket(), later),
    ?assertEqual(77, Block()),
    ?assertEqual(77, ?D:send(ticket(), issued)).

chain() ->
    Clerk = ?D:send(beamtalk_class:named('Clerk'), spawn),
    Body = fun() ->
        51 = ?D:send(Clerk, next),
        51 = ?D:send(ticket(), issued),
        51 = ?D:send(Clerk, issued),
        Opener = ?D:send(beamtalk_class:named('Opener'), spawn),
        52 = ?D:send(ticket(), issued),
        beamtalk_support:stop_all([Opener])
    end,
    ok = ?D:send(ticket(), 'run:', Body),
    ?assertEqual(52, ?D:send(ticket(), issued)),
    ?assertEqual(52, ?D:send(Clerk, issued)),
    beamtalk_support:stop_all([Clerk]).

isolation() ->
    Me = self(),
    Holder = spawn_link(fun() ->
        ?D:send(ticket(), 'run:', fun() -> Me ! holding, receive go -> ok end end),
        Me ! done
    end),
    receive holding -> ok end,
    ?assertEqual(52, ?D:send(ticket(), issued)),
    Holder ! go,
    receive done -> ok end,
    ?assertEqual(50, ?D:send(ticket(), issued)).

contention() ->
    Me = self(),
    Count = 20,
    [spawn_link(fun() -> [?D:send(ticket(), next) || _ <- lists:seq(1, 100)], Me ! done end) || _ <- lists:seq(1, Count)],
    [receive done -> ok end || _ <- lists:seq(1, Count)],
    ?assertEqual(50 + Count * 100, ?D:send(ticket(), issued)).

dying() ->
    Me = self(),
    Holder = spawn(fun() -> ?D:send(ticket(), 'run:', fun() -> Me ! holding, receive never -> ok end end) end),
    receive holding -> ok end,
    Waiter = spawn_link(fun() -> Me ! {got, ?D:send(ticket(), next)} end),
    wait_until_contended(),
    exit(Holder, kill),
    receive {got, 2051} -> ok after 2000 -> error(lock_lost) end,
    _ = Waiter.

%% Somebody waits for the lock: its row says so.
wait_until_contended() ->
    case ets:lookup(beamtalk_locks, {class, 'Ticket'}) of
        [{_, _, _, true}] -> ok;
        _ -> erlang:yield(), wait_until_contended()
    end.

waiting() ->
    Me = self(),
    Holder = spawn_link(fun() -> ?D:send(ticket(), 'run:', fun() -> Me ! holding, receive go -> ok end end), Me ! done end),
    receive holding -> ok end,
    E = beamtalk_support:catch_error(fun() -> ?D:send(ticket(), next) end),
    ?assertEqual(timeout, beamtalk_error:field(E, kind)),
    ?assertEqual(<<"timeout error in 'next' on Ticket">>, beamtalk_error:field(E, message)),
    Holder ! go,
    receive done -> ok end,
    ?assertEqual(51, ?D:send(ticket(), next)).

reload() ->
    Spec = #{name => 'Counted', superclass => 'Object', kind => object,
             class_methods => [{set, 0, "fun(S) -> beamtalk_class_state:locked_put(S, a, 5) end"},
                               {all, 0, "fun({_, _, _, N}) -> beamtalk_class_state:variables(N) end"}]},
    C = beamtalk_support:define(Spec#{class_slots => [{a, "1"}, {b, "2"}]}),
    ?D:send(C, set),
    beamtalk_support:define(Spec#{class_slots => [{a, "1"}, {c, "3"}]}),
    ?assertEqual(#{a => 5, c => 3}, ?D:send(C, all)).
