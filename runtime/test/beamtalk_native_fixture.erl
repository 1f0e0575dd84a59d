%% The backing module of a native actor class used by tests.
-module(beamtalk_native_fixture).
-behaviour(gen_server).

-export([start_link/1]).
-export([init/1, handle_call/3, handle_cast/2]).

-spec start_link(map()) -> {ok, pid()} | {error, term()}.
start_link(Config) -> gen_server:start_link(?MODULE, Config, []).

-spec init(map()) -> {ok, map()}.
init(Config) -> {ok, Config}.

-spec handle_call(term(), gen_server:from(), map()) -> {reply, term(), map()}.
handle_call({'read:', [Key], Context}, _From, State) when is_map(Context) ->
    case State of
        #{Key := Value} -> {reply, {ok, Value}, State};
        _ -> {reply, {error, no_such_key}, State}
    end.

-spec handle_cast(term(), map()) -> {noreply, map()}.
handle_cast(_, State) -> {noreply, State}.
