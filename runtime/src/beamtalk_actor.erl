%% Actors: the process behind an instance of an Actor class, and sends to it.
%%
%% Every actor that is not native is a gen_server with this callback module. Its
%% gen_server state is the map of its slots; while it handles a message the map
%% is under '$bt_state' in the process dictionary, so a message that raises simply
%% leaves the old map. '$bt_self' is the actor's reference, '$bt_version' the version
%% of the class its slots have, '$bt_chain' the processes waiting for the current
%% message.
%%
%% Requests are `{Selector, Args, Context}' (calls) and `{cast, Selector, Args,
%% Context}'; the context carries the call chain and the class locks it holds. Between
%% actors it is most often the chain of the sender alone, to which the sender, known to
%% whoever answers, is added there.
-module(beamtalk_actor).
-behaviour(gen_server).

-export([get_field/1, get_field/2, put_field/2, put_field/3]).
-export([send/3, send/4, cast/3, delegate/3, cast_delegate/3]).
-export([start/3, start_link/3, resolve/1, reference/2, context/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-define(TIMEOUT, 5000).

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
        #{'$info' := #{native := Native}} -> Native =/= nil;
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
            call(Kind, Pid, Actor, Sel, beamtalk_cell:freeze(Args), Chain, Timeout)
    end.

call(Kind, Pid, {_, Class, _, _} = Actor, Sel, Args, Chain, Timeout) ->
    Started = erlang:monotonic_time(),
    Monitor = erlang:monitor(process, Pid, [{alias, demonitor}]),
    put('$bt_wait', Monitor),
    Pid ! {'$gen_call', {self(), [alias | Monitor]}, {Sel, Args, carried(Kind, Monitor, Chain)}},
    receive
        {[alias | Monitor], Reply} ->
            erlang:demonitor(Monitor, [flush]),
            case Reply of
                {ok, Value} ->
                    beamtalk_tracing:record(Pid, Class, Sel, sync, Started, ok),
                    Value;
                {error, Reason} ->
                    beamtalk_tracing:record(Pid, Class, Sel, sync, Started, error),
                    fail(Reason, Actor, Sel, Args);
                Other -> Other
            end;
        {'DOWN', Monitor, _, _, _} ->
            erase('$bt_wait'),
            dead(Class, Sel)
    after Timeout ->
        erase('$bt_wait'),
        erlang:demonitor(Monitor, [flush]),
        receive {[alias | Monitor], _} -> ok after 0 -> ok end,
        beamtalk_tracing:record(Pid, Class, Sel, sync, Started, timeout),
        beamtalk_error:raise(timeout, Class, Sel,
            <<"Actor did not respond within the timeout period. "
              "The actor may be slow, overloaded, or deadlocked">>)
    end.

%% What a call takes along. Native processes are told everything.
carried(actor, Monitor, Chain) ->
    case get('$bt_locks') =:= undefined andalso get('$bt_trace_context') =:= undefined of
        true -> Chain;
        false -> carried(native, Monitor, Chain)
    end;
carried(native, Monitor, Chain) -> context([{self(), Monitor} | Chain]).

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

-spec dead(atom(), atom()) -> no_return().
dead(Class, Sel) ->
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
%% says which answer it waited for when the message was sent; it may have given
%% up since.
is_waiting(Pid, [{Pid, Wait} | _]) -> waits_for(Pid, Wait);
is_waiting(Pid, [_ | Rest]) -> is_waiting(Pid, Rest);
is_waiting(_, []) -> false.

waits_for(Pid, Wait) ->
    case erlang:process_info(Pid, dictionary) of
        {dictionary, Dictionary} -> lists:keyfind('$bt_wait', 1, Dictionary) =:= {'$bt_wait', Wait};
        undefined -> false
    end.

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
                    beamtalk_tracing:record(Pid, Class, Sel, cast, erlang:monotonic_time(), cast),
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
        catch Kind:Reason:Stack -> log_failure(Class, Sel, Kind, Reason, Stack)
        end
    end),
    nil.

-spec resolve(pid() | {registered, atom()}) -> pid() | undefined.
resolve({registered, Name}) -> whereis(Name);
resolve(Pid) -> Pid.

%%% Starting

%% Start an actor; initialize has ended when this answers.
-spec start(atom(), map(), [linked | {name, atom()}]) -> {ok, pid()} | {error, term()}.
start(Class, Slots, Options) ->
    try beamtalk_guard:check_process(Class, spawn) of
        ok -> start_process(Class, Slots, Options)
    catch error:Exception -> {error, Exception}
    end.

start_process(Class, Slots, Options) ->
    Wait = make_ref(),
    put('$bt_wait', Wait),
    Maker = case lists:member(linked, Options) of
        true -> self();
        false -> none
    end,
    Argument = {Class, beamtalk_cell:freeze(Slots), Maker, context([{self(), Wait} | chain()]),
                proplists:get_value(name, Options)},
    Started = case Maker of
        none -> gen_server:start(?MODULE, Argument, []);
        _ -> gen_server:start_link(?MODULE, Argument, [])
    end,
    erase('$bt_wait'),
    Started.

%% Start function of supervised children.
-spec start_link(atom(), map(), atom()) -> {ok, pid()} | {error, term()}.
start_link(Class, Slots, Name) ->
    start(Class, Slots, [linked | [{name, Name} || Name =/= nil]]).

-spec reference(atom(), pid()) -> handle().
reference(Class, Pid) ->
    #{module := Module} = beamtalk_dispatch:info(Class),
    {beamtalk_object, Class, Module, Pid}.

-spec init(tuple()) -> {ok, map()} | {stop, term()}.
init({Class, Slots, Maker, Context, Name}) ->
    #{version := Version, module := Module} = Info = beamtalk_dispatch:info(Class),
    Self = {beamtalk_object, Class, Module, self()},
    put('$bt_self', Self),
    put('$bt_version', Version),
    beamtalk_workspace:belongs_to_evaluation(),
    enter(Context),
    try
        register_name(Name),
        beamtalk_actor_protocol:has_terminate(Class) andalso trap_exits(),
        Defaults = beamtalk_value:defaults(Class),
        put('$bt_state', case map_size(Slots) of
                             0 -> Defaults;
                             _ -> maps:merge(Defaults, Slots)
                         end),
        initialize(Info, Self),
        State = beamtalk_cell:end_message(#{}, get('$bt_state')),
        check_required(Info, State),
        leave(),
        beamtalk_announcer:actor_started(Class, self()),
        {ok, State}
    catch Kind:Reason:Stack ->
        Maker =:= none orelse unlink(Maker),
        Exception = case {Kind, Reason} of
            {throw, {name_taken, _} = Taken} -> Taken;
            _ -> beamtalk_error:from_caught(Kind, Reason, Stack)
        end,
        {stop, {shutdown, {beamtalk_start, Exception}}}
    end.

register_name(undefined) -> ok;
register_name(Name) ->
    try register(Name, self()) of
        true -> ok
    catch error:badarg -> throw({name_taken, Name})
    end.

trap_exits() ->
    process_flag(trap_exit, true),
    put('$bt_auto_trap', true).

initialize(#{inits := Inits}, Self) ->
    [Init(Self) || Init <- Inits],
    ok.

check_required(#{required := []}, _) -> ok;
check_required(#{name := Class, required := Required}, State) ->
    [missing(Class, Missing) || {Slot, _, _} = Missing <- Required, maps:get(Slot, State, nil) =:= nil],
    ok.

missing(Class, {Slot, Declaring, Type}) ->
    Hint = <<"UninitializedStateError: ", (atom_to_binary(Declaring))/binary, " field '",
             (atom_to_binary(Slot))/binary, "' (:: ", Type/binary, ") was not initialized">>,
    beamtalk_error:raise(instantiation_error, Class, spawn, Hint).

%%% Handling messages

-spec handle_call(term(), gen_server:from(), map()) -> tuple().
handle_call({Sel, Args, Chain}, {Pid, [alias | Wait]}, State) when is_atom(Sel), is_list(Args), is_list(Chain) ->
    put('$bt_chain', [{Pid, Wait} | Chain]),
    answer(Sel, Args, State);
handle_call({Sel, Args, Context}, _From, State) when is_atom(Sel), is_list(Args), is_map(Context) ->
    enter(Context),
    answer(Sel, Args, State);
handle_call({Sel, Args}, _From, State) when is_atom(Sel), is_list(Args) ->
    enter(#{}),
    answer(Sel, Args, State);
handle_call(Other, _From, State) ->
    {reply, {error, {unknown_request, Other}}, State}.

-spec handle_cast(term(), map()) -> tuple().
handle_cast({cast, Sel, Args, _Context}, State) when is_atom(Sel), is_list(Args) ->
    perform_logged(Sel, Args, State);
handle_cast({cast, Sel, Args}, State) when is_atom(Sel), is_list(Args) ->
    perform_logged(Sel, Args, State);
handle_cast({'$bt_migrate', From, Reference}, #{'$beamtalk_class' := Class} = State) ->
    {Outcome, NewState} = beamtalk_actor_protocol:migrate_now(persistent_term:get(Class), State),
    From ! {Reference, self(), Outcome},
    {noreply, NewState};
handle_cast({'$bt_observe', true}, State) ->
    put('$bt_observed', true),
    {noreply, State};
handle_cast({'$bt_observe', false}, State) ->
    erase('$bt_observed'),
    {noreply, State};
handle_cast('$bt_stop', State) ->
    {stop, normal, State};
handle_cast(_, State) ->
    {noreply, State}.

-spec handle_info(term(), map()) -> tuple().
handle_info({'EXIT', _, Reason} = Message, State) ->
    case get('$bt_auto_trap') of
        true when Reason =:= normal -> {noreply, State};
        true -> {stop, Reason, State};
        undefined -> handle_raw(Message, State)
    end;
handle_info(Message, State) ->
    handle_raw(Message, State).

%% Only a Server sees what is not a Beamtalk message.
handle_raw(Message, #{'$beamtalk_class' := Class} = State) ->
    case beamtalk_former:table(Class, persistent_term:get(Class, #{})) of
        #{'handleInfo:' := _} -> perform_logged('handleInfo:', [Message], State);
        _ -> {noreply, State}
    end.

answer(Sel, Args, State) ->
    case run(Sel, Args, State) of
        {ok, Value, NewState} -> finish({reply, {ok, Value}, NewState});
        {failed, exit, Reason, _, NewState} -> {stop, Reason, NewState};
        {failed, Kind, Reason, Stack, NewState} ->
            Exception = beamtalk_error:from_caught(Kind, Reason, Stack, Sel),
            finish({reply, {error, Exception}, NewState})
    end.

perform_logged(Sel, Args, State) ->
    enter(#{}),
    case run(Sel, Args, State) of
        {ok, _, NewState} -> finish({noreply, NewState});
        {failed, exit, Reason, _, NewState} -> {stop, Reason, NewState};
        {failed, Kind, Reason, Stack, NewState} ->
            #{'$beamtalk_class' := Class} = NewState,
            log_failure(Class, Sel, Kind, Reason, Stack),
            finish({noreply, NewState})
    end.

%% `stop' sent to itself ends the actor after the message.
finish(Result) ->
    case get('$bt_stopping') of
        undefined -> Result;
        true when element(1, Result) =:= reply ->
            {stop, normal, element(2, Result), element(3, Result)};
        true -> {stop, normal, element(2, Result)}
    end.

%% One message: the new state on success, the old one otherwise.
run(Sel, Args, #{'$beamtalk_class' := Class} = Before) ->
    Current = persistent_term:get(Class, #{}),
    Version = get('$bt_version'),
    State = case Current of
        #{'$info' := #{version := Version}} -> Before;
        _ -> beamtalk_actor_protocol:migrate(Current, Before)
    end,
    Table = case get('$bt_former') of
        undefined -> Current;
        _ -> beamtalk_former:table(Class, Current)
    end,
    put('$bt_state', State),
    Self = get('$bt_self'),
    try perform(Table, Self, Sel, Args) of
        Value ->
            After = get('$bt_state'),
            get('$bt_observed') =:= undefined orelse beamtalk_bridge_events:state_changed(self(), State, After),
            case get('$bt_cells') of
                undefined ->
                    leave(),
                    beamtalk_announcer:state_changed(Class, State, After),
                    {ok, Value, After};
                _ ->
                    Answer = beamtalk_cell:freeze(Value),
                    Kept = beamtalk_cell:end_message(State, After),
                    leave(),
                    beamtalk_announcer:state_changed(Class, State, Kept),
                    {ok, Answer, Kept}
            end
    catch Kind:Reason:Stack ->
        Frozen = beamtalk_cell:freeze(Reason),
        beamtalk_cell:end_message(#{}, #{}),
        leave(),
        {failed, Kind, Frozen, Stack, State}
    end.

perform(Table, Self, Sel, Args) ->
    case Table of
        #{Sel := F} when is_function(F, length(Args) + 1) ->
            case Args of
                [] -> F(Self);
                [A] -> F(Self, A);
                _ -> apply(F, [Self | Args])
            end;
        _ -> beamtalk_dispatch:call_local(element(2, Self), Self, Sel, Args)
    end.

enter(Context) ->
    case Context of
        #{chain := Chain} -> put('$bt_chain', Chain);
        _ -> erase('$bt_chain')
    end,
    case Context of
        #{locks := Locks} -> put('$bt_locks', Locks);
        _ -> ok
    end,
    case Context of
        #{trace := Trace} -> put('$bt_trace_context', Trace);
        _ -> ok
    end.

%% Looking costs less than erasing what is mostly not there.
leave() ->
    erase('$bt_chain'),
    get('$bt_locks') =:= undefined orelse erase('$bt_locks'),
    get('$bt_trace_context') =:= undefined orelse erase('$bt_trace_context'),
    beamtalk_tracing:flush().

log_failure(Class, Sel, Kind, Reason, Stack) ->
    Exception = beamtalk_error:from_caught(Kind, Reason, Stack, Sel),
    Frames = [beamtalk_display:print(F) || F <- beamtalk_stack:frames(Stack)],
    logger:warning("~ts>>~ts failed: ~ts~n~ts",
                   [Class, Sel, beamtalk_display:exception(Exception), lists:join("\n", Frames)],
                   #{domain => [beamtalk]}).

%% Orderly end. A failing `terminate:' is logged and changes nothing.
-spec terminate(term(), map()) -> ok.
terminate(Reason, #{'$beamtalk_class' := Class} = State) ->
    case beamtalk_actor_protocol:has_terminate(Class) of
        true ->
            put('$bt_state', State),
            try beamtalk_dispatch:call_local(Class, get('$bt_self'), 'terminate:', [Reason])
            catch Kind:Error:Stack -> log_failure(Class, 'terminate:', Kind, Error, Stack)
            end;
        false -> ok
    end,
    beamtalk_announcer:actor_ends().
