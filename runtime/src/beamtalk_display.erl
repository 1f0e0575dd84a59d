%% The two string forms: `printString' for developers, `displayString' for people.
%%
%% `print/1' and `display/1' follow the full protocol (a class may override either
%% message). `native/1' and `native_display/1' print any term without sending a
%% message; they serve primitive printString methods and error messages about
%% terms that may belong to no class.
-module(beamtalk_display).

-export([print/1, display/1, native/1, native_display/1, symbol/1, float/1, string/1]).
-export([value/1, exception/1, list/3]).

-compile({no_auto_import, [float/1]}).

-define(MAX_DEPTH, 5).
-define(MAX_FIELDS, 50).
%% How deep collections are shown inside each other.
-define(MAX_NESTED, 100).
-define(MAX_BYTES, 10000).

%% printString of a term.
-spec print(term()) -> binary().
print(Term) -> text(printString, Term).

%% displayString of a term.
-spec display(term()) -> binary().
display(Term) when is_integer(Term) ->
    case persistent_term:get('$bt_plain', false) of
        true -> integer_to_binary(Term);
        false -> text(displayString, Term)
    end;
display(Term) when is_binary(Term) ->
    case persistent_term:get('$bt_plain', false) andalso beamtalk_dispatch:is_text(Term) of
        true -> Term;
        false -> text(displayString, Term)
    end;
display(Term) -> text(displayString, Term).

text(Form, Term) ->
    case beamtalk_dispatch:responds_to(Term, Form) of
        true ->
            case beamtalk_dispatch:send(Term, Form) of
                Text when is_binary(Text) -> Text;
                Other -> native_display(Other)
            end;
        false when Form =:= displayString -> native_display(Term);
        false -> native(Term)
    end.

-spec native_display(term()) -> binary().
native_display(Term) when is_binary(Term) ->
    case beamtalk_dispatch:is_text(Term) of
        true -> Term;
        false -> native(Term)
    end;
native_display(Term) when is_atom(Term) -> atom_to_binary(Term);
native_display(Term) -> native(Term).

-spec native(term()) -> binary().
native(T) when is_integer(T) -> integer_to_binary(T);
native(T) when is_float(T) -> float(T);
native(T) when is_binary(T) -> string(T);
native(T) when is_atom(T) -> symbol(T);
native(T) when is_list(T) -> list(<<"#(">>, T, <<")">>);
native(T) when is_function(T) -> <<"Block">>;
native(#{'$beamtalk_class' := C} = T) -> tagged(C, T);
native(T) when is_map(T) ->
    Pairs = [<<(nested(K))/binary, " => ", (nested(V))/binary>> || {K, V} <- maps:to_list(T)],
    joined(<<"#{">>, lists:sort(Pairs), <<"}">>);
native({beamtalk_object, 'Metaclass', _, Name}) when is_atom(Name) ->
    <<(atom_to_binary(Name))/binary, " class">>;
native({beamtalk_object, _, _, Name}) when is_atom(Name) -> atom_to_binary(Name);
native({beamtalk_object, Class, _, {registered, Name}}) ->
    <<"Actor(", (atom_to_binary(Class))/binary, ", registered, ", (atom_to_binary(Name))/binary, ")">>;
native({beamtalk_object, Class, _, Pid}) when is_pid(Pid) ->
    <<"Actor(", (atom_to_binary(Class))/binary, ", ", (pid(Pid))/binary, ")">>;
native({beamtalk_supervisor, Class, _, Pid}) when is_pid(Pid) ->
    Head = case beamtalk_class:inherits(Class, 'DynamicSupervisor') of
        true -> <<"DynamicSupervisor(">>;
        false -> <<"Supervisor(">>
    end,
    <<Head/binary, (atom_to_binary(Class))/binary, ", ", (pid(Pid))/binary, ")">>;
native(T) when is_tuple(T) -> list(<<"{">>, tuple_to_list(T), <<"}">>);
native(T) when is_pid(T) -> <<"#Pid<", (pid(T))/binary, ">">>;
native(T) when is_port(T) -> <<"#", (list_to_binary(erlang:port_to_list(T) -- "#"))/binary>>;
native(T) when is_reference(T) -> list_to_binary(erlang:ref_to_list(T));
native(T) when is_bitstring(T) -> unicode:characters_to_binary(io_lib:format("~w", [T])).

pid(Pid) ->
    string:trim(list_to_binary(erlang:pid_to_list(Pid)), both, "<>").

tagged('Array', #{data := Data}) when is_map(Data) ->
    list(<<"#[">>, [maps:get(I, Data) || I <- lists:seq(1, map_size(Data))], <<"]">>);
tagged('Set', #{elements := Elements}) -> list(<<"Set(">>, Elements, <<")">>);
tagged('Result', #{isOk := true, okValue := V}) -> <<"Result ok: ", (nested(V))/binary>>;
tagged('Result', #{errReason := R}) -> <<"Result error: ", (nested(R))/binary>>;
tagged('ErlangModule', #{module := M}) -> <<"#ErlangModule<", (atom_to_binary(M))/binary, ">">>;
tagged(Class, T) ->
    case beamtalk_error:is_exception(T) of
        true -> exception(T);
        false ->
            %% Only values show their fields.
            case beamtalk_dispatch:info(Class) of
                #{kind := object} -> atom_to_binary(Class);
                _ -> value(T)
            end
    end.

%% Message, and the hint on a line of its own.
-spec exception(map()) -> binary().
exception(Exception) ->
    Message = beamtalk_error:field(Exception, message),
    case beamtalk_error:field(Exception, hint) of
        nil -> Message;
        Hint -> <<Message/binary, "\nHint: ", Hint/binary>>
    end.

%% Elements of a list (proper or not) between brackets.
-spec list(binary(), term(), binary()) -> binary().
list(Open, Elements, Close) ->
    joined(Open, elements(Elements), Close).

elements([E | Rest]) when is_list(Rest) -> [nested(E) | elements(Rest)];
elements([E | Tail]) -> [<<(nested(E))/binary, " | ", (nested(Tail))/binary>>];
elements([]) -> [].

%% An element of something that is being printed. Every level copies the text of those below, so there is an end to it.
nested(Element) when is_list(Element); is_map(Element); is_tuple(Element) ->
    case get('$bt_nested') of
        undefined -> deeper(Element, 1);
        Depth when Depth >= ?MAX_NESTED -> <<"...">>;
        Depth -> deeper(Element, Depth + 1)
    end;
nested(Element) -> print(Element).

deeper(Element, Depth) ->
    Before = put('$bt_nested', Depth),
    try print(Element)
    after
        case Before of
            undefined -> erase('$bt_nested');
            _ -> put('$bt_nested', Before)
        end
    end.

joined(Open, Texts, Close) ->
    iolist_to_binary([Open, lists:join(<<", ">>, Texts), Close]).

-spec string(binary()) -> binary().
string(Bytes) ->
    case beamtalk_dispatch:is_text(Bytes) of
        true ->
            Quoted = binary:replace(Bytes, <<"\"">>, <<"\"\"">>, [global]),
            <<"\"", Quoted/binary, "\"">>;
        false ->
            Hex = [io_lib:format("~2.16.0B", [B]) || <<B>> <= Bytes],
            iolist_to_binary(["<<", lists:join(" ", Hex), ">>"])
    end.

%% `#name', quoted unless it is an identifier, a keyword selector or an operator.
-spec symbol(atom()) -> binary().
symbol(nil) -> <<"nil">>;
symbol(true) -> <<"true">>;
symbol(false) -> <<"false">>;
symbol(Atom) ->
    Name = atom_to_binary(Atom),
    case is_plain_symbol(Name) of
        true -> <<"#", Name/binary>>;
        false ->
            Quoted = binary:replace(Name, <<"'">>, <<"''">>, [global]),
            <<"#'", Quoted/binary, "'">>
    end.

is_plain_symbol(Name) ->
    re:run(Name, "\\A([A-Za-z_][A-Za-z0-9_]*|([A-Za-z_][A-Za-z0-9_]*:)+)\\z",
           [{capture, none}, dollar_endonly]) =:= match
        orelse lists:member(Name, [<<"**">>, <<"*">>, <<"/">>, <<"%">>, <<"++">>, <<"+">>,
                                   <<"-">>, <<"<=">>, <<"<">>, <<">=">>, <<">">>, <<"==">>,
                                   <<"/=">>, <<"=:=">>, <<"=/=">>, <<">>">>, <<"->">>]).

%% Shortest digits that read back; plain or exponent form, whichever is shorter.
-spec float(float()) -> binary().
float(F) when F < 0 -> <<"-", (float(-F))/binary>>;
float(F) when F == 0 -> float_to_binary(F, [short]);
float(F) ->
    {Digits, Exponent} = digits(float_to_binary(F, [short])),
    Scientific = scientific(Digits, Exponent),
    if
        F >= 9007199254740992.0 -> Scientific;
        true ->
            Plain = plain(Digits, Exponent),
            if
                byte_size(Plain) =< byte_size(Scientific) -> Plain;
                true -> Scientific
            end
    end.

%% Significant digits D1 D2 … and the exponent E of D1.D2… * 10^E.
digits(Text) ->
    {Mantissa, Exponent} = case binary:split(Text, <<"e">>) of
        [M, E] -> {M, binary_to_integer(E)};
        [M] -> {M, 0}
    end,
    [Whole, Fraction] = binary:split(Mantissa, <<".">>),
    normal(Whole, strip_zeros(Fraction), Exponent).

normal(<<"0">>, Fraction, Exponent) ->
    Rest = drop_zeros(Fraction),
    case Rest of
        <<>> -> {<<"0">>, 0};
        _ -> {Rest, Exponent - (byte_size(Fraction) - byte_size(Rest)) - 1}
    end;
normal(Whole, Fraction, Exponent) ->
    All = strip_zeros(<<Whole/binary, Fraction/binary>>),
    {All, Exponent + byte_size(Whole) - 1}.

drop_zeros(<<"0", Rest/binary>>) -> drop_zeros(Rest);
drop_zeros(Rest) -> Rest.

strip_zeros(Digits) -> string:trim(Digits, trailing, "0").

scientific(<<First:1/binary, Rest/binary>>, Exponent) ->
    Fraction = if Rest =:= <<>> -> <<"0">>; true -> Rest end,
    <<First/binary, ".", Fraction/binary, "e", (integer_to_binary(Exponent))/binary>>.

plain(Digits, Exponent) when Exponent < 0 ->
    <<"0.", (zeros(-Exponent - 1))/binary, Digits/binary>>;
plain(Digits, Exponent) when byte_size(Digits) =< Exponent + 1 ->
    <<Digits/binary, (zeros(Exponent + 1 - byte_size(Digits)))/binary, ".0">>;
plain(Digits, Exponent) ->
    <<Whole:(Exponent + 1)/binary, Fraction/binary>> = Digits,
    <<Whole/binary, ".", Fraction/binary>>.

zeros(N) -> binary:copy(<<"0">>, N).

%% `Name(field: value, …)' within the bounds on depth, fields and bytes. Depth and
%% the bytes still allowed travel in the process dictionary, since printing the
%% fields sends messages.
-spec value(map()) -> binary().
value(#{'$beamtalk_class' := Class} = Value) ->
    Name = atom_to_binary(Class),
    case get('$bt_print') of
        undefined ->
            put('$bt_print', {1, ?MAX_BYTES}),
            try cut(fields_text(Name, Value))
            after erase('$bt_print')
            end;
        {Depth, _} when Depth >= ?MAX_DEPTH -> <<Name/binary, "(...)">>;
        {Depth, Left} ->
            put('$bt_print', {Depth + 1, Left}),
            try fields_text(Name, Value)
            after
                {_, Rest} = get('$bt_print'),
                put('$bt_print', {Depth, Rest})
            end
    end.

fields_text(Name, Value) ->
    Names = lists:sort([atom_to_binary(K) || K <- maps:keys(Value), is_atom(K), is_shown(K)]),
    Texts = field_texts(Names, Value, ?MAX_FIELDS),
    joined(<<Name/binary, "(">>, Texts, <<")">>).

is_shown('$beamtalk_class') -> false;
is_shown(Key) ->
    case atom_to_list(Key) of
        "__" ++ _ -> false;
        _ -> true
    end.

field_texts([], _, _) -> [];
field_texts(_, _, 0) -> [<<"...">>];
field_texts([Name | Rest], Value, Fields) ->
    case get('$bt_print') of
        {_, Left} when Left =< 0 -> [<<"...">>];
        _ ->
            Before = get('$bt_print'),
            Text = <<Name/binary, ": ", (print(maps:get(binary_to_existing_atom(Name), Value)))/binary>>,
            {Depth, Left} = Before,
            put('$bt_print', {Depth, Left - byte_size(Text)}),
            [Text | field_texts(Rest, Value, Fields - 1)]
    end.

cut(Text) when byte_size(Text) =< ?MAX_BYTES -> Text;
cut(Text) ->
    <<(whole_characters(binary:part(Text, 0, ?MAX_BYTES)))/binary, "...">>.

whole_characters(Bytes) ->
    case unicode:characters_to_binary(Bytes) of
        {incomplete, Whole, _} -> Whole;
        _ -> Bytes
    end.
