%% Primitives of Tuple: the Erlang tuple.
-module(beamtalk_tuple).

-export(['class withAll:'/2, 'class new:'/2, 'class new'/1, size/1, 'at:'/2, 'do:'/2, unwrap/1,
         'unwrapOrElse:'/2, atRandom/1]).

-spec 'class new'(term()) -> {}.
'class new'(_Class) ->
    {}.

-spec 'class withAll:'(term(), term()) -> tuple().
'class withAll:'(_Class, List) ->
    list_to_tuple(beamtalk_argument:list(List, 'Tuple', 'withAll:')).

-spec 'class new:'(term(), term()) -> tuple().
'class new:'(_Class, List) ->
    list_to_tuple(beamtalk_argument:list(List, 'Tuple', 'new:')).

-spec size(tuple()) -> non_neg_integer().
size(Self) ->
    tuple_size(Self).

-spec 'at:'(tuple(), term()) -> term().
'at:'(Self, Index) when is_integer(Index), Index >= 1, Index =< tuple_size(Self) ->
    element(Index, Self);
'at:'({}, Index) when is_integer(Index), Index >= 1 ->
    beamtalk_error:raise(empty_collection, 'Tuple', 'at:');
'at:'(Self, Index) when is_integer(Index) ->
    beamtalk_argument:out_of_bounds(Index, tuple_size(Self), 'Tuple', 'at:');
'at:'(_, Index) ->
    beamtalk_argument:integer(Index, 'Tuple', 'at:').

-spec 'do:'(tuple(), term()) -> nil.
'do:'(Self, Block) ->
    beamtalk_argument:block(Block, 1, 'Tuple', 'do:'),
    lists:foreach(Block, tuple_to_list(Self)),
    nil.

-spec unwrap(tuple()) -> term().
unwrap({ok, Value}) ->
    Value;
unwrap(Self) ->
    Message = iolist_to_binary(["unwrap called on ", beamtalk_display:print(Self)]),
    beamtalk_error:raise(user_error, 'Tuple', unwrap, Message, nil, #{}).

-spec 'unwrapOrElse:'(tuple(), term()) -> term().
'unwrapOrElse:'(Self, Block) ->
    beamtalk_argument:block(Block, 0, 'Tuple', 'unwrapOrElse:'),
    case Self of
        {ok, Value} -> Value;
        _ -> Block()
    end.

-spec atRandom(tuple()) -> term().
atRandom({}) -> beamtalk_error:raise(empty_collection, 'Tuple', atRandom);
atRandom(Self) -> element(rand:uniform(tuple_size(Self)), Self).
