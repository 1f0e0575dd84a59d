-module(beamtalk_actor_tests).
-include("assertions.hrl").

-define(D, beamtalk_dispatch).

setup() ->
    beamtalk_support:start(),
    beamtalk_support:define(#{name => 'Kettle', superclass => 'Actor', kind => actor,
        slots => [{litres, "0"}, {hook, "nil"}, {peer, "nil"}],
        methods =>
            [{'fill:', 1, "fun(_, N) -> beamtalk_actor:put_field(litres, beamtalk_actor:get_field(litres) + N) end"},
             {litres, 0, "fun(_) -> beamtalk_actor:get_field(litres) end"},
             {'boil:', 1, "fun(_, N) -> beamtalk_actor:put_field(litres, 99), N / 0 end"},
             {twice, 0, "fun(S) -> beamtalk_dispatch:send(S, 'fill:', 1), beamtalk_dispatch:send(S, 'fill:', 1) end"},
             {'peer:', 1, "fun(_, P) -> beamtalk_actor:put_field(peer, P) end"},
             {ask, 0, "fun(_) -> beamtalk_dispatch:send(beamtalk_actor:get_field(peer), litres) end"},
             {askBack, 0, "fun(_) -> beamtalk_dispatch:send(beamtalk_actor:get_field(peer), ask) end"},
             {'sleep:', 1, "fun(_, Ms) -> receive after Ms -> slept end end"},
             {'run:', 1, "fun(_, B) -> B() end"},
             {'tell:', 1, "fun(S, P) -> P ! {from, S}, ok end"},
             {prepare, 0, "fun(S) -> N = beamtalk_cell:new(10),"
                          " B = beamtalk_cell:block(fun(Env) -> fun() -> beamtalk_actor:put_field(S, litres, beamtalk_actor:get_field(S, litres) + 1), "
                          " beamtalk_cell:write(Env, 1, beamtalk_cell:read(Env, 1) + 1) end end, {N}),"
                          " beamtalk_actor:put_field(hook, B), beamtalk_cell:write(N, 20) end"},
             {poke, 0, "fun(_) -> (beamtalk_actor:get_field(hook))() end"},
             {pokeTwice, 0, "fun(_) -> H = beamtalk_actor:get_field(hook), H(), H() end"},
             {hook, 0, "fun(_) -> beamtalk_actor:get_field(hook) end"},
             {die, 0, "fun(_) -> exit(burnt) end"},
             {toss, 0, "fun(_) -> throw(ball) end"}],
        class_methods => [{'spawnWith:', 1, "fun(S, D) -> beamtalk_actor_class:spawn_with(S, D) end"}]}),
    beamtalk_support:define(#{name => 'Base', superclass => 'Actor', kind => actor,
        slots => [{log, "[]"}, {size, none, <<"Integer">>}],
        methods => [{initialize, 0, "fun(_) -> beamtalk_actor:put_field(log, [base | beamtalk_actor:get_field(log)]) end"},
                    {log, 0, "fun(_) -> beamtalk_actor:get_field(log) end"}]}),
    beamtalk_support:define(#{name => 'Derived', superclass => 'Base', kind => actor,
        methods => [{initialize, 0, "fun(_) -> beamtalk_actor:put_field(size, 1), "
                                    "beamtalk_actor:put_field(log, [derived | beamtalk_actor:get_field(log)]) end"},
                    {'terminate:', 1, "fun(_, R) -> test_sink ! {terminated, R, beamtalk_actor:get_field(log)}, error(oops) end"}]}),
    beamtalk_support:define(#{name => 'Broken', superclass => 'Actor', kind => actor,
        methods => [{initialize, 0, "fun(_) -> beamtalk_dispatch:send(nil, fly) end"}]}),
    beamtalk_support:define(#{name => 'Echo', superclass => 'Actor', kind => actor, slots => [{seen, "[]"}],
        methods => [{'doesNotUnderstand:args:', 2, "fun(_, Sel, Args) -> {Sel, length(Args)} end"}]}),
    beamtalk_support:define(#{name => 'Watcher', superclass => 'Server', kind => actor, slots => [{got, "[]"}],
        methods => [{'handleInfo:', 1, "fun(_, crash) -> beamtalk_actor:put_field(got, lost), error(bad); "
                                       "(_, M) -> beamtalk_actor:put_field(got, [M | beamtalk_actor:get_field(got)]) end"},
                    {got, 0, "fun(_) -> beamtalk_actor:get_field(got) end"}]}).

kettle() -> ?D:send(beamtalk_class:named('Kettle'), spawn).

kind(Fun) -> beamtalk_error:field(beamtalk_support:catch_error(Fun), kind).

actor_test_() ->
    {setup, fun setup/0,
     [{"state and self-sends", fun state/0},
      {"a message that raises leaves the state", fun atomicity/0},
      {"exceptions are located and cross unchanged", fun exceptions/0},
      {"initialize runs ancestors first", fun initialize/0},
      {"constant defaults are asked for as one map, where they are all there is", fun constants/0},
      {"a failing start", fun failing_start/0},
      {"required slots", fun required/0},
      {"dead actors", fun dead/0},
      {"timeouts", {timeout, 20, fun timeouts/0}},
      {"answers at once, later and too late", {timeout, 20, fun answers/0}},
      {"an actor that ends while it is asked", {timeout, 20, fun ends_while_asked/0}},
      {"deadlock is detected", fun deadlock/0},
      {"an actor that gave up waiting is not deadlocked", fun no_false_deadlock/0},
      {"rings of questions that others began", {timeout, 60, fun crossing_questions/0}},
      {"slow answers in both directions are no deadlock", {timeout, 60, fun slow_is_no_deadlock/0}},
      {"the killed leave no rows behind", {timeout, 60, fun no_rows_left/0}},
      {"blocks in state", fun blocks/0},
      {"blocks cross by copy", fun crossing/0},
      {"casts", fun casts/0},
      {"stop runs terminate:", fun stop/0},
      {"stopping itself", fun stop_self/0},
      {"doesNotUnderstand: intercepts", fun intercept/0},
      {"raw messages", fun raw/0},
      {"exit and throw", fun exit_and_throw/0},
      {"names", fun names/0},
      {"onExit and monitor", fun on_exit/0},
      {"messages answered at the sender", fun local/0},
      {"foreign callers", fun foreign/0},
      {"native actors", fun native/0}]}.

state() ->
    K = kettle(),
    ?assertEqual(2, ?D:send(K, 'fill:', 2)),
    ?assertEqual(4, ?D:send(K, twice)),
    W = ?D:send(beamtalk_class:named('Kettle'), 'spawnWith:', #{litres => 7}),
    ?assertEqual(7, ?D:send(W, litres)),
    ?assertEqual(unknown_field, kind(fun() -> ?D:send(beamtalk_class:named('Kettle'), 'spawnWith:', #{colour => 1}) end)),
    ?assertEqual(type_error, kind(fun() -> ?D:send(beamtalk_class:named('Kettle'), 'spawnWith:', 7) end)),
    beamtalk_support:stop_all([K, W]).

atomicity() ->
    K = kettle(),
    3 = ?D:send(K, 'fill:', 3),
    ?assertEqual(type_error, kind(fun() -> ?D:send(K, 'boil:', 1) end)),
    ?assertEqual(3, ?D:send(K, litres)),
    beamtalk_support:stop_all([K]).

exceptions() ->
    K = kettle(),
    E = beamtalk_support:catch_error(fun() -> ?D:send(K, 'boil:', 1) end),
    ?assertEqual(<<"Kettle>>boil: bad arithmetic operation">>, beamtalk_error:field(E, message)),
    ?assertEqual('Kettle', beamtalk_error:field(E, errorClass)),
    ?assertEqual('boil:', beamtalk_error:field(E, selector)),
    ?assertMatch([#{method := 'boil:', receiverClass := 'Kettle', arguments := 1} | _], beamtalk_exception:stackTrace(E)),
    Signal = fun() -> beamtalk_error:signal('TypeError', <<"mine">>) end,
    Crossed = beamtalk_support:catch_error(fun() -> ?D:send(K, 'run:', Signal) end),
    ?assertEqual(<<"mine">>, beamtalk_error:field(Crossed, message)),
    ?assertEqual('TypeError', maps:get('$beamtalk_class', Crossed)),
    beamtalk_support:stop_all([K]).

constants() ->
    Given = {'spawnWith:', 1, "fun(S, D) -> beamtalk_actor_class:spawn_with(S, D) end"},
    [beamtalk_support:define(Class#{kind => actor, class_methods => [Given]})
     || Class <- [#{name => 'Lamp', superclass => 'Actor', initial => true, slots => [{lit, "false"}, {watts, "40"}]},
                  #{name => 'Lantern', superclass => 'Lamp', initial => true, slots => [{oil, "1"}, {watts, "0"}]},
                  #{name => 'Candle', superclass => 'Lamp'},
                  #{name => 'Torch', superclass => 'Actor', initial => true, slots => [{chain, "[]"}, {lit, "false"}],
                    methods => [{initialize, 0, "fun(_) -> beamtalk_actor:put_field(chain, get('$bt_chain')) end"}]}]],
    State = fun(Class, Slots) ->
        {_, _, _, Pid} = ?D:send(beamtalk_class:named(Class), 'spawnWith:', Slots),
        {dictionary, Dictionary} = process_info(Pid, dictionary),
        ?assertEqual(false, lists:keyfind('$bt_chain', 1, Dictionary)),
        sys:get_state(Pid)
    end,
    ?assertEqual(fun bt@lamp:'__initial'/0, maps:get(initial, beamtalk_dispatch:info('Lamp'))),
    ?assertEqual([none, none], [maps:get(initial, beamtalk_dispatch:info(Class)) || Class <- ['Lantern', 'Candle']]),
    ?assertEqual(#{'$beamtalk_class' => 'Lamp', lit => false, watts => 40}, State('Lamp', #{})),
    ?assertEqual(#{'$beamtalk_class' => 'Lamp', lit => true, watts => 40}, State('Lamp', #{lit => true})),
    ?assertEqual(#{'$beamtalk_class' => 'Lantern', lit => false, watts => 0, oil => 1}, State('Lantern', #{})),
    ?assertEqual(#{'$beamtalk_class' => 'Candle', lit => false, watts => 40}, State('Candle', #{})),
    %% What runs at the start knows who waits for it.
    Maker = self(),
    ?assertMatch(#{lit := false, chain := [{Maker, {start, _}}]}, State('Torch', #{})).

initialize() ->
    D = ?D:send(beamtalk_class:named('Derived'), spawn),
    ?assertEqual([derived, base], ?D:send(D, log)),
    beamtalk_support:stop_all([D]).

failing_start() ->
    Flag = process_flag(trap_exit, true),
    E = beamtalk_support:catch_error(fun() -> ?D:send(beamtalk_class:named('Broken'), spawn) end),
    ?assertEqual(instantiation_error, beamtalk_error:field(E, kind)),
    receive {'EXIT', _, _} = Exit -> error(Exit) after 50 -> ok end,
    process_flag(trap_exit, Flag),
    New = beamtalk_support:catch_error(fun() -> beamtalk_actor_class:refuse_new(beamtalk_class:named('Kettle')) end),
    ?assertEqual(<<"Use spawn instead">>, beamtalk_error:field(New, hint)).

required() ->
    E = beamtalk_support:catch_error(fun() -> ?D:send(beamtalk_class:named('Base'), spawn) end),
    ?assertEqual(instantiation_error, beamtalk_error:field(E, kind)),
    ?assertEqual(<<"UninitializedStateError: Base field 'size' (:: Integer) was not initialized">>,
                 beamtalk_error:field(E, hint)).

dead() ->
    K = kettle(),
    ok = beamtalk_actor_class:kill(unlinked(K)),
    E = beamtalk_support:catch_error(fun() -> ?D:send(K, litres) end),
    ?assertEqual(<<"Cannot send 'litres' to Kettle: the actor has ended">>, beamtalk_error:field(E, message)),
    ?assertEqual(false, beamtalk_actor_class:isAlive(K)),
    ?assertEqual(ok, beamtalk_actor_class:stop(K)),
    ?assertEqual(nil, ?D:cast(K, litres, [])),
    Other = unlinked(kettle()),
    ?assertEqual(actor_dead, kind(fun() -> ?D:send(Other, die) end)).

unlinked({_, _, _, Pid} = Actor) ->
    unlink(Pid),
    Actor.

%% However long an answer takes it comes once, and what comes after its asker gave up is dropped.
answers() ->
    {_, _, _, Pid} = K = kettle(),
    [?assertEqual(slept, ?D:send(K, 'sleep:', Ms)) || Ms <- [0, 1, 2, 3, 5, 25]],
    ?assertEqual(timeout, kind(fun() -> beamtalk_actor:send(K, 'run:', [fun() -> receive go -> gone end end], 1000) end)),
    Pid ! go,
    %% Answered after that one, and by another way than it.
    ?assertEqual(slept, ?D:send(K, 'sleep:', 5)),
    ?assertEqual({messages, []}, process_info(self(), messages)),
    ?assertEqual({monitors, []}, process_info(self(), monitors)),
    ?assertEqual(undefined, get('$bt_wait')).

%% At once or later, by itself or killed: who asked is told, and it is dead by then.
ends_while_asked() ->
    Late = "receive after 30 -> exit(burnt) end",
    beamtalk_support:define(#{name => 'Fuse', superclass => 'Actor', kind => actor,
        methods => [{now, 0, "fun(_) -> exit(burnt) end"}, {late, 0, "fun(_) -> " ++ Late ++ " end"},
                    {normally, 0, "fun(_) -> exit(self(), normal), receive after infinity -> ok end end"},
                    {shot, 0, "fun(_) -> exit(self(), kill), receive after infinity -> ok end end"}]}),
    [begin
         {_, _, _, Pid} = Fuse = ?D:send(beamtalk_class:named('Fuse'), spawn),
         unlink(Pid),
         ?assertEqual(actor_dead, kind(fun() -> ?D:send(Fuse, How) end)),
         ?assertNot(is_process_alive(Pid)),
         ?assertEqual(actor_dead, kind(fun() -> ?D:send(Fuse, How) end))
     end || How <- [now, late, normally, shot]],
    ?assertEqual({messages, []}, process_info(self(), messages)).

timeouts() ->
    K = kettle(),
    ?assertEqual(timeout, kind(fun() -> beamtalk_actor:send(K, 'sleep:', [300], 20) end)),
    ?assertEqual(0, ?D:send(K, litres)),
    receive Late -> error({late, Late}) after 0 -> ok end,
    ?assertEqual(slept, beamtalk_actor:send(K, 'sleep:', [10], infinity)),
    beamtalk_support:stop_all([K]).

deadlock() ->
    A = kettle(), B = kettle(),
    ?D:send(A, 'peer:', B), ?D:send(B, 'peer:', A),
    E = beamtalk_support:catch_error(fun() -> ?D:send(A, askBack) end),
    ?assertEqual(deadlock_detected, beamtalk_error:field(E, kind)),
    ?assertEqual(0, ?D:send(A, ask)),
    beamtalk_support:stop_all([A, B]).

no_false_deadlock() ->
    %% A asks B with a short limit and gives up; B, still in that message, then
    %% asks A, which is free again.
    A = kettle(), B = kettle(),
    Parent = self(),
    Late = fun() ->
        Parent ! {at_work, self()},
        receive go -> ok end,
        Parent ! {answer, catch ?D:send(A, litres)}
    end,
    %% Not before the other has given up, however busy the machine is.
    GoOn = fun() -> receive {at_work, Pid} -> Pid ! go end end,
    Give = fun() -> try beamtalk_actor:send(B, 'run:', [Late], 20) catch error:_ -> gave_up end end,
    ?assertEqual(gave_up, ?D:send(A, 'run:', Give)),
    GoOn(),
    receive {answer, Answer} -> ?assertEqual(0, Answer) end,
    %% The same where another between them gave up and had an answer for A.
    C = kettle(),
    Between = fun() -> try beamtalk_actor:send(B, 'run:', [Late], 20) catch error:_ -> gave_up end end,
    ?assertEqual(gave_up, ?D:send(A, 'run:', fun() -> ?D:send(C, 'run:', Between) end)),
    GoOn(),
    receive {answer, Later} -> ?assertEqual(0, Later) end,
    beamtalk_support:stop_all([A, B, C]).

%% Each of a ring waits until all are at work and then asks the next; whoever does not see the ring gets its answer once
%% another gave up.
crossing_questions() ->
    [begin
         Ring = [kettle() || _ <- lists:seq(1, Count)],
         Parent = self(),
         Next = lists:zip(Ring, tl(Ring) ++ [hd(Ring)]),
         Askers = [spawn_monitor(fun() ->
                       Ask = fun() ->
                           Parent ! {ready, self()},
                           receive go -> ok end,
                           beamtalk_actor:send(Other, litres, [], infinity)
                       end,
                       exit({seen, catch beamtalk_actor:send(Actor, 'run:', [Ask], infinity)})
                   end) || {Actor, Other} <- Next],
         Ready = [receive {ready, Pid} -> Pid end || _ <- Ring],
         [Pid ! go || Pid <- Ready],
         Outcomes = [receive {'DOWN', Monitor, _, _, {seen, Outcome}} -> Outcome end || {_, Monitor} <- Askers],
         Kinds = [beamtalk_error:field(E, kind) || {'EXIT', {#{error := _} = E, _}} <- Outcomes],
         ?assertMatch([deadlock_detected | _], Kinds),
         ?assertEqual([0], lists:usort([Outcome || Outcome <- Outcomes, is_integer(Outcome)]
                                       ++ [?D:send(Actor, litres) || Actor <- Ring])),
         ?assertEqual([], lists:usort(Kinds) -- [deadlock_detected]),
         beamtalk_support:stop_all(Ring)
     end || Count <- [2, 3, 10]].

%% Two that ask each other in turn, each answer later than soon, by many at once.
slow_is_no_deadlock() ->
    Pairs = [{kettle(), kettle()} || _ <- lists:seq(1, 100)],
    Parent = self(),
    [spawn(fun() ->
         Sleep = fun() -> beamtalk_actor:send(B, 'sleep:', [20 + rand:uniform(5)], infinity) end,
         Back = fun() -> beamtalk_actor:send(A, 'sleep:', [20 + rand:uniform(5)], infinity) end,
         Parent ! {answers, [case Round rem 2 of
             0 -> catch ?D:send(A, 'run:', Sleep);
             1 -> catch ?D:send(B, 'run:', Back)
         end || Round <- lists:seq(1, 20)]}
     end) || {A, B} <- Pairs],
    Answers = lists:append([receive {answers, These} -> These end || _ <- Pairs]),
    ?assertEqual([slept], lists:usort(Answers)),
    beamtalk_support:stop_all([K || {A, B} <- Pairs, K <- [A, B]]).

%% At most twice as many as ever waited at once, and some more.
no_rows_left() ->
    K = kettle(),
    [begin
         Waiting = [spawn_monitor(fun() -> beamtalk_actor:send(K, 'sleep:', [60000], infinity) end)
                    || _ <- lists:seq(1, 1000)],
         wait_for_rows([Pid || {Pid, _} <- Waiting]),
         [exit(Pid, kill) || {Pid, _} <- Waiting],
         [receive {'DOWN', Monitor, _, _, _} -> ok end || {_, Monitor} <- Waiting]
     end || _ <- lists:seq(1, 8)],
    ?assert(ets:info(beamtalk_actor_waits, size) =< 3001),
    {_, _, _, Pid} = K,
    unlink(Pid),
    exit(Pid, kill).

wait_for_rows(Pids) ->
    case lists:all(fun(Pid) -> ets:member(beamtalk_actor_waits, Pid) end, Pids) of
        true -> ok;
        false -> receive after 10 -> wait_for_rows(Pids) end
    end.

blocks() ->
    K = kettle(),
    ?assertEqual(20, ?D:send(K, prepare)),
    ?assertEqual(21, ?D:send(K, poke)),
    ?assertEqual(21, ?D:send(K, poke)),
    ?assertEqual(22, ?D:send(K, pokeTwice)),
    ?assertEqual(4, ?D:send(K, litres)),
    Hook = ?D:send(K, hook),
    E = beamtalk_support:catch_error(Hook),
    ?assertEqual(<<"BlockContext: 'self.litres' belongs to another process; send a message instead">>,
                 beamtalk_error:field(E, message)),
    beamtalk_support:stop_all([K]).

crossing() ->
    K = kettle(),
    Cell = beamtalk_cell:new(1),
    Add = beamtalk_cell:block(fun(Env) -> fun() -> beamtalk_cell:write(Env, 1, beamtalk_cell:read(Env, 1) + 1) end end, {Cell}),
    ?assertEqual(2, ?D:send(K, 'run:', Add)),
    ?assertEqual(1, beamtalk_cell:read(Cell)),
    erase('$bt_cells'),
    beamtalk_support:stop_all([K]).

casts() ->
    K = kettle(),
    nil = ?D:cast(K, 'fill:', [5]),
    nil = ?D:cast(K, 'boil:', [5]),
    nil = ?D:cast(K, zork, []),
    ?assertEqual(5, ?D:send(K, litres)),
    beamtalk_support:stop_all([K]).

stop() ->
    register(test_sink, self()),
    D = ?D:send(beamtalk_class:named('Derived'), spawn),
    ?assertEqual(ok, beamtalk_actor_class:stop(D)),
    receive {terminated, normal, [derived, base]} -> ok after 1000 -> error(no_terminate) end,
    %% A shutdown by the parent reaches it too.
    Parent = spawn(fun() -> A = ?D:send(beamtalk_class:named('Derived'), spawn), test_sink ! {made, A}, receive stop -> exit(shutdown) end end),
    receive {made, Made} -> ok end,
    Parent ! stop,
    receive {terminated, shutdown, _} -> ok after 1000 -> error(no_terminate) end,
    Ended = beamtalk_actor_class:monitor(Made),
    receive {'DOWN', Ended, _, _, _} -> ok end,
    unregister(test_sink).

stop_self() ->
    K = unlinked(kettle()),
    Me = self(),
    ?assertEqual(ok, ?D:send(K, 'run:', fun() -> R = beamtalk_actor_class:stop({beamtalk_object, 'Kettle', bt@kettle, self()}), Me ! R, R end)),
    receive ok -> ok end,
    Monitor = monitor(process, element(4, K)),
    receive {'DOWN', Monitor, _, _, _} -> ok end.

intercept() ->
    E = ?D:send(beamtalk_class:named('Echo'), spawn),
    ?assertEqual({'ping:pong:', 2}, ?D:send(E, 'ping:pong:', 1, 2)),
    ?assertEqual({hello, 0}, ?D:send(E, hello)),
    beamtalk_support:stop_all([E]).

raw() ->
    W = {_, _, _, Pid} = ?D:send(beamtalk_class:named('Watcher'), spawn),
    Pid ! one, Pid ! crash, Pid ! two,
    ?assertEqual([two, one], ?D:send(W, got)),
    K = {_, _, _, Plain} = kettle(),
    Plain ! junk,
    %% Nobody's exit.
    Plain ! {'EXIT', foo, bar},
    ?assertEqual(0, ?D:send(K, litres)),
    beamtalk_support:stop_all([W, K]).

exit_and_throw() ->
    K = unlinked(kettle()),
    ?assertEqual(erlang_throw, kind(fun() -> ?D:send(K, toss) end)),
    ?assertEqual(0, ?D:send(K, litres)),
    ?assertEqual(actor_dead, kind(fun() -> ?D:send(K, die) end)).

result_kind(#{isOk := false, errReason := E}) -> beamtalk_error:field(E, kind).

names() ->
    Class = beamtalk_class:named('Kettle'),
    #{isOk := true, okValue := K} = beamtalk_actor_class:spawn_as(Class, boiler),
    ?assertMatch({beamtalk_object, 'Kettle', _, P} when is_pid(P), K),
    ?assertEqual(name_registered, result_kind(beamtalk_actor_class:spawn_as(Class, boiler))),
    ?assertEqual(reserved_name, result_kind(beamtalk_actor_class:spawn_as(Class, beamtalk_x))),
    ?assertEqual(reserved_name, result_kind(beamtalk_actor_class:spawn_as(Class, logger))),
    ?assertEqual(type_error, result_kind(beamtalk_actor_class:spawn_as(Class, 3))),
    #{okValue := Proxy} = beamtalk_actor_class:find_named(beamtalk_class:named('Actor'), boiler),
    ?assertEqual({beamtalk_object, 'Kettle', bt@kettle, {registered, boiler}}, Proxy),
    ?assertEqual(<<"Actor(Kettle, registered, boiler)">>, beamtalk_display:print(Proxy)),
    ?assertEqual(wrong_class, result_kind(beamtalk_actor_class:find_named(beamtalk_class:named('Echo'), boiler))),
    ?assertEqual(name_not_registered, result_kind(beamtalk_actor_class:find_named(Class, nobody))),
    3 = ?D:send(Proxy, 'fill:', 3),
    ?assertEqual(3, ?D:send(K, 'run:', fun() -> ?D:send(Proxy, litres) end)),
    ?assertEqual(3, ?D:send(K, litres)),
    ?assertEqual([Proxy], beamtalk_actor_class:all_registered(Class)),
    ?assertEqual(boiler, beamtalk_actor_class:registeredName(K)),
    ?assertEqual(ok, beamtalk_actor_class:unregister(K)),
    ?assertEqual(nil, beamtalk_actor_class:registeredName(K)),
    ?assert(beamtalk_actor_class:isRegistered(Proxy)),
    E = beamtalk_support:catch_error(fun() -> ?D:send(Proxy, litres) end),
    ?assertEqual(<<"No process is currently registered under name 'boiler'">>, beamtalk_error:field(E, hint)),
    ?assertEqual(false, beamtalk_actor_class:isAlive(Proxy)),
    beamtalk_support:stop_all([K]).

on_exit() ->
    K = unlinked(kettle()),
    Me = self(),
    ok = beamtalk_actor_class:on_exit(K, fun(Reason) -> Me ! {ended, Reason} end),
    Monitor = beamtalk_actor_class:monitor(K),
    ok = beamtalk_actor_class:kill(K),
    receive {ended, killed} -> ok after 1000 -> error(not_called) end,
    receive {'DOWN', Monitor, process, _, killed} -> ok after 1000 -> error(no_down) end.

local() ->
    K = unlinked(kettle()),
    beamtalk_actor_class:kill(K),
    ?assertEqual(beamtalk_class:named('Kettle'), ?D:send(K, class)),
    ?assertEqual(false, ?D:send(K, isNil)),
    ?assertMatch(<<"Actor(Kettle, ", _/binary>>, ?D:send(K, printString)).

foreign() ->
    K = {_, _, _, Pid} = kettle(),
    ?assertEqual({ok, 4}, gen_server:call(Pid, {'fill:', [4]})),
    gen_server:cast(Pid, {cast, 'fill:', [1]}),
    ?assertEqual({ok, 5}, gen_server:call(Pid, {litres, [], #{}})),
    gen_server:cast(Pid, {'fill:', [2]}),
    ?assertEqual({ok, 7}, gen_server:call(Pid, {litres, []})),
    ?assertMatch({error, #{error := _}}, gen_server:call(Pid, {zork, []})),
    ?assertMatch(#{litres := 7}, sys:get_state(Pid)),
    beamtalk_support:stop_all([K]).

native() ->
    beamtalk_support:define(#{name => 'Disk', superclass => 'Actor', kind => actor, native => beamtalk_native_fixture,
        methods => [{'read:', 1, "fun(S, K) -> beamtalk_actor:delegate(S, 'read:', [K]) end"},
                    {both, 0, "fun(S) -> {beamtalk_dispatch:send(S, 'read:', a), self()} end"}]}),
    D = beamtalk_actor_class:spawn_with(beamtalk_class:named('Disk'), #{a => 1}),
    ?assertEqual(1, ?D:send(D, 'read:', a)),
    ?assertEqual({1, self()}, ?D:send(D, both)),
    E = beamtalk_support:catch_error(fun() -> ?D:send(D, 'read:', zork) end),
    ?assertEqual(<<"no_such_key">>, beamtalk_error:field(E, message)),
    ?assertEqual('Disk', beamtalk_error:field(E, errorClass)),
    application:set_env(beamtalk, disabled_capabilities, [ffi]),
    ?assertRaises(capability_disabled, ?D:send(D, 'read:', a)),
    ?assertRaises(capability_disabled, beamtalk_actor_class:spawn_with(beamtalk_class:named('Disk'), #{})),
    application:unset_env(beamtalk, disabled_capabilities),
    ?assertEqual(1, ?D:send(D, 'read:', a)),
    ?assertEqual(ok, beamtalk_actor_class:stop(D)).
