%% Primitives of String: UTF-8 text counted in grapheme clusters.
-module(beamtalk_string).

-export(['class withAll:'/2, 'class fromCodePoint:'/2, 'class fromCodePoints:'/2,
         'class fromIolist:'/2, '++'/2, size/1, 'at:'/2, first/1, last/1, uppercase/1, lowercase/1,
         capitalize/1, trim/1, trimLeft/1, trimRight/1, reverse/1, 'includesSubstring:'/2,
         'startsWith:'/2, 'endsWith:'/2, 'indexOf:'/2, 'split:'/2, 'splitOn:'/2, lines/1, words/1,
         'repeat:'/2, '*'/2, 'replaceAll:with:'/3, 'replaceFirst:with:'/3, 'take:'/2, 'drop:'/2,
         'padLeft:'/2, 'padRight:'/2, 'padLeft:with:'/3, 'padRight:with:'/3, isBlank/1, isDigit/1,
         isAlpha/1, asInteger/1, asFloat/1, asAtom/1, asList/1, 'do:'/2, 'collect:'/2, 'select:'/2,
         'reject:'/2, urlEncoded/1, urlDecoded/1]).
-export([graphemes/1]).

-compile({no_auto_import, [size/1]}).

%% Unicode category Z, and TAB LF VT FF CR; CR LF is one grapheme.
-define(WHITESPACE,
        [[$\r, $\n], $\t, $\n, $\v, $\f, $\r, $\s, 16#A0, 16#1680, 16#2000, 16#2001, 16#2002,
         16#2003, 16#2004, 16#2005, 16#2006, 16#2007, 16#2008, 16#2009, 16#200A, 16#2028, 16#2029,
         16#202F, 16#205F, 16#3000]).

%%% Class side

-spec 'class withAll:'(term(), term()) -> binary().
'class withAll:'(_Class, List) ->
    iolist_to_binary(beamtalk_argument:list_of(List, fun beamtalk_argument:is_string/1, 'String', 'withAll:')).

-spec 'class fromCodePoint:'(term(), term()) -> binary().
'class fromCodePoint:'(_Class, Codepoint) ->
    case beamtalk_integer:is_scalar(Codepoint) of
        true -> <<Codepoint/utf8>>;
        false -> beamtalk_argument:fail('String', 'fromCodePoint:', <<"Expected a Unicode scalar value">>)
    end.

-spec 'class fromCodePoints:'(term(), term()) -> binary().
'class fromCodePoints:'(_Class, Codepoints) ->
    IsScalar = fun beamtalk_integer:is_scalar/1,
    Scalars = beamtalk_argument:list_of(Codepoints, IsScalar, 'String', 'fromCodePoints:'),
    unicode:characters_to_binary(Scalars).

-spec 'class fromIolist:'(term(), term()) -> binary().
'class fromIolist:'(_Class, Iolist) ->
    Bytes = try iolist_to_binary(Iolist) catch error:badarg -> none end,
    case is_binary(Bytes) andalso beamtalk_binary:is_utf8(Bytes) of
        true ->
            Bytes;
        false ->
            try unicode:characters_to_binary(Iolist) of
                Text when is_binary(Text) -> Text;
                _ -> bad_iolist()
            catch
                error:badarg -> bad_iolist()
            end
    end.

-spec bad_iolist() -> no_return().
bad_iolist() ->
    beamtalk_argument:fail('String', 'fromIolist:', <<"Expected nested lists of text and codepoints">>).

%%% Instance side

-spec '++'(binary(), term()) -> binary().
'++'(Self, Other) ->
    beamtalk_argument:binary(Other, 'String', '++'),
    beamtalk_dispatch:concat(Self, Other).

-spec size(binary()) -> non_neg_integer().
size(Self) ->
    case is_plain(Self) of
        true -> byte_size(Self);
        false -> string:length(Self)
    end.

-spec 'at:'(binary(), term()) -> binary().
'at:'(Self, Index) when is_integer(Index), Index >= 1 ->
    case slice(Self, Index - 1, 1) of
        <<>> when Self =:= <<>> -> beamtalk_error:raise(empty_collection, 'String', 'at:');
        <<>> -> beamtalk_argument:out_of_bounds(Index, size(Self), 'String', 'at:');
        Grapheme -> Grapheme
    end;
'at:'(Self, Index) ->
    beamtalk_argument:integer(Index, 'String', 'at:'),
    beamtalk_argument:out_of_bounds(Index, size(Self), 'String', 'at:').

-spec first(binary()) -> binary().
first(<<>>) -> beamtalk_error:raise(empty_collection, 'String', first);
first(Self) -> string:slice(Self, 0, 1).

-spec last(binary()) -> binary().
last(<<>>) -> beamtalk_error:raise(empty_collection, 'String', last);
last(Self) ->
    case is_plain(Self) of
        true -> binary:part(Self, byte_size(Self), -1);
        false -> lists:last(graphemes(Self))
    end.

-spec uppercase(binary()) -> binary().
uppercase(Self) ->
    string:uppercase(Self).

-spec lowercase(binary()) -> binary().
lowercase(Self) ->
    string:lowercase(Self).

-spec capitalize(binary()) -> binary().
capitalize(Self) ->
    First = string:slice(Self, 0, 1),
    Rest = binary:part(Self, byte_size(First), byte_size(Self) - byte_size(First)),
    <<(string:uppercase(First))/binary, Rest/binary>>.

-spec trim(binary()) -> binary().
trim(Self) ->
    string:trim(Self, both, ?WHITESPACE).

-spec trimLeft(binary()) -> binary().
trimLeft(Self) ->
    string:trim(Self, leading, ?WHITESPACE).

-spec trimRight(binary()) -> binary().
trimRight(Self) ->
    string:trim(Self, trailing, ?WHITESPACE).

-spec reverse(binary()) -> binary().
reverse(Self) ->
    iolist_to_binary(lists:reverse(graphemes(Self))).

-spec 'includesSubstring:'(binary(), term()) -> boolean().
'includesSubstring:'(Self, Part) ->
    beamtalk_argument:string(Part, 'String', 'includesSubstring:'),
    Part =:= <<>> orelse binary:match(Self, Part) =/= nomatch.

-spec 'startsWith:'(binary(), term()) -> boolean().
'startsWith:'(Self, Prefix) ->
    beamtalk_argument:string(Prefix, 'String', 'startsWith:'),
    Size = byte_size(Prefix),
    case Self of
        <<Prefix:Size/binary, _/binary>> -> true;
        _ -> false
    end.

-spec 'endsWith:'(binary(), term()) -> boolean().
'endsWith:'(Self, Suffix) ->
    beamtalk_argument:string(Suffix, 'String', 'endsWith:'),
    Skip = byte_size(Self) - byte_size(Suffix),
    Skip >= 0 andalso binary:part(Self, Skip, byte_size(Suffix)) =:= Suffix.

-spec 'indexOf:'(binary(), term()) -> pos_integer() | nil.
'indexOf:'(Self, Part) ->
    beamtalk_argument:string(Part, 'String', 'indexOf:'),
    case Part =:= <<>> orelse binary:match(Self, Part) of
        true -> nil;
        nomatch -> nil;
        _ -> index_of(graphemes(Self), graphemes(Part), 1)
    end.

index_of([], _, _) ->
    nil;
index_of([_ | Rest] = Graphemes, Part, Index) ->
    case lists:prefix(Part, Graphemes) of
        true -> Index;
        false -> index_of(Rest, Part, Index + 1)
    end.

-spec 'split:'(binary(), term()) -> [binary()].
'split:'(Self, Separator) ->
    split(Self, beamtalk_argument:string(Separator, 'String', 'split:')).

-spec 'splitOn:'(binary(), term()) -> [binary()].
'splitOn:'(Self, Separator) ->
    split(Self, beamtalk_argument:string(Separator, 'String', 'splitOn:')).

split(Self, <<>>) -> [Self];
split(Self, Separator) -> binary:split(Self, Separator, [global]).

-spec lines(binary()) -> [binary()].
lines(Self) ->
    binary:split(Self, [<<"\r\n">>, <<"\n">>], [global]).

-spec words(binary()) -> [binary()].
words(Self) ->
    binary:split(Self, [<<" ">>, <<"\t">>, <<"\r">>, <<"\n">>], [global, trim_all]).

-spec 'repeat:'(binary(), term()) -> binary().
'repeat:'(Self, Count) ->
    copies(Self, beamtalk_argument:non_negative(Count, 'String', 'repeat:')).

-spec '*'(binary(), term()) -> binary().
'*'(Self, Count) ->
    copies(Self, beamtalk_argument:non_negative(Count, 'String', '*')).

%% More than this would end the node, not the evaluation.
-define(MAX_BYTES, 16#40000000).

copies(Text, Count) when byte_size(Text) * Count > ?MAX_BYTES -> error(system_limit);
copies(Text, Count) -> binary:copy(Text, Count).

-spec 'replaceAll:with:'(binary(), term(), term()) -> binary().
'replaceAll:with:'(Self, Old, New) ->
    replace(Self, Old, New, [global], 'replaceAll:with:').

-spec 'replaceFirst:with:'(binary(), term(), term()) -> binary().
'replaceFirst:with:'(Self, Old, New) ->
    replace(Self, Old, New, [], 'replaceFirst:with:').

replace(Self, Old, New, Options, Selector) ->
    beamtalk_argument:string(Old, 'String', Selector),
    beamtalk_argument:string(New, 'String', Selector),
    case Old of
        <<>> -> Self;
        _ -> iolist_to_binary(lists:join(New, binary:split(Self, Old, Options)))
    end.

-spec 'take:'(binary(), term()) -> binary().
'take:'(Self, Count) ->
    slice(Self, 0, max(0, beamtalk_argument:integer(Count, 'String', 'take:'))).

-spec 'drop:'(binary(), term()) -> binary().
'drop:'(Self, Count) ->
    slice(Self, max(0, beamtalk_argument:integer(Count, 'String', 'drop:')), byte_size(Self)).

-spec 'padLeft:'(binary(), term()) -> binary().
'padLeft:'(Self, Width) ->
    Padding = padding(Self, Width, <<" ">>, 'padLeft:'),
    <<Padding/binary, Self/binary>>.

-spec 'padRight:'(binary(), term()) -> binary().
'padRight:'(Self, Width) ->
    Padding = padding(Self, Width, <<" ">>, 'padRight:'),
    <<Self/binary, Padding/binary>>.

-spec 'padLeft:with:'(binary(), term(), term()) -> binary().
'padLeft:with:'(Self, Width, Fill) ->
    Padding = padding(Self, Width, Fill, 'padLeft:with:'),
    <<Padding/binary, Self/binary>>.

-spec 'padRight:with:'(binary(), term(), term()) -> binary().
'padRight:with:'(Self, Width, Fill) ->
    Padding = padding(Self, Width, Fill, 'padRight:with:'),
    <<Self/binary, Padding/binary>>.

padding(Self, Width, Fill, Selector) ->
    beamtalk_argument:integer(Width, 'String', Selector),
    beamtalk_argument:string(Fill, 'String', Selector),
    case beamtalk_binary:is_utf8(Fill) andalso string:length(Fill) of
        1 -> copies(Fill, max(0, Width - size(Self)));
        _ -> beamtalk_argument:fail('String', Selector, <<"Expected exactly one character">>)
    end.

-spec isBlank(binary()) -> boolean().
isBlank(Self) ->
    trimLeft(Self) =:= <<>>.

-spec isDigit(binary()) -> boolean().
isDigit(Self) ->
    all_bytes(Self, fun(C) -> C >= $0 andalso C =< $9 end).

-spec isAlpha(binary()) -> boolean().
isAlpha(Self) ->
    all_bytes(Self, fun(C) -> (C >= $a andalso C =< $z) orelse (C >= $A andalso C =< $Z) end).

all_bytes(Self, Test) ->
    Self =/= <<>> andalso lists:all(Test, binary_to_list(Self)).

-spec asInteger(binary()) -> integer().
asInteger(Self) ->
    try
        binary_to_integer(Self)
    catch
        error:badarg -> not_a_number(Self, asInteger)
    end.

-spec asFloat(binary()) -> float().
asFloat(Self) ->
    Pattern = <<"\\A([+-]?[0-9]+)(\\.[0-9]+)?([eE][+-]?[0-9]+)?\\z">>,
    case re:run(Self, Pattern, [{capture, all_but_first, binary}]) of
        {match, [Whole]} -> to_float(<<Whole/binary, ".0">>, Self);
        {match, [Whole, Fraction]} -> to_float(<<Whole/binary, Fraction/binary>>, Self);
        {match, [Whole, <<>>, Exponent]} -> to_float(<<Whole/binary, ".0", Exponent/binary>>, Self);
        {match, [Whole, Fraction, Exponent]} ->
            to_float(<<Whole/binary, Fraction/binary, Exponent/binary>>, Self);
        nomatch -> not_a_number(Self, asFloat)
    end.

to_float(Text, Self) ->
    try
        binary_to_float(Text)
    catch
        error:badarg -> not_a_number(Self, asFloat)
    end.

-spec not_a_number(binary(), atom()) -> no_return().
not_a_number(Self, Selector) ->
    Hint = <<(beamtalk_display:native(Self))/binary, " is not a decimal number">>,
    beamtalk_error:raise(argument_error, 'String', Selector, Hint).

-spec asAtom(binary()) -> atom().
asAtom(<<>>) -> no_symbol(<<"A Symbol has 1 to 255 characters">>);
asAtom(Self) ->
    try binary_to_existing_atom(Self)
    catch error:_ -> new_symbol(Self)
    end.

%% Symbols are never forgotten, and a node whose table of them is full ends.
new_symbol(Self) ->
    case erlang:system_info(atom_count) > erlang:system_info(atom_limit) div 10 * 9 of
        true -> no_symbol(<<"There are too many Symbols already; keep such names as Strings">>);
        false ->
            try binary_to_atom(Self)
            catch error:_ -> no_symbol(<<"A Symbol has 1 to 255 characters">>)
            end
    end.

-spec no_symbol(binary()) -> no_return().
no_symbol(Hint) -> beamtalk_error:raise(resource_error, 'String', asAtom, Hint).

-spec asList(binary()) -> [binary()].
asList(Self) ->
    graphemes(Self).

-spec 'do:'(binary(), term()) -> nil.
'do:'(Self, Block) ->
    beamtalk_argument:block(Block, 1, 'String', 'do:'),
    lists:foreach(Block, graphemes(Self)),
    nil.

-spec 'collect:'(binary(), term()) -> binary().
'collect:'(Self, Block) ->
    beamtalk_argument:block(Block, 1, 'String', 'collect:'),
    Parts = [beamtalk_argument:string(Block(Grapheme), 'String', 'collect:')
             || Grapheme <- graphemes(Self)],
    iolist_to_binary(Parts).

-spec 'select:'(binary(), term()) -> binary().
'select:'(Self, Block) ->
    iolist_to_binary(beamtalk_collection:filter(Self, Block, true, 'select:')).

-spec 'reject:'(binary(), term()) -> binary().
'reject:'(Self, Block) ->
    iolist_to_binary(beamtalk_collection:filter(Self, Block, false, 'reject:')).

-spec urlEncoded(binary()) -> binary().
urlEncoded(Self) ->
    << <<(url_encode(C))/binary>> || <<C>> <= Self >>.

url_encode(C)
  when C >= $a, C =< $z; C >= $A, C =< $Z; C >= $0, C =< $9;
       C =:= $-; C =:= $.; C =:= $_; C =:= $~ ->
    <<C>>;
url_encode(C) ->
    <<"%", (string:uppercase(beamtalk_binary:asHex(<<C>>)))/binary>>.

-spec urlDecoded(binary()) -> binary().
urlDecoded(Self) ->
    iolist_to_binary(url_decode(Self, Self)).

url_decode(<<$%, High, Low, Rest/binary>>, Self) ->
    try binary:decode_hex(<<High, Low>>) of
        Byte -> [Byte | url_decode(Rest, Self)]
    catch
        error:badarg ->
            Message = <<"invalid percent-encoding: %", High, Low>>,
            beamtalk_error:raise(parse_error, 'String', urlDecoded, Message, nil, #{text => Self})
    end;
url_decode(<<C, Rest/binary>>, Self) ->
    [C | url_decode(Rest, Self)];
url_decode(<<>>, _) ->
    [].

%% At most `Count' graphemes after the first `Skip'.
slice(Self, Skip, Count) ->
    case is_plain(Self) of
        true when Skip >= byte_size(Self) -> <<>>;
        true -> binary:part(Self, Skip, min(Count, byte_size(Self) - Skip));
        false -> string:slice(Self, Skip, Count)
    end.

%% Is every byte a grapheme? CR LF is one grapheme of two bytes.
is_plain(<<C, Rest/binary>>) when C < 128, C =/= $\r -> is_plain(Rest);
is_plain(<<>>) -> true;
is_plain(_) -> false.

%% The grapheme clusters, each a binary.
-spec graphemes(binary()) -> [binary()].
graphemes(Self) ->
    case is_plain(Self) of
        true -> [<<C>> || <<C>> <= Self];
        false -> clusters(Self)
    end.

clusters(Self) ->
    case string:next_grapheme(Self) of
        [Grapheme | Rest] -> [to_binary(Grapheme) | clusters(Rest)];
        [] -> [];
        {error, Rest} -> [Rest]
    end.

to_binary(Codepoint) when is_integer(Codepoint) -> <<Codepoint/utf8>>;
to_binary(Codepoints) -> unicode:characters_to_binary(Codepoints).
