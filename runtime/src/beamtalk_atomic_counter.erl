%% Primitives of AtomicCounter: one row in a table of its own.
-module(beamtalk_atomic_counter).

-export(['class new:'/2, 'class named:'/2]).
-export([increment/1, decrement/1, 'incrementBy:'/2, 'decrementBy:'/2, value/1, reset/1, delete/1]).

-define(CLASS, 'AtomicCounter').

-type counter() :: #{'$beamtalk_class' := 'AtomicCounter', name := atom(), table := ets:tid()}.

-spec 'class new:'(term(), term()) -> counter().
'class new:'(_Class, Name) ->
    beamtalk_argument:symbol(Name, ?CLASS, 'new:'),
    case beamtalk_resource:create(counter, Name, [set], [{value, 0}]) of
        {ok, Table} -> make(Name, Table);
        exists -> beamtalk_error:raise(already_exists, ?CLASS, 'new:', <<"The name is taken">>)
    end.

-spec 'class named:'(term(), term()) -> counter().
'class named:'(_Class, Name) ->
    beamtalk_argument:symbol(Name, ?CLASS, 'named:'),
    case beamtalk_resource:find(Name) of
        {ok, counter, Table} -> make(Name, Table);
        _ -> beamtalk_error:raise(not_found, ?CLASS, 'named:', <<"No counter has this name">>)
    end.

make(Name, Table) ->
    #{'$beamtalk_class' => ?CLASS, name => Name, table => Table}.

-spec increment(counter()) -> integer().
increment(Self) ->
    add(Self, 1, increment).

-spec decrement(counter()) -> integer().
decrement(Self) ->
    add(Self, -1, decrement).

-spec 'incrementBy:'(counter(), term()) -> integer().
'incrementBy:'(Self, Amount) ->
    add(Self, beamtalk_argument:integer(Amount, ?CLASS, 'incrementBy:'), 'incrementBy:').

-spec 'decrementBy:'(counter(), term()) -> integer().
'decrementBy:'(Self, Amount) ->
    add(Self, -beamtalk_argument:integer(Amount, ?CLASS, 'decrementBy:'), 'decrementBy:').

add(#{table := Table}, Amount, Selector) ->
    live(Selector, fun() -> ets:update_counter(Table, value, Amount) end).

-spec value(counter()) -> integer().
value(#{table := Table}) ->
    live(value, fun() -> ets:lookup_element(Table, value, 2) end).

-spec reset(counter()) -> nil.
reset(#{table := Table}) ->
    live(reset, fun() -> ets:insert(Table, {value, 0}) end),
    nil.

-spec delete(counter()) -> nil.
delete(#{name := Name, table := Table}) ->
    case beamtalk_resource:delete(Name, Table) of
        ok -> nil;
        stale -> stale(delete);
        not_owner -> beamtalk_error:raise(permission_error, ?CLASS, delete,
                                          <<"Only the owner may delete a counter">>)
    end.

live(Selector, Operation) -> beamtalk_resource:live(Operation, fun() -> stale(Selector) end).

-spec stale(atom()) -> no_return().
stale(Selector) ->
    beamtalk_error:raise(stale_counter, ?CLASS, Selector, <<"The counter has been deleted">>).
