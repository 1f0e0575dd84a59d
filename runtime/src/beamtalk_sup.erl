%% Top supervisor of the runtime's own processes.
-module(beamtalk_sup).
-behaviour(supervisor).

-export([start_link/0]).
-export([init/1]).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    Registry = #{id => beamtalk_registry,
                 start => {beamtalk_registry, start_link, []},
                 restart => permanent, shutdown => 5000, type => worker},
    {ok, {#{strategy => one_for_one, intensity => 3, period => 10}, [Registry]}}.
