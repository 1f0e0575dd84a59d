%% Primitives of Character: a Unicode scalar value, an Integer at run time.
-module(beamtalk_character).

-export(['class value:'/2, asString/1, printString/1, codepoint/1, uppercase/1, lowercase/1]).

-spec 'class value:'(term(), term()) -> char().
'class value:'(_Class, Codepoint) ->
    case beamtalk_integer:is_scalar(Codepoint) of
        true -> Codepoint;
        false -> beamtalk_argument:fail('Character', 'value:', <<"Expected a Unicode scalar value">>)
    end.

-spec codepoint(integer()) -> integer().
codepoint(Self) ->
    Self.

-spec asString(integer()) -> binary().
asString(Self) ->
    case beamtalk_integer:is_scalar(Self) of
        true -> <<Self/utf8>>;
        false -> beamtalk_argument:fail('Character', asString, <<"Not a Unicode scalar value">>)
    end.

-spec printString(integer()) -> binary().
printString(Self) ->
    <<"$", (asString(Self))/binary>>.

-spec uppercase(integer()) -> char().
uppercase(Self) ->
    first_codepoint(string:uppercase(asString(Self))).

-spec lowercase(integer()) -> char().
lowercase(Self) ->
    first_codepoint(string:lowercase(asString(Self))).

first_codepoint(<<Codepoint/utf8, _/binary>>) ->
    Codepoint.
