%% Named tables, counters and open files, and who owns them.
%%
%% The server makes the tables and deletes them when their owner ends. The owner
%% is the process that made them: the evaluator of a session, an actor, or any
%% other process.
-module(beamtalk_resource).
-behaviour(gen_server).

-export([start_link/0, tables/0]).
-export([owner/0, named_owner/0, create/4, find/1, delete/2, live/2]).
-export([add_handle/3, remove_handle/1, is_open/1, handles/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(HANDLES, beamtalk_file_handles).

-type kind() :: ets | counter.

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% Made by the supervisor, which also inherits the tables of users: both outlive this process.
-spec tables() -> [{atom(), [term()]}].
tables() -> [{?MODULE, [{read_concurrency, true}]}, {?HANDLES, []}].

%% The process whose end closes what it opens now.
-spec owner() -> pid().
owner() ->
    self().

%% The same, `nil' unless it evaluates for a session or is an actor.
-spec named_owner() -> pid() | nil.
named_owner() ->
    case get('$bt_session') =/= undefined orelse get('$bt_self') =/= undefined of
        true -> self();
        false -> nil
    end.

%% What an operation on a table answers; `Stale' is called when the table is gone.
-spec live(fun(() -> Answer), fun(() -> no_return())) -> Answer.
live(Operation, Stale) ->
    try
        Operation()
    catch
        error:badarg -> Stale()
    end.

%% Makes a table under a name nobody else uses; names of all kinds share one space.
-spec create(kind(), atom(), [atom()], [tuple()]) -> {ok, ets:tid()} | exists.
create(Kind, Name, Options, Rows) ->
    gen_server:call(?MODULE, {create, Kind, Name, Options, Rows, owner()}, infinity).

-spec find(atom()) -> {ok, kind(), ets:tid()} | none.
find(Name) ->
    case ets:lookup(?MODULE, Name) of
        [{_, Kind, Table, _}] -> {ok, Kind, Table};
        [] -> none
    end.

-spec delete(atom(), ets:tid()) -> ok | not_owner | stale.
delete(Name, Table) ->
    gen_server:call(?MODULE, {delete, Name, Table, owner()}, infinity).

%%% Open files

%% Files close with the process that opened them, so the list may be behind; it
%% is filtered when it is read.
-spec add_handle(reference(), binary(), atom()) -> ok.
add_handle(Id, Path, Mode) ->
    true = ets:insert(?HANDLES, {Id, self(), Path, Mode, named_owner()}),
    gen_server:cast(?MODULE, {watch, self()}).

-spec remove_handle(reference()) -> boolean().
remove_handle(Id) ->
    ets:take(?HANDLES, Id) =/= [].

-spec is_open(reference()) -> boolean().
is_open(Id) ->
    case ets:lookup(?HANDLES, Id) of
        [{_, Pid, _, _, _}] -> is_process_alive(Pid);
        [] -> false
    end.

%% Path, mode and owner of every open file.
-spec handles() -> [{binary(), atom(), pid() | nil}].
handles() ->
    [{Path, Mode, Owner} || {_, Pid, Path, Mode, Owner} <- ets:tab2list(?HANDLES),
                            is_process_alive(Pid)].

%%% Callbacks

-spec init([]) -> {ok, #{pid() => reference()}}.
init([]) ->
    Owners = [Owner || {_, _, _, Owner} <- ets:tab2list(?MODULE)]
        ++ [Pid || {_, Pid, _, _, _} <- ets:tab2list(?HANDLES)],
    {ok, lists:foldl(fun watch/2, #{}, Owners)}.

-spec handle_call(term(), gen_server:from(), map()) -> {reply, term(), map()}.
handle_call({create, Kind, Name, Options, Rows, Owner}, _From, Monitors) ->
    case ets:member(?MODULE, Name) of
        true ->
            {reply, exists, Monitors};
        false ->
            Table = ets:new(Name, [public, {read_concurrency, true}, {write_concurrency, true},
                                   {heir, whereis(beamtalk_sup), Name} | Options]),
            ets:insert(Table, Rows),
            ets:insert(?MODULE, {Name, Kind, Table, Owner}),
            {reply, {ok, Table}, watch(Owner, Monitors)}
    end;
handle_call({delete, Name, Table, Caller}, _From, Monitors) ->
    case ets:lookup(?MODULE, Name) of
        [{_, _, Table, Caller}] ->
            drop(Name, Table),
            {reply, ok, Monitors};
        [{_, _, Table, _}] ->
            {reply, not_owner, Monitors};
        _ ->
            {reply, stale, Monitors}
    end.

-spec handle_cast(term(), map()) -> {noreply, map()}.
handle_cast({watch, Owner}, Monitors) ->
    {noreply, watch(Owner, Monitors)};
handle_cast(_, Monitors) ->
    {noreply, Monitors}.

-spec handle_info(term(), map()) -> {noreply, map()}.
handle_info({'DOWN', _, process, Owner, _}, Monitors) ->
    Rows = ets:match_object(?MODULE, {'_', '_', '_', Owner}),
    lists:foreach(fun({Name, _, Table, _}) -> drop(Name, Table) end, Rows),
    ets:match_delete(?HANDLES, {'_', Owner, '_', '_', '_'}),
    {noreply, maps:remove(Owner, Monitors)};
handle_info(_, Monitors) ->
    {noreply, Monitors}.

watch(Owner, Monitors) when is_map_key(Owner, Monitors) -> Monitors;
watch(Owner, Monitors) -> Monitors#{Owner => monitor(process, Owner)}.

drop(Name, Table) ->
    ets:delete(?MODULE, Name),
    ets:delete(Table).
