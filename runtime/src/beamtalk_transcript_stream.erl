%% The process behind TranscriptStream: a ring of the last entries and the
%% processes that want to see them.
%%
%% Methods run in the sender's process, so that `displayString' of a value is asked
%% there; this process only stores and passes on text. A subscriber receives
%% `{transcript, Text}'.
-module(beamtalk_transcript_stream).
-behaviour(gen_server).

-export([start_link/1, start_current/0, append/2, limit/1, of_console/0]).
-export(['class current'/1, 'class current:'/2, 'class resetCurrent'/1]).
-export(['show:'/2, 'showLine:'/2, cr/1, subscribe/1, unsubscribe/1, recent/1, clear/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(LIMIT, '$bt_transcript_limit').
-define(CURRENT, beamtalk_transcript).
-define(CONSOLE, beamtalk_console_transcript).

-record(state, {entries = queue:new() :: queue:queue(binary()),
                size = 0 :: non_neg_integer(),
                subscribers = #{} :: #{pid() => reference()}}).

-spec start_link(map()) -> {ok, pid()} | {error, term()}.
start_link(Config) when map_size(Config) =:= 0 ->
    gen_server:start_link(?MODULE, [], []);
start_link(Config) ->
    [Field | _] = maps:keys(Config),
    Message = iolist_to_binary(["Unknown field '", beamtalk_display:display(Field),
                                "' for TranscriptStream"]),
    {error, beamtalk_error:new(unknown_field, 'TranscriptStream', 'spawnWith:', Message,
                               <<"TranscriptStream declares no fields">>, #{})}.

%% The transcript of a workspace. One that is started again is empty, and the current one from then on.
-spec start_current() -> {ok, pid()}.
start_current() ->
    {ok, Pid} = gen_server:start_link(?MODULE, [], []),
    Class = beamtalk_class:named('TranscriptStream'),
    'class current:'(Class, beamtalk_actor:reference('TranscriptStream', Pid)),
    {ok, Pid}.

%% `Transcript' without a workspace: what is written goes to the writer's standard output.
-spec of_console() -> tuple().
of_console() ->
    Pid = case whereis(?CONSOLE) of
        undefined ->
            case gen_server:start({local, ?CONSOLE}, ?MODULE, [], []) of
                {ok, Started} -> Started;
                {error, {already_started, Running}} -> Running
            end;
        Running -> Running
    end,
    beamtalk_actor:reference('TranscriptStream', Pid).

%% Text that no message to the transcript brought; For is the request it belongs to, or nil.
-spec append(binary(), integer() | nil) -> ok.
append(Text, For) ->
    case persistent_term:get(?CURRENT, nil) of
        {beamtalk_object, _, _, Target} -> gen_server:cast(beamtalk_actor:resolve(Target), {write, Text, For});
        _ -> ok
    end.

%% How many entries are kept from now on.
-spec limit(pos_integer()) -> ok.
limit(Entries) -> persistent_term:put(?LIMIT, Entries).

%%% Class side

-spec 'class current'(term()) -> term().
'class current'(_Class) ->
    persistent_term:get(?CURRENT, nil).

-spec 'class current:'(term(), term()) -> term().
'class current:'(_Class, Transcript) ->
    persistent_term:put(?CURRENT, Transcript),
    Transcript.

-spec 'class resetCurrent'(term()) -> nil.
'class resetCurrent'(_Class) ->
    persistent_term:erase(?CURRENT),
    nil.

%%% Instance side

-spec 'show:'(tuple(), term()) -> tuple().
'show:'(Self, Value) ->
    write(Self, 'show:', beamtalk_display:display(Value)).

-spec 'showLine:'(tuple(), term()) -> tuple().
'showLine:'(Self, Value) ->
    Text = beamtalk_display:display(Value),
    write(Self, 'showLine:', <<Text/binary, "\n">>).

-spec cr(tuple()) -> tuple().
cr(Self) ->
    write(Self, cr, <<"\n">>).

%% What an evaluation writes to the workspace's transcript is also output of that evaluation. The console's is written
%% here, where a test's output is caught.
write({_, _, _, Target} = Self, Selector, Text) ->
    For = case Self =:= persistent_term:get(?CURRENT, nil) of
        true -> beamtalk_workspace:write(Text);
        false ->
            Target =:= whereis(?CONSOLE) andalso beamtalk_console:print(nil, Text),
            nil
    end,
    call(Self, Selector, {write, Text, For}).

-spec subscribe(tuple()) -> tuple().
subscribe(Self) ->
    call(Self, subscribe, {subscribe, self()}).

-spec unsubscribe(tuple()) -> tuple().
unsubscribe(Self) ->
    call(Self, unsubscribe, {unsubscribe, self()}).

-spec clear(tuple()) -> tuple().
clear(Self) ->
    call(Self, clear, clear).

-spec recent(tuple()) -> [binary()].
recent(Self) ->
    ask(Self, recent, recent).

call(Self, Selector, Request) ->
    ask(Self, Selector, Request),
    Self.

ask({beamtalk_object, Class, _, Target}, Selector, Request) ->
    try
        gen_server:call(beamtalk_actor:resolve(Target), Request, 5000)
    catch
        exit:{timeout, _} -> beamtalk_error:raise(timeout, Class, Selector);
        exit:_ -> beamtalk_error:raise(actor_dead, Class, Selector)
    end.

%%% Callbacks

-spec init([]) -> {ok, #state{}}.
init([]) ->
    {ok, #state{}}.

-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, term(), #state{}}.
handle_call({write, Text, For}, {Writer, _}, State) ->
    {reply, ok, written(Text, For, Writer, State)};
handle_call(recent, _From, #state{entries = Entries} = State) ->
    {reply, queue:to_list(Entries), State};
handle_call(clear, _From, State) ->
    {reply, ok, State#state{entries = queue:new(), size = 0}};
handle_call({subscribe, Pid}, _From, #state{subscribers = Subscribers} = State) ->
    case Subscribers of
        #{Pid := _} ->
            {reply, ok, State};
        _ ->
            {reply, ok, State#state{subscribers = Subscribers#{Pid => monitor(process, Pid)}}}
    end;
handle_call({unsubscribe, Pid}, _From, State) ->
    {reply, ok, drop(Pid, State)};
handle_call({Selector, _, _}, _From, State) ->
    {reply, {error, beamtalk_error:new(does_not_understand, 'TranscriptStream', Selector, undefined, nil, #{})},
     State}.

-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast({write, Text, For}, State) ->
    {noreply, written(Text, For, nil, State)};
handle_cast(_, State) ->
    {noreply, State}.

-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({'DOWN', _, process, Pid, _}, State) ->
    {noreply, drop(Pid, State)};
handle_info(_, State) ->
    {noreply, State}.

written(Text, For, Writer, #state{subscribers = Subscribers} = State) ->
    maps:foreach(fun(Pid, _) -> Pid ! {transcript, Text} end, Subscribers),
    announce(Text, For, Writer),
    add(Text, State).

%% An actor that wrote by itself is named.
announce(Text, For, Writer) ->
    case persistent_term:get(?CURRENT, nil) of
        {beamtalk_object, _, _, Pid} when Pid =:= self() ->
            Told = #{<<"text">> => Text, <<"for">> => For},
            beamtalk_bridge:event(<<"transcript">>, <<"text">>, case is_pid(Writer) andalso For =:= nil of
                true -> Told#{<<"by">> => beamtalk_plain:pid(Writer)};
                false -> Told
            end);
        _ -> ok
    end.

add(Text, #state{entries = Entries, size = Size} = State) ->
    shortened(State#state{entries = queue:in(Text, Entries), size = Size + 1}).

shortened(#state{entries = Entries, size = Size} = State) ->
    case Size > persistent_term:get(?LIMIT, 1000) of
        true -> shortened(State#state{entries = queue:drop(Entries), size = Size - 1});
        false -> State
    end.

drop(Pid, #state{subscribers = Subscribers} = State) ->
    case maps:take(Pid, Subscribers) of
        {Monitor, Left} ->
            demonitor(Monitor, [flush]),
            State#state{subscribers = Left};
        error ->
            State
    end.
