%% The keeper of a session: it owns the evaluator, the copy of the variables that outlives it, and the
%% output of the running evaluation, whose group leader it is.
%%
%% The evaluator may be killed at any moment (heap, time, interrupt); the next one starts with the
%% variables as the last evaluation that ended by itself left them.
-module(beamtalk_session_keeper).

-export([start_link/3, init/4]).
-export([request/4, credit/2, start/3, replace/1]).
-export([all/0, evaluator/1, describe/1, variables/1, variable/2, own_variable/2, pend/3, is_visible/1, write/2]).

-record(state, {id :: binary(),
                kind :: binary(),
                table :: ets:tid(),
                evaluator :: {pid(), reference()} | none,
                %% The running evaluation, and why its evaluator was killed.
                running = none :: none | beamtalk_bridge:id(),
                killed = none :: none | {interrupted, iodata()} | {time, pos_integer()} | {exceeded, map()},
                heap = 0 :: non_neg_integer(),
                timer = none :: none | reference(),
                output = beamtalk_session_output:idle() :: beamtalk_session_output:state()}).

-define(SESSIONS, beamtalk_sessions).
%% Which evaluations run: request, keeper, evaluator, limit of memory in bytes (0: none).
-define(RUNNING, beamtalk_running).
%% The row of the variables' table that names the evaluator.
-define(EVALUATOR, {keeper, evaluator}).

%%% Called by the bridge's process: nothing here waits.

%% Hand a request about a session to its keeper.
-spec request(binary(), beamtalk_bridge:id(), binary() | nil, map()) -> ok | not_mine.
request(Op, Id, Session, Args)
  when Op =:= <<"eval">>; Op =:= <<"stdin">>; Op =:= <<"interrupt">>; Op =:= <<"clear">>;
       Op =:= <<"clone">>; Op =:= <<"bindings">>; Op =:= <<"session-close">>; Op =:= <<"variables">>;
       Op =:= <<"unbind">> ->
    case find(Session) of
        {ok, Keeper} ->
            ets:insert(beamtalk_requests, {Id, Keeper}),
            Keeper ! {request, Op, Id, Args},
            ok;
        none ->
            Error = beamtalk_bridge_error:new(<<"session_not_found">>, ["no session '", text(Session), "'"]),
            beamtalk_bridge_writer:send({err, Id, Error})
    end;
request(_, _, _, _) -> not_mine.

text(Session) when is_binary(Session) -> Session;
text(_) -> <<>>.

%% The daemon has taken that much output of an evaluation.
-spec credit(beamtalk_bridge:id(), non_neg_integer()) -> ok.
credit(Id, Bytes) ->
    [Keeper ! {credit, Id, Bytes} || {_, Keeper, _, _} <- ets:lookup(?RUNNING, Id)],
    ok.

%% The keeper does not answer: another takes its place, with the variables as the last evaluation left them.
-spec replace(binary()) -> ok.
replace(Session) ->
    [exit(Keeper, kill) || {ok, Keeper} <- [find(Session)]],
    ok.

find(Session) ->
    case ets:lookup(?SESSIONS, Session) of
        [{_, Keeper, _, _}] -> {ok, Keeper};
        [] -> none
    end.

%% Start a session unless it lives already.
-spec start(binary(), binary(), map()) -> pid().
start(Session, Kind, Info) ->
    case find(Session) of
        {ok, Keeper} -> Keeper;
        none ->
            {ok, Keeper} = beamtalk_sup:start_session(Session, Kind, Info),
            Keeper
    end.

-spec start_link(binary(), binary(), map()) -> {ok, pid()}.
start_link(Session, Kind, Info) -> proc_lib:start_link(?MODULE, init, [self(), Session, Kind, Info]).

-spec all() -> [binary()].
all() -> lists:sort([Session || [Session] <- ets:match(?SESSIONS, {'$1', '_', '_', '_'})]).

%% The process that has the values of a session.
-spec evaluator(binary() | nil) -> pid() | none.
evaluator(Session) ->
    Found = try [Pid || {_, _, Table, _} <- ets:lookup(?SESSIONS, Session), {_, Pid} <- ets:lookup(Table, ?EVALUATOR)]
            catch error:badarg -> []
            end,
    case Found of
        [Pid] -> Pid;
        [] -> none
    end.

-spec describe(binary()) -> {ok, Kind :: binary(), Info :: map()} | none.
describe(Session) ->
    case beamtalk_workspace:is_live() andalso ets:lookup(?SESSIONS, Session) of
        [{_, _, _, {Kind, Info}}] -> {ok, Kind, Info};
        _ -> none
    end.

%% The variables of a session, read from outside: as its last evaluation left them.
-spec variables(binary()) -> {ok, [{atom(), term()}]} | none.
variables(Session) ->
    case ets:lookup(?SESSIONS, Session) of
        [{_, _, Table, _}] ->
            try {ok, contents(Table)} catch error:badarg -> none end;
        [] -> none
    end.

contents(Table) -> lists:sort([Variable || {Name, _} = Variable <- ets:tab2list(Table), is_atom(Name)]).

%% One variable of a session, or one that all sessions see.
-spec variable(binary() | nil, atom()) -> {ok, term()} | none.
variable(Session, Name) ->
    case own_variable(Session, Name) of
        {ok, Value} -> {ok, Value};
        none -> beamtalk_workspace:global(Name)
    end.

-spec own_variable(binary() | nil, atom()) -> {ok, term()} | none.
own_variable(Session, Name) ->
    Found = try [Row || {_, _, Table, _} <- ets:lookup(?SESSIONS, Session), Row <- ets:lookup(Table, Name)]
            catch error:badarg -> []
            end,
    case Found of
        [{_, Value}] -> {ok, Value};
        [] -> none
    end.

%% A change of a variable that waits for the end of the evaluation.
-spec pend(binary(), atom(), term()) -> ok.
pend(Session, Name, Change) ->
    [{_, _, Table, _}] = ets:lookup(?SESSIONS, Session),
    ets:insert(Table, {{pending, Name}, Change}),
    ok.

%% Output of the running evaluation, by a process that works for it. Answers the evaluation's request, or
%% nil when none runs.
-spec write(pid(), binary()) -> beamtalk_bridge:id() | nil.
write(Keeper, Text) ->
    Monitor = monitor(process, Keeper),
    Keeper ! {running, self(), Monitor},
    Running = receive
        {Monitor, Answer} -> Answer;
        {'DOWN', Monitor, process, _, _} -> nil
    end,
    demonitor(Monitor, [flush]),
    Running =:= nil orelse io:put_chars(Keeper, Text),
    Running.

names(Table) ->
    lists:sort([Name || [Name] <- ets:match(Table, {'$1', '_'}), is_visible(Name)]).

%% `_' and `_error' are the session's own.
-spec is_visible(term()) -> boolean().
is_visible('_') -> false;
is_visible('_error') -> false;
is_visible(Name) -> is_atom(Name).

%%% The keeper's process

-spec init(pid(), binary(), binary(), map()) -> no_return().
init(Parent, Session, Kind, Info) ->
    process_flag(trap_exit, true),
    process_flag(priority, high),
    beamtalk_workspace:adopt(self()),
    Table = case ets:lookup(?SESSIONS, Session) of
        [{_, Former, Left, _}] -> inherit(Former, Left);
        [] -> ets:new(beamtalk_variables, [set, public, {heir, whereis(beamtalk_sup), Session}])
    end,
    ets:insert(?SESSIONS, {Session, self(), Table, {Kind, info(Info)}}),
    proc_lib:init_ack(Parent, {ok, self()}),
    loop(#state{id = Session, kind = Kind, table = Table, evaluator = none}).

%% What a keeper that was killed leaves: the variables, and perhaps an evaluation nobody will hear of.
inherit(Former, Table) ->
    beamtalk_workspace:leave(Former),
    ets:match_delete(?RUNNING, {'_', Former, '_', '_'}),
    [exit(Evaluator, kill) || {_, Evaluator} <- ets:take(Table, ?EVALUATOR)],
    Table.

%% What the daemon knows about the client.
info(Info) ->
    maps:from_list([{Name, Value} || {Key, Name} <- [{<<"peer">>, peer}, {<<"node">>, node}, {<<"user">>, user},
                                                     {<<"connected_at">>, connected_at}],
                                     Value <- [maps:get(Key, Info, nil)], Value =/= nil]).

loop(State) ->
    receive
        {request, Op, Id, Args} ->
            perform(Op, Id, Args, State);
        {io_request, From, ReplyAs, Request} ->
            loop(output(io_request, {From, ReplyAs, Request}, State));
        {evaluated, Id, Frame} when Id =:= State#state.running ->
            loop(finished(Frame, State));
        {flush, Id} when Id =:= State#state.running ->
            loop(output(flush, none, State));
        {input_timeout, Id, Number} when Id =:= State#state.running ->
            loop(output(input_timeout, Number, State));
        {credit, Id, Bytes} when Id =:= State#state.running ->
            loop(output(credit, Bytes, State));
        {time_limit, Id, Limit} when Id =:= State#state.running ->
            loop(kill({time, Limit}, State));
        {exceeded, Id, Error} when Id =:= State#state.running ->
            loop(kill({exceeded, Error}, State));
        {'DOWN', Monitor, process, _, Reason} ->
            loop(evaluator_down(Monitor, Reason, State));
        {running, From, Tag} ->
            From ! {Tag, case State#state.running of none -> nil; Id -> Id end},
            loop(State);
        _ ->
            loop(State)
    end.

perform(<<"eval">>, Id, Args, #state{running = none} = State) ->
    loop(evaluate(Id, Args, State));
perform(<<"eval">>, Id, _, State) ->
    beamtalk_bridge:refuse(Id, beamtalk_bridge_error:new(<<"busy">>, "an evaluation is running in this session")),
    loop(State);
perform(<<"interrupt">>, Id, Args, #state{running = Running} = State) ->
    case Running =/= none andalso maps:get(<<"for">>, Args, Running) =:= Running of
        true ->
            %% The answer comes last: an evaluation may suspend its keeper at any moment, and one that does not answer
            %% is replaced.
            Killed = kill({interrupted, doing(State)}, State),
            beamtalk_bridge:respond(Id, #{<<"value">> => true}),
            loop(Killed);
        false ->
            beamtalk_bridge:respond(Id, #{<<"value">> => false}),
            loop(State)
    end;
perform(<<"stdin">>, Id, Args, #state{output = Output} = State) ->
    Input = case Args of
        #{<<"value">> := Text} when is_binary(Text) -> Text;
        _ -> eof
    end,
    case beamtalk_session_output:input(Input, Output) of
        {ok, NewOutput} ->
            beamtalk_bridge:respond(Id, #{}),
            loop(State#state{output = NewOutput});
        none ->
            beamtalk_bridge:refuse(Id, beamtalk_bridge_error:new(<<"no_input_pending">>, "nothing waits for input")),
            loop(State)
    end;
perform(<<"clear">>, Id, _, #state{running = none, table = Table} = State) ->
    ets:delete_all_objects(Table),
    NewState = drop_evaluator(State),
    bindings_changed(State),
    beamtalk_bridge:respond(Id, #{<<"names">> => []}),
    loop(NewState);
perform(<<"clear">>, Id, _, State) ->
    beamtalk_bridge:refuse(Id, beamtalk_bridge_error:new(<<"busy">>, "an evaluation is running in this session")),
    loop(State);
perform(<<"unbind">>, Id, #{<<"scope">> := <<"workspace">>, <<"name">> := Name}, State) ->
    Done = case beamtalk_image_ops_fields:existing(Name) of
        {ok, Known} -> beamtalk_workspace:unbind(Known);
        none -> none
    end,
    case Done of
        none -> beamtalk_bridge:refuse(Id, unbound("the workspace", Name));
        _ -> beamtalk_bridge:respond(Id, #{})
    end,
    loop(State);
perform(<<"unbind">>, Id, #{<<"name">> := Name}, #state{running = none, table = Table, evaluator = Evaluator} = State) ->
    Known = case beamtalk_image_ops_fields:existing(Name) of
        {ok, Variable} -> [Variable || is_visible(Variable), ets:member(Table, Variable)];
        none -> []
    end,
    case Known of
        [One] ->
            ets:delete(Table, One),
            [Pid ! {forget, One} || {Pid, _} <- [Evaluator]],
            bindings_changed(State),
            beamtalk_bridge:respond(Id, #{<<"names">> => [atom_to_binary(Left) || Left <- names(Table)]});
        [] -> beamtalk_bridge:refuse(Id, unbound("the session", Name))
    end,
    loop(State);
perform(<<"unbind">>, Id, _, State) ->
    beamtalk_bridge:refuse(Id, beamtalk_bridge_error:new(<<"busy">>, "an evaluation is running in this session")),
    loop(State);
perform(<<"bindings">>, Id, Args, #state{table = Table} = State) ->
    Names = names(Table),
    beamtalk_bridge_request:aside(Id, fun() -> {ok, beamtalk_session_view:bindings(Table, Names, Args)} end),
    loop(State);
perform(<<"variables">>, Id, _, #state{table = Table} = State) ->
    beamtalk_bridge:respond(Id, #{<<"names">> => [atom_to_binary(Name) || Name <- names(Table)]}),
    loop(State);
perform(<<"clone">>, Id, #{<<"session">> := New} = Args, #state{table = Table, kind = Kind} = State) ->
    _ = start(New, maps:get(<<"kind">>, Args, Kind), Args),
    [{_, _, Copy, _}] = ets:lookup(?SESSIONS, New),
    ets:insert(Copy, contents(Table)),
    beamtalk_bridge:respond(Id, #{<<"session">> => New,
                                  <<"names">> => [atom_to_binary(Name) || Name <- names(Table)]}),
    loop(State);
perform(<<"session-close">>, Id, _, #state{id = Session} = State) ->
    Ended = case State#state.running of
        none -> drop_evaluator(State);
        _ -> drop_evaluator(kill({interrupted, ""}, State))
    end,
    ets:delete(?SESSIONS, Session),
    ets:delete(State#state.table),
    beamtalk_workspace:leave(self()),
    is_integer(Ended#state.running) andalso refuse_running(Ended),
    beamtalk_bridge:respond(Id, #{}),
    ok;
perform(Op, Id, _, State) ->
    beamtalk_bridge:refuse(Id, beamtalk_bridge_error:new(<<"missing_parameter">>, ["'", Op, "' lacks a parameter"])),
    loop(State).

refuse_running(#state{running = Id}) ->
    ets:delete(?RUNNING, Id),
    beamtalk_bridge:refuse(Id, interrupted("")).

%%% Evaluation

evaluate(Id, Args, State) ->
    case with_evaluator(State) of
        none ->
            beamtalk_bridge:refuse(Id, beamtalk_guard:no_process()),
            State;
        {Evaluator, Ready} -> evaluate(Id, Args, Evaluator, Ready)
    end.

evaluate(Id, Args, {Pid, _}, Ready) ->
    Words = maps:get(<<"heap_words">>, Args, 0),
    ets:insert(?RUNNING, {Id, self(), Pid, Words * erlang:system_info(wordsize)}),
    beamtalk_guard_processes:wake(),
    Timer = case Args of
        #{<<"time_ms">> := Limit} when is_integer(Limit), Limit > 0 ->
            erlang:send_after(Limit, self(), {time_limit, Id, Limit});
        _ -> none
    end,
    Pid ! {evaluate, Id, Args},
    Ready#state{running = Id, killed = none, timer = Timer, heap = Words,
                output = beamtalk_session_output:start(Id, Args)}.

with_evaluator(#state{evaluator = none, id = Session, table = Table} = State) ->
    Keeper = self(),
    try spawn_opt(fun() -> beamtalk_session_evaluator:init(Keeper, Session, Table) end,
                  [monitor, {fullsweep_after, 20}]) of
        {Pid, _} = Evaluator ->
            ets:insert(Table, {?EVALUATOR, Pid}),
            {Evaluator, State#state{evaluator = Evaluator}}
    catch error:system_limit -> none
    end;
with_evaluator(#state{evaluator = Evaluator} = State) ->
    {Evaluator, State}.

%% The evaluation has ended; its answer goes out behind its output.
finished(Frame, #state{output = Output, timer = Timer} = State) ->
    is_reference(Timer) andalso erlang:cancel_timer(Timer),
    settled(State#state{timer = none, output = beamtalk_session_output:finish(Frame, Output)}).

output(Event, Argument, #state{output = Output} = State) ->
    settled(State#state{output = beamtalk_session_output:Event(Argument, Output)}).

settled(#state{running = Id, output = Output} = State) when Id =/= none ->
    case beamtalk_session_output:is_done(Output) of
        false -> State;
        true ->
            ets:delete(?RUNNING, Id),
            State#state{running = none, killed = none, output = beamtalk_session_output:idle()}
    end;
settled(State) -> State.

%% Stop the running evaluation. One that has ended already only waits for its output to be taken.
kill(Why, #state{evaluator = Evaluator, output = Output} = State) ->
    beamtalk_session_output:is_finished(Output) orelse exit(element(1, Evaluator), kill),
    settled(State#state{killed = Why, output = beamtalk_session_output:discard(Output)}).

drop_evaluator(#state{evaluator = none} = State) -> State;
drop_evaluator(#state{evaluator = {Pid, Monitor}} = State) ->
    demonitor(Monitor, [flush]),
    exit(Pid, kill),
    State#state{evaluator = none}.

evaluator_down(Monitor, Reason, #state{evaluator = {Pid, Monitor}, running = Running} = State) ->
    Gone = State#state{evaluator = none},
    case Running =:= none orelse beamtalk_session_output:is_finished(State#state.output) of
        true -> Gone;
        false -> finished({err, Running, fault(Reason, Pid, State)}, Gone)
    end;
evaluator_down(_, _, State) -> State.

fault(_, _, #state{killed = {interrupted, Doing}}) -> interrupted(Doing);
fault(_, _, #state{killed = {exceeded, Error}}) -> Error;
fault(_, _, #state{killed = {time, Limit}}) ->
    beamtalk_bridge_error:new(<<"eval_limit">>, ["evaluation stopped: time limit of ", seconds(Limit), " reached"],
                              <<"raise it with --eval-timeout">>, #{<<"limit">> => <<"time">>});
fault(killed, Pid, #state{heap = Words}) ->
    case beamtalk_guard:outgrew_heap(Pid) of
        true -> beamtalk_guard:heap_error(Words);
        false -> failed_exit(killed)
    end;
fault(Reason, _, _) -> failed_exit(Reason).

failed_exit(Reason) ->
    beamtalk_bridge_error:of_exception(beamtalk_error:from_caught(exit, Reason, [])).

seconds(Limit) when Limit rem 1000 =:= 0 -> [integer_to_binary(Limit div 1000), " s"];
seconds(Limit) -> [integer_to_binary(Limit), " ms"].

interrupted(Doing) ->
    beamtalk_bridge_error:new(<<"interrupted">>, ["the evaluation was interrupted", Doing]).

%% What the evaluation is busy with: nothing to tell unless it waits for an actor.
doing(#state{evaluator = {Pid, _}}) -> beamtalk_waiting:describe(Pid);
doing(_) -> "".

unbound(Where, Name) ->
    beamtalk_bridge_error:new(<<"undefined_variable">>, [Where, " has no variable '", Name, "'"]).

bindings_changed(#state{id = Session}) ->
    beamtalk_workspace:bindings_changed(Session).
