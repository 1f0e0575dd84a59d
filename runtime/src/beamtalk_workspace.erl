%% The live workspace: its process is the group leader of everything that runs outside an evaluation.
-module(beamtalk_workspace).

-export([start_link/0, init/1, stop/0, is_live/0, require/2]).
-export([adopt/1, leave/1, current_session/0, keeper_of_caller/0, belongs_to_evaluation/0]).
-export([write/1, bindings_changed/1, capability_refused/3, configure/1, watched/1]).
-export([global/1, global_names/0, bind/2, check_free/3, unbind/1]).
-export([supervisors/0, start_supervisor/1, stop_supervisor/1]).

-define(KEEPERS, beamtalk_keepers).
-define(GLOBALS, beamtalk_globals).
-define(SUPERVISORS, beamtalk_attached_supervisors).

%% Make this node a workspace.
-spec start_link() -> {ok, pid()}.
start_link() -> proc_lib:start_link(?MODULE, init, [self()]).

-spec is_live() -> boolean().
is_live() -> persistent_term:get(?MODULE, none) =/= none.

%% What the workspace itself keeps is not there in a program, a test run or a release.
-spec require(atom(), atom()) -> ok.
require(Class, Selector) ->
    is_live() orelse
        beamtalk_error:raise(no_workspace, Class, Selector,
                             <<"'", (atom_to_binary(Selector))/binary, "' needs a workspace, and there is none here">>,
                             <<"Run it in one: beamtalk repl, beamtalk eval, or beamtalk run --connect">>, #{}),
    ok.

%% Stop what is supervised, the latest first.
-spec stop() -> ok.
stop() ->
    [beamtalk_supervisor:stop(Supervisor) || Supervisor <- lists:reverse(supervisors())],
    ok.

-spec init(pid()) -> no_return().
init(Parent) ->
    process_flag(priority, high),
    register(?MODULE, self()),
    case persistent_term:get(?MODULE, none) of
        none ->
            persistent_term:put({beamtalk_capability, refused}, fun ?MODULE:capability_refused/3),
            beamtalk_compiler_port:attach(fun beamtalk_bridge_compiler:handle/1);
        Former -> lead_those_of(Former)
    end,
    persistent_term:put(?MODULE, self()),
    proc_lib:init_ack(Parent, {ok, self()}),
    loop().

%% Processes that wrote where another one said write here from now on.
lead_those_of(Former) ->
    Self = self(),
    [group_leader(Self, Pid) || Pid <- processes(), {group_leader, Leader} <- [process_info(Pid, group_leader)],
                                Leader =:= Former],
    ok.

loop() ->
    receive
        {io_request, From, ReplyAs, Request} ->
            From ! {io_reply, ReplyAs, outside(beamtalk_io:decode(Request))},
            loop();
        {'$gen_call', From, ping} ->
            gen_server:reply(From, pong),
            loop();
        _ ->
            loop()
    end.

%% Output of actors belongs to the Transcript and to the log.
outside({write, Text}) ->
    beamtalk_transcript_stream:append(Text, nil),
    user ! {io_request, self(), make_ref(), {put_chars, unicode, Text}},
    ok;
outside({read, _, _}) -> eof;
outside({reply, Reply}) -> Reply.

%%% Who runs the calling process

-spec adopt(pid()) -> ok.
adopt(Keeper) ->
    ets:insert(?KEEPERS, {Keeper, true}),
    ok.

%% A session has ended; processes it started live on.
-spec leave(pid()) -> ok.
leave(Keeper) ->
    ets:delete(?KEEPERS, Keeper),
    Workspace = persistent_term:get(?MODULE),
    [group_leader(Workspace, Pid) || Pid <- processes(), {group_leader, Leader} <- [process_info(Pid, group_leader)],
                                     Leader =:= Keeper],
    ok.

%% The keeper of the session whose evaluation the caller works for: directly, through messages to actors
%% that wait for each other, or as a process that an evaluation started.
-spec keeper_of_caller() -> pid() | none.
keeper_of_caller() ->
    case get('$bt_chain') of
        [_ | _] = Chain ->
            case lists:last(Chain) of
                {Keeper, output} -> Keeper;
                _ -> keeper_by_leader()
            end;
        _ -> keeper_by_leader()
    end.

keeper_by_leader() ->
    case is_live() andalso ets:member(?KEEPERS, group_leader()) of
        true -> group_leader();
        false -> none
    end.

%% Called by a starting actor: it outlives the evaluation that makes it.
-spec belongs_to_evaluation() -> ok.
belongs_to_evaluation() ->
    case keeper_by_leader() of
        none -> ok;
        _ ->
            group_leader(persistent_term:get(?MODULE), self()),
            ok
    end.

-spec current_session() -> binary() | none.
current_session() ->
    case get('$bt_session') of
        Session when is_binary(Session) -> Session;
        _ ->
            case keeper_of_caller() of
                none -> none;
                Keeper ->
                    case ets:match(beamtalk_sessions, {'$1', Keeper, '_', '_'}) of
                        [[Session]] -> Session;
                        [] -> none
                    end
            end
    end.

%% Text of the Transcript, as output of the evaluation the caller works for; answers its request, or nil.
%% The writer waits until the client has taken enough.
-spec write(binary()) -> integer() | nil.
write(Text) ->
    case keeper_of_caller() of
        none -> nil;
        Keeper -> beamtalk_session_keeper:write(Keeper, Text)
    end.

%%% Events

-spec bindings_changed(binary()) -> ok.
bindings_changed(Session) ->
    beamtalk_bridge:event(<<"bindings">>, <<"changed">>, #{<<"session">> => Session}).

%% The daemon audits what a capability that is switched off refused.
-spec capability_refused(atom(), atom(), atom()) -> ok.
capability_refused(Capability, Class, Selector) ->
    Detail = <<(atom_to_binary(Class))/binary, ">>", (atom_to_binary(Selector))/binary>>,
    beamtalk_bridge:event(<<"workspace">>, <<"capability_disabled">>,
                          #{<<"what">> => atom_to_binary(Capability), <<"detail">> => Detail}).

%% Settings of this start: the level of the log, the length of the transcript.
-spec configure(map()) -> ok.
configure(Settings) ->
    case Settings of
        #{<<"log_level">> := Level} ->
            [beamtalk_log:set_level(Known) || Known <- beamtalk_log:levels(), atom_to_binary(Known) =:= Level];
        _ -> ok
    end,
    case Settings of
        #{<<"transcript">> := Limit} when is_integer(Limit), Limit > 0 -> beamtalk_transcript_stream:limit(Limit);
        _ -> ok
    end,
    case Settings of
        #{<<"compiler_timeout">> := Seconds} when is_integer(Seconds), Seconds > 0 ->
            beamtalk_limited:set_time(Seconds * 1000);
        _ -> ok
    end,
    beamtalk_guard:configure(Settings).

%% The daemon watches other channels than before, and these actors.
-spec watched([binary()]) -> ok.
watched(Actors) ->
    beamtalk_log:watch(beamtalk_bridge:is_watched(<<"logs">>)),
    beamtalk_bridge_events:watch_supervision(beamtalk_bridge:is_watched(<<"supervision">>)),
    beamtalk_bridge:is_watched(<<"actors">>) andalso beamtalk_announcer:watch_actors(),
    Before = persistent_term:get('$bt_observed', []),
    persistent_term:put('$bt_observed', Actors),
    [observe(Actor, true) || Actor <- Actors -- Before],
    [observe(Actor, false) || Actor <- Before -- Actors],
    ok.

observe(Actor, IsOn) ->
    Text = "<" ++ string:trim(binary_to_list(Actor), both, "<>") ++ ">",
    try gen_server:cast(list_to_pid(Text), {'$bt_observe', IsOn})
    catch error:badarg -> ok
    end.

%%% Names every session sees

-spec global(atom()) -> {ok, term()} | none.
global(Name) ->
    case is_live() of
        false -> singleton(Name);
        true ->
            case singleton(Name) of
                none ->
                    case ets:lookup(?GLOBALS, Name) of
                        [{_, Value}] -> {ok, Value};
                        [] -> none
                    end;
                Found -> Found
            end
    end.

%% These are there without a workspace too.
singleton('Transcript') ->
    case {beamtalk_transcript_stream:'class current'(nil), is_live()} of
        {nil, false} -> {ok, beamtalk_transcript_stream:of_console()};
        {Transcript, _} -> {ok, Transcript}
    end;
singleton('Workspace') -> {ok, #{'$beamtalk_class' => 'WorkspaceInterface'}};
singleton('Beamtalk') ->
    case beamtalk_beamtalk_interface:'class current'(nil) of
        nil -> {ok, #{'$beamtalk_class' => 'BeamtalkInterface'}};
        Interface -> {ok, Interface}
    end;
singleton(_) -> none.

-spec global_names() -> [atom()].
global_names() ->
    lists:usort(['Transcript', 'Workspace', 'Beamtalk'] ++ bound_names()).

bound_names() ->
    case is_live() of
        true -> [Name || [Name] <- ets:match(?GLOBALS, {'$1', '_'})];
        false -> []
    end.

-spec bind(atom(), term()) -> ok.
bind(Name, Value) ->
    check_free(Name, 'WorkspaceInterface', 'bind:as:'),
    require('WorkspaceInterface', 'bind:as:'),
    Frozen = beamtalk_cell:freeze(Value),
    ets:insert(?GLOBALS, {Name, Frozen}),
    globals_changed(Name, Frozen).

%% Names of classes and of the workspace's own objects stand for what they are.
-spec check_free(atom(), atom(), atom()) -> ok.
check_free(Name, Class, Selector) ->
    case singleton(Name) =/= none orelse beamtalk_class:exists(Name) of
        true ->
            beamtalk_error:raise(name_conflict, Class, Selector,
                                 <<"'", (atom_to_binary(Name))/binary, "' cannot be bound again">>,
                                 <<"Choose another name">>, #{});
        false -> ok
    end.

-spec unbind(atom()) -> ok | none.
unbind(Name) ->
    require('WorkspaceInterface', 'unbind:'),
    case ets:take(?GLOBALS, Name) of
        [_] -> globals_changed(Name, nil);
        [] -> none
    end.

%% The daemon has to know the names, for the compiler.
globals_changed(Name, Value) ->
    Names = [atom_to_binary(Bound) || Bound <- lists:sort(bound_names())],
    beamtalk_bridge:event(<<"workspace">>, <<"globals">>, #{<<"names">> => Names}),
    beamtalk_announcer:system_event('BindingChanged', #{name => Name, value => Value, sessionId => nil}).

%%% Supervisors of the application

%% In the order they were started, those that still run.
-spec supervisors() -> [tuple()].
supervisors() ->
    [Handle || {_, _, {_, _, _, Pid} = Handle} <- ets:tab2list(?SUPERVISORS), is_process_alive(Pid)].

-spec start_supervisor(tuple()) -> {ok, tuple()} | {error, map()}.
start_supervisor({_, _, _, Name} = Class) ->
    case [Handle || {_, Known, Handle} <- ets:tab2list(?SUPERVISORS), Known =:= Name,
                    is_process_alive(element(4, Handle))] of
        [Handle | _] -> {ok, Handle};
        [] ->
            case beamtalk_dispatch:send(Class, supervise) of
                #{isOk := true, okValue := Handle} ->
                    ets:insert(?SUPERVISORS, {erlang:unique_integer([monotonic]), Name, Handle}),
                    {ok, Handle};
                #{errReason := Exception} -> {error, beamtalk_error:wrap_reason(Exception)}
            end
    end.

-spec stop_supervisor(atom()) -> ok | none.
stop_supervisor(Name) ->
    Running = [Row || {_, Known, _} = Row <- ets:tab2list(?SUPERVISORS), Known =:= Name],
    [ets:delete(?SUPERVISORS, Key) || {Key, _, _} <- Running],
    case [Handle || {_, _, Handle} <- Running, is_process_alive(element(4, Handle))] of
        [] -> none;
        Living ->
            [beamtalk_supervisor:stop(Handle) || Handle <- Living],
            ok
    end.
