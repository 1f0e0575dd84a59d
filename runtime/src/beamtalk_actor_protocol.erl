%% What is special about some messages and methods of actors: which are answered
%% at the sender, which are delegated to a native process; and the migration of
%% state to a redefined class.
-module(beamtalk_actor_protocol).

-export([is_local/1, is_base_method/1, is_delegate/2, has_terminate/1, hear_ends/1, migrate/2, migrate_now/2]).

%% Selectors of ProtoObject, Object and Actor that mean the same wherever they
%% are evaluated. They are answered in the sender's process unless the actor's
%% class has its own method.
-spec is_local(atom()) -> boolean().
is_local(stop) -> true;
is_local(kill) -> true;
is_local(isAlive) -> true;
is_local(pid) -> true;
is_local(monitor) -> true;
is_local('onExit:') -> true;
is_local('registerAs:') -> true;
is_local(unregister) -> true;
is_local(registeredName) -> true;
is_local(isRegistered) -> true;
is_local('withTimeout:') -> true;
is_local(class) -> true;
is_local('perform:') -> true;
is_local('perform:withArguments:') -> true;
is_local('perform:withArguments:timeout:') -> true;
is_local('performLocally:withArguments:') -> true;
is_local(isNil) -> true;
is_local(notNil) -> true;
is_local(isBehaviour) -> true;
is_local('ifNil:') -> true;
is_local('ifNotNil:') -> true;
is_local('ifNil:ifNotNil:') -> true;
is_local('ifNotNil:ifNil:') -> true;
is_local(printString) -> true;
is_local(displayString) -> true;
is_local(inspect) -> true;
is_local(yourself) -> true;
is_local(hash) -> true;
is_local('equals:') -> true;
is_local('==') -> true;
is_local('/=') -> true;
is_local('=:=') -> true;
is_local('=/=') -> true;
is_local('respondsTo:') -> true;
is_local(fieldNames) -> true;
is_local('isKindOf:') -> true;
is_local('asType:') -> true;
is_local('error:') -> true;
is_local('show:') -> true;
is_local('showCr:') -> true;
is_local(delegate) -> true;
is_local(_) -> false.

%% Does the method come from the library's roots, not from the actor's class?
-spec is_base_method(fun()) -> boolean().
is_base_method(Method) ->
    {module, Module} = erlang:fun_info(Method, module),
    case beamtalk_class:of_module(Module) of
        {ok, Class} -> lists:member(Class, ['ProtoObject', 'Object', 'Actor']);
        none -> false
    end.

%% Is the method of a native class a delegation to its process?
-spec is_delegate(atom(), atom()) -> boolean().
is_delegate(Class, Sel) ->
    case beamtalk_class:record(Class) of
        #{method_info := #{Sel := #{delegate := Delegate}}} -> Delegate;
        #{superclass := Super, method_info := Infos} when not is_map_key(Sel, Infos), Super =/= nil ->
            is_delegate(Super, Sel);
        _ -> false
    end.

%% Does the class or an ancestor below Actor define `terminate:'?
-spec has_terminate(atom()) -> boolean().
has_terminate(Class) ->
    case beamtalk_dispatch:info(Class) of
        #{terminates := Terminates} -> Terminates;
        none -> false
    end.

%% An actor whose class has `terminate:' hears when it is to end: the exit would end it before that could run.
-spec hear_ends(map()) -> ok.
hear_ends(#{terminates := true}) ->
    case process_info(self(), trap_exit) of
        {trap_exit, true} -> ok;
        {trap_exit, false} ->
            process_flag(trap_exit, true),
            put('$bt_auto_trap', true),
            ok
    end;
hear_ends(_) -> ok.

%% Bring the state of an actor to the shape its class has now, before a message. Where a
%% default fails the actor keeps its state and the code that fits it, until the class changes again.
-spec migrate(map(), map()) -> map().
migrate(#{'$info' := #{version := Version}} = Table, State) ->
    case get('$bt_version') of
        Version -> State;
        _ ->
            {Outcome, NewState} = migrate_now(Table, State),
            log(Table, Outcome),
            NewState
    end;
migrate(_, State) -> State.

log(_, {migrated, []}) -> ok;
log(#{'$info' := #{name := Class}}, {migrated, Dropped}) ->
    beamtalk_migration:log_dropped(Class, Dropped, 1);
log(#{'$info' := #{name := Class}}, {failed, Text}) ->
    logger:warning("~ts: an actor keeps its state, as the default of a new slot failed: ~ts",
                   [Class, Text], #{domain => [beamtalk, runtime]}).

%% The same at once; answers the slots whose values were dropped, or why it failed.
-spec migrate_now(map(), map()) -> {{migrated, [atom()]} | {failed, binary()}, map()}.
migrate_now(#{'$info' := #{name := Class, fields := Fields, version := Version} = Info}, State) ->
    Before = put('$bt_version', Version),
    Old = maps:keys(State) -- ['$beamtalk_class'],
    Removed = Old -- Fields,
    Added = Fields -- Old,
    try maps:from_list([{Slot, beamtalk_value:default(Class, Slot)} || Slot <- Added]) of
        Defaults ->
            beamtalk_former:leave(),
            hear_ends(Info),
            {{migrated, Removed}, maps:merge(maps:without(Removed, State), Defaults)}
    catch Kind:Reason:Stack ->
        Text = beamtalk_display:exception(beamtalk_error:from_caught(Kind, Reason, Stack)),
        _ = beamtalk_former:restore(Class, Before),
        {{failed, Text}, State}
    end.
