%% Support for patterns that Erlang cannot match by itself.
-module(beamtalk_pattern).

-export([array_elements/1, cons/2, elements/3, is_kind/2, make_array/1, value_at/2]).

%% `name :: Class' in a pattern.
-spec is_kind(term(), atom()) -> boolean().
is_kind(Value, Class) ->
    beamtalk_dispatch:is_kind_of(Value, Class).

%% The elements of an Array as a List; `no' for anything else.
-spec array_elements(term()) -> list() | no.
array_elements(#{'$beamtalk_class' := 'Array', data := Data}) ->
    [maps:get(Index, Data) || Index <- lists:seq(1, map_size(Data))];
array_elements(_) ->
    no.

-spec make_array(list()) -> map().
make_array(Elements) ->
    Indexed = lists:zip(lists:seq(1, length(Elements)), Elements),
    #{'$beamtalk_class' => 'Array', data => maps:from_list(Indexed)}.

%% `#(a, b | rest)'.
-spec cons(list(), term()) -> list().
cons(Elements, Rest) when is_list(Rest) ->
    Elements ++ Rest;
cons(_, _) ->
    beamtalk_error:raise(type_error, 'List', '|', <<"the tail of a list must be a List">>, nil, #{}).

%% The first `Count' elements for a destructuring, then (with `HasRest') the rest as a collection of the same kind.
-spec elements(term(), non_neg_integer(), boolean()) -> maybe_improper_list().
elements(List, Count, _HasRest) when is_list(List) ->
    split(List, List, Count, fun(Rest) -> Rest end);
elements(#{'$beamtalk_class' := 'Array'} = Array, Count, _HasRest) ->
    split(Array, array_elements(Array), Count, fun make_array/1);
elements(Value, Count, false) ->
    [beamtalk_dispatch:send(Value, 'at:', Index) || Index <- lists:seq(1, Count)];
elements(Value, Count, true) ->
    Elements = beamtalk_dispatch:send(Value, asList),
    Species = beamtalk_dispatch:send(Value, species),
    split(Value, Elements, Count, fun(Rest) -> beamtalk_dispatch:send(Species, 'withAll:', Rest) end).

split(Value, Elements, Count, MakeRest) ->
    case length(Elements) >= Count of
        true ->
            {First, Rest} = lists:split(Count, Elements),
            First ++ MakeRest(Rest);
        false ->
            beamtalk_error:raise(index_out_of_bounds, beamtalk_dispatch:class_name(Value), 'at:')
    end.

%% `#{#key => pattern}' in a destructuring.
-spec value_at(term(), term()) -> term().
value_at(Map, Key) when is_map(Map), not is_map_key('$beamtalk_class', Map) ->
    case Map of
        #{Key := Value} -> Value;
        _ -> erlang:error({badkey, Key})
    end;
value_at(Value, _Key) ->
    beamtalk_error:bad_match(Value).
