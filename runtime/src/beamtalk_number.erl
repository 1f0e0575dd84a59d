%% Primitives shared by Integer and Float.
%%
%% A fault of arithmetic is the raw `badarith', which is classified as
%% `type_error' with the Erlang tag kept, whatever function it came from.
-module(beamtalk_number).

-export(['raisedTo:'/2, 'roundTo:'/2, 'truncateTo:'/2, 'min:'/2, 'max:'/2, 'atan2:'/2, fail/3]).

%% Multiplying larger integers than this keeps a scheduler busy for minutes, and
%% nobody can interrupt it.
-define(MAX_BITS, (1 bsl 23)).

%% An operation that cannot work, performed so that the failure tells its operands.
-spec fail(atom(), number(), term()) -> no_return().
fail(Operator, Left, Right) ->
    apply(erlang, Operator, [Left, Right]).

-spec 'raisedTo:'(number(), term()) -> number().
'raisedTo:'(Base, Exponent) when is_integer(Base), is_integer(Exponent), Exponent >= 0 ->
    abs(Base) > 1 andalso Exponent > ?MAX_BITS div bits(Base) andalso error(system_limit),
    power(Base, Exponent, 1);
'raisedTo:'(Base, Exponent) when is_number(Exponent) ->
    math:pow(Base, Exponent);
'raisedTo:'(_, _) ->
    error(badarith).

bits(Integer) when abs(Integer) < 1 bsl 8 ->
    length([I || I <- lists:seq(0, 7), abs(Integer) bsr I > 0]);
bits(Integer) ->
    8 * byte_size(binary:encode_unsigned(abs(Integer))).

power(_, 0, Acc) -> Acc;
power(Base, 1, Acc) -> Base * Acc;
power(Base, Exponent, Acc) when Exponent rem 2 =:= 1 ->
    power(Base * Base, Exponent div 2, Base * Acc);
power(Base, Exponent, Acc) ->
    power(Base * Base, Exponent div 2, Acc).

-spec 'roundTo:'(number(), term()) -> number().
'roundTo:'(Self, Quantum) when is_integer(Self), is_integer(Quantum), Quantum =/= 0 ->
    Unit = abs(Quantum),
    Magnitude = (2 * abs(Self) + Unit) div (2 * Unit) * Unit,
    case Self < 0 of
        true -> -Magnitude;
        false -> Magnitude
    end;
'roundTo:'(Self, Quantum) when is_number(Quantum) ->
    round(Self / Quantum) * Quantum;
'roundTo:'(_, _) ->
    error(badarith).

-spec 'truncateTo:'(number(), term()) -> number().
'truncateTo:'(Self, Quantum) when is_integer(Self), is_integer(Quantum), Quantum =/= 0 ->
    Self div Quantum * Quantum;
'truncateTo:'(Self, Quantum) when is_number(Quantum) ->
    trunc(Self / Quantum) * Quantum;
'truncateTo:'(_, _) ->
    error(badarith).

-spec 'min:'(number(), term()) -> number().
'min:'(Self, Other) ->
    min(Self, beamtalk_argument:number(Other, class_name(Self), 'min:')).

-spec 'max:'(number(), term()) -> number().
'max:'(Self, Other) ->
    max(Self, beamtalk_argument:number(Other, class_name(Self), 'max:')).

-spec 'atan2:'(number(), term()) -> float().
'atan2:'(Self, X) ->
    math:atan2(Self, beamtalk_argument:number(X, class_name(Self), 'atan2:')).

class_name(Self) when is_integer(Self) -> 'Integer';
class_name(_) -> 'Float'.
