%% Supervisor and DynamicSupervisor: OTP supervisors configured by class methods.
%%
%% The configuration (`children', `strategy' …) is evaluated in the supervisor's own
%% process when it starts. A running supervisor is registered under its class.
-module(beamtalk_supervisor).
-behaviour(supervisor).

-export(['class supervise'/1, 'class current'/1, children/1, 'which:'/2, 'terminate:'/2, count/1, stop/1]).
-export([startChild/1, 'startChild:'/2, 'terminateChild:'/2]).
-export([start_nested/1, start_worker/3, start_dynamic/2]).
-export([init/1]).

%% How long a message to a supervisor waits, as with actors.
-define(TIMEOUT, 5000).
%% A child of a DynamicSupervisor has this time to end.
-define(SHUTDOWN, 5000).

-type class_object() :: {beamtalk_object, atom(), module(), atom()}.
-type handle() :: {beamtalk_supervisor, atom(), module(), pid()}.

%%% Starting

-spec 'class supervise'(class_object()) -> map().
'class supervise'({_, _, Module, Class} = Self) ->
    case 'class current'(Self) of
        nil ->
            case start(Class) of
                {ok, Pid} ->
                    Handle = {beamtalk_supervisor, Class, Module, Pid},
                    initialized(Self, Handle);
                {error, {already_started, Pid}} ->
                    ok({beamtalk_supervisor, Class, Module, Pid});
                {error, Reason} -> failed(start_error(Class, Reason))
            end;
        Running -> ok(Running)
    end.

%% Like actors, a supervisor is linked to the process that starts it, except
%% when a session does. A failing start sends no exit signal.
start(Class) ->
    Trapping = process_flag(trap_exit, true),
    Result = start_process(Class),
    case Result of
        {ok, Pid} ->
            get('$bt_session') =:= undefined orelse unlink(Pid);
        _ -> receive {'EXIT', _, _} -> ok after 0 -> ok end
    end,
    process_flag(trap_exit, Trapping),
    Result.

%% What the supervisor starts is part of what this process does, which waits for it.
start_process(Class) ->
    beamtalk_actor:starting(fun(Chain) ->
        supervisor:start_link({local, registered_name(Class)}, ?MODULE, {Class, Chain})
    end).

initialized(Self, Handle) ->
    try beamtalk_dispatch:send(Self, 'initialize:', Handle) of
        _ -> ok(Handle)
    catch Kind:Reason:Stack when Kind =/= throw ->
        stop(Handle),
        failed(start_error(element(2, Handle), beamtalk_error:from_caught(Kind, Reason, Stack)))
    end.

start_error(Class, Reason) ->
    Text = case cause(Reason) of
        #{error := _} = Exception -> beamtalk_error:field(Exception, message);
        Term -> beamtalk_display:native(Term)
    end,
    beamtalk_error:new(supervisor_start_failed, Class, supervise, undefined,
                       <<"The supervisor could not start: ", Text/binary>>, #{reason => cause(Reason)}).

cause({shutdown, Reason}) -> cause(Reason);
cause({failed_to_start_child, _, Reason}) -> cause(Reason);
cause({beamtalk_start, Exception}) -> cause(Exception);
cause({bad_return, {_, init, {'EXIT', {Reason, _}}}}) -> cause(Reason);
%% What the supervisor's own methods raise.
cause({#{error := _} = Exception, Stack}) when is_list(Stack) -> Exception;
cause(Reason) -> Reason.

-spec 'class current'(class_object()) -> handle() | nil.
'class current'({_, _, Module, Class}) ->
    case whereis(registered_name(Class)) of
        undefined -> nil;
        Pid -> {beamtalk_supervisor, Class, Module, Pid}
    end.

registered_name(Class) ->
    binary_to_atom(<<"beamtalk_supervisor_", (atom_to_binary(Class))/binary>>).

-spec init({atom(), [{pid(), term()}]}) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init({Class, Chain}) ->
    Self = beamtalk_class:named(Class),
    put('$bt_chain', Chain),
    put('$bt_supervisor', {beamtalk_supervisor, Class, element(3, Self), self()}),
    Ask = fun(Selector) -> beamtalk_dispatch:send(Self, Selector) end,
    Limits = #{intensity => Ask(maxRestarts), period => Ask(restartWindow)},
    case beamtalk_class:inherits(Class, 'DynamicSupervisor') of
        true ->
            {ok, {Limits#{strategy => simple_one_for_one}, [dynamic_spec(Ask(childClass))]}};
        false ->
            {ok, {Limits#{strategy => strategy(Ask(strategy))},
                  [child_spec(Child) || Child <- Ask(children)]}}
    end.

strategy(oneForOne) -> one_for_one;
strategy(oneForAll) -> one_for_all;
strategy(restForOne) -> rest_for_one;
strategy(Other) -> beamtalk_error:raise(type_error, 'Supervisor', strategy,
                       <<"Unknown strategy ", (beamtalk_display:print(Other))/binary>>).

%% A child is a class or a SupervisionSpec.
child_spec({beamtalk_object, _, _, Name} = Class) when is_atom(Name) ->
    case beamtalk_dispatch:send(Class, isSupervisor) of
        true -> supervisor_spec(Name);
        false -> child_spec(beamtalk_dispatch:send(Class, supervisionSpec))
    end;
child_spec(Spec) ->
    #{id := Id, start := Start, restart := Restart, shutdown := Shutdown, type := Type} =
        beamtalk_dispatch:send(Spec, childSpec),
    #{'$beamtalk_class' := 'Array', data := #{1 := {_, _, _, Class}, 2 := Function, 3 := Args}} = Start,
    case Type of
        supervisor -> (supervisor_spec(Class))#{id => Id, restart => Restart};
        worker ->
            #{id => Id, start => {?MODULE, start_worker, [Class, Function, Args]},
              restart => Restart, shutdown => Shutdown, type => worker}
    end.

supervisor_spec(Class) ->
    #{id => Class, start => {?MODULE, start_nested, [Class]}, restart => permanent,
      shutdown => infinity, type => supervisor}.

dynamic_spec({beamtalk_object, _, _, Name} = Class) ->
    #{id => Name, start => {?MODULE, start_dynamic, [Name]},
      restart => beamtalk_dispatch:send(Class, supervisionPolicy), shutdown => ?SHUTDOWN, type => worker}.

-spec start_nested(atom()) -> {ok, pid()} | {error, term()}.
start_nested(Class) ->
    Self = beamtalk_class:named(Class),
    case start_process(Class) of
        {ok, Pid} ->
            Handle = {beamtalk_supervisor, Class, element(3, Self), Pid},
            spawn(fun() -> beamtalk_dispatch:send(Self, 'initialize:', Handle) end),
            {ok, Pid};
        Error -> Error
    end.

-spec start_worker(atom(), atom(), [term()]) -> {ok, pid()} | {error, term()}.
start_worker(Class, spawn, []) -> start_actor(Class, #{}, nil);
start_worker(Class, 'spawnWith:', [Slots]) -> start_actor(Class, Slots, nil);
start_worker(Class, 'spawnAs:', [Name]) -> start_actor(Class, #{}, Name);
start_worker(Class, 'spawnWith:as:', [Slots, Name]) -> start_actor(Class, Slots, Name);
start_worker(Class, classMethod, [Selector, Args]) ->
    announced(Class, made_by(Class, Selector, Args)).

%% The class method makes the actor here, so it is linked to this supervisor.
made_by(Class, Selector, Args) ->
    try beamtalk_dispatch:send_list(beamtalk_class:named(Class), Selector, Args) of
        {beamtalk_object, _, _, Pid} when is_pid(Pid) ->
            link(Pid),
            {ok, Pid};
        Other -> {error, {no_actor, Other}}
    catch Kind:Reason:Stack -> {error, beamtalk_error:from_caught(Kind, Reason, Stack)}
    end.

-spec start_dynamic(atom(), term()) -> {ok, pid()} | {error, term()}.
start_dynamic(Class, Slots) -> start_actor(Class, Slots, nil).

start_actor(Class, Slots, Name) ->
    announced(Class,
              try
                  case beamtalk_dispatch:info(Class) of
                      #{native := nil} ->
                          beamtalk_value:check_fields(Class, 'spawnWith:', Slots),
                          beamtalk_actor:start_link(Class, Slots, Name);
                      #{native := Native} ->
                          beamtalk_capability:require_native(Class, 'spawnWith:'),
                          native_started(Class, Native:start_link(Slots))
                  end
              catch error:#{error := _} = Exception -> {error, Exception}
              end).

native_started(Class, Started) ->
    [beamtalk_native_actor:started(Class, Pid) || {ok, Pid} <- [Started]],
    Started.

%% A start that fails is announced.
announced(Class, {error, Reason} = Error) ->
    case get('$bt_supervisor') of
        {beamtalk_supervisor, Supervisor, _, _} -> beamtalk_announcer:child_failed(Supervisor, Class, cause(Reason));
        undefined -> ok
    end,
    Error;
announced(_, Started) ->
    Started.

%%% Messages to a running supervisor

-spec children(handle()) -> [atom()].
children(Self) -> [Id || {Id, Pid, _, _} <- running(Self, children), is_pid(Pid)].

-spec count(handle()) -> non_neg_integer().
count(Self) -> length([Pid || {_, Pid, _, _} <- running(Self, count), is_pid(Pid)]).

%% Children in the order they were started; raises `stale_handle'.
running(Self, Selector) -> lists:reverse(ask(Self, Selector, which_children, ?TIMEOUT)).

%% A request as the functions of `supervisor' make it, which would wait for ever.
ask({_, Class, _, Pid}, Selector, Request, Timeout) ->
    case beamtalk_actor_waits:ask(Pid, fun(_) -> Request end, Pid, Timeout) of
        {answer, Answer} -> Answer;
        down -> erlang:error(stale(Class, Selector));
        deadlock -> beamtalk_actor:deadlock(Class, Selector);
        timeout ->
            beamtalk_error:raise(timeout, Class, Selector,
                <<"The supervisor did not respond within the timeout period. It may be starting a child that is slow">>)
    end.

stale(Class, Selector) ->
    beamtalk_error:new(stale_handle, Class, Selector, undefined,
                       <<"The supervisor has ended; start it again with supervise">>, #{}).

-spec 'which:'(handle(), term()) -> map().
'which:'(Self, Class) ->
    result(fun() ->
        case [Handle || {_, Handle} <- matching(Self, 'which:', Class)] of
            [First | _] -> First;
            [] -> nil
        end
    end).

-spec 'terminate:'(handle(), term()) -> map().
'terminate:'({_, Name, _, _} = Self, Class) ->
    result(fun() ->
        %% Each child has the time its specification gives it.
        [case ask(Self, 'terminate:', {terminate_child, Id}, infinity) of
             ok -> nil;
             {error, not_found} -> nil;
             {error, Reason} -> terminate_failed(Name, 'terminate:', Reason)
         end || {Id, _} <- matching(Self, 'terminate:', Class)],
        nil
    end).

%% Ids and handles of running children of a class.
matching(Self, Selector, {beamtalk_object, _, _, Class}) when is_atom(Class) ->
    [{Id, Handle} || {Id, Pid, _, _} <- running(Self, Selector), is_pid(Pid),
                     {_, Actual, _, _} = Handle <- handle_of(Pid),
                     beamtalk_class:inherits(Actual, Class)];
matching({_, Name, _, _}, Selector, _) ->
    beamtalk_error:type_error(Name, Selector, <<"The argument must be a class">>).

handle_of(Pid) ->
    case {beamtalk_actor_class:reference_of(Pid), erlang:process_info(Pid, dictionary)} of
        {{ok, Actor}, _} -> [Actor];
        {none, {dictionary, Dictionary}} -> [Handle || {'$bt_supervisor', Handle} <- Dictionary];
        {none, undefined} -> []
    end.

-spec startChild(handle()) -> map().
startChild(Self) -> 'startChild:'(Self, #{}).

-spec 'startChild:'(handle(), term()) -> map().
'startChild:'({_, Class, _, _} = Self, Slots) ->
    result(fun() ->
        case ask(Self, 'startChild:', {start_child, [beamtalk_cell:freeze(Slots)]}, ?TIMEOUT) of
            {ok, Child} ->
                {_, _, _, Name} = beamtalk_dispatch:send(beamtalk_class:named(Class), childClass),
                beamtalk_announcer:system_event('SupervisionChildAdded',
                    #{supervisor => Class, childClass => Name, childPid => Child}),
                beamtalk_actor:reference(Name, Child);
            {error, Reason} ->
                Cause = cause(Reason),
                Hint = case Cause of
                    #{error := _} -> beamtalk_error:field(Cause, message);
                    _ -> beamtalk_display:native(Cause)
                end,
                erlang:error(beamtalk_error:new(child_start_failed, Class, 'startChild:', undefined,
                                                Hint, #{reason => Cause}))
        end
    end).

-spec 'terminateChild:'(handle(), term()) -> map().
'terminateChild:'({_, Class, _, _} = Self, Child) ->
    result(fun() ->
        Target = case Child of
            {beamtalk_object, _, _, X} when not is_atom(X) -> beamtalk_actor:resolve(X);
            _ -> beamtalk_error:type_error(Class, 'terminateChild:', <<"The argument must be an actor">>)
        end,
        case Target =:= undefined
             orelse ask(Self, 'terminateChild:', {terminate_child, Target}, ?TIMEOUT + ?SHUTDOWN) of
            {error, Reason} when Reason =/= not_found -> terminate_failed(Class, 'terminateChild:', Reason);
            _ -> nil
        end
    end).

-spec terminate_failed(atom(), atom(), term()) -> no_return().
terminate_failed(Class, Selector, Reason) ->
    beamtalk_error:raise(terminate_failed, Class, Selector, undefined,
                         beamtalk_display:native(Reason), #{reason => Reason}).

%% Children end in reverse order, each in the time its specification gives it; an ended supervisor is fine. One that does
%% not answer would not end either.
-spec stop(handle()) -> nil.
stop({_, Class, _, Pid} = Self) ->
    try running(Self, stop) of
        _ ->
            Monitor = erlang:monitor(process, Pid),
            spawn(fun() ->
                try gen_server:stop(Pid, normal, infinity)
                catch exit:_ -> ok
                end
            end),
            beamtalk_actor_waits:wait_for_end(Pid, Monitor, infinity) =:= down orelse beamtalk_actor:deadlock(Class, stop),
            nil
    catch error:#{error := {_, stale_handle, _, _, _, _, _}} -> nil
    end.

%% Misuse raises; what the caller must expect is a Result.
result(Body) ->
    try Body() of
        Value -> ok(Value)
    catch
        error:#{error := {_, type_error, _, _, _, _, _}} = Misuse -> erlang:error(Misuse);
        error:#{error := _} = Exception -> failed(Exception)
    end.

ok(Value) -> #{'$beamtalk_class' => 'Result', isOk => true, okValue => Value, errReason => nil}.

failed(Exception) ->
    #{'$beamtalk_class' => 'Result', isOk => false, okValue => nil, errReason => Exception}.
