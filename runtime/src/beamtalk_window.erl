%% A part of what there is to see in a value, made without making the rest.
-module(beamtalk_window).

-export([look/3]).

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
look(Map, Offset, Limit) when is_map(Map), not is_map_key('$beamtalk_class', Map), map_size(Map) > ?SORTED ->
    {collection, association, unsorted, map_size(Map), taken(skipped(maps:iterator(Map), Offset), Limit)};
look(Value, Offset, Limit) -> whole(Value, Offset, Limit).

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
