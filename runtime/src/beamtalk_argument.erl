%% Checks of arguments to library selectors.
%%
%% Every function answers its first argument when it is of the wanted shape and
%% raises `type_error' for the given class and selector otherwise. Primitives
%% call them first, so that misuse raises before anything happens.
-module(beamtalk_argument).

-export([block/4, boolean/3, integer/3, non_negative/3, positive/3, number/3, string/3, is_string/1, binary/3,
         list/3, list_of/4, symbol/3, dictionary/3, tuple/3, milliseconds/3, timeout/3, refuse/4, out_of_bounds/4,
         fail/3, fail/4]).

-type class() :: atom().
-type selector() :: atom().

-spec block(term(), arity(), class(), selector()) -> fun().
block(Block, Arity, _Class, _Selector) when is_function(Block, Arity) ->
    Block;
block(Value, Arity, Class, Selector) ->
    refuse(Value, Class, Selector, block_hint(Arity)).

-spec boolean(term(), class(), selector()) -> boolean().
boolean(Value, _Class, _Selector) when is_boolean(Value) ->
    Value;
boolean(_, Class, Selector) ->
    fail(Class, Selector, <<"The block must answer true or false">>).

-spec integer(term(), class(), selector()) -> integer().
integer(Value, _Class, _Selector) when is_integer(Value) ->
    Value;
integer(Value, Class, Selector) ->
    refuse(Value, Class, Selector, <<"Expected an Integer">>).

-spec non_negative(term(), class(), selector()) -> non_neg_integer().
non_negative(Value, _Class, _Selector) when is_integer(Value), Value >= 0 ->
    Value;
non_negative(Value, Class, Selector) ->
    refuse(Value, Class, Selector, <<"Expected an Integer of at least 0">>).

-spec positive(term(), class(), selector()) -> pos_integer().
positive(Value, _Class, _Selector) when is_integer(Value), Value >= 1 ->
    Value;
positive(Value, Class, Selector) ->
    refuse(Value, Class, Selector, <<"Expected an Integer of at least 1">>).

-spec number(term(), class(), selector()) -> number().
number(Value, _Class, _Selector) when is_number(Value) ->
    Value;
number(Value, Class, Selector) ->
    refuse(Value, Class, Selector, <<"Expected a Number">>).

-spec string(term(), class(), selector()) -> binary().
string(Value, Class, Selector) ->
    case is_string(Value) of
        true -> Value;
        false -> refuse(Value, Class, Selector, <<"Expected a String">>)
    end.

%% Bytes that are not UTF-8 are a Binary and no String.
-spec is_string(term()) -> boolean().
is_string(Value) ->
    is_binary(Value) andalso beamtalk_dispatch:is_text(Value).

-spec binary(term(), class(), selector()) -> binary().
binary(Value, _Class, _Selector) when is_binary(Value) ->
    Value;
binary(Value, Class, Selector) ->
    %% A String takes bytes that are no text too; that is not what one wants to hear about.
    refuse(Value, Class, Selector, case Class of
                                       'String' -> <<"Expected a String">>;
                                       _ -> <<"Expected a Binary">>
                                   end).

-spec list(term(), class(), selector()) -> list().
list(Value, _Class, _Selector) when is_list(Value), length(Value) >= 0 ->
    Value;
list(Value, Class, Selector) ->
    refuse(Value, Class, Selector, <<"Expected a List">>).

%% A proper List whose elements all pass `Test'; `What' names them in the hint.
-spec list_of(term(), fun((term()) -> boolean()), class(), selector()) -> list().
list_of(Value, Test, Class, Selector) ->
    Elements = list(Value, Class, Selector),
    case lists:all(Test, Elements) of
        true -> Elements;
        false -> fail(Class, Selector, <<"An element of the List has the wrong class">>)
    end.

-spec symbol(term(), class(), selector()) -> atom().
symbol(Value, _Class, _Selector)
  when is_atom(Value), Value =/= nil, Value =/= true, Value =/= false ->
    Value;
symbol(Value, Class, Selector) ->
    refuse(Value, Class, Selector, <<"Expected a Symbol">>).

-spec dictionary(term(), class(), selector()) -> map().
dictionary(Value, _Class, _Selector)
  when is_map(Value), not is_map_key('$beamtalk_class', Value) ->
    Value;
dictionary(Value, Class, Selector) ->
    refuse(Value, Class, Selector, <<"Expected a Dictionary">>).

-spec tuple(term(), class(), selector()) -> tuple().
tuple(Value, Class, Selector) when is_tuple(Value) ->
    case tuple_size(Value) =:= 4 andalso element(1, Value) of
        Tag when Tag =:= beamtalk_object; Tag =:= beamtalk_supervisor ->
            refuse(Value, Class, Selector, <<"Expected a Tuple">>);
        _ ->
            Value
    end;
tuple(Value, Class, Selector) ->
    refuse(Value, Class, Selector, <<"Expected a Tuple">>).

%% A time span: Integer milliseconds of at least 0, or a Duration that is not negative.
-spec milliseconds(term(), class(), selector()) -> non_neg_integer().
milliseconds(Value, _Class, _Selector) when is_integer(Value), Value >= 0 ->
    Value;
milliseconds(#{'$beamtalk_class' := 'Duration', ms := Ms}, _Class, _Selector)
  when is_integer(Ms), Ms >= 0 ->
    Ms;
milliseconds(Value, Class, Selector) ->
    refuse(Value, Class, Selector, <<"Expected milliseconds as an Integer of at least 0, or a Duration">>).

-spec timeout(term(), class(), selector()) -> timeout().
timeout(infinity, _Class, _Selector) ->
    infinity;
timeout(Value, Class, Selector) ->
    milliseconds(Value, Class, Selector).

%% The value goes with the error, for those who show it.
-spec refuse(term(), class(), selector(), binary()) -> no_return().
refuse(Value, Class, Selector, Hint) ->
    Exception = beamtalk_error:new(type_error, Class, Selector, undefined, Hint, #{}),
    erlang:error(Exception#{got => Value}).

%% An index of a collection of so many elements, which does not have it.
-spec out_of_bounds(integer(), non_neg_integer(), class(), selector()) -> no_return().
out_of_bounds(Index, Size, Class, Selector) ->
    Exception = beamtalk_error:new(index_out_of_bounds, Class, Selector, undefined, nil, #{}),
    erlang:error(Exception#{got => {Index, Size}}).

-spec fail(class(), selector(), binary()) -> no_return().
fail(Class, Selector, Hint) ->
    beamtalk_error:raise(type_error, Class, Selector, Hint).

-spec fail(atom(), class(), selector(), binary()) -> no_return().
fail(Kind, Class, Selector, Hint) ->
    beamtalk_error:raise(Kind, Class, Selector, Hint).

block_hint(0) ->
    <<"Expected a Block without parameters">>;
block_hint(1) ->
    <<"Expected a Block with one parameter">>;
block_hint(Arity) ->
    <<"Expected a Block with ", (integer_to_binary(Arity))/binary, " parameters">>.
