%% The supervisor of the runtime's own processes.
%%
%% It owns their tables, so a process that is killed comes back to what was there: classes, class state, subscriptions,
%% named tables, variables of sessions. What is lost is what only the process knew: who waited for a lock (they ask again)
%% and the entries of the transcript. The children do not need each other to start, so each is restarted alone.
%%
%% The bridge cannot be restarted alone, since bytes of the pipe are gone with it: its end is the end of the application,
%% and in a workspace of the node.
-module(beamtalk_sup).
-behaviour(supervisor).

-export([start_link/0, start_workspace/0, start_session/3]).
-export([init/1]).

%% Whoever kills more than this has the node started afresh.
-define(INTENSITY, 20).
-define(PERIOD, 10).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, runtime).

%% What only a workspace has, once its classes are there.
-spec start_workspace() -> {ok, pid()} | {error, term()}.
start_workspace() ->
    supervisor:start_child(?MODULE, #{id => beamtalk_workspace_sup, type => supervisor,
                                      start => {supervisor, start_link,
                                                [{local, beamtalk_workspace_sup}, ?MODULE, workspace]},
                                      restart => temporary, significant => true, shutdown => infinity}).

-spec start_session(binary(), binary(), map()) -> {ok, pid()} | {error, term()}.
start_session(Session, Kind, Info) ->
    supervisor:start_child(beamtalk_session_sup, [Session, Kind, Info]).

-spec init(runtime | workspace | sessions) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Part) ->
    %% Whatever user code does, sessions start and who is killed comes back.
    process_flag(priority, high),
    {ok, part(Part)}.

part(runtime) ->
    Servers = [beamtalk_registry, beamtalk_resource, beamtalk_announcer, beamtalk_tracing, beamtalk_port_helper],
    [make_tables(Module) || Module <- [beamtalk_actor_waits | Servers]],
    {flags(one_for_one), [worker(Server) || Server <- Servers]};
part(workspace) ->
    Sessions = #{id => beamtalk_session_sup, type => supervisor, shutdown => infinity,
                 start => {supervisor, start_link, [{local, beamtalk_session_sup}, ?MODULE, sessions]}},
    Bridge = (worker(beamtalk_bridge))#{restart => temporary, significant => true, shutdown => brutal_kill},
    {flags(one_for_one),
     [worker(beamtalk_guard), worker(beamtalk_workspace), worker(beamtalk_transcript_stream, start_current),
      worker(beamtalk_news), worker(beamtalk_vitals),
      Sessions, worker(beamtalk_bridge_writer), Bridge]};
part(sessions) ->
    Keeper = (worker(beamtalk_session_keeper))#{restart => transient, shutdown => brutal_kill},
    {flags(simple_one_for_one), [Keeper]}.

flags(simple_one_for_one) ->
    #{strategy => simple_one_for_one, intensity => ?INTENSITY, period => ?PERIOD};
flags(Strategy) ->
    #{strategy => Strategy, intensity => ?INTENSITY, period => ?PERIOD, auto_shutdown => any_significant}.

worker(Module) -> worker(Module, start_link).

worker(Module, Function) ->
    #{id => Module, start => {Module, Function, []}, restart => permanent, shutdown => 1000}.

make_tables(Module) ->
    [ets:new(Name, [named_table, public | Options]) || {Name, Options} <- Module:tables()].
