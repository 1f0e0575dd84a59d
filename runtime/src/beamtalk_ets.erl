%% Primitives of Ets: named tables every process can read and write.
-module(beamtalk_ets).

-export(['class new:type:'/3, 'class named:'/2, 'class exists:'/2, 'class newOrExisting:type:'/3]).
-export(['at:'/2, 'at:put:'/3, 'at:ifAbsent:'/3, 'includesKey:'/2, 'removeKey:'/2, keys/1, size/1,
         delete/1]).

-type table() :: #{'$beamtalk_class' := 'Ets', name := atom(), table := ets:tid()}.

-spec 'class new:type:'(term(), term(), term()) -> table().
'class new:type:'(_Class, Name, Type) ->
    case create(Name, Type, 'new:type:') of
        exists -> beamtalk_error:raise(already_exists, 'Ets', 'new:type:', <<"The name is taken">>);
        Table -> Table
    end.

-spec 'class named:'(term(), term()) -> table().
'class named:'(_Class, Name) ->
    beamtalk_argument:symbol(Name, 'Ets', 'named:'),
    case beamtalk_resource:find(Name) of
        {ok, ets, Table} -> make(Name, Table);
        _ -> beamtalk_error:raise(not_found, 'Ets', 'named:', <<"No table has this name">>)
    end.

-spec 'class exists:'(term(), term()) -> boolean().
'class exists:'(_Class, Name) ->
    beamtalk_argument:symbol(Name, 'Ets', 'exists:'),
    case beamtalk_resource:find(Name) of
        {ok, ets, _} -> true;
        _ -> false
    end.

-spec 'class newOrExisting:type:'(term(), term(), term()) -> table().
'class newOrExisting:type:'(Class, Name, Type) ->
    case create(Name, Type, 'newOrExisting:type:') of
        exists -> 'class named:'(Class, Name);
        Table -> Table
    end.

create(Name, Type, Selector) ->
    beamtalk_argument:symbol(Name, 'Ets', Selector),
    case beamtalk_resource:create(ets, Name, [erlang_type(Type, Selector)], []) of
        {ok, Table} -> make(Name, Table);
        exists -> exists
    end.

erlang_type(set, _) -> set;
erlang_type(orderedSet, _) -> ordered_set;
erlang_type(bag, _) -> bag;
erlang_type(duplicateBag, _) -> duplicate_bag;
erlang_type(_, Selector) ->
    beamtalk_argument:fail('Ets', Selector,
                           <<"The type must be #set, #orderedSet, #bag or #duplicateBag">>).

make(Name, Table) ->
    #{'$beamtalk_class' => 'Ets', name => Name, table => Table}.

-spec 'at:'(table(), term()) -> term().
'at:'(Self, Key) ->
    case rows(Self, Key, 'at:') of
        [{_, Value} | _] -> Value;
        [] -> nil
    end.

-spec 'at:put:'(table(), term(), term()) -> nil.
'at:put:'(#{table := Table}, Key, Value) ->
    Row = {beamtalk_cell:freeze(Key), beamtalk_cell:freeze(Value)},
    live('at:put:', fun() ->
                            case ets:info(Table, type) of
                                Type when Type =:= bag; Type =:= duplicate_bag -> ets:delete(Table, Key);
                                _ -> ok
                            end,
                            ets:insert(Table, Row)
                    end),
    nil.

-spec 'at:ifAbsent:'(table(), term(), term()) -> term().
'at:ifAbsent:'(Self, Key, Block) ->
    beamtalk_argument:block(Block, 0, 'Ets', 'at:ifAbsent:'),
    case rows(Self, Key, 'at:ifAbsent:') of
        [{_, Value} | _] -> Value;
        [] -> Block()
    end.

-spec 'includesKey:'(table(), term()) -> boolean().
'includesKey:'(#{table := Table}, Key) ->
    live('includesKey:', fun() -> ets:member(Table, Key) end).

-spec 'removeKey:'(table(), term()) -> nil.
'removeKey:'(#{table := Table}, Key) ->
    live('removeKey:', fun() -> ets:delete(Table, Key) end),
    nil.

-spec keys(table()) -> list().
keys(#{table := Table}) ->
    live(keys, fun() ->
                       All = ets:select(Table, [{{'$1', '_'}, [], ['$1']}]),
                       case ets:info(Table, type) of
                           Type when Type =:= bag; Type =:= duplicate_bag -> maps:keys(maps:from_keys(All, []));
                           _ -> All
                       end
               end).

-spec size(table()) -> non_neg_integer().
size(#{table := Table}) ->
    case ets:info(Table, size) of
        undefined -> stale(size);
        Size -> Size
    end.

-spec delete(table()) -> nil.
delete(#{name := Name, table := Table}) ->
    case beamtalk_resource:delete(Name, Table) of
        ok -> nil;
        stale -> stale(delete);
        not_owner -> beamtalk_error:raise(permission_error, 'Ets', delete,
                                          <<"Only the owner may delete a table">>)
    end.

rows(#{table := Table}, Key, Selector) ->
    live(Selector, fun() -> ets:lookup(Table, Key) end).

live(Selector, Operation) -> beamtalk_resource:live(Operation, fun() -> stale(Selector) end).

-spec stale(atom()) -> no_return().
stale(Selector) ->
    beamtalk_error:raise(stale_table, 'Ets', Selector, <<"The table has been deleted">>).
