%% Values as a session shows them: in one line where they fit, else one element per line, cut to what a person
%% looks at. What is cut off is never printed, so a list of a million costs no more than one of fifty.
%%
%% Fields stand in the order of their declaration, and strings inside of other values show their line ends and tabs as
%% escapes: both differ from `printString'. A class that prints itself in its own way is asked for its `printString'.
-module(beamtalk_layout).

-export([text/3]).

%% Elements that are shown of a collection.
-define(ELEMENTS, 50).
%% Further lines that are shown of what lies inside elements.
-define(LINES, 40).
-define(DEPTH, 100).
%% Dictionaries with more keys are not sorted.
-define(SORTED, 100000).
-define(INDENT, 2).

%% One thing with parts: how it opens, its parts with what stands before each, how many there are, how it closes.
-type composite() :: {binary(), [{iodata(), term()}], non_neg_integer(), binary()}.

%% At most Limit bytes, roughly, for so many columns; 0 columns for everything in one line.
-spec text(term(), non_neg_integer(), pos_integer()) -> binary().
text(Value, 0, Limit) ->
    %% Whoever cuts it to the limit sees that it is longer.
    {Text, _} = flat(Value, Limit + 1024, 0, cut, outer),
    unicode:characters_to_binary(Text);
text(Value, Width, Limit) ->
    {Text, _} = layout(Value, outer, Width, 0, ?LINES, Limit),
    unicode:characters_to_binary(Text).

%%% Several lines

%% The text, and the lines that are left for what lies inside of other elements.
layout(Value, Place, Width, Indent, Lines, Limit) ->
    case one_line(Value, Place, Width - Indent) of
        {ok, Text} -> {Text, Lines};
        wide ->
            case parts(Value, ?ELEMENTS + 1) of
                none -> {element(1, flat(Value, Limit + 1024, 0, cut, Place)), Lines};
                {<<>>, [{Prefix, Inner}], 1, <<>>} ->
                    {Text, Left} = layout(Inner, inner_of(Place, Inner), Width - size_of(Prefix), Indent, Lines, Limit),
                    {[Prefix, Text], Left};
                _ when Place =:= inner, Lines =< 2 -> {element(1, flat(Value, max(Width - Indent, 20), 0, cut, Place)), 0};
                Composite -> spread(Composite, Place, Width, Indent, Lines, Limit)
            end
    end.

one_line(Value, Place, Columns) ->
    case flat(Value, Columns, 0, fit, Place) of
        {Text, Left} when Left >= 0 -> {ok, Text};
        _ -> wide
    end.

%% A string in a Result is inside of something, a list in it is as good as the outermost one.
inner_of(_, Value) when is_binary(Value) -> inner;
inner_of(Place, _) -> Place.

spread({Open, Parts, Total, Close}, Place, Width, Indent, Lines, Limit) ->
    Inner = Indent + ?INDENT,
    Margin = lists:duplicate(Inner, $\s),
    Own = case Place of
        outer -> Lines;
        inner -> Lines - 2
    end,
    Shown = lists:sublist(Parts, ?ELEMENTS),
    {Texts, Left, Count} = rows(Shown, Place, Width, Inner, Own, Limit, [], 0),
    More = case Total - Count of
        0 -> [];
        Rest -> [[Margin, "… ", grouped(Rest), " more", hint(Place)]]
    end,
    Separated = case More of
        [] -> separated(Texts);
        _ -> [[Text, ","] || Text <- Texts]
    end,
    Rows = [[Margin, Text] || Text <- Separated] ++ More,
    {[Open, "\n", lists:join("\n", Rows), "\n", lists:duplicate(Indent, $\s), Close], Left}.

%% Rows of what is inside of something count as lines of it.
rows([{Prefix, Value} | Rest], Place, Width, Indent, Lines, Limit, Done, Count)
  when Place =:= outer; Lines > 0 ->
    {Text, Left} = layout(Value, inner, Width - size_of(Prefix) - 1, Indent, Lines, Limit),
    After = case Place of
        outer -> Left;
        inner -> Left - 1
    end,
    rows(Rest, Place, Width, Indent, After, Limit, [[Prefix, Text] | Done], Count + 1);
rows(_, _, _, _, Lines, _, Done, Count) -> {lists:reverse(Done), Lines, Count}.

separated([]) -> [];
separated([Last]) -> [Last];
separated([Text | Rest]) -> [[Text, ","] | separated(Rest)].

hint(outer) -> " (_ inspect)";
hint(inner) -> "".

%% `99950' as `99,950'.
grouped(Number) -> grouped(lists:reverse(integer_to_list(Number)), []).

grouped([A, B, C, D | Rest], Done) -> grouped([D | Rest], [$,, C, B, A | Done]);
grouped(Digits, Done) -> lists:reverse(Digits) ++ Done.

%%% One line

%% The text and how much is left of the room; less than none when it does not fit. `fit' gives up then, `cut' ends
%% with an ellipsis.
flat(_, Left, _, Mode, _) when Left =< 0 -> ended(Mode, Left);
flat(Value, Left, Depth, _, inner) when is_binary(Value), byte_size(Value) > Left ->
    %% Escaped and quoted it only grows.
    case beamtalk_dispatch:is_text(Value) of
        true -> {[$", escaped(whole(binary:part(Value, 0, max(Left - 3, 0)))), "…\""], -1};
        false -> sized(printed(Value, Depth), Left)
    end;
flat(Value, Left, _, _, inner) when is_binary(Value) ->
    case beamtalk_dispatch:is_text(Value) of
        true -> sized([$", escaped(binary:replace(Value, <<"\"">>, <<"\"\"">>, [global])), $"], Left);
        false -> sized(beamtalk_display:string(Value), Left)
    end;
flat(Value, Left, Depth, Mode, Place) ->
    %% Every part takes a column at least.
    case parts(Value, Left + 1) of
        none when Place =:= outer -> sized(beamtalk_report:print(Value), Left);
        none -> sized(printed(Value, Depth), Left);
        _ when Depth >= ?DEPTH -> {"...", Left - 3};
        {Open, Parts, Total, Close} ->
            {Texts, Rest} = flat_parts(Parts, Total, Left - byte_size(Open) - byte_size(Close), Depth + 1, Mode),
            {[Open, Texts, Close], Rest}
    end.

flat_parts([], _, Left, _, _) -> {[], Left};
flat_parts(_, Total, Left, _, Mode) when Left =< 0 -> more(Mode, Total, Left);
flat_parts([{Prefix, Value} | Rest], Total, Left, Depth, Mode) ->
    {Text, After} = flat(Value, Left - size_of(Prefix), Depth, Mode, inner),
    case Rest of
        [] -> {[Prefix, Text], After};
        _ ->
            {Texts, Last} = flat_parts(Rest, Total - 1, After - 2, Depth, Mode),
            {[Prefix, Text, ", " | Texts], Last}
    end.

ended(fit, _) -> {[], -1};
ended(_, Left) -> {"…", Left - 1}.

more(fit, _, _) -> {[], -1};
more(_, Total, Left) -> {["… ", grouped(Total), " more"], Left - 1}.

sized(Text, Left) -> {Text, Left - size_of(Text)}.

%% In characters, as far as it matters: what is long in bytes is looked at more closely only when it is short.
size_of(Text) ->
    case iolist_size_of(Text) of
        Bytes when Bytes > 1024 -> Bytes;
        _ -> string:length(Text)
    end.

iolist_size_of(Text) ->
    try iolist_size(Text)
    catch error:badarg -> byte_size(unicode:characters_to_binary(Text))
    end.

%% Something without parts that are known here.
printed(Value, Depth) when is_list(Value); is_map(Value); is_tuple(Value) ->
    case Depth >= ?DEPTH of
        true -> <<"...">>;
        false -> beamtalk_display:print(Value)
    end;
printed(Value, _) -> beamtalk_display:print(Value).

escaped(Text) ->
    case re:run(Text, "[\\x00-\\x1f\\x7f]", [{capture, none}]) of
        nomatch -> Text;
        match -> << <<(escape(Byte))/binary>> || <<Byte>> <= Text >>
    end.

escape($\n) -> <<"\\n">>;
escape($\t) -> <<"\\t">>;
escape($\r) -> <<"\\r">>;
escape(Byte) when Byte < 32; Byte =:= 127 -> iolist_to_binary(io_lib:format("\\x~2.16.0B", [Byte]));
escape(Byte) -> <<Byte>>.

whole(Bytes) ->
    case unicode:characters_to_binary(Bytes) of
        {incomplete, Whole, _} -> Whole;
        {error, Whole, _} -> Whole;
        Whole -> Whole
    end.

%%% What has parts

%% At least so many of the parts, if there are as many.
-spec parts(term(), pos_integer()) -> composite() | none.
parts(Value, Wanted) when is_list(Value) ->
    try length(Value) of
        Length -> standard('List', {<<"#(">>, plain(lists:sublist(Value, Wanted)), Length, <<")">>})
    catch error:badarg -> none
    end;
parts({beamtalk_object, Class, _, _}, _) when is_atom(Class) -> none;
parts({beamtalk_supervisor, Class, _, _}, _) when is_atom(Class) -> none;
parts(Value, Wanted) when is_tuple(Value) ->
    standard('Tuple', {<<"{">>, plain(lists:sublist(tuple_to_list(Value), Wanted)), tuple_size(Value), <<"}">>});
parts(#{'$beamtalk_class' := 'Array', data := Data}, Wanted) when is_map(Data) ->
    Size = map_size(Data),
    Elements = [map_get(Index, Data) || Index <- lists:seq(1, min(Size, Wanted))],
    standard('Array', {<<"#[">>, plain(Elements), Size, <<"]">>});
parts(#{'$beamtalk_class' := 'Set', elements := Elements}, Wanted) when is_list(Elements) ->
    standard('Set', {<<"Set(">>, plain(lists:sublist(Elements, Wanted)), length(Elements), <<")">>});
parts(#{'$beamtalk_class' := 'Result', isOk := true, okValue := Value}, _) ->
    standard('Result', {<<>>, [{<<"Result ok: ">>, Value}], 1, <<>>});
parts(#{'$beamtalk_class' := 'Result', errReason := Reason}, _) ->
    standard('Result', {<<>>, [{<<"Result error: ">>, Reason}], 1, <<>>});
parts(#{'$beamtalk_class' := Class} = Value, _) when is_atom(Class) -> fields(Class, Value);
parts(#{'$beamtalk_class' := _}, _) -> none;
parts(Value, Wanted) when is_map(Value) ->
    Size = map_size(Value),
    Keys = if
        Size > ?SORTED -> some_keys(maps:iterator(Value), Wanted);
        true -> lists:sublist(by_text(lists:sort(maps:keys(Value)), Size), Wanted)
    end,
    Pairs = [{[element(1, flat(Key, 1000, 1, cut, inner)), " => "], map_get(Key, Value)} || Key <- Keys],
    standard('Dictionary', {<<"#{">>, Pairs, Size, <<"}">>});
parts(_, _) -> none.

%% A few keys stand as `printString' has them.
by_text(Keys, Size) when Size =< ?ELEMENTS ->
    [Key || {_, Key} <- lists:sort([{beamtalk_plain:text(Key), Key} || Key <- Keys])];
by_text(Keys, _) -> Keys.

some_keys(_, 0) -> [];
some_keys(Iterator, Wanted) ->
    case maps:next(Iterator) of
        none -> [];
        {Key, _, Next} -> [Key | some_keys(Next, Wanted - 1)]
    end.

%% Only values show their fields.
fields(Class, Value) ->
    case beamtalk_dispatch:info(Class) of
        #{kind := value} ->
            case is_standard(Class, 'bt@stdlib@value') andalso not beamtalk_error:is_exception(Value) of
                true ->
                    Parts = [{[atom_to_binary(Name), ": "], map_get(Name, Value)}
                             || Name <- beamtalk_value:fields_in_order(Value)],
                    {<<(atom_to_binary(Class))/binary, "(">>, Parts, length(Parts), <<")">>};
                false -> none
            end;
        _ -> none
    end.

plain(Elements) -> [{[], Element} || Element <- Elements].

standard(Class, Composite) ->
    case is_standard(Class, module(Class)) of
        true -> Composite;
        false -> none
    end.

module('List') -> 'bt@stdlib@list';
module('Tuple') -> 'bt@stdlib@tuple';
module('Array') -> 'bt@stdlib@array';
module('Set') -> 'bt@stdlib@set';
module('Result') -> 'bt@stdlib@result';
module('Dictionary') -> 'bt@stdlib@dictionary'.

%% Whether `printString' of the class is the one of the library.
is_standard(Class, Module) ->
    case beamtalk_dispatch:table(Class) of
        #{printString := Print} when is_function(Print) -> erlang:fun_info(Print, module) =:= {module, Module};
        _ -> false
    end.
