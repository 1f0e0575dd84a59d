%% The process behind an instance of an Actor class that is not native.
%%
%% It speaks as a gen_server and ends as one; in between it takes its messages from a loop of its own, in which a call of
%% another actor or session costs little more than the call itself.
%%
%% The map of its slots is under '$bt_state' in the process dictionary. The loop has the map of the last message that
%% ended well as well, so a message that raises puts that back. '$bt_self' is the actor's reference, '$bt_version' the
%% version of the class its slots have, '$bt_chain' the processes waiting for the current message: it stays there
%% until the next message says otherwise.
-module(beamtalk_actor_server).
-behaviour(gen_server).

-export([start/1, log_failure/5]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).
-export([system_continue/3, system_terminate/4, system_get_state/1, system_replace_state/2, system_code_change/4]).

-compile({inline, [leave/0, perform/4]}).

%% In units of `os:perf_counter/0', mostly nanoseconds: who asked no longer ago than this still waits (beamtalk_actor).
-define(AT_ONCE, 1000000).

%%% Starting

%% The process of an actor, by `proc_lib:start'.
-spec start(tuple()) -> no_return().
start({Class, Slots, Maker, IsLinked, Context, Name}) ->
    #{version := Version, module := Module} = Info = beamtalk_dispatch:info(Class),
    Self = {beamtalk_object, Class, Module, self()},
    put('$bt_self', Self),
    put('$bt_version', Version),
    beamtalk_workspace:belongs_to_evaluation(),
    try
        register_name(Name),
        beamtalk_actor_protocol:hear_ends(Info),
        State = first_state(Info, Slots, Self, Maker, Context),
        check_required(Info, State),
        beamtalk_announcer:actor_started(Class, self()),
        State
    of
        State ->
            proc_lib:init_ack(Maker, {ok, self()}),
            case {get('$bt_stopping'), IsLinked} of
                {true, _} -> ended(normal, initialize, State);
                {undefined, true} -> loop(Maker, State);
                %% As gen_server has it: who is linked to nobody is its own parent.
                {undefined, false} -> loop(self(), State)
            end
    catch Kind:Reason:Stack ->
        not IsLinked orelse unlink(Maker),
        Exception = case {Kind, Reason} of
            {throw, {name_taken, _} = Taken} -> Taken;
            _ -> beamtalk_error:from_caught(Kind, Reason, Stack)
        end,
        Failed = {shutdown, {beamtalk_start, Exception}},
        %% Who tries again at once must find the name free.
        [unregister(Known) || {registered_name, Known} <- [process_info(self(), registered_name)]],
        proc_lib:init_ack(Maker, {error, Failed}),
        exit(Failed)
    end.

%% Where no method and no default is evaluated nobody asks who waits.
first_state(#{initial := Initial, inits := []}, Slots, _, _, _) when Initial =/= none ->
    State = with_slots(Slots, Initial()),
    put('$bt_state', State),
    State;
first_state(#{name := Class, defaults := Defaults} = Info, Slots, Self, Maker, Context) ->
    enter(made_by(Maker, Context)),
    put('$bt_state', with_slots(Slots, beamtalk_value:defaults(Class, Defaults))),
    initialize(Info, Self),
    State = initialized(),
    leave(),
    erase('$bt_chain'),
    State.

made_by(Maker, Number) when is_integer(Number) -> [{Maker, {start, Number}}];
made_by(_, Context) -> Context.

with_slots(Slots, Defaults) when map_size(Slots) =:= 0 -> Defaults;
with_slots(Slots, Defaults) -> maps:merge(Defaults, Slots).

register_name(undefined) -> ok;
register_name(Name) ->
    try register(Name, self()) of
        true -> ok
    catch error:badarg -> throw({name_taken, Name})
    end.

initialize(#{inits := Inits}, Self) ->
    [Init(Self) || Init <- Inits],
    ok.

initialized() ->
    State = get('$bt_state'),
    case get('$bt_cells') of
        undefined -> State;
        _ ->
            Kept = beamtalk_cell:end_message(#{}, State),
            put('$bt_state', Kept),
            Kept
    end.

check_required(#{required := []}, _) -> ok;
check_required(#{name := Class, required := Required}, State) ->
    [missing(Class, Missing) || {Slot, _, _} = Missing <- Required, maps:get(Slot, State, nil) =:= nil],
    ok.

missing(Class, {Slot, Declaring, Type}) ->
    Hint = <<"UninitializedStateError: ", (atom_to_binary(Declaring))/binary, " field '",
             (atom_to_binary(Slot))/binary, "' (:: ", Type/binary, ") was not initialized">>,
    beamtalk_error:raise(instantiation_error, Class, spawn, Hint).

%%% The loop

loop(Parent, State) ->
    receive
        {'$gen_call', {Sender, [[alias | _] | Ref]} = From, {Sel, Args, Chain, Asked}} = Message
          when is_list(Chain) ->
            put('$bt_chain', [From | Chain]),
            case run(Sel, Args, State) of
                [Value | NewState] ->
                    case get('$bt_stopping') of
                        undefined ->
                            case os:perf_counter() - Asked < ?AT_ONCE of
                                true -> Sender ! {Ref, Value};
                                false -> gen_server:reply(From, {ok, Value})
                            end,
                            loop(Parent, NewState);
                        true -> next({stop, normal, {ok, Value}, NewState}, Message, From, Parent)
                    end;
                Failed -> next(refused(Failed, Sel), Message, From, Parent)
            end;
        Message ->
            erase('$bt_chain'),
            take(Message, Parent, State)
    end.

take({'$gen_call', From, Request} = Message, Parent, State) ->
    next(handle_call(Request, From, State), Message, From, Parent);
take({'$gen_cast', Request} = Message, Parent, State) ->
    next(handle_cast(Request, State), Message, none, Parent);
take({system, From, Request}, Parent, State) ->
    sys:handle_system_msg(Request, From, Parent, ?MODULE, [], {Parent, State});
take({'EXIT', Parent, Reason} = Message, Parent, State) ->
    case Reason =:= normal andalso get('$bt_auto_trap') =:= true of
        %% Who hears of ends only for the sake of `terminate:' lives as long as one that does not.
        true -> loop(Parent, State);
        false -> ended(Reason, Message, State)
    end;
take(Message, Parent, State) ->
    next(handle_info(Message, State), Message, none, Parent).

next({reply, Reply, State}, _, From, Parent) ->
    gen_server:reply(From, Reply),
    loop(Parent, State);
next({noreply, State}, _, _, Parent) -> loop(Parent, State);
%% Who asked as beamtalk_actor does need not find out by watching.
next({stop, Reason, State}, {_, From, {_, _, _, _}} = Message, From, Parent) ->
    next({stop, Reason, '$bt_ends', State}, Message, From, Parent);
next({stop, Reason, State}, Message, _, _) -> ended(Reason, Message, State);
next({stop, Reason, Reply, State}, Message, From, _) ->
    put('$bt_last_reply', {From, Reply}),
    ended(Reason, Message, State).

%% The rest is gen_server's: `terminate/2', what is logged (with the last message), the exit.
-spec ended(term(), term(), map()) -> no_return().
ended(Reason, Message, State) ->
    erase('$bt_chain'),
    gen_server:enter_loop(?MODULE, [], State, {continue, {ended, Reason, Message}}).

-spec handle_continue({ended, term(), term()}, map()) -> {stop, term(), map()}.
handle_continue({ended, Reason, _Message}, State) -> {stop, Reason, State}.

%% Never called: `start/1' begins, the loop goes on.
-spec init(term()) -> ignore.
init(_) -> ignore.

%%% Requests of `sys'

-spec system_continue(pid(), list(), {pid(), map()}) -> no_return().
system_continue(_, _, {Parent, State}) -> loop(Parent, State).

-spec system_terminate(term(), pid(), list(), {pid(), map()}) -> no_return().
system_terminate(Reason, _, _, {_, State}) -> ended(Reason, {terminate, Reason}, State).

-spec system_get_state({pid(), map()}) -> {ok, map()}.
system_get_state({_, State}) -> {ok, State}.

-spec system_replace_state(fun((map()) -> map()), {pid(), map()}) -> {ok, map(), {pid(), map()}}.
system_replace_state(Replace, {Parent, State}) ->
    NewState = Replace(State),
    put('$bt_state', NewState),
    {ok, NewState, {Parent, NewState}}.

-spec system_code_change({pid(), map()}, module(), term(), term()) -> {ok, {pid(), map()}}.
system_code_change(Kept, _, _, _) -> {ok, Kept}.

%%% Handling messages

-spec handle_call(term(), gen_server:from(), map()) -> tuple().
handle_call({Sel, Args, Chain}, From, State) when is_atom(Sel), is_list(Args), is_list(Chain) ->
    put('$bt_chain', [From | Chain]),
    answer(Sel, Args, State);
handle_call({Sel, Args, Context}, _From, State) when is_atom(Sel), is_list(Args), is_map(Context) ->
    enter(Context),
    answer(Sel, Args, State);
%% From an actor or session of this node (beamtalk_actor), which also says when.
handle_call({Sel, Args, Context, _Asked}, From, State) ->
    handle_call({Sel, Args, Context}, From, State);
handle_call({Sel, Args}, _From, State) when is_atom(Sel), is_list(Args) ->
    answer(Sel, Args, State);
handle_call(Other, _From, State) ->
    {reply, {error, {unknown_request, Other}}, State}.

-spec handle_cast(term(), map()) -> tuple().
handle_cast({cast, Sel, Args, _Context}, State) when is_atom(Sel), is_list(Args) ->
    perform_logged(Sel, Args, State);
handle_cast({cast, Sel, Args}, State) when is_atom(Sel), is_list(Args) ->
    perform_logged(Sel, Args, State);
%% As with calls, from whoever speaks Erlang.
handle_cast({Sel, Args}, State) when is_atom(Sel), is_list(Args) ->
    perform_logged(Sel, Args, State);
handle_cast({'$bt_migrate', From, Reference}, #{'$beamtalk_class' := Class} = State) ->
    {Outcome, NewState} = beamtalk_actor_protocol:migrate_now(beamtalk_dispatch:table(Class), State),
    put('$bt_state', NewState),
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
handle_info({'EXIT', From, Reason} = Message, State) when is_pid(From); is_port(From) ->
    case get('$bt_auto_trap') of
        true when Reason =:= normal -> {noreply, State};
        true -> {stop, Reason, State};
        undefined -> handle_raw(Message, State)
    end;
handle_info(Message, State) ->
    handle_raw(Message, State).

%% Only a Server sees what is not a Beamtalk message.
handle_raw(Message, #{'$beamtalk_class' := Class} = State) ->
    case beamtalk_former:tables(Class, persistent_term:get(Class, [])) of
        {_, #{'handleInfo:' := _}} -> perform_logged('handleInfo:', [Message], State);
        _ -> {noreply, State}
    end.

answer(Sel, Args, State) ->
    case run(Sel, Args, State) of
        [Value | NewState] -> finish({reply, {ok, Value}, NewState});
        Failed -> refused(Failed, Sel)
    end.

refused({failed, exit, Reason, _, State}, _) -> {stop, Reason, State};
refused({failed, Kind, Reason, Stack, State}, Sel) ->
    finish({reply, {error, beamtalk_error:from_caught(Kind, Reason, Stack, Sel)}, State}).

perform_logged(Sel, Args, State) ->
    case run(Sel, Args, State) of
        [_ | NewState] -> finish({noreply, NewState});
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

%% One message: its value and the new state on success; what failed and the old state otherwise. A pair, as each word that
%% is made for a message brings the next collection nearer.
run(Sel, Args, #{'$beamtalk_class' := Class} = Before) ->
    Current = persistent_term:get(Class, []),
    Version = get('$bt_version'),
    State = case Current of
        {#{'$info' := #{version := Version}}, _} -> Before;
        _ ->
            Migrated = beamtalk_actor_protocol:migrate(beamtalk_dispatch:table(Class), Before),
            put('$bt_state', Migrated),
            Migrated
    end,
    Tables = case get('$bt_former') of
        undefined -> Current;
        _ -> beamtalk_former:tables(Class, Current)
    end,
    Self = get('$bt_self'),
    try perform(Tables, Self, Sel, Args) of
        Value ->
            After = get('$bt_state'),
            get('$bt_observed') =:= undefined orelse beamtalk_bridge_events:state_changed(self(), State, After),
            case get('$bt_cells') of
                undefined ->
                    leave(),
                    beamtalk_announcer:state_changed(Class, State, After),
                    [Value | After];
                _ ->
                    Answer = beamtalk_cell:freeze(Value),
                    Kept = beamtalk_cell:end_message(State, After),
                    put('$bt_state', Kept),
                    leave(),
                    beamtalk_announcer:state_changed(Class, State, Kept),
                    [Answer | Kept]
            end
    catch Kind:Reason:Stack ->
        Frozen = beamtalk_cell:freeze(Reason),
        beamtalk_cell:end_message(#{}, #{}),
        put('$bt_state', State),
        leave(),
        {failed, Kind, Frozen, Stack, State}
    end.

perform(Tables, Self, Sel, Args) ->
    case Tables of
        {#{Sel := F}, _} when is_function(F, length(Args) + 1) ->
            case Args of
                [] -> F(Self);
                [A] -> F(Self, A);
                _ -> apply(F, [Self | Args])
            end;
        _ -> beamtalk_dispatch:call_local(element(2, Self), Self, Sel, Args)
    end.

enter(Chain) when is_list(Chain) -> put('$bt_chain', Chain);
enter(Context) ->
    case Context of
        #{chain := Chain} -> put('$bt_chain', Chain);
        _ -> ok
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
    get('$bt_locks') =:= undefined orelse erase('$bt_locks'),
    get('$bt_trace_context') =:= undefined orelse erase('$bt_trace_context'),
    beamtalk_tracing:flush().

%% A message nobody waits for has failed.
-spec log_failure(atom(), atom(), error | exit | throw, term(), list()) -> ok.
log_failure(Class, Sel, Kind, Reason, Stack) ->
    Exception = beamtalk_error:from_caught(Kind, Reason, Stack, Sel),
    Frames = [beamtalk_display:print(F) || F <- beamtalk_stack:frames(Stack)],
    logger:warning("~ts>>~ts failed: ~ts~n~ts",
                   [Class, Sel, beamtalk_display:exception(Exception), lists:join("\n", Frames)],
                   #{domain => [beamtalk]}).

%% Orderly end. A failing `terminate:' is logged and changes nothing.
-spec terminate(term(), map()) -> ok.
terminate(Reason, #{'$beamtalk_class' := Class}) ->
    case beamtalk_actor_protocol:has_terminate(Class) of
        true ->
            try beamtalk_dispatch:call_local(Class, get('$bt_self'), 'terminate:', [Reason])
            catch Kind:Error:Stack -> log_failure(Class, 'terminate:', Kind, Error, Stack)
            end;
        false -> ok
    end,
    beamtalk_announcer:actor_ends(Reason),
    case erase('$bt_last_reply') of
        {From, Reply} -> gen_server:reply(From, Reply);
        undefined -> ok
    end.
