%% Text of any term without sending it a message.
%%
%% Tools look at values this way, since looking must not run anybody's `printString'. The text reads as the standard
%% one does, and it is bounded in depth, in elements and in bytes.
-module(beamtalk_plain).

-export([text/1, label/1, class/1, pid/1]).

-define(MAX_DEPTH, 5).
-define(MAX_ELEMENTS, 50).
-define(MAX_BYTES, 10000).
%% Integers above this many bits take too long to print.
-define(MAX_BITS, 40000).

%% As `printString' would read if no class had its own.
-spec text(term()) -> binary().
text(Term) ->
    {Text, _} = print(Term, 1, ?MAX_BYTES),
    iolist_to_binary(Text).

%% As `displayString' would: texts and symbols without their marks.
-spec label(term()) -> binary().
label(Term) when is_atom(Term) -> atom_to_binary(Term);
label(Term) when is_binary(Term), byte_size(Term) =< ?MAX_BYTES ->
    case beamtalk_dispatch:is_text(Term) of
        true -> Term;
        false -> text(Term)
    end;
label(Term) -> text(Term).

%% Name of the class of a term; a class object's is `Lamp class'.
-spec class(term()) -> atom().
class({beamtalk_object, Class, _, _}) when not is_atom(Class) -> 'Tuple';
class({beamtalk_supervisor, Class, _, _}) when not is_atom(Class) -> 'Tuple';
class(#{'$beamtalk_class' := Class}) when not is_atom(Class) -> 'Dictionary';
class(Term) -> beamtalk_dispatch:class_name(Term).

%% `0.187.0'
-spec pid(pid()) -> binary().
pid(Pid) -> string:trim(list_to_binary(pid_to_list(Pid)), both, "<>").

%% Every clause answers the text and the bytes that are left for what follows.
print(_, _, Left) when Left =< 0 -> {<<"...">>, Left};
print(Term, _, Left) when is_integer(Term) ->
    case Term bsr ?MAX_BITS of
        High when High =:= 0; High =:= -1 -> done(integer_to_binary(Term), Left);
        _ -> done(<<"a very large Integer">>, Left)
    end;
print(Term, _, Left) when is_number(Term); is_atom(Term); is_function(Term); is_pid(Term); is_port(Term);
                          is_reference(Term) ->
    done(beamtalk_display:native(Term), Left);
print(Term, _, Left) when is_binary(Term), byte_size(Term) =< Left -> done(beamtalk_display:string(Term), Left);
print(Term, _, Left) when is_binary(Term) ->
    Start = whole_characters(binary:part(Term, 0, Left)),
    done(<<(beamtalk_display:string(Start))/binary, "...">>, Left);
print(Term, _, Left) when is_bitstring(Term) ->
    done(<<"a Binary of ", (integer_to_binary(bit_size(Term)))/binary, " bits">>, Left);
print(Term, Depth, Left) when is_list(Term) -> sequence(<<"#(">>, Term, <<")">>, Depth, Left);
print({beamtalk_object, Class, Module, Name} = Term, _, Left)
  when is_atom(Class), is_atom(Module), is_atom(Name); is_atom(Class), is_atom(Module), is_pid(Name) ->
    done(beamtalk_display:native(Term), Left);
print({beamtalk_object, Class, _, {registered, Name}} = Term, _, Left) when is_atom(Class), is_atom(Name) ->
    done(beamtalk_display:native(Term), Left);
print({beamtalk_supervisor, Class, _, Pid} = Term, _, Left) when is_atom(Class), is_pid(Pid) ->
    done(beamtalk_display:native(Term), Left);
print(Term, Depth, Left) when is_tuple(Term) -> sequence(<<"{">>, tuple_to_list(Term), <<"}">>, Depth, Left);
print(#{'$beamtalk_class' := Class} = Term, Depth, Left) when is_atom(Class) -> tagged(Class, Term, Depth, Left);
print(Term, Depth, Left) -> dictionary(Term, Depth, Left).

done(Text, Left) -> {Text, Left - byte_size(Text)}.

%% The cut may go through a character.
whole_characters(Bytes) ->
    case unicode:characters_to_binary(Bytes) of
        {incomplete, Whole, _} -> Whole;
        _ -> Bytes
    end.

tagged('Array', #{data := Data}, Depth, Left) when is_map(Data) ->
    sequence(<<"#[">>, [maps:get(I, Data, nil) || I <- lists:seq(1, min(map_size(Data), ?MAX_ELEMENTS + 1))], <<"]">>,
             Depth, Left);
tagged('Set', #{elements := Elements}, Depth, Left) -> sequence(<<"Set(">>, Elements, <<")">>, Depth, Left);
tagged('Result', #{isOk := true, okValue := Value}, Depth, Left) -> prefixed(<<"Result ok: ">>, Value, Depth, Left);
tagged('Result', #{errReason := Reason}, Depth, Left) -> prefixed(<<"Result error: ">>, Reason, Depth, Left);
tagged('ErlangModule', #{module := Module} = Term, _, Left) when is_atom(Module) ->
    done(beamtalk_display:native(Term), Left);
tagged(Class, #{error := {beamtalk_error, _, _, _, Message, _, _}}, Depth, Left) when is_binary(Message) ->
    prefixed(<<(atom_to_binary(Class))/binary, ": ">>, Message, Depth, Left);
tagged(Class, Term, Depth, Left) ->
    %% Only values show their fields.
    case beamtalk_dispatch:info(Class) of
        #{kind := object} -> done(atom_to_binary(Class), Left);
        _ -> fields(atom_to_binary(Class), Term, Depth, Left)
    end.

prefixed(Prefix, Term, Depth, Left) ->
    {Text, Rest} = print(Term, Depth, Left - byte_size(Prefix)),
    {[Prefix, Text], Rest}.

fields(Name, _, Depth, Left) when Depth >= ?MAX_DEPTH -> done(<<Name/binary, "(...)">>, Left);
fields(Name, Value, Depth, Left) ->
    Parts = [{[atom_to_binary(Field), ": "], maps:get(Field, Value)}
             || Field <- beamtalk_value:fields_in_order(Value)],
    parts(<<Name/binary, "(">>, Parts, <<")">>, Depth, Left).

dictionary(_, Depth, Left) when Depth >= ?MAX_DEPTH -> done(<<"#{...}">>, Left);
dictionary(Map, Depth, Left) ->
    {Parts, Rest} = pairs(maps:iterator(Map), ?MAX_ELEMENTS, Depth, Left),
    {Cut, Pairs} = lists:partition(fun(Part) -> Part =:= more end, Parts),
    parts(<<"#{">>, lists:sort(Pairs) ++ Cut, <<"}">>, Depth, Rest).

%% Keys are printed first: pairs come in the order of their texts.
pairs(Iterator, Elements, Depth, Left) ->
    case maps:next(Iterator) of
        none -> {[], Left};
        _ when Elements =:= 0; Left =< 0 -> {[more], Left};
        {Key, Value, Next} ->
            {Text, After} = print(Key, Depth + 1, Left),
            {Rest, Last} = pairs(Next, Elements - 1, Depth, After),
            {[{iolist_to_binary([Text, " => "]), Value} | Rest], Last}
    end.

sequence(Open, _, Close, Depth, Left) when Depth >= ?MAX_DEPTH ->
    done(<<Open/binary, "...", Close/binary>>, Left);
sequence(Open, Elements, Close, Depth, Left) ->
    parts(Open, elements(Elements, ?MAX_ELEMENTS), Close, Depth, Left).

elements([], _) -> [];
elements(_, 0) -> [more];
elements([Element | Rest], Count) -> [{[], Element} | elements(Rest, Count - 1)];
elements(Tail, _) -> [{<<"| ">>, Tail}].

parts(Open, Parts, Close, Depth, Left) ->
    {Texts, Rest} = part_texts(Parts, Depth, Left - byte_size(Open)),
    {[Open, lists:join(<<", ">>, Texts), Close], Rest}.

part_texts([], _, Left) -> {[], Left};
part_texts([more | _], _, Left) -> {[<<"...">>], Left};
part_texts(_, _, Left) when Left =< 0 -> {[<<"...">>], Left};
part_texts([{Prefix, Term} | Parts], Depth, Left) ->
    {Text, After} = print(Term, Depth + 1, Left - iolist_size(Prefix) - 2),
    {Texts, Rest} = part_texts(Parts, Depth, After),
    {[[Prefix, Text] | Texts], Rest}.
