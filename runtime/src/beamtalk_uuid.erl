%% Primitives of Uuid: sixteen bytes (RFC 9562).
-module(beamtalk_uuid).

-export(['class new:'/2, 'class v4'/1, 'class v7'/1, 'class fromString:'/2,
         'class isValid:'/2]).
-export([asString/1, asBinary/1, printString/1, '<'/2, '>'/2, '<='/2, '>='/2]).

-define(CLASS, 'Uuid').

-type uuid() :: #{'$beamtalk_class' := 'Uuid', bytes := <<_:128>>}.

-spec 'class new:'(term(), term()) -> no_return().
'class new:'(_Class, _) ->
    Message = <<"use Uuid v4, v7 or fromString: instead of new:">>,
    beamtalk_error:raise(user_error, ?CLASS, 'new:', Message, nil, #{}).

-spec 'class v4'(term()) -> uuid().
'class v4'(_Class) ->
    <<A:48, _:4, B:12, _:2, C:62>> = crypto:strong_rand_bytes(16),
    make(<<A:48, 4:4, B:12, 2:2, C:62>>).

-spec 'class v7'(term()) -> uuid().
'class v7'(_Class) ->
    Ms = erlang:system_time(millisecond),
    <<A:12, B:62, _:6>> = crypto:strong_rand_bytes(10),
    make(<<Ms:48, 7:4, A:12, 2:2, B:62>>).

-spec 'class fromString:'(term(), term()) -> map().
'class fromString:'(_Class, Text) ->
    case parse(beamtalk_argument:string(Text, ?CLASS, 'fromString:')) of
        {ok, Bytes} -> beamtalk_result:ok(make(Bytes));
        error -> beamtalk_binary:parse_error('fromString:', <<"invalid UUID text">>, Text, ?CLASS)
    end.

-spec 'class isValid:'(term(), term()) -> boolean().
'class isValid:'(_Class, Text) ->
    parse(beamtalk_argument:string(Text, ?CLASS, 'isValid:')) =/= error.

parse(<<A:8/binary, "-", B:4/binary, "-", C:4/binary, "-", D:4/binary, "-", E:12/binary>>) ->
    try
        {ok, binary:decode_hex(<<A/binary, B/binary, C/binary, D/binary, E/binary>>)}
    catch
        error:badarg -> error
    end;
parse(_) ->
    error.

make(Bytes) ->
    #{'$beamtalk_class' => ?CLASS, bytes => Bytes}.

-spec asString(uuid()) -> binary().
asString(#{bytes := Bytes}) ->
    <<A:8/binary, B:4/binary, C:4/binary, D:4/binary, E:12/binary>> = beamtalk_binary:asHex(Bytes),
    <<A/binary, "-", B/binary, "-", C/binary, "-", D/binary, "-", E/binary>>.

-spec asBinary(uuid()) -> binary().
asBinary(#{bytes := Bytes}) ->
    Bytes.

-spec printString(uuid()) -> binary().
printString(Self) ->
    <<"Uuid(", (asString(Self))/binary, ")">>.

-spec '<'(uuid(), term()) -> boolean().
'<'(#{bytes := Bytes}, Other) -> Bytes < bytes(Other, '<').

-spec '>'(uuid(), term()) -> boolean().
'>'(#{bytes := Bytes}, Other) -> Bytes > bytes(Other, '>').

-spec '<='(uuid(), term()) -> boolean().
'<='(#{bytes := Bytes}, Other) -> Bytes =< bytes(Other, '<=').

-spec '>='(uuid(), term()) -> boolean().
'>='(#{bytes := Bytes}, Other) -> Bytes >= bytes(Other, '>=').

bytes(#{'$beamtalk_class' := ?CLASS, bytes := Bytes}, _) -> Bytes;
bytes(_, Selector) -> beamtalk_argument:fail(?CLASS, Selector, <<"Expected a Uuid">>).
