%% Actors as those see them who make them and send to them, and the slots of the actor itself. What the process
%% behind an actor does is in beamtalk_actor_server.
%%
%% Requests are `{Selector, Args, Context}' (calls, with the time of asking as a fourth
%% where both are of this node) and `{cast, Selector, Args, Context}'; the context carries the call chain and the class locks it holds. Between
%% actors it is most often the chain of the sender alone, to which the sender, known to
%% whoever answers, is added there.
-module(beamtalk_actor).

-export([get_field/1, get_field/2, put_field/2, put_field/3]).
-export([send/3, send/4, cast/3, delegate/3, cast_delegate/3]).
-export([start/4, start_link/3, starting/1, resolve/1, reference/2, context/0, chain/1, deadlock/2]).

-define(TIMEOUT, 5000).
%% How long an actor is waited for without watching it.
-define(MOMENT, 2).
%% Who waits so long does not give up while what was answered at once (beamtalk_actor_server) is on its way.
-define(LONG, 1000).

-type handle() :: {beamtalk_object, atom(), module(), pid() | {registered, atom()}}.
-export_type([handle/0]).

%%% State

-spec get_field(atom()) -> term().
get_field(Slot) ->
    case get('$bt_state') of
        #{Slot := Value} -> Value;
        _ -> nil
    end.

-spec put_field(atom(), Value) -> Value when Value :: term().
put_field(Slot, Value) ->
    put('$bt_state', (get('$bt_state'))#{Slot => Value}),
    Value.

%% The same inside a block, which may run in another process.
-spec get_field(handle(), atom()) -> term().
get_field({_, _, _, Pid}, Slot) when Pid =:= self() -> get_field(Slot);
get_field(_, Slot) -> foreign(Slot).

-spec put_field(handle(), atom(), Value) -> Value when Value :: term().
put_field({_, _, _, Pid}, Slot, Value) when Pid =:= self() -> put_field(Slot, Value);
put_field(_, Slot, _) -> foreign(Slot).

-spec foreign(atom()) -> no_return().
foreign(Slot) ->
    Message = <<"BlockContext: 'self.", (atom_to_binary(Slot))/binary,
                "' belongs to another process; send a message instead">>,
    beamtalk_error:raise(block_context, nil, nil, Message, nil, #{}).

%%% Sending

%% A synchronous send to another process. Messages every object understands the
%% same way wherever it is asked are answered here, so they work on dead actors.
-spec send(handle(), atom(), [term()]) -> term().
send({_, Class, _, _} = Actor, Sel, Args) ->
    case beamtalk_actor_protocol:is_local(Sel) orelse is_native(Class) of
        false -> request(actor, Actor, Sel, Args, limit(Class));
        true -> send_here(Actor, Sel, Args)
    end.

is_native(Class) ->
    case persistent_term:get(Class, []) of
        {#{'$info' := #{native := Native}}, _} -> Native =/= nil;
        _ -> false
    end.

send_here({_, Class, _, _} = Actor, Sel, Args) ->
    case beamtalk_dispatch:method(Class, Sel) of
        none ->
            case {is_native(Class), beamtalk_dispatch:info(Class)} of
                {true, _} -> beamtalk_dispatch:not_found(Class, Actor, Sel, Args);
                %% The class is gone, and its actors with it: they are as dead as any.
                {false, none} -> beamtalk_dispatch:call_local('Actor', Actor, Sel, Args);
                {false, _} -> request(actor, Actor, Sel, Args, limit(Class))
            end;
        Method ->
            case is_native(Class) orelse beamtalk_actor_protocol:is_base_method(Method) of
                true -> beamtalk_dispatch:call_local(Class, Actor, Sel, Args);
                false -> request(actor, Actor, Sel, Args, limit(Class))
            end
    end.

%% A proxy with a limit of its own waits as long as that takes, and compiling a class takes what the machine makes of it.
limit('TimeoutProxy') -> infinity;
limit('ClassBuilder') -> infinity;
limit(_) -> ?TIMEOUT.

%% `perform:withArguments:timeout:'
-spec send(handle(), atom(), [term()], timeout()) -> term().
send({_, Class, _, Pid} = Actor, Sel, Args, Timeout) when Pid =/= self() ->
    case beamtalk_actor_protocol:is_local(Sel) orelse is_native(Class) of
        false -> request(actor, Actor, Sel, Args, Timeout);
        true ->
            put('$bt_limit', Timeout),
            try send_here(Actor, Sel, Args)
            after erase('$bt_limit')
            end
    end;
send(Actor, Sel, Args, _) ->
    beamtalk_dispatch:send_list(Actor, Sel, Args).

%% `self delegate' of a native actor: the request to its process.
-spec delegate(handle(), atom(), [term()]) -> term().
delegate({_, Class, _, _} = Actor, Sel, Args) ->
    %% A subclass of a native class has no process of that kind.
    is_native(Class) orelse beamtalk_actor_class:delegate(Actor),
    beamtalk_capability:require_native(Class, Sel),
    Limit = case get('$bt_limit') of
        undefined -> ?TIMEOUT;
        Timeout -> Timeout
    end,
    beamtalk_erlang:convert_result(request(native, Actor, Sel, Args, Limit)).

request(Kind, {_, Class, _, Target} = Actor, Sel, Args, Timeout) ->
    case resolve(Target) of
        undefined -> no_such_process(Actor, Sel);
        Pid when Pid =:= self() ->
            %% Its own proxy: a direct call like any other self-send.
            beamtalk_dispatch:send_list(get('$bt_self'), Sel, Args);
        Pid ->
            Chain = chain(),
            is_waiting(Pid, Chain) andalso deadlock(Class, Sel),
            Frozen = beamtalk_cell:freeze(Args),
            case Kind =:= actor andalso node(Pid) =:= node() andalso Timeout >= ?LONG of
                true -> call_quick(Pid, Actor, Sel, Frozen, Chain, Timeout);
                false -> call_watched(Kind, Pid, Actor, Sel, Frozen, Chain, Timeout)
            end
    end.

%% Most answers come within microseconds, and watching the actor that long costs more than the two messages. So it is watched only
%% when its answer takes more than a moment. What it answers at once is a plain message; what comes later, when this process
%% may have given up, comes by its alias and is dropped then.
call_quick(Pid, {_, Class, _, _} = Actor, Sel, Args, Chain, Timeout) ->
    Started = os:perf_counter(),
    is_process_alive(Pid) orelse dead(Pid, Class, Sel, Started),
    Alias = own_alias(),
    Ref = make_ref(),
    put('$bt_wait', Ref),
    Pid ! {'$gen_call', {self(), [Alias | Ref]}, {Sel, Args, carried(actor, Ref, Chain), Started}},
    receive
        {Ref, Value} ->
            erase('$bt_wait'),
            beamtalk_tracing:record(Pid, Class, Sel, sync, Started, ok),
            Value;
        {[_ | Ref], Reply} -> answered(Reply, Pid, Actor, Sel, Args, Started)
    after ?MOMENT ->
        Monitor = erlang:monitor(process, Pid),
        Outcome = beamtalk_actor_waits:wait(Pid, Ref, Monitor, Timeout),
        erlang:demonitor(Monitor, [flush]),
        Outcome =/= deadlock andalso Outcome =/= timeout orelse forget_alias(Ref),
        ended(Outcome, Pid, Actor, Sel, Args, Started)
    end.

%% This process as the address of answers, until it gives up waiting for one.
own_alias() ->
    case get('$bt_alias') of
        undefined ->
            Alias = [alias | erlang:alias()],
            put('$bt_alias', Alias),
            Alias;
        Alias -> Alias
    end.

forget_alias(Ref) ->
    [_ | Alias] = erase('$bt_alias'),
    erlang:unalias(Alias),
    receive
        {Ref, _} -> true;
        {[_ | Ref], _} -> true
    after 0 -> true
    end.

%% Watched from the beginning: native processes and other nodes, which answer as any gen_server, and whoever may give up so soon
%% that a plain answer is still on its way.
call_watched(Kind, Pid, Actor, Sel, Args, Chain, Timeout) ->
    Started = os:perf_counter(),
    Outcome = beamtalk_actor_waits:ask(Pid, fun(Monitor) ->
        put('$bt_wait', Monitor),
        {Sel, Args, carried(Kind, Monitor, Chain)}
    end, Pid, Timeout),
    ended(Outcome, Pid, Actor, Sel, Args, Started).

ended({answer, Reply}, Pid, Actor, Sel, Args, Started) -> answered(Reply, Pid, Actor, Sel, Args, Started);
ended(down, Pid, {_, Class, _, _}, Sel, _, Started) -> dead(Pid, Class, Sel, Started);
ended(deadlock, Pid, {_, Class, _, _}, Sel, _, Started) ->
    failed(Pid, Class, Sel, Started, error),
    deadlock(Class, Sel);
ended(timeout, Pid, {_, Class, _, _}, Sel, _, Started) ->
    failed(Pid, Class, Sel, Started, timeout),
    beamtalk_error:raise(timeout, Class, Sel,
        <<"Actor did not respond within the timeout period. "
          "The actor may be slow, overloaded, or deadlocked">>).

answered({ok, Value}, Pid, {_, Class, _, _}, Sel, _, Started) ->
    erase('$bt_wait'),
    beamtalk_tracing:record(Pid, Class, Sel, sync, Started, ok),
    Value;
answered({error, Reason}, Pid, {_, Class, _, _} = Actor, Sel, Args, Started) ->
    failed(Pid, Class, Sel, Started, error),
    fail(Reason, Actor, Sel, Args);
answered('$bt_ends', Pid, {_, Class, _, _}, Sel, _, Started) ->
    Monitor = erlang:monitor(process, Pid),
    receive {'DOWN', Monitor, _, _, _} -> dead(Pid, Class, Sel, Started) end;
answered(Other, _, _, _, _, _) ->
    erase('$bt_wait'),
    Other.

failed(Pid, Class, Sel, Started, Outcome) ->
    erase('$bt_wait'),
    beamtalk_tracing:record(Pid, Class, Sel, sync, Started, Outcome).

%% What a call takes along. Native processes are told everything.
carried(actor, Monitor, Chain) ->
    case is_plain() of
        true -> Chain;
        false -> carried(native, Monitor, Chain)
    end;
carried(native, Monitor, Chain) -> context([{self(), Monitor} | Chain]).

%% Is there nothing but the chain that what is sent from here takes along?
is_plain() -> get('$bt_locks') =:= undefined andalso get('$bt_trace_context') =:= undefined.

%% The exception of the other process is raised here with its own stack.
fail(#{'$beamtalk_class' := _, error := E} = Exception, {_, Class, _, _} = Actor, Sel, Args) ->
    put('$bt_failed_in', {E, Actor}),
    %% A message the actor did not understand failed where it was sent.
    case E of
        {_, does_not_understand, Class, Sel, _, _, _} ->
            erlang:error(maps:remove(stacktrace, Exception), [Actor | Args]);
        _ -> erlang:error(Exception)
    end;
fail(Reason, {_, Class, _, _}, Sel, _) ->
    #{error := E} = Exception = beamtalk_error:wrap_reason(Reason),
    erlang:error(Exception#{error := setelement(4, setelement(3, E, Class), Sel)}).

-spec dead(pid(), atom(), atom(), integer()) -> no_return().
dead(Pid, Class, Sel, Started) ->
    failed(Pid, Class, Sel, Started, error),
    beamtalk_error:raise(actor_dead, Class, Sel, <<"Ask isAlive first, or monitor the actor">>).

no_such_process({_, Class, _, {registered, Name}}, Sel) ->
    beamtalk_error:raise(no_such_process, Class, Sel,
        <<"No process is currently registered under name '", (atom_to_binary(Name))/binary, "'">>).

%%% The call chain

chain() ->
    case get('$bt_chain') of
        undefined -> [];
        Chain -> Chain
    end.

%% The chain of a process that works for this one, which waits for it.
-spec chain(reference() | {start, integer()}) -> [{pid(), term()}].
chain(Wait) -> [{self(), Wait} | chain()].

%% Context of a request made by this process in its current chain.
-spec context() -> map().
context() -> context(chain()).

context(Chain) ->
    Base = trace_context(),
    case get('$bt_locks') of
        undefined -> Base#{chain => Chain};
        Locks -> Base#{chain => Chain, locks => Locks}
    end.

%% What `Tracing setContext:' says travels with every message.
trace_context() ->
    case get('$bt_trace_context') of
        undefined -> #{};
        Trace -> #{trace => Trace}
    end.

%% Does the process wait for an answer that this chain has to give? An entry
%% says which answer it waited for when the message was sent (an actor that handles a call has it as the call names it);
%% it may have it by now, have given up, or wait for something else.
is_waiting(Pid, [{Pid, [_ | Wait]} | _]) -> waits_for(Pid, Wait);
is_waiting(Pid, [{Pid, Wait} | _]) -> waits_for(Pid, Wait);
is_waiting(Pid, [_ | Rest]) -> is_waiting(Pid, Rest);
is_waiting(_, []) -> false.

waits_for(Pid, Wait) ->
    case erlang:process_info(Pid, dictionary) of
        {_, Dictionary} -> lists:keyfind('$bt_wait', 1, Dictionary) =:= {'$bt_wait', Wait};
        undefined -> false
    end.

-spec deadlock(atom(), atom()) -> no_return().
deadlock(Class, Sel) ->
    beamtalk_error:raise(deadlock_detected, Class, Sel,
        <<"Sync send would deadlock: target actor is already in the call chain">>).

%%% Casting

-spec cast(handle(), atom(), [term()]) -> nil.
cast({_, Class, _, Target} = Actor, Sel, Args) ->
    case is_native(Class) andalso not beamtalk_actor_protocol:is_delegate(Class, Sel) of
        true -> cast_here(Actor, Sel, beamtalk_cell:freeze(Args));
        false ->
            case resolve(Target) of
                undefined -> nil;
                Pid ->
                    gen_server:cast(Pid, {cast, Sel, beamtalk_cell:freeze(Args), trace_context()}),
                    beamtalk_tracing:record(Pid, Class, Sel, cast, os:perf_counter(), cast),
                    nil
            end
    end.

-spec cast_delegate(handle(), atom(), [term()]) -> nil.
cast_delegate({_, _, _, Target}, Sel, Args) ->
    [gen_server:cast(Pid, {cast, Sel, beamtalk_cell:freeze(Args), #{}})
     || Pid <- [resolve(Target)], Pid =/= undefined],
    nil.

%% A method with a body of a native class runs beside its process.
cast_here({_, Class, _, _} = Actor, Sel, Args) ->
    spawn(fun() ->
        try beamtalk_dispatch:call_local(Class, Actor, Sel, Args)
        catch Kind:Reason:Stack -> beamtalk_actor_server:log_failure(Class, Sel, Kind, Reason, Stack)
        end
    end),
    nil.

-spec resolve(pid() | {registered, atom()}) -> pid() | undefined.
resolve({registered, Name}) -> whereis(Name);
resolve(Pid) -> Pid.

%%% Starting

%% Start an actor; initialize has ended when this answers. A name of `undefined' is none.
-spec start(atom(), map(), boolean(), atom()) -> {ok, pid()} | {error, term()}.
start(Class, Slots, IsLinked, Name) ->
    try beamtalk_guard:check_process(Class, spawn) of
        ok -> start_process(Class, beamtalk_cell:freeze(Slots), IsLinked, Name)
    catch error:Exception -> {error, Exception}
    end.

%% As `starting/1' does it, without a fun. What the actor gets is copied, so it is given the number of the wait and makes the
%% chain of it, where this process has none of its own.
start_process(Class, Slots, IsLinked, Name) ->
    Number = erlang:unique_integer(),
    put('$bt_wait', {start, Number}),
    Argument = [{Class, Slots, self(), IsLinked, started_by(Number), Name}],
    try
        case IsLinked of
            true -> proc_lib:start_link(beamtalk_actor_server, start, Argument);
            false -> proc_lib:start(beamtalk_actor_server, start, Argument)
        end
    after erase('$bt_wait')
    end.

%% Start a process that gets the given chain, and wait for it.
-spec starting(fun(([{pid(), term()}]) -> Started)) -> Started.
starting(Start) ->
    Wait = {start, erlang:unique_integer()},
    put('$bt_wait', Wait),
    try Start(chain(Wait))
    after erase('$bt_wait')
    end.

%% The number or the chain alone, or all that belongs to it, as with a call.
started_by(Number) ->
    case {is_plain(), chain()} of
        {true, []} -> Number;
        {true, Chain} -> [{self(), {start, Number}} | Chain];
        {false, _} -> context(chain({start, Number}))
    end.

%% Start function of supervised children.
-spec start_link(atom(), map(), atom()) -> {ok, pid()} | {error, term()}.
start_link(Class, Slots, Name) ->
    start(Class, Slots, true, case Name of nil -> undefined; _ -> Name end).

-spec reference(atom(), pid()) -> handle().
reference(Class, Pid) ->
    #{module := Module} = beamtalk_dispatch:info(Class),
    {beamtalk_object, Class, Module, Pid}.
