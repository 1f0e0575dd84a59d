%% The JSON codec (RFC 8259).
%%
%% Parsing walks the bytes once; a fault is thrown with the rest of the input, so
%% its position is known without being carried along.
-module(beamtalk_json).

-export(['class parse:'/2, 'class generate:'/2, 'class prettyPrint:'/2]).
-export([decode/1]).

-define(MAX_DEPTH, 10000).
-define(MAX_AS_JSON, 1000).
-define(IS_SPACE(C), (C =:= $\s orelse C =:= $\n orelse C =:= $\r orelse C =:= $\t)).
-define(IS_DIGIT(C), (C >= $0 andalso C =< $9)).

-spec 'class parse:'(term(), term()) -> map().
'class parse:'(_Class, Text) ->
    beamtalk_argument:binary(Text, 'Json', 'parse:'),
    case decode(Text) of
        {ok, Value} ->
            beamtalk_result:ok(Value);
        {error, Offset, What} ->
            Message = iolist_to_binary(["invalid JSON at byte ", integer_to_list(Offset), ": ", What]),
            beamtalk_result:failure(parse_error, 'Json', 'parse:', Message, nil, #{offset => Offset})
    end.

-spec 'class generate:'(term(), term()) -> binary().
'class generate:'(_Class, Value) ->
    iolist_to_binary(compact(to_json(Value, [], 'generate:'))).

-spec 'class prettyPrint:'(term(), term()) -> binary().
'class prettyPrint:'(_Class, Value) ->
    iolist_to_binary(pretty(to_json(Value, [], 'prettyPrint:'), <<"\n">>)).

%%% Generating
%%
%% First a tree of `{object, [{Key, Tree}]}', `{array, [Tree]}' and finished text.

to_json(Value, Seen, Selector) when length(Seen) > ?MAX_AS_JSON ->
    not_json(Value, Selector, <<"asJson never answers a JSON value">>);
to_json(nil, _, _) -> <<"null">>;
to_json(true, _, _) -> <<"true">>;
to_json(false, _, _) -> <<"false">>;
to_json(Value, _, _) when is_integer(Value) -> integer_to_binary(Value);
to_json(Value, _, _) when is_float(Value) -> beamtalk_display:native(Value);
to_json(Value, _, Selector) when is_binary(Value) -> quote(Value, Selector);
to_json(Value, _, Selector) when is_atom(Value) -> quote(atom_to_binary(Value), Selector);
to_json(Value, Seen, Selector) when is_list(Value) ->
    array(beamtalk_argument:list(Value, 'Json', Selector), Seen, Selector);
to_json(Value, Seen, Selector) when is_map(Value) -> map_to_json(Value, Seen, Selector);
to_json(Value, Seen, Selector) when is_tuple(Value) ->
    case beamtalk_dispatch:class_name(Value) of
        'Tuple' -> array(tuple_to_list(Value), Seen, Selector);
        _ -> object_to_json(Value, Seen, Selector)
    end;
to_json(Value, Seen, Selector) -> object_to_json(Value, Seen, Selector).

map_to_json(#{'$beamtalk_class' := Class} = Value, Seen, Selector)
  when Class =:= 'Array'; Class =:= 'Set'; Class =:= 'Interval'; Class =:= 'Bag' ->
    array(beamtalk_collection:elements(Value), Seen, Selector);
map_to_json(#{'$beamtalk_class' := _} = Value, Seen, Selector) ->
    object_to_json(Value, Seen, Selector);
map_to_json(Value, Seen, Selector) ->
    Members = [{key(Key, Selector), to_json(Member, Seen, Selector)}
               || {Key, Member} <- maps:to_list(Value)],
    {object, lists:sort(Members)}.

object_to_json(Value, Seen, Selector) ->
    case beamtalk_dispatch:responds_to(Value, asJson) of
        true ->
            case lists:member(Value, Seen) of
                true -> not_json(Value, Selector, <<"asJson leads back to the same object">>);
                false -> to_json(beamtalk_dispatch:send(Value, asJson), [Value | Seen], Selector)
            end;
        false ->
            fields_to_json(Value, Seen, Selector)
    end.

fields_to_json(#{'$beamtalk_class' := Class} = Value, Seen, Selector) ->
    case beamtalk_dispatch:is_kind_of(Value, 'Value') of
        true ->
            Members = [{quote(atom_to_binary(Field), Selector),
                        to_json(maps:get(Field, Value), Seen, Selector)}
                       || Field <- beamtalk_dispatch:send(Value, fieldNames)],
            {object, lists:sort(Members)};
        false ->
            not_json(Class, Selector, <<"Only values, collections, text and numbers have a JSON form">>)
    end;
fields_to_json(Value, _, Selector) ->
    not_json(Value, Selector, <<"Only values, collections, text and numbers have a JSON form">>).

array(Elements, Seen, Selector) ->
    {array, [to_json(Element, Seen, Selector) || Element <- Elements]}.

key(Key, Selector) when is_binary(Key) ->
    quote(Key, Selector);
key(Key, Selector) when is_atom(Key), Key =/= nil, Key =/= true, Key =/= false ->
    quote(atom_to_binary(Key), Selector);
key(Key, Selector) ->
    not_json(Key, Selector, <<"A key must be a String or a Symbol">>).

-spec not_json(term(), atom(), binary()) -> no_return().
not_json(_Value, Selector, Hint) ->
    beamtalk_argument:fail('Json', Selector, Hint).

quote(Text, Selector) ->
    case beamtalk_binary:is_utf8(Text) of
        true -> iolist_to_binary([$", escape(Text, Text, 0, 0), $"]);
        false -> not_json(Text, Selector, <<"Bytes that are not UTF-8 have no JSON form">>)
    end.

%% `Length' bytes from `Start' need no escape.
escape(<<C, Rest/binary>>, Text, Start, Length) when C =:= $"; C =:= $\\; C < 32 ->
    [binary:part(Text, Start, Length), escaped(C)
     | escape(Rest, Text, Start + Length + 1, 0)];
escape(<<_, Rest/binary>>, Text, Start, Length) ->
    escape(Rest, Text, Start, Length + 1);
escape(<<>>, Text, Start, Length) ->
    [binary:part(Text, Start, Length)].

escaped($") -> <<"\\\"">>;
escaped($\\) -> <<"\\\\">>;
escaped($\n) -> <<"\\n">>;
escaped($\r) -> <<"\\r">>;
escaped($\t) -> <<"\\t">>;
escaped($\b) -> <<"\\b">>;
escaped($\f) -> <<"\\f">>;
escaped(C) -> <<"\\u00", (beamtalk_binary:asHex(<<C>>))/binary>>.

compact({object, Members}) ->
    [${, lists:join($,, [[Key, $:, compact(Value)] || {Key, Value} <- Members]), $}];
compact({array, Elements}) ->
    [$[, lists:join($,, [compact(Element) || Element <- Elements]), $]];
compact(Text) ->
    Text.

pretty({object, []}, _) ->
    <<"{}">>;
pretty({array, []}, _) ->
    <<"[]">>;
pretty({object, Members}, Break) ->
    Inner = <<Break/binary, "  ">>,
    Parts = [[Key, ": ", pretty(Value, Inner)] || {Key, Value} <- Members],
    [${, Inner, lists:join([$,, Inner], Parts), Break, $}];
pretty({array, Elements}, Break) ->
    Inner = <<Break/binary, "  ">>,
    Parts = [pretty(Element, Inner) || Element <- Elements],
    [$[, Inner, lists:join([$,, Inner], Parts), Break, $]];
pretty(Text, _) ->
    Text.

%%% Parsing

-spec decode(binary()) -> {ok, term()} | {error, non_neg_integer(), iodata()}.
decode(Text) ->
    try
        {Value, Rest} = value(skip(Text), 0),
        case skip(Rest) of
            <<>> -> {ok, Value};
            Trailing -> throw({?MODULE, Trailing, "text after the value"})
        end
    catch
        throw:{?MODULE, Where, What} -> {error, byte_size(Text) - byte_size(Where), What}
    end.

skip(<<C, Rest/binary>>) when ?IS_SPACE(C) -> skip(Rest);
skip(Rest) -> Rest.

value(Text, Depth) when Depth > ?MAX_DEPTH -> fail(Text, "nested too deeply");
value(<<"null", Rest/binary>>, _) -> {nil, Rest};
value(<<"true", Rest/binary>>, _) -> {true, Rest};
value(<<"false", Rest/binary>>, _) -> {false, Rest};
value(<<$", Rest/binary>>, _) -> string(Rest);
value(<<$[, Rest/binary>>, Depth) ->
    case skip(Rest) of
        <<$], Tail/binary>> -> {[], Tail};
        Inner -> elements(Inner, [], Depth + 1)
    end;
value(<<${, Rest/binary>>, Depth) ->
    case skip(Rest) of
        <<$}, Tail/binary>> -> {#{}, Tail};
        Inner -> members(Inner, #{}, Depth + 1)
    end;
value(<<C, _/binary>> = Text, _) when C =:= $-; ?IS_DIGIT(C) -> number(Text);
value(<<>>, _) -> fail(<<>>, "unexpected end of text");
value(Text, _) -> fail(Text, "a value was expected").

elements(Text, Acc, Depth) ->
    {Element, Rest} = value(Text, Depth),
    case skip(Rest) of
        <<$,, Tail/binary>> -> elements(skip(Tail), [Element | Acc], Depth);
        <<$], Tail/binary>> -> {lists:reverse([Element | Acc]), Tail};
        Other -> fail(Other, "',' or ']' was expected")
    end.

members(<<$", Text/binary>>, Acc, Depth) ->
    {Key, AfterKey} = string(Text),
    case skip(AfterKey) of
        <<$:, AfterColon/binary>> ->
            {Value, Rest} = value(skip(AfterColon), Depth),
            NewAcc = Acc#{Key => Value},
            case skip(Rest) of
                <<$,, Tail/binary>> -> members(skip(Tail), NewAcc, Depth);
                <<$}, Tail/binary>> -> {NewAcc, Tail};
                Other -> fail(Other, "',' or '}' was expected")
            end;
        Other ->
            fail(Other, "':' was expected")
    end;
members(Text, _, _) ->
    fail(Text, "a key was expected").

string(Text) ->
    string(Text, Text, 0, []).

string(<<$", Rest/binary>>, Start, Length, Acc) ->
    Parts = lists:reverse(Acc, [binary:part(Start, 0, Length)]),
    {checked(iolist_to_binary(Parts), Start), Rest};
string(<<$\\, Rest/binary>>, Start, Length, Acc) ->
    {Character, Tail} = escape_sequence(Rest),
    string(Tail, Tail, 0, [Character, binary:part(Start, 0, Length) | Acc]);
string(<<C, _/binary>> = Text, _, _, _) when C < 32 ->
    fail(Text, "a control character in a string");
string(<<_, Rest/binary>>, Start, Length, Acc) ->
    string(Rest, Start, Length + 1, Acc);
string(<<>>, _, _, _) ->
    fail(<<>>, "the string does not end").

checked(Value, Where) ->
    case beamtalk_binary:is_utf8(Value) of
        true -> Value;
        false -> fail(Where, "the string is not UTF-8")
    end.

escape_sequence(<<$", Rest/binary>>) -> {$", Rest};
escape_sequence(<<$\\, Rest/binary>>) -> {$\\, Rest};
escape_sequence(<<$/, Rest/binary>>) -> {$/, Rest};
escape_sequence(<<$b, Rest/binary>>) -> {$\b, Rest};
escape_sequence(<<$f, Rest/binary>>) -> {$\f, Rest};
escape_sequence(<<$n, Rest/binary>>) -> {$\n, Rest};
escape_sequence(<<$r, Rest/binary>>) -> {$\r, Rest};
escape_sequence(<<$t, Rest/binary>>) -> {$\t, Rest};
escape_sequence(<<$u, Hex:4/binary, Rest/binary>> = Text) ->
    case code_unit(Hex, Text) of
        High when High >= 16#D800, High =< 16#DBFF -> low_surrogate(High, Rest, Text);
        Low when Low >= 16#DC00, Low =< 16#DFFF -> fail(Text, "a lone surrogate");
        Codepoint -> {<<Codepoint/utf8>>, Rest}
    end;
escape_sequence(Text) ->
    fail(Text, "an invalid escape").

low_surrogate(High, <<"\\u", Hex:4/binary, Rest/binary>>, Text) ->
    case code_unit(Hex, Text) of
        Low when Low >= 16#DC00, Low =< 16#DFFF ->
            Codepoint = 16#10000 + (High - 16#D800) * 16#400 + (Low - 16#DC00),
            {<<Codepoint/utf8>>, Rest};
        _ ->
            fail(Text, "a lone surrogate")
    end;
low_surrogate(_, _, Text) ->
    fail(Text, "a lone surrogate").

code_unit(Hex, Text) ->
    try
        <<Unit:16>> = binary:decode_hex(Hex),
        Unit
    catch
        error:_ -> fail(Text, "an invalid escape")
    end.

%% Splits off the longest prefix that has the form of a JSON number.
number(Text) ->
    AfterSign = case Text of
                    <<$-, Rest/binary>> -> Rest;
                    _ -> Text
                end,
    AfterWhole = case AfterSign of
                     <<$0, Tail/binary>> -> Tail;
                     _ -> digits(AfterSign)
                 end,
    AfterFraction = case AfterWhole of
                        <<$., Fraction/binary>> -> digits(Fraction);
                        _ -> AfterWhole
                    end,
    AfterExponent = exponent(AfterFraction),
    Source = prefix(Text, AfterExponent),
    case AfterExponent =:= AfterWhole of
        true ->
            {binary_to_integer(Source), AfterExponent};
        false ->
            Whole = prefix(Text, AfterWhole),
            Fractional = case prefix(AfterWhole, AfterFraction) of
                             <<>> -> <<".0">>;
                             Digits -> Digits
                         end,
            {to_float(<<Whole/binary, Fractional/binary,
                        (prefix(AfterFraction, AfterExponent))/binary>>, Text), AfterExponent}
    end.

exponent(<<E, Sign, Rest/binary>>) when E =:= $e orelse E =:= $E, Sign =:= $+ orelse Sign =:= $- ->
    digits(Rest);
exponent(<<E, Rest/binary>>) when E =:= $e; E =:= $E ->
    digits(Rest);
exponent(Text) ->
    Text.

digits(<<C, Rest/binary>>) when ?IS_DIGIT(C) -> more_digits(Rest);
digits(Text) -> fail(Text, "a digit was expected").

more_digits(<<C, Rest/binary>>) when ?IS_DIGIT(C) -> more_digits(Rest);
more_digits(Text) -> Text.

prefix(Text, Rest) ->
    binary:part(Text, 0, byte_size(Text) - byte_size(Rest)).

to_float(Source, Text) ->
    try
        binary_to_float(Source)
    catch
        error:badarg -> fail(Text, "the number is out of range")
    end.

-spec fail(binary(), string()) -> no_return().
fail(Where, What) ->
    throw({?MODULE, Where, What}).
