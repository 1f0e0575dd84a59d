%% Primitives of Binary: bytes, and the encodings between bytes and text.
%%
%% A binary carries no tag: valid UTF-8 is a String, everything else a Binary.
-module(beamtalk_binary).

-export(['class serialize:'/2, 'class deserialize:'/2, 'class deserializeWithUsed:'/2,
         'class fromIolist:'/2, 'class fromBytes:'/2, 'class fromBase64:'/2,
         'class fromBase64Url:'/2, 'class fromHex:'/2, 'do:'/2, 'at:'/2, first/1, last/1,
         'byteAt:'/2, 'part:size:'/3, 'concat:'/2, toBytes/1, asString/1, asBase64/1, asHex/1]).
-export([elements/1, class_name/1, is_utf8/1, parse_error/4]).

%%% Class side

-spec 'class serialize:'(term(), term()) -> binary().
'class serialize:'(_Class, Value) ->
    term_to_binary(beamtalk_cell:freeze(Value)).

-spec 'class deserialize:'(term(), term()) -> term().
'class deserialize:'(_Class, Bytes) ->
    element(1, decode(Bytes, exact, 'deserialize:')).

-spec 'class deserializeWithUsed:'(term(), term()) -> {term(), non_neg_integer()}.
'class deserializeWithUsed:'(_Class, Bytes) ->
    decode(Bytes, prefix, 'deserializeWithUsed:').

decode(Bytes, Extent, Selector) ->
    beamtalk_argument:binary(Bytes, 'Binary', Selector),
    try binary_to_term(Bytes, [safe, used]) of
        {_, Used} when Extent =:= exact, Used =/= byte_size(Bytes) ->
            beamtalk_argument:fail('Binary', Selector, <<"Bytes follow the value">>);
        Decoded ->
            Decoded
    catch
        error:badarg ->
            Hint = <<"Not an external term, or it names symbols this node does not know">>,
            beamtalk_argument:fail('Binary', Selector, Hint)
    end.

-spec 'class fromIolist:'(term(), term()) -> binary().
'class fromIolist:'(_Class, Iolist) ->
    try
        iolist_to_binary(Iolist)
    catch
        error:badarg ->
            beamtalk_argument:fail('Binary', 'fromIolist:', <<"Expected nested lists of bytes and binaries">>)
    end.

-spec 'class fromBytes:'(term(), term()) -> binary().
'class fromBytes:'(_Class, Bytes) ->
    IsByte = fun(Byte) -> is_integer(Byte) andalso Byte >= 0 andalso Byte =< 255 end,
    list_to_binary(beamtalk_argument:list_of(Bytes, IsByte, 'Binary', 'fromBytes:')).

-spec 'class fromBase64:'(term(), term()) -> map().
'class fromBase64:'(_Class, Text) ->
    beamtalk_argument:string(Text, 'Binary', 'fromBase64:'),
    decode_base64(Text, Text, 'fromBase64:').

-spec 'class fromBase64Url:'(term(), term()) -> map().
'class fromBase64Url:'(_Class, Text) ->
    beamtalk_argument:string(Text, 'Binary', 'fromBase64Url:'),
    case binary:match(Text, [<<"+">>, <<"/">>]) of
        nomatch ->
            Standard = << <<(from_url_digit(C))>> || <<C>> <= Text >>,
            decode_base64(pad(Standard), Text, 'fromBase64Url:');
        _ ->
            parse_error('fromBase64Url:', <<"invalid base64 text">>, Text, 'Binary')
    end.

pad(Text) ->
    case byte_size(Text) rem 4 of
        2 -> <<Text/binary, "==">>;
        3 -> <<Text/binary, "=">>;
        _ -> Text
    end.

decode_base64(Standard, Text, Selector) ->
    Valid = byte_size(Standard) rem 4 =:= 0
        andalso re:run(Standard, <<"\\A[A-Za-z0-9+/]*={0,2}\\z">>, [{capture, none}]) =:= match,
    try Valid andalso base64:decode(Standard) of
        false -> parse_error(Selector, <<"invalid base64 text">>, Text, 'Binary');
        Bytes -> beamtalk_result:ok(Bytes)
    catch
        error:_ -> parse_error(Selector, <<"invalid base64 text">>, Text, 'Binary')
    end.

-spec 'class fromHex:'(term(), term()) -> map().
'class fromHex:'(_Class, Text) ->
    beamtalk_argument:string(Text, 'Binary', 'fromHex:'),
    try
        beamtalk_result:ok(binary:decode_hex(Text))
    catch
        error:badarg -> parse_error('fromHex:', <<"invalid hex text">>, Text, 'Binary')
    end.

%% A `Result error:' of kind `parse_error' with the offending text in its details.
-spec parse_error(atom(), binary(), binary(), atom()) -> map().
parse_error(Selector, Message, Text, Class) ->
    beamtalk_result:failure(parse_error, Class, Selector, Message, nil, #{text => Text}).

%%% Instance side

-spec 'do:'(binary(), term()) -> nil.
'do:'(Self, Block) ->
    beamtalk_argument:block(Block, 1, 'Binary', 'do:'),
    lists:foreach(Block, binary_to_list(Self)),
    nil.

-spec 'at:'(binary(), term()) -> byte().
'at:'(Self, Index) when is_integer(Index), Index >= 1, Index =< byte_size(Self) ->
    binary:at(Self, Index - 1);
'at:'(<<>>, Index) when is_integer(Index), Index >= 1 ->
    beamtalk_error:raise(empty_collection, 'Binary', 'at:');
'at:'(Self, Index) when is_integer(Index) ->
    beamtalk_argument:out_of_bounds(Index, byte_size(Self), 'Binary', 'at:');
'at:'(_, Index) ->
    beamtalk_argument:integer(Index, 'Binary', 'at:').

-spec first(binary()) -> byte().
first(<<Byte, _/binary>>) -> Byte;
first(<<>>) -> beamtalk_error:raise(empty_collection, 'Binary', first).

-spec last(binary()) -> byte().
last(<<>>) -> beamtalk_error:raise(empty_collection, 'Binary', last);
last(Self) -> binary:last(Self).

-spec 'byteAt:'(binary(), term()) -> byte().
'byteAt:'(Self, Offset) when is_integer(Offset), Offset >= 0, Offset < byte_size(Self) ->
    binary:at(Self, Offset);
'byteAt:'(Self, Offset) ->
    beamtalk_argument:integer(Offset, class_name(Self), 'byteAt:'),
    beamtalk_error:raise(index_out_of_bounds, class_name(Self), 'byteAt:').

-spec 'part:size:'(binary(), term(), term()) -> binary().
'part:size:'(Self, Offset, Size)
  when is_integer(Offset), is_integer(Size), Offset >= 0, Size >= 0,
       Offset + Size =< byte_size(Self) ->
    binary:part(Self, Offset, Size);
'part:size:'(Self, Offset, Size) ->
    beamtalk_argument:integer(Offset, class_name(Self), 'part:size:'),
    beamtalk_argument:integer(Size, class_name(Self), 'part:size:'),
    beamtalk_error:raise(index_out_of_bounds, class_name(Self), 'part:size:').

-spec 'concat:'(binary(), term()) -> binary().
'concat:'(Self, Other) ->
    beamtalk_argument:binary(Other, class_name(Self), 'concat:'),
    <<Self/binary, Other/binary>>.

-spec toBytes(binary()) -> [byte()].
toBytes(Self) ->
    binary_to_list(Self).

-spec asString(binary()) -> binary() | map().
asString(Self) ->
    case unicode:characters_to_binary(Self) of
        Self ->
            Self;
        {_, Valid, _} ->
            Offset = byte_size(Valid),
            Hint = <<"The byte at offset ", (integer_to_binary(Offset))/binary, " is not UTF-8">>,
            beamtalk_result:failure(parse_error, 'Binary', asString, <<"invalid UTF-8">>, Hint,
                                    #{offset => Offset})
    end.

-spec asBase64(binary()) -> binary().
asBase64(Self) ->
    base64:encode(Self).

from_url_digit($-) -> $+;
from_url_digit($_) -> $/;
from_url_digit(C) -> C.

-spec asHex(binary()) -> binary().
asHex(Self) ->
    << <<(hex_digit(Nibble))>> || <<Nibble:4>> <= Self >>.

hex_digit(Nibble) when Nibble < 10 -> $0 + Nibble;
hex_digit(Nibble) -> $a + Nibble - 10.

%%% Used by the other modules

%% Graphemes of text, bytes of anything else.
-spec elements(binary()) -> list().
elements(Self) ->
    case is_utf8(Self) of
        true -> beamtalk_string:graphemes(Self);
        false -> binary_to_list(Self)
    end.

-spec class_name(binary()) -> 'String' | 'Binary'.
class_name(Self) ->
    case is_utf8(Self) of
        true -> 'String';
        false -> 'Binary'
    end.

-spec is_utf8(binary()) -> boolean().
is_utf8(Bytes) ->
    is_binary(unicode:characters_to_binary(Bytes)).
