%% Values as the wire protocol carries them: JSON forms within bounds, and text cut to a length.
-module(beamtalk_bridge_value).

-export([json/2, bounded/2, cut/2]).

%% The largest Integer every JSON reader keeps exact.
-define(EXACT, 16#1FFFFFFFFFFFFF).
-define(DEPTH, 64).
%% A budget in bytes, roughly: every element costs at least one.
-define(BUDGET, 1048576).

%% The JSON form of a value, or its text where it has none or is too large.
-spec json(term(), binary()) -> term().
json(Value, Text) -> bounded(Value, fun() -> Text end).

-spec bounded(term(), fun(() -> term())) -> term().
bounded(Value, Otherwise) ->
    try
        {Form, _} = form(Value, ?DEPTH, ?BUDGET),
        Form
    catch throw:no_form -> Otherwise()
    end.

form(_, Depth, Budget) when Depth =:= 0; Budget =< 0 -> throw(no_form);
form(Value, _, Budget) when Value =:= nil; is_boolean(Value) -> {Value, Budget - 4};
form(Value, _, Budget) when is_integer(Value), abs(Value) =< ?EXACT -> {Value, Budget - 8};
form(Value, _, Budget) when is_integer(Value) -> text(integer_to_binary(Value), Budget);
form(Value, _, Budget) when is_float(Value) -> {Value, Budget - 16};
form(Value, _, Budget) when is_binary(Value) -> text(Value, Budget);
form(Value, _, Budget) when is_atom(Value) -> text(atom_to_binary(Value), Budget);
form(Value, Depth, Budget) when is_list(Value) -> elements(Value, Depth - 1, Budget, []);
form(#{'$beamtalk_class' := 'Array', data := Map}, Depth, Budget) ->
    elements([Value || {_, Value} <- lists:sort(maps:to_list(Map))], Depth - 1, Budget, []);
form(#{'$beamtalk_class' := _}, _, _) -> throw(no_form);
form(Value, Depth, Budget) when is_map(Value) ->
    pairs(maps:next(maps:iterator(Value)), Depth - 1, Budget, #{});
form(_, _, _) -> throw(no_form).

text(Text, Budget) when byte_size(Text) < Budget ->
    case unicode:characters_to_binary(Text) of
        Text -> {Text, Budget - byte_size(Text) - 2};
        _ -> throw(no_form)
    end;
text(_, _) -> throw(no_form).

elements([Head | Tail], Depth, Budget, Done) ->
    {Form, Left} = form(Head, Depth, Budget),
    elements(Tail, Depth, Left, [Form | Done]);
elements([], _, Budget, Done) -> {lists:reverse(Done), Budget - 2};
elements(_, _, _, _) -> throw(no_form).

pairs({Key, Value, Iterator}, Depth, Budget, Done) when is_atom(Key) ->
    pairs({atom_to_binary(Key), Value, Iterator}, Depth, Budget, Done);
pairs({Key, Value, Iterator}, Depth, Budget, Done) when is_binary(Key), not is_map_key(Key, Done) ->
    {Name, Left} = text(Key, Budget),
    {Form, Rest} = form(Value, Depth, Left),
    pairs(maps:next(Iterator), Depth, Rest, Done#{Name => Form});
pairs(none, _, Budget, Done) -> {Done, Budget - 2};
pairs(_, _, _, _) -> throw(no_form).

%% At most Limit bytes of the text, cut between characters and marked.
-spec cut(binary(), pos_integer()) -> {binary(), Cut :: boolean()}.
cut(Text, Limit) when byte_size(Text) =< Limit -> {Text, false};
cut(Text, Limit) ->
    Size = boundary(Text, Limit - 3),
    {<<(binary:part(Text, 0, Size))/binary, "…"/utf8>>, true}.

%% The nearest place at or before the offset where a character starts.
boundary(_, 0) -> 0;
boundary(Text, At) ->
    case binary:at(Text, At) of
        Byte when Byte band 16#C0 =:= 16#80 -> boundary(Text, At - 1);
        _ -> At
    end.
