%% Class variables: shared storage with one lock per class.
%%
%% Published values are a map per class in ETS. A method that assigns takes the
%% class lock and works on a pending copy; the copy is published when the
%% outermost locked method returns (also by `^') and dropped when it raises. The
%% locks a call chain holds are listed under '$bt_locks' in the process
%% dictionary and travel with synchronous sends, so everybody in the chain
%% enters without waiting and sees the pending copy.
-module(beamtalk_class_state).

-export([get/2, put/3, locked/2, locked_put/3]).
-export([initialize/1, forget/1, variables/1]).

-define(TABLE, beamtalk_class_state).
-define(TIMEOUT, 5000).

-type class_object() :: {beamtalk_object, atom(), module(), atom()}.

-spec get(class_object(), atom()) -> term().
get({_, _, _, Class}, Variable) ->
    case variables(Class) of
        #{Variable := Value} -> Value;
        _ -> nil
    end.

%% Assign inside a locked method.
-spec put(class_object(), atom(), Value) -> Value when Value :: term().
put({_, _, _, Class} = Self, Variable, Value) ->
    case holds(Class) of
        true ->
            Pending = pending(Class),
            ets:insert(?TABLE, {{pending, Class}, Pending#{Variable => beamtalk_cell:freeze(Value)}}),
            Value;
        false -> locked_put(Self, Variable, Value)
    end.

%% Assign from a block, which may run after its method has ended.
-spec locked_put(class_object(), atom(), Value) -> Value when Value :: term().
locked_put(Self, Variable, Value) ->
    locked(Self, fun() -> put(Self, Variable, Value) end).

%% Run the body with the class lock held by this call chain.
-spec locked(class_object(), fun(() -> Value)) -> Value when Value :: term().
locked({_, _, _, Class}, Body) ->
    case holds(Class) of
        true -> Body();
        false -> outermost(Class, Body)
    end.

outermost(Class, Body) ->
    case beamtalk_registry:acquire({class, Class}, ?TIMEOUT) of
        ok -> run_locked(Class, Body);
        timeout -> refused(timeout, Class, Body, <<"Another call chain holds the lock of this class">>);
        deadlock ->
            refused(deadlock_detected, Class, Body,
                    <<"Another call chain holds the lock of this class and waits for this one">>)
    end.

run_locked(Class, Body) ->
    ets:insert(?TABLE, {{pending, Class}, published(Class)}),
    Before = erlang:get('$bt_locks'),
    erlang:put('$bt_locks', [Class | locks(Before)]),
    try
        Value = Body(),
        publish(Class),
        Value
    catch throw:{'$bt_return', _, _} = Return ->
        publish(Class),
        throw(Return)
    after
        ets:delete(?TABLE, {pending, Class}),
        restore(Before),
        beamtalk_registry:release({class, Class})
    end.

publish(Class) ->
    ets:insert(?TABLE, {Class, pending(Class)}).

restore(undefined) -> erlang:erase('$bt_locks');
restore(Locks) -> erlang:put('$bt_locks', Locks).

locks(undefined) -> [];
locks(Locks) -> Locks.

holds(Class) ->
    case erlang:get('$bt_locks') of
        undefined -> false;
        Locks -> lists:member(Class, Locks)
    end.

%% The method that waited is the one its body was written in.
refused(Kind, Class, Body, Hint) ->
    {name, Name} = erlang:fun_info(Body, name),
    {_, Selector} = beamtalk_stack:method_of(Name),
    beamtalk_error:raise(Kind, Class, Selector, Hint).

%% The variables as this call chain sees them.
-spec variables(atom()) -> map().
variables(Class) ->
    case holds(Class) of
        true -> pending(Class);
        false -> published(Class)
    end.

published(Class) -> row(Class).

pending(Class) -> row({pending, Class}).

row(Key) ->
    case ets:lookup(?TABLE, Key) of
        [{_, Map}] -> Map;
        [] -> #{}
    end.

%% Variables of a class that was loaded: defaults of the class and its
%% ancestors, over which existing values are kept. Subclasses follow.
-spec initialize([atom()]) -> ok.
initialize(Classes) ->
    lists:foreach(fun initialize_one/1, beamtalk_class:with_descendants(Classes)).

initialize_one(Class) ->
    case declared(Class) of
        none -> ets:delete(?TABLE, Class);
        Declared ->
            Old = published(Class),
            Names = lists:append([[V || #{name := V} <- Slots] || {_, Slots} <- Declared]),
            New = case [N || N <- Names, not is_map_key(N, Old)] of
                [] -> #{};
                _ -> defaults(Declared, Names)
            end,
            ets:insert(?TABLE, {Class, maps:merge(New, maps:with(Names, Old))})
    end.

%% `{Code, Slots}' of every class that declares variables, ancestors first.
declared(Class) ->
    #{ancestors := Ancestors} = beamtalk_dispatch:info(Class),
    Records = [beamtalk_class:record(C) || C <- lists:reverse([Class | Ancestors])],
    case [{R, Slots} || #{class_slots := [_ | _] = Slots} = R <- Records] of
        [] -> none;
        Declared -> Declared
    end.

defaults(Declared, Names) ->
    Nils = maps:from_list([{N, nil} || N <- Names]),
    lists:foldl(fun({#{has_class_defaults := true, code := Code}, _}, Acc) ->
                        maps:merge(Acc, Code:'__class_defaults'());
                   ({#{class_defaults := Values}, _}, Acc) -> maps:merge(Acc, Values);
                   (_, Acc) -> Acc
                end, Nils, Declared).

-spec forget(atom()) -> ok.
forget(Class) ->
    ets:delete(?TABLE, Class),
    ok.
