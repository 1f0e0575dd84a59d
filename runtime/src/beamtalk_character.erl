%% Primitives of Character: a Unicode scalar value, an Integer at run time.
-module(beamtalk_character).

-export(['class value:'/2, asString/1, printString/1, uppercase/1, lowercase/1,
         'respondsTo:'/2, 'perform:'/2, 'perform:withArguments:'/3, 'isKindOf:'/2]).

-spec 'class value:'(term(), term()) -> char().
'class value:'(_Class, Codepoint) ->
    case beamtalk_integer:is_scalar(Codepoint) of
        true -> Codepoint;
        false -> beamtalk_argument:fail('Character', 'value:', <<"Expected a Unicode scalar value">>)
    end.

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

%% A character is an Integer at run time, so what asks for the class of the
%% receiver is answered here.
-spec 'respondsTo:'(integer(), term()) -> boolean().
'respondsTo:'(_Self, Selector) ->
    beamtalk_argument:symbol(Selector, 'Character', 'respondsTo:'),
    beamtalk_dispatch:method('Character', Selector) =/= none.

-spec 'perform:'(integer(), term()) -> term().
'perform:'(Self, Selector) ->
    beamtalk_argument:symbol(Selector, 'Character', 'perform:'),
    beamtalk_dispatch:send_as('Character', Self, Selector, []).

-spec 'perform:withArguments:'(integer(), term(), term()) -> term().
'perform:withArguments:'(Self, Selector, Arguments) ->
    beamtalk_argument:symbol(Selector, 'Character', 'perform:withArguments:'),
    beamtalk_argument:list(Arguments, 'Character', 'perform:withArguments:'),
    beamtalk_dispatch:send_as('Character', Self, Selector, Arguments).

-spec 'isKindOf:'(integer(), term()) -> boolean().
'isKindOf:'(_Self, {beamtalk_object, _, _, Class}) when is_atom(Class) ->
    beamtalk_class:inherits('Character', Class);
'isKindOf:'(_Self, _) ->
    beamtalk_argument:fail('Character', 'isKindOf:', <<"Expected a class">>).

first_codepoint(<<Codepoint/utf8, _/binary>>) ->
    Codepoint.
