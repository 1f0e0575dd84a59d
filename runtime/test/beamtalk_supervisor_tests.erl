-module(beamtalk_supervisor_tests).
-include("assertions.hrl").

-define(D, beamtalk_dispatch).

setup() ->
    beamtalk_support:start(),
    Array = "#{'$beamtalk_class' => 'Array', data => #{1 => C, 2 => spawn, 3 => []}}",
    beamtalk_support:define(#{name => 'Worker', superclass => 'Actor', kind => actor, slots => [{n, "0"}],
        methods => [{n, 0, "fun(_) -> beamtalk_actor:get_field(n) end"}, {die, 0, "fun(_) -> exit(burnt) end"}],
        class_methods => [{supervisionPolicy, 0, "fun(_) -> permanent end"}, {isSupervisor, 0, "fun(_) -> false end"},
                          {supervisionSpec, 0, "fun({_, _, _, N} = C) -> #{'$beamtalk_class' => 'Spec', spec => #{id => N, start => " ++ Array ++
                                               ", restart => permanent, shutdown => 5000, type => worker}} end"}]}),
    beamtalk_support:define(#{name => 'Failing', superclass => 'Worker', kind => actor,
        methods => [{initialize, 0, "fun(_) -> beamtalk_error:signal('Error', <<\"no luck\">>) end"}]}),
    beamtalk_support:define(#{name => 'Curious', superclass => 'Worker', kind => actor,
        methods => [{initialize, 0, "fun(_) -> case persistent_term:get(curious, nil) of nil -> nil; Hook -> Hook() end end"}]}),
    beamtalk_support:define(#{name => 'Spec', superclass => 'Value', kind => value,
        methods => [{childSpec, 0, "fun(#{spec := S}) -> S end"}]}),
    Common = [{maxRestarts, 0, "fun(_) -> 10 end"}, {restartWindow, 0, "fun(_) -> 60 end"},
              {strategy, 0, "fun(_) -> oneForOne end"}, {isSupervisor, 0, "fun(_) -> true end"},
              {'initialize:', 1, "fun(_, S) -> catch (sup_sink ! {initialized, S, self()}), nil end"}],
    beamtalk_support:define(#{name => 'Supervisor', superclass => 'Object', kind => object, class_methods => Common}),
    beamtalk_support:define(#{name => 'DynamicSupervisor', superclass => 'Object', kind => object, class_methods => Common}),
    beamtalk_support:define(#{name => 'App', superclass => 'Supervisor', kind => object,
        class_methods => [{children, 0, "fun(_) -> [beamtalk_class:named('Worker'), beamtalk_class:named('Pool')] end"}]}),
    beamtalk_support:define(#{name => 'BadApp', superclass => 'Supervisor', kind => object,
        class_methods => [{children, 0, "fun(_) -> [beamtalk_class:named('Failing')] end"}]}),
    beamtalk_support:define(#{name => 'CuriousApp', superclass => 'Supervisor', kind => object,
        class_methods => [{children, 0, "fun(_) -> [beamtalk_class:named('Curious')] end"}]}),
    beamtalk_support:define(#{name => 'OuterApp', superclass => 'Supervisor', kind => object,
        class_methods => [{children, 0, "fun(_) -> [beamtalk_class:named('CuriousApp')] end"}]}),
    beamtalk_support:define(#{name => 'Asker', superclass => 'Actor', kind => actor,
        methods => [{n, 0, "fun(_) -> 1 end"}, {'run:', 1, "fun(_, B) -> B() end"}]}),
    beamtalk_support:define(#{name => 'Slow', superclass => 'Worker', kind => actor,
        methods => [{'terminate:', 1, "fun(_, _) -> receive after 3000 -> nil end end"}]}),
    beamtalk_support:define(#{name => 'SlowToo', superclass => 'Slow', kind => actor}),
    beamtalk_support:define(#{name => 'SlowApp', superclass => 'Supervisor', kind => object,
        class_methods => [{children, 0, "fun(_) -> [beamtalk_class:named('Slow'), beamtalk_class:named('SlowToo')] end"}]}),
    beamtalk_support:define(#{name => 'CuriousPool', superclass => 'DynamicSupervisor', kind => object,
        class_methods => [{childClass, 0, "fun(_) -> beamtalk_class:named('Curious') end"}]}),
    beamtalk_support:define(#{name => 'LostApp', superclass => 'Supervisor', kind => object,
        class_methods => [{children, 0, "fun(_) -> [beamtalk_class:named('NoSuchWorker')] end"}]}),
    beamtalk_support:define(#{name => 'Pool', superclass => 'DynamicSupervisor', kind => object,
        class_methods => [{childClass, 0, "fun(_) -> beamtalk_class:named('Worker') end"}]}).

supervisor_test_() ->
    {setup, fun setup/0, [{"life of a tree", fun tree/0}, {"a failing start", fun failing/0}, {"dynamic children", fun dynamic/0},
                           {"a child that asks its supervisor while it starts", fun asking_back/0},
                           {"a child that asks who had it started", fun asking_the_starter/0},
                           {inparallel, [{"a supervisor that is busy", {timeout, 60, fun busy/0}},
                                         {"children that end slowly", {timeout, 60, fun slow_ends/0}}]}]}.

app() -> beamtalk_class:named('App').

tree() ->
    register(sup_sink, self()),
    #{isOk := true, okValue := App} = beamtalk_supervisor:'class supervise'(app()),
    receive {initialized, App, Pid} when Pid =:= self() -> ok after 1000 -> error(not_initialized) end,
    unregister(sup_sink),
    ?assertEqual(App, beamtalk_supervisor:'class current'(app())),
    ?assertEqual(App, maps:get(okValue, beamtalk_supervisor:'class supervise'(app()))),
    ?assertEqual(['Worker', 'Pool'], beamtalk_supervisor:children(App)),
    ?assertMatch(<<"Supervisor(App, 0.", _/binary>>, beamtalk_display:native(App)),
    #{okValue := Worker} = beamtalk_supervisor:'which:'(App, beamtalk_class:named('Worker')),
    ?assertEqual(0, ?D:send(Worker, n)),
    %% An exception does not end the child, an exit restarts it.
    catch ?D:send(Worker, zork),
    ?assert(beamtalk_actor_class:isAlive(Worker)),
    catch ?D:send(Worker, die),
    #{okValue := Restarted} = wait_for(App),
    ?assert(Restarted =/= Worker),
    ?assertMatch(#{isOk := true, okValue := nil}, beamtalk_supervisor:'terminate:'(App, beamtalk_class:named('Worker'))),
    ?assertMatch(#{isOk := true, okValue := nil}, beamtalk_supervisor:'terminate:'(App, beamtalk_class:named('Worker'))),
    ?assertEqual(1, beamtalk_supervisor:count(App)),
    ?assertEqual(nil, beamtalk_supervisor:stop(App)),
    ?assertEqual(nil, beamtalk_supervisor:stop(App)),
    ?assertEqual(nil, beamtalk_supervisor:'class current'(app())),
    E = beamtalk_support:catch_error(fun() -> beamtalk_supervisor:count(App) end),
    ?assertEqual(stale_handle, beamtalk_error:field(E, kind)).

wait_for(App) ->
    case beamtalk_supervisor:'which:'(App, beamtalk_class:named('Worker')) of
        #{okValue := nil} -> wait_for(App);
        Found -> Found
    end.

failing() ->
    #{isOk := false, errReason := E} = beamtalk_supervisor:'class supervise'(beamtalk_class:named('BadApp')),
    ?assertEqual(supervisor_start_failed, beamtalk_error:field(E, kind)),
    ?assertMatch({_, _}, binary:match(beamtalk_error:field(E, hint), <<"no luck">>)),
    #{isOk := false, errReason := Lost} = beamtalk_supervisor:'class supervise'(beamtalk_class:named('LostApp')),
    ?assertEqual(<<"The supervisor could not start: Class 'NoSuchWorker' not found">>, beamtalk_error:field(Lost, hint)),
    receive {'EXIT', _, _} = Exit -> error(Exit) after 20 -> ok end.

dynamic() ->
    #{isOk := true, okValue := Pool} = beamtalk_supervisor:'class supervise'(beamtalk_class:named('Pool')),
    #{okValue := One} = beamtalk_supervisor:startChild(Pool),
    #{okValue := Two} = beamtalk_supervisor:'startChild:'(Pool, #{n => 4}),
    ?assertEqual({0, 4}, {?D:send(One, n), ?D:send(Two, n)}),
    ?assertEqual(2, beamtalk_supervisor:count(Pool)),
    #{isOk := false, errReason := E} = beamtalk_supervisor:'startChild:'(Pool, #{colour => 1}),
    ?assertEqual(child_start_failed, beamtalk_error:field(E, kind)),
    ?assertMatch(#{isOk := true}, beamtalk_supervisor:'terminateChild:'(Pool, One)),
    ?assertMatch(#{isOk := true}, beamtalk_supervisor:'terminateChild:'(Pool, One)),
    ?assertEqual(1, beamtalk_supervisor:count(Pool)),
    beamtalk_supervisor:stop(Pool),
    #{isOk := false, errReason := Stale} = beamtalk_supervisor:startChild(Pool),
    ?assertEqual(stale_handle, beamtalk_error:field(Stale, kind)).

%% Every message to it, from children of it and of one below it.
asking_back() ->
    Requests = [fun beamtalk_supervisor:count/1, fun beamtalk_supervisor:children/1, fun beamtalk_supervisor:stop/1,
                fun(Self) -> unwrap(beamtalk_supervisor:'which:'(Self, beamtalk_class:named('Worker'))) end,
                fun(Self) -> unwrap(beamtalk_supervisor:'terminate:'(Self, beamtalk_class:named('Worker'))) end],
    [begin
         Class = beamtalk_class:named(Name),
         persistent_term:put(curious, fun() -> Request(beamtalk_supervisor:'class current'(beamtalk_class:named(Asked))) end),
         #{isOk := false, errReason := E} = beamtalk_supervisor:'class supervise'(Class),
         ?assertMatch({_, _}, binary:match(beamtalk_error:field(E, hint), <<"deadlock_detected">>)),
         ?assertEqual(nil, beamtalk_supervisor:'class current'(Class))
     end || Request <- Requests, {Name, Asked} <- [{'CuriousApp', 'CuriousApp'}, {'OuterApp', 'OuterApp'}]],
    persistent_term:erase(curious).

unwrap(#{isOk := false, errReason := E}) -> error(E).

asking_the_starter() ->
    Pool = beamtalk_class:named('CuriousPool'),
    App = beamtalk_class:named('CuriousApp'),
    #{okValue := Running} = beamtalk_supervisor:'class supervise'(Pool),
    [begin
         {_, _, _, Pid} = Starter = ?D:send(beamtalk_class:named('Asker'), spawn),
         unlink(Pid),
         persistent_term:put(curious, fun() -> beamtalk_actor:send(Starter, n, [], infinity) end),
         #{isOk := false, errReason := E} = beamtalk_actor:send(Starter, 'run:', [Start], infinity),
         ?assertMatch({_, _}, binary:match(beamtalk_error:field(E, hint), <<"deadlock_detected">>)),
         beamtalk_support:stop_all([Starter])
     end || Start <- [fun() -> beamtalk_supervisor:startChild(Running) end,
                      fun() -> beamtalk_supervisor:'class supervise'(App) end]],
    persistent_term:erase(curious),
    beamtalk_supervisor:stop(Running).

%% It starts a child that is not ready for longer than a message waits.
busy() ->
    Test = self(),
    #{okValue := Pool} = beamtalk_supervisor:'class supervise'(beamtalk_class:named('CuriousPool')),
    persistent_term:put(curious, fun() -> Test ! {starts, self()}, receive go -> ok end end),
    Requests = [fun() -> beamtalk_supervisor:count(Pool) end, fun() -> beamtalk_supervisor:stop(Pool) end,
                fun() -> unwrap(beamtalk_supervisor:startChild(Pool)) end],
    spawn(fun() -> beamtalk_supervisor:startChild(Pool) end),
    Child = receive {starts, Pid} -> Pid end,
    Callers = [spawn_monitor(fun() ->
                   exit({kind, beamtalk_error:field(beamtalk_support:catch_error(Request), kind)})
               end) || Request <- Requests],
    Kinds = [receive {'DOWN', Monitor, _, _, {kind, Kind}} -> Kind end || {_, Monitor} <- Callers],
    ?assertEqual([timeout, timeout, timeout], Kinds),
    persistent_term:erase(curious),
    Child ! go,
    ?assertEqual(nil, beamtalk_supervisor:stop(Pool)).

%% The limit is for an answer; an end takes the time that the children have for it.
slow_ends() ->
    #{okValue := App} = beamtalk_supervisor:'class supervise'(beamtalk_class:named('SlowApp')),
    ?assertEqual(nil, beamtalk_supervisor:stop(App)),
    ?assertEqual(nil, beamtalk_supervisor:'class current'(beamtalk_class:named('SlowApp'))).
