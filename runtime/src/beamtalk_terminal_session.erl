%% The evaluator of a terminal session: one process that holds the session's variables. It may hang or
%% die without harm to the worker; its variables then are gone.
-module(beamtalk_terminal_session).

-export([evaluate/1]).

%% Evaluate one input; what it prints goes out as events.
-spec evaluate(map()) -> term().
evaluate(Input) ->
    Evaluator = evaluator(),
    Monitor = monitor(process, Evaluator),
    Evaluator ! {evaluate, self(), Monitor, Input},
    receive
        {Monitor, Outcome} ->
            erlang:demonitor(Monitor, [flush]),
            Outcome;
        {'DOWN', Monitor, process, _, Reason} ->
            {raised, beamtalk_report:caught(exit, Reason, [])}
    end.

evaluator() ->
    case whereis(?MODULE) of
        undefined ->
            Pid = spawn(fun start/0),
            register(?MODULE, Pid),
            Pid;
        Pid -> Pid
    end.

start() ->
    beamtalk_cell:start_session(terminal),
    loop().

loop() ->
    receive
        {evaluate, From, Reply, #{modules := Modules} = Input} ->
            From ! {Reply, case compile(Modules) of
                {ok, Compiled} -> beamtalk_eval:input(Input#{modules := Compiled});
                {error, Text} -> {refused, Text}
            end},
            loop();
        _ ->
            loop()
    end.

compile(Modules) -> compile(Modules, []).

compile([Forms | Rest], Done) ->
    case beamtalk_forms:compile(Forms) of
        {ok, Module, Beam} -> compile(Rest, [{Module, Beam} | Done]);
        {error, Text} -> {error, Text}
    end;
compile([], Done) -> {ok, lists:reverse(Done)}.
