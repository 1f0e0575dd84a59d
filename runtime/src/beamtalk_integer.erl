%% Primitives of Integer that are not plain Erlang operators, and the Unicode
%% predicates of codepoints.
-module(beamtalk_integer).

-export(['timesRepeat:'/2, 'to:do:'/3, 'to:by:do:'/4, 'to:'/2, 'to:by:'/3, 'gcd:'/2,
         'lcm:'/2, isLetter/1, isDigit/1, isUppercase/1, isLowercase/1, isWhitespace/1]).
-export([is_scalar/1]).

-define(IS_SCALAR(C),
        (is_integer(C) andalso C >= 0 andalso C =< 16#10FFFF
         andalso not (C >= 16#D800 andalso C =< 16#DFFF))).

-spec 'timesRepeat:'(integer(), term()) -> nil.
'timesRepeat:'(Self, Block) ->
    repeat(Self, beamtalk_argument:block(Block, 0, 'Integer', 'timesRepeat:')).

repeat(Left, Block) when Left > 0 ->
    Block(),
    repeat(Left - 1, Block);
repeat(_, _) ->
    nil.

-spec 'to:do:'(integer(), term(), term()) -> nil.
'to:do:'(Self, End, Block) ->
    beamtalk_argument:integer(End, 'Integer', 'to:do:'),
    beamtalk_argument:block(Block, 1, 'Integer', 'to:do:'),
    up(Self, End, 1, Block).

-spec 'to:by:do:'(integer(), term(), term(), term()) -> nil.
'to:by:do:'(Self, End, Step, Block) ->
    beamtalk_argument:integer(End, 'Integer', 'to:by:do:'),
    beamtalk_argument:integer(Step, 'Integer', 'to:by:do:'),
    beamtalk_argument:block(Block, 1, 'Integer', 'to:by:do:'),
    if
        Step > 0 -> up(Self, End, Step, Block);
        Step < 0 -> down(Self, End, Step, Block);
        true -> nil
    end.

up(Value, End, Step, Block) when Value =< End ->
    Block(Value),
    up(Value + Step, End, Step, Block);
up(_, _, _, _) ->
    nil.

down(Value, End, Step, Block) when Value >= End ->
    Block(Value),
    down(Value + Step, End, Step, Block);
down(_, _, _, _) ->
    nil.

-spec 'to:'(integer(), term()) -> map().
'to:'(Self, Stop) ->
    beamtalk_interval:make(Self, beamtalk_argument:integer(Stop, 'Integer', 'to:'), 1).

-spec 'to:by:'(integer(), term(), term()) -> map().
'to:by:'(Self, Stop, Step) ->
    beamtalk_argument:integer(Stop, 'Integer', 'to:by:'),
    case beamtalk_argument:integer(Step, 'Integer', 'to:by:') of
        0 ->
            Message = <<"the step of an Interval must not be 0">>,
            beamtalk_error:raise(user_error, 'Integer', 'to:by:', Message, nil, #{});
        _ ->
            beamtalk_interval:make(Self, Stop, Step)
    end.

-spec 'gcd:'(integer(), term()) -> non_neg_integer().
'gcd:'(Self, Other) ->
    gcd(abs(Self), abs(beamtalk_argument:integer(Other, 'Integer', 'gcd:'))).

-spec 'lcm:'(integer(), term()) -> non_neg_integer().
'lcm:'(Self, Other) ->
    beamtalk_argument:integer(Other, 'Integer', 'lcm:'),
    case Self =:= 0 orelse Other =:= 0 of
        true -> 0;
        false -> abs(Self div gcd(abs(Self), abs(Other)) * Other)
    end.

gcd(A, 0) -> A;
gcd(A, B) -> gcd(B, A rem B).

-spec isLetter(integer()) -> boolean().
isLetter(C) when C >= $a, C =< $z; C >= $A, C =< $Z -> true;
isLetter(C) -> C > 127 andalso has_property(C, <<"\\A\\p{L}\\z">>).

-spec isDigit(integer()) -> boolean().
isDigit(C) when C >= $0, C =< $9 -> true;
isDigit(C) -> C > 127 andalso has_property(C, <<"\\A\\p{Nd}\\z">>).

-spec isUppercase(integer()) -> boolean().
isUppercase(C) when C >= $A, C =< $Z -> true;
isUppercase(C) -> C > 127 andalso has_property(C, <<"\\A\\p{Lu}\\z">>).

-spec isLowercase(integer()) -> boolean().
isLowercase(C) when C >= $a, C =< $z -> true;
isLowercase(C) -> C > 127 andalso has_property(C, <<"\\A\\p{Ll}\\z">>).

-spec isWhitespace(integer()) -> boolean().
isWhitespace(C) when C >= 9, C =< 13; C =:= 32 -> true;
isWhitespace(C) -> C > 127 andalso has_property(C, <<"\\A\\p{Z}\\z">>).

-spec is_scalar(term()) -> boolean().
is_scalar(C) ->
    ?IS_SCALAR(C).

has_property(C, Pattern) ->
    ?IS_SCALAR(C) andalso re:run(<<C/utf8>>, Pattern, [unicode, {capture, none}]) =:= match.
