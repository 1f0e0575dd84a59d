%% Primitives of Dictionary: the Erlang map.
-module(beamtalk_dictionary).

-export(['class new'/1, 'class new:'/2, size/1, keys/1, values/1, 'at:'/2, 'at:ifAbsent:'/3,
         'at:put:'/3, 'includesKey:'/2, 'includes:'/2, 'removeKey:'/2, 'merge:'/2, 'do:'/2,
         'doWithKey:'/2, 'keysAndValuesDo:'/2, 'collect:'/2, 'select:'/2, 'reject:'/2]).

-spec 'class new'(term()) -> map().
'class new'(_Class) ->
    #{}.

-spec 'class new:'(term(), term()) -> map().
'class new:'(_Class, Dictionary) ->
    beamtalk_argument:dictionary(Dictionary, 'Dictionary', 'new:').

-spec size(map()) -> non_neg_integer().
size(Self) ->
    map_size(Self).

-spec keys(map()) -> list().
keys(Self) ->
    maps:keys(Self).

-spec values(map()) -> list().
values(Self) ->
    maps:values(Self).

-spec 'at:'(map(), term()) -> term().
'at:'(Self, Key) ->
    case Self of
        #{Key := Value} ->
            Value;
        _ ->
            Message = iolist_to_binary(["key not found: ", beamtalk_display:print(Key)]),
            beamtalk_error:raise(key_error, 'Dictionary', 'at:', Message, nil, #{key => Key})
    end.

-spec 'at:ifAbsent:'(map(), term(), term()) -> term().
'at:ifAbsent:'(Self, Key, Block) ->
    beamtalk_argument:block(Block, 0, 'Dictionary', 'at:ifAbsent:'),
    case Self of
        #{Key := Value} -> Value;
        _ -> Block()
    end.

-spec 'at:put:'(map(), term(), term()) -> map().
'at:put:'(Self, Key, Value) ->
    maps:put(Key, Value, Self).

-spec 'includesKey:'(map(), term()) -> boolean().
'includesKey:'(Self, Key) ->
    is_map_key(Key, Self).

-spec 'includes:'(map(), term()) -> boolean().
'includes:'(Self, Wanted) ->
    beamtalk_collection:member(Wanted, maps:values(Self)).

-spec 'removeKey:'(map(), term()) -> map().
'removeKey:'(Self, Key) ->
    maps:remove(Key, Self).

-spec 'merge:'(map(), term()) -> map().
'merge:'(Self, Other) ->
    maps:merge(Self, beamtalk_argument:dictionary(Other, 'Dictionary', 'merge:')).

-spec 'do:'(map(), term()) -> nil.
'do:'(Self, Block) ->
    beamtalk_argument:block(Block, 1, 'Dictionary', 'do:'),
    lists:foreach(Block, maps:values(Self)),
    nil.

-spec 'doWithKey:'(map(), term()) -> nil.
'doWithKey:'(Self, Block) ->
    each_pair(Self, Block, 'doWithKey:').

-spec 'keysAndValuesDo:'(map(), term()) -> nil.
'keysAndValuesDo:'(Self, Block) ->
    each_pair(Self, Block, 'keysAndValuesDo:').

each_pair(Self, Block, Selector) ->
    beamtalk_argument:block(Block, 2, 'Dictionary', Selector),
    lists:foreach(fun({Key, Value}) -> Block(Key, Value) end, maps:to_list(Self)),
    nil.

%% Visits in the order of `values', as every other selector does.
-spec 'collect:'(map(), term()) -> map().
'collect:'(Self, Block) ->
    beamtalk_argument:block(Block, 1, 'Dictionary', 'collect:'),
    maps:from_list([{Key, Block(Value)} || {Key, Value} <- maps:to_list(Self)]).

-spec 'select:'(map(), term()) -> map().
'select:'(Self, Block) ->
    filter(Self, Block, true, 'select:').

-spec 'reject:'(map(), term()) -> map().
'reject:'(Self, Block) ->
    filter(Self, Block, false, 'reject:').

filter(Self, Block, Wanted, Selector) ->
    beamtalk_argument:block(Block, 1, 'Dictionary', Selector),
    Keep = fun(_Key, Value) ->
                   beamtalk_argument:boolean(Block(Value), 'Dictionary', Selector) =:= Wanted
           end,
    maps:filter(Keep, Self).
