%% The sign of life that the daemon waits for. It vouches for all that a request needs: it is given once each of those
%% processes has answered to its name, and never while one of them is suspended, stuck or not registered.
-module(beamtalk_bridge_pulse).

-export([give/1]).

%% A server that was killed is back after so many milliseconds, or soon.
-define(PAUSE, 50).
%% How long a turn at the usual priority may take, and how many wait for theirs where it takes longer.
-define(TURN, 1000).
-define(MANY, 500).

%% Called by the bridge: nothing here waits. The daemon has one sign outstanding at a time, so there is one helper.
-spec give(beamtalk_bridge:id()) -> ok.
give(Id) ->
    Bridge = self(),
    beamtalk_bridge_request:work(Id, fun() -> vouch(Id, Bridge) end, [{priority, high}]).

%% What a session, an evaluation and a load cannot do without, and a question that each answers at once.
servers() ->
    Supervisors = [beamtalk_sup, beamtalk_workspace_sup, beamtalk_session_sup],
    [{Supervisor, {get_childspec, ping}} || Supervisor <- Supervisors]
        ++ [{Server, ping} || Server <- [beamtalk_guard, beamtalk_workspace, beamtalk_registry]].

vouch(Id, Bridge) ->
    ask(servers()),
    ask_code_server(),
    registered(beamtalk_bridge, Bridge),
    beamtalk_bridge_writer:send({res, Id, #{}}).

%% All are asked at once, so that a busy node takes one round for it. Whoever was killed meanwhile is asked again.
ask([]) -> ok;
ask(Servers) ->
    Asked = [{Server, gen_server:send_request(Name, Question)} || {Name, Question} = Server <- Servers],
    case [Server || {Server, Request} <- Asked, not has_answered(Request)] of
        [] -> ok;
        Silent ->
            pause(),
            ask(Silent)
    end.

has_answered(Request) ->
    case gen_server:receive_response(Request, infinity) of
        {reply, _} -> true;
        {error, _} -> false
    end.

%% It runs at the usual priority: where many processes wait for their turn it does too, and nothing is wrong with it.
ask_code_server() ->
    try spawn_opt(fun() -> _ = code:get_path() end, [monitor, {priority, high}]) of
        {_, Monitor} -> await_code_server(Monitor)
    catch error:system_limit -> ok
    end.

await_code_server(Monitor) ->
    receive
        {'DOWN', Monitor, process, _, normal} -> ok;
        {'DOWN', Monitor, process, _, _} ->
            pause(),
            ask_code_server()
    after ?TURN ->
        erlang:statistics(total_run_queue_lengths) > ?MANY orelse await_code_server(Monitor)
    end.

registered(Name, Pid) ->
    whereis(Name) =:= Pid orelse begin
        pause(),
        registered(Name, Pid)
    end.

pause() -> receive after ?PAUSE -> ok end.
