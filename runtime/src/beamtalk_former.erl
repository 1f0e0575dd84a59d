%% Classes as they were before their slots changed, for actors that could not follow.
%%
%% An actor whose migration fails goes on with the tables its class and its ancestors had before, so it runs the code
%% that fits its state. The tables are remembered from before the change until every actor of the class has migrated;
%% the modules they name are not loaded over meanwhile (beamtalk_code).
-module(beamtalk_former).

-export([remember/1, settle/1, forget/1, is_remembered/1, tables/2, has_left_out/2, is_needed/1, restore/2, leave/0]).

-define(TABLE, beamtalk_former).

-type key() :: {Class :: atom(), Version :: integer()}.

%% Keep the tables of the classes and of everything below them. Called under the registry's lock, before code is
%% chosen a name.
-spec remember([atom()]) -> [key()].
remember([]) -> [];
remember(Classes) ->
    sweep(),
    Affected = lists:usort(Classes ++ lists:append([beamtalk_class:all_subclasses(Class) || Class <- Classes])),
    [remember_class(Class, Info) || Class <- Affected, #{kind := actor} = Info <- [beamtalk_dispatch:info(Class)]].

remember_class(Class, #{version := Version, ancestors := Ancestors}) ->
    Own = [Name || Name <- [Class | Ancestors], not beamtalk_class:is_library(Name)],
    Tables = maps:from_list([{Name, persistent_term:get(Name)} || Name <- Own]),
    Modules = lists:usort([module(Method) || {_, Table} <- maps:values(Tables), Method <- maps:values(Table),
                                             is_function(Method)]),
    ets:insert(?TABLE, {{Class, Version}, Modules, Tables}),
    {Class, Version}.

module(Method) ->
    {module, Module} = erlang:fun_info(Method, module),
    Module.

%% The change is made, or was refused: what has the same slots as before is not needed.
-spec settle([key()]) -> ok.
settle(Keys) ->
    [ets:delete(?TABLE, Key) || Key <- Keys, not has_changed(Key)],
    ok.

has_changed({Class, _} = Key) ->
    [{_, _, #{Class := {#{'$info' := #{fields := Before}}, _}}}] = ets:lookup(?TABLE, Key),
    case beamtalk_dispatch:info(Class) of
        #{fields := Before} -> false;
        _ -> true
    end.

%% Every actor of the class has migrated.
-spec forget(atom()) -> ok.
forget(Class) ->
    ets:match_delete(?TABLE, {{Class, '_'}, '_', '_'}),
    ok.

%% May there be actors that did not follow a change of the class?
-spec is_remembered(atom()) -> boolean().
is_remembered(Class) -> ets:match(?TABLE, {{Class, '$1'}, '_', '_'}) =/= [].

%% Is the code of the module that of a class as it was?
-spec is_needed(module()) -> boolean().
is_needed(Module) ->
    lists:any(fun([Modules]) -> lists:member(Module, Modules) end, ets:match(?TABLE, {'_', '$1', '_'})).

%% Drop what no living actor can come to need.
sweep() ->
    case ets:match(?TABLE, {'$1', '_', '_'}) of
        [] -> ok;
        Keys ->
            Actors = [{Class, seen(Pid)} || {_, Class, _, Pid} <- beamtalk_actor_class:all(), is_pid(Pid)],
            [ets:delete(?TABLE, Key) || [Key] <- Keys, not lists:any(fun(Actor) -> needs(Actor, Key) end, Actors)],
            ok
    end.

%% The last version an actor may still have to go on with.
seen(Pid) ->
    case erlang:process_info(Pid, dictionary) of
        {dictionary, Dictionary} ->
            case {lists:keyfind('$bt_former', 1, Dictionary), lists:keyfind('$bt_version', 1, Dictionary)} of
                {{_, {Version, _}}, _} -> Version;
                {false, {_, Version}} -> Version;
                _ -> infinity
            end;
        undefined -> infinity
    end.

needs({Class, Seen}, {Class, Version}) -> Seen =< Version;
needs(_, _) -> false.

%%% In the actor

%% Go on with the class as it was when the actor had that version of its slots; false when that is not known.
-spec restore(atom(), integer()) -> boolean().
restore(Class, Version) ->
    Former = case get('$bt_former') of
        undefined -> [V || [V] <- ets:match(?TABLE, {{Class, '$1'}, '_', '_'}), V >= Version];
        {V, _} -> [V]
    end,
    case Former of
        [] -> false;
        _ ->
            Oldest = lists:min(Former),
            [{_, _, Tables}] = ets:lookup(?TABLE, {Class, Oldest}),
            put('$bt_former', {Oldest, Tables}),
            true
    end.

%% The slots fit the class as it is now.
-spec leave() -> ok.
leave() ->
    erase('$bt_former'),
    ok.

%% What this process uses for a class of its own instead of what is published (see beamtalk_table).
-spec tables(atom(), Current) -> Current when Current :: {beamtalk_dispatch:table(), beamtalk_dispatch:table()} | [].
tables(Class, Current) ->
    case get('$bt_former') of
        {_, #{Class := Tables}} -> Tables;
        _ -> Current
    end.

%% Is the receiver this actor, as it was before its class had the method?
-spec has_left_out(term(), atom()) -> boolean().
has_left_out({beamtalk_object, Class, _, Pid}, Sel) when Pid =:= self() ->
    case persistent_term:get(Class, []) of
        {_, Table} = Current ->
            is_map_key(Sel, Table) andalso not is_map_key(Sel, element(2, tables(Class, Current)));
        [] -> false
    end;
has_left_out(_, _) -> false.
