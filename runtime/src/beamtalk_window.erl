%% A part of what there is to see in a value, made without making the rest.
-module(beamtalk_window).

-export([look/3, find/2]).

%% Dictionaries are sorted up to this size; beyond it they are in the order of the map.
-define(SORTED, 10000).

%% Kind, kind of the entries, order, how many there are, and those from an offset on.
-spec look(term(), non_neg_integer(), non_neg_integer()) ->
    {atom(), atom(), sorted | unsorted, non_neg_integer(), [{term(), term()}]}.
look(List, Offset, Limit) when is_list(List) ->
    case is_proper(List) of
        {ok, Total} -> {collection, element, sorted, Total, numbered(Offset + 1, tail(List, Offset, Total), Limit)};
        error -> whole(List, Offset, Limit)
    end;
look(#{'$beamtalk_class' := 'Interval', from := From, step := Step} = Interval, Offset, Limit) ->
    Total = beamtalk_interval:size(Interval),
    Last = min(Total, Offset + Limit),
    {collection, element, sorted, Total, [{N, From + (N - 1) * Step} || N <- lists:seq(Offset + 1, Last)]};
look(#{'$beamtalk_class' := 'Array', data := Data}, Offset, Limit) ->
    Last = min(map_size(Data), Offset + Limit),
    {collection, element, sorted, map_size(Data), [{N, maps:get(N, Data)} || N <- lists:seq(Offset + 1, Last)]};
look(#{'$beamtalk_class' := 'Set', elements := Elements}, Offset, Limit) when is_list(Elements) ->
    look(Elements, Offset, Limit);
look(#{'$beamtalk_class' := 'Queue', '__items' := Items}, Offset, Limit) ->
    look(queue:to_list(Items), Offset, Limit);
look(#{'$beamtalk_class' := 'Bag', counts := Counts}, Offset, Limit) when is_map(Counts) ->
    look(Counts, Offset, Limit);
look(Map, Offset, Limit) when is_map(Map), not is_map_key('$beamtalk_class', Map), map_size(Map) > ?SORTED ->
    {collection, association, unsorted, map_size(Map), taken(skipped(maps:iterator(Map), Offset), Limit)};
look(Value, Offset, Limit) -> whole(Value, Offset, Limit).

%% How many entries stand before the first one with this key, name or index.
-spec find(term(), binary() | none) -> non_neg_integer() | none.
find(_, none) -> none;
find(Value, Wanted) ->
    case {is_list(Value), string:to_integer(Wanted)} of
        {_, {Number, <<>>}} when is_integer(Number), Number > 0 ->
            case look(Value, Number - 1, 1) of
                {collection, element, _, _, [_]} -> Number - 1;
                _ -> find_key(Value, Wanted)
            end;
        {true, _} -> none;
        _ -> find_key(Value, Wanted)
    end.

%% A key of a Dictionary is found without looking at the others.
find_key(Map, Wanted) when is_map(Map), not is_map_key('$beamtalk_class', Map) ->
    Keys = [Key || Key <- candidates(Wanted), is_map_key(Key, Map)],
    case {Keys, map_size(Map) > ?SORTED} of
        {[Key | _], true} -> place(Key, maps:iterator(Map), 0);
        {[Key | _], false} -> place_in(Key, lists:sort(maps:keys(Map)), 0);
        {[], true} -> none;
        {[], false} -> labelled(Wanted, lists:sort(maps:keys(Map)), 0)
    end;
find_key(Value, Wanted) ->
    {_, _, Entries} = beamtalk_inspector:look(Value),
    labelled(Wanted, [Name || {Name, _} <- Entries], 0).

%% What a text may be as a key. No atom is made for it.
candidates(Text) ->
    Plain = string:trim(string:trim(Text, leading, "#"), both, "\""),
    Symbol = try [binary_to_existing_atom(Plain)] catch error:_ -> [] end,
    Number = case string:to_integer(Text) of {N, <<>>} -> [N]; _ -> [] end,
    Symbol ++ Number ++ [Plain, Text].

place(Key, Iterator, At) ->
    case maps:next(Iterator) of
        none -> none;
        {Key, _, _} -> At;
        {_, _, Next} -> place(Key, Next, At + 1)
    end.

place_in(_, [], _) -> none;
place_in(Key, [Key | _], At) -> At;
place_in(Key, [_ | Rest], At) -> place_in(Key, Rest, At + 1).

labelled(_, [], _) -> none;
labelled(Wanted, [Name | Rest], At) ->
    case beamtalk_plain:label(Name) =:= Wanted orelse beamtalk_plain:text(Name) =:= Wanted of
        true -> At;
        false -> labelled(Wanted, Rest, At + 1)
    end.

whole(Value, Offset, Limit) ->
    {Kind, EntryKind, Entries} = beamtalk_inspector:look(Value),
    Total = length(Entries),
    {Kind, EntryKind, sorted, Total, lists:sublist(tail(Entries, Offset, Total), Limit)}.

is_proper(List) ->
    try {ok, length(List)} catch error:badarg -> error end.

tail(_, Offset, Total) when Offset >= Total -> [];
tail(List, Offset, _) -> lists:nthtail(Offset, List).

numbered(_, [], _) -> [];
numbered(_, _, 0) -> [];
numbered(Number, [Element | Rest], Left) -> [{Number, Element} | numbered(Number + 1, Rest, Left - 1)].

skipped(Iterator, 0) -> Iterator;
skipped(Iterator, Count) ->
    case maps:next(Iterator) of
        none -> none;
        {_, _, Next} -> skipped(Next, Count - 1)
    end.

taken(none, _) -> [];
taken(_, 0) -> [];
taken(Iterator, Count) ->
    case maps:next(Iterator) of
        none -> [];
        {Key, Value, Next} -> [{Key, Value} | taken(Next, Count - 1)]
    end.
