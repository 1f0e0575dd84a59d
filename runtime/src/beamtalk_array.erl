%% Primitives of Array: a map from the indices 1..N to the elements.
-module(beamtalk_array).

-export(['class withAll:'/2, 'class new:'/2, 'class new'/1, size/1, 'at:'/2,
         'at:put:'/3, first/1, last/1, 'includes:'/2, '++'/2, 'do:'/2, asList/1]).
-export([from_list/1, data_to_list/1]).

-type array() :: #{'$beamtalk_class' := 'Array', data := #{pos_integer() => term()}}.

-spec 'class new'(term()) -> array().
'class new'(_Class) ->
    from_list([]).

-spec 'class withAll:'(term(), term()) -> array().
'class withAll:'(_Class, List) ->
    from_list(beamtalk_argument:list(List, 'Array', 'withAll:')).

-spec 'class new:'(term(), term()) -> array().
'class new:'(_Class, List) ->
    from_list(beamtalk_argument:list(List, 'Array', 'new:')).

-spec size(array()) -> non_neg_integer().
size(#{data := Data}) ->
    map_size(Data).

-spec 'at:'(array(), term()) -> term().
'at:'(#{data := Data}, Index) ->
    case Data of
        #{Index := Element} when is_integer(Index) -> Element;
        _ -> bad_index(Data, Index, 'at:')
    end.

-spec 'at:put:'(array(), term(), term()) -> array().
'at:put:'(#{data := Data} = Self, Index, Value) ->
    case Data of
        #{Index := _} when is_integer(Index) -> Self#{data := Data#{Index := Value}};
        _ when is_integer(Index) ->
            beamtalk_argument:out_of_bounds(Index, map_size(Data), 'Array', 'at:put:');
        _ -> beamtalk_argument:integer(Index, 'Array', 'at:put:')
    end.

-spec first(array()) -> term().
first(#{data := #{1 := First}}) -> First;
first(_) -> beamtalk_error:raise(empty_collection, 'Array', first).

-spec last(array()) -> term().
last(#{data := Data}) when map_size(Data) > 0 -> map_get(map_size(Data), Data);
last(_) -> beamtalk_error:raise(empty_collection, 'Array', last).

-spec 'includes:'(array(), term()) -> boolean().
'includes:'(#{data := Data}, Wanted) ->
    beamtalk_collection:member(Wanted, maps:values(Data)).

-spec '++'(array(), term()) -> array().
'++'(#{data := Left} = Self, #{'$beamtalk_class' := 'Array', data := Right}) ->
    Offset = map_size(Left),
    Joined = maps:fold(fun(Index, Element, Acc) -> Acc#{Index + Offset => Element} end, Left, Right),
    Self#{data := Joined};
'++'(_, _) ->
    beamtalk_argument:fail('Array', '++', <<"Expected an Array">>).

-spec 'do:'(array(), term()) -> nil.
'do:'(#{data := Data}, Block) ->
    beamtalk_argument:block(Block, 1, 'Array', 'do:'),
    lists:foreach(Block, data_to_list(Data)),
    nil.

-spec asList(array()) -> list().
asList(#{data := Data}) ->
    data_to_list(Data).

-spec from_list(list()) -> array().
from_list(List) ->
    #{'$beamtalk_class' => 'Array', data => maps:from_list(number(List, 1))}.

number([Element | Rest], Index) -> [{Index, Element} | number(Rest, Index + 1)];
number([], _) -> [].

-spec data_to_list(#{pos_integer() => term()}) -> list().
data_to_list(Data) ->
    data_to_list(map_size(Data), Data, []).

data_to_list(0, _, Acc) -> Acc;
data_to_list(Index, Data, Acc) -> data_to_list(Index - 1, Data, [map_get(Index, Data) | Acc]).

-spec bad_index(map(), term(), atom()) -> no_return().
bad_index(Data, Index, Selector) when is_integer(Index), Index >= 1, map_size(Data) =:= 0 ->
    beamtalk_error:raise(empty_collection, 'Array', Selector);
bad_index(Data, Index, Selector) when is_integer(Index) ->
    beamtalk_argument:out_of_bounds(Index, map_size(Data), 'Array', Selector);
bad_index(_, Index, Selector) ->
    beamtalk_argument:integer(Index, 'Array', Selector).
