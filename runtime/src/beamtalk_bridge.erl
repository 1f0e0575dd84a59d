%% The node's side of the pipe to the daemon.
%%
%% One process owns a port over descriptors 3 (read) and 4 (written). It only reads and hands on: requests
%% about a session go to the session's keeper in the order they came, every other request gets a
%% process of its own. Any process may write a frame; a full pipe stops the writer and nobody else.
%% The end of the pipe means that the daemon is gone, and ends the node.
-module(beamtalk_bridge).

-export([start_link/0, init/1, stop/0]).
-export([send/1, respond/2, refuse/2, event/3, is_watched/1, ask/2]).

%% Largest frame either side accepts.
-define(FRAME_LIMIT, 16#1000000).
%% How long an orderly stop of the supervisors may take.
-define(STOP_LIMIT, 4000).

-type id() :: integer().
-export_type([id/0]).

-spec start_link() -> {ok, pid()}.
start_link() -> proc_lib:start_link(?MODULE, init, [self()]).

%% Whatever user code does, the daemon is heard: this process goes before theirs.
-spec init(pid()) -> no_return().
init(Parent) ->
    process_flag(trap_exit, true),
    process_flag(priority, high),
    register(?MODULE, self()),
    group_leader(whereis(beamtalk_workspace), self()),
    Port = open_port({fd, 3, 4}, [{packet, 4}, binary, eof]),
    persistent_term:put(?MODULE, Port),
    proc_lib:init_ack(Parent, {ok, self()}),
    event(<<"workspace">>, <<"node_started">>,
          #{<<"otp">> => list_to_binary(erlang:system_info(otp_release))}),
    put(parent, Parent),
    loop(Port, #{}).

%%% Writing

-spec send(term()) -> ok.
send(Term) ->
    answered(Term),
    Frame = term_to_binary(Term, [{minor_version, 2}]),
    write(bounded(Frame, Term)).

%% A request is open until its last frame is on its way.
answered({Tag, Id, _}) when Tag =:= res; Tag =:= err -> ets:delete(beamtalk_requests, Id);
answered(_) -> ok.

%% The daemon reads until its own end, so a port that refuses is on its way down.
write(Frame) ->
    try port_command(persistent_term:get(?MODULE), Frame) of
        true -> ok
    catch error:badarg -> ok
    end.

bounded(Frame, _) when byte_size(Frame) =< ?FRAME_LIMIT -> Frame;
bounded(Frame, Term) ->
    term_to_binary(too_large(Term, byte_size(Frame))).

too_large({Tag, Id, _}, Size) when Tag =:= res; Tag =:= err ->
    {err, Id, #{<<"kind">> => <<"internal_error">>,
                <<"message">> => <<"the answer is larger than a message may be">>,
                <<"details">> => #{<<"bytes">> => Size, <<"limit">> => ?FRAME_LIMIT}}};
too_large(_, Size) ->
    {event, <<"workspace">>, <<"dropped">>, #{<<"bytes">> => Size}}.

-spec respond(id(), map()) -> ok.
respond(Id, Map) -> send({res, Id, Map}).

-spec refuse(id(), map()) -> ok.
refuse(Id, Error) -> send({err, Id, Error}).

%% An event, if the daemon wants to hear of the channel.
-spec event(binary(), binary(), map()) -> ok.
event(Channel, Name, Data) ->
    case is_watched(Channel) of
        true -> send({event, Channel, Name, Data});
        false -> ok
    end.

-spec is_watched(binary()) -> boolean().
is_watched(<<"workspace">>) -> true;
is_watched(Channel) -> is_map_key(Channel, persistent_term:get('$bt_channels', #{})).

%% Ask the daemon to perform an op for the session of the caller.
-spec ask(binary(), map()) -> {ok, map()} | {error, map()}.
ask(Op, Args) ->
    case whereis(?MODULE) of
        undefined -> {error, beamtalk_bridge_error:unattached(Op)};
        Bridge ->
            Monitor = monitor(process, Bridge),
            Bridge ! {ask, self(), Monitor, session_of_caller(), Op, Args},
            receive
                {?MODULE, Monitor, Answer} ->
                    demonitor(Monitor, [flush]),
                    Answer;
                {'DOWN', Monitor, process, _, _} ->
                    {error, beamtalk_bridge_error:unattached(Op)}
            end
    end.

session_of_caller() ->
    case beamtalk_workspace:current_session() of
        none -> nil;
        Session -> Session
    end.

%%% Reading

%% Asked maps the number of a question to the process that waits for its answer.
loop(Port, Asked) ->
    receive
        {Port, {data, Frame}} ->
            try binary_to_term(Frame) of
                {ctl, answer, #{<<"number">> := Number} = Answer} ->
                    loop(Port, settled(Number, Answer, Asked));
                Message ->
                    handle(Message),
                    loop(Port, Asked)
            catch error:badarg ->
                logger:error("the daemon sent a damaged frame"),
                loop(Port, Asked)
            end;
        {ask, From, Monitor, Session, Op, Args} ->
            Number = erlang:unique_integer([positive]),
            beamtalk_bridge_writer:send({ask, Number, Session, Op, Args}),
            loop(Port, Asked#{Number => {From, Monitor}});
        {Port, eof} -> stop();
        {'EXIT', Port, _} -> stop();
        {'EXIT', Pid, Reason} ->
            Pid =:= get(parent) andalso exit(Reason),
            loop(Port, Asked);
        _ -> loop(Port, Asked)
    end.

settled(Number, Answer, Asked) ->
    case maps:take(Number, Asked) of
        {{From, Monitor}, Rest} ->
            From ! {?MODULE, Monitor, outcome(Answer)},
            Rest;
        error -> Asked
    end.

outcome(#{<<"ok">> := Map}) -> {ok, Map};
outcome(#{<<"error">> := Error}) -> {error, beamtalk_bridge_error:exception(Error)}.

handle({req, Id, _, <<"ping">>, _}) -> beamtalk_bridge_pulse:give(Id);
handle({req, Id, Session, Op, Args}) ->
    case beamtalk_session_keeper:request(Op, Id, Session, Args) of
        ok -> ok;
        not_mine -> beamtalk_bridge_request:start(Id, Session, Op, Args)
    end;
handle({ctl, cancel, #{<<"id">> := Id}}) -> beamtalk_bridge_request:cancel(Id);
handle({ctl, replace, #{<<"session">> := Session}}) -> beamtalk_session_keeper:replace(Session);
handle({ctl, credit, #{<<"id">> := Id, <<"bytes">> := Bytes}}) ->
    beamtalk_session_keeper:credit(Id, Bytes);
handle({ctl, boot, Settings}) -> beamtalk_workspace:configure(Settings);
handle({ctl, subscribe, #{<<"channels">> := Channels} = Args}) ->
    persistent_term:put('$bt_channels', maps:from_list([{Channel, true} || Channel <- Channels])),
    %% Changing handlers of the logger takes a while.
    aside(fun() -> beamtalk_workspace:watched(maps:get(<<"actors">>, Args, [])) end);
handle({ctl, flushed, #{<<"files">> := Files}}) ->
    aside(fun() -> beamtalk_announcer:flush_completed([Name || Name <- [file_name(File) || File <- Files], Name =/= nil]) end);
handle({ctl, announce, #{<<"items">> := Items}}) -> beamtalk_news:announce(Items);
handle({ctl, stop, _}) -> aside(fun stop/0);
handle(_) -> ok.

%% Work that would keep this process from reading. With no process to be had it is left undone.
aside(Work) ->
    try spawn(Work) of
        _ -> ok
    catch error:system_limit -> logger:error("no process is left for the workspace's own work")
    end.

file_name(#{<<"file">> := Name}) -> Name;
file_name(Name) when is_binary(Name) -> Name;
file_name(_) -> nil.

%%% The end

%% Supervisors stop their children in order; whatever happens, the node ends.
-spec stop() -> no_return().
stop() ->
    {_, Monitor} = spawn_monitor(fun beamtalk_workspace:stop/0),
    receive {'DOWN', Monitor, process, _, _} -> ok
    after ?STOP_LIMIT -> ok
    end,
    halt(0, [{flush, false}]).
