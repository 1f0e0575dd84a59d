%% What a person is told about an error.
%%
%% Programs see the standard messages, which do not change; a person also wants to know which value was wrong and
%% which selector was meant. Finding that out takes time, so it is done when an error is shown, not when it is raised.
-module(beamtalk_error_words).

-export([told/1]).

%% Values longer than this are named by their class only.
-define(SHOWN, 40).
%% Selectors further away than this are other selectors.
-define(FARTHEST, 3).

%% Message and hint.
-spec told(map()) -> {term(), term()}.
told(Exception) ->
    Message = beamtalk_error:field(Exception, message),
    Hint = beamtalk_error:field(Exception, hint),
    try words(beamtalk_error:field(Exception, kind), Exception, Message, Hint)
    catch _:_ -> {Message, Hint}
    end.

words(does_not_understand, Exception, Message, Hint) ->
    unknown(beamtalk_error:field(Exception, errorClass), beamtalk_error:field(Exception, selector), Message, Hint);
words(class_not_found, Exception, Message, nil) ->
    Known = beamtalk_class:all(),
    {meant(nearest(beamtalk_error:field(Exception, errorClass), Known), Message), nil};
words(undefined_variable, Exception, Message, nil) ->
    Name = beamtalk_error:field(Exception, selector),
    case nearest(Name, beamtalk_cell:session_names()) of
        none -> {Message, <<"Give it a value first: ", (atom_to_binary(Name))/binary, " := 42">>};
        Nearest -> {meant(Nearest, Message), nil}
    end;
words(index_out_of_bounds, #{got := {Index, Size}} = Exception, _, nil) ->
    {iolist_to_binary(io_lib:format("'~ts' on ~ts: there is no index ~b, the size is ~b",
                                    [beamtalk_error:field(Exception, selector), beamtalk_error:field(Exception, errorClass),
                                     Index, Size])), nil};
words(block_context, Exception, Message, nil) ->
    case beamtalk_error:field(Exception, selector) of
        session -> {<<"'^' has nowhere to return to: the input that made this block is over">>,
                    <<"A block answers its last expression: leave out the '^'">>};
        _ -> {Message, nil}
    end;
words(instantiation_error, Exception, Message, nil) ->
    {Message, instead(beamtalk_error:field(Exception, errorClass))};
words(type_error, #{got := Got} = Exception, _, <<"Expected ", Wanted/binary>>) ->
    {wants(beamtalk_error:field(Exception, selector), beamtalk_error:field(Exception, errorClass), Wanted, Got), nil};
words(type_error, #{stacktrace := [{erlang, Operator, [_ | _] = Operands, _} | _]} = Exception, Message, Hint) ->
    case beamtalk_error:field(Exception, details) of
        #{erlang_error := badarith} -> arithmetic(selector(Operator), Operands, Message, Hint);
        _ -> {Message, Hint}
    end;
words(_, _, Message, Hint) ->
    {Message, Hint}.

%%% Messages nobody understands

unknown(_, _, Message, <<"This actor still runs ", _/binary>> = Hint) -> {Message, Hint};
unknown(Class, Selector, Message, Hint) ->
    case {is_asked_of_blocks(Selector), literal(Class), Hint} of
        {true, _, _} ->
            {Message, <<"Blocks understand '", (atom_to_binary(Selector))/binary, "': where one is wanted, write it in brackets">>};
        {_, Literal, _} when Selector =:= new, Literal =/= none -> {Message, instead(Class)};
        {_, _, <<"Check the spelling", _/binary>>} ->
            case nearest(Selector, understood(Class) -- [Selector]) of
                none -> {Message, Hint};
                Nearest -> {meant(Nearest, Message), nil}
            end;
        _ -> {Message, Hint}
    end.

is_asked_of_blocks(Selector) -> lists:member(Selector, [value, 'value:', 'value:value:', 'value:value:value:']).

meant(none, Message) -> Message;
meant(Nearest, Message) -> <<Message/binary, ". Did you mean '", (atom_to_binary(Nearest))/binary, "'?">>.

%%% Classes without `new'

instead(Class) ->
    Name = atom_to_binary(Class),
    case literal(Class) of
        none ->
            <<Name/binary, " has no instances of its own: send messages to ", Name/binary, " itself, or declare it as "
              "`Value subclass: ", Name/binary, "` (data) or `Actor subclass: ", Name/binary, "` (a process)">>;
        Literal ->
            <<(iolist_to_binary(string:titlecase(article(Class))))/binary, " is written as it is: ", Literal/binary>>
    end.

literal('Integer') -> <<"42">>;
literal('Float') -> <<"3.14">>;
literal('Number') -> <<"42, 3.14">>;
literal('String') -> <<"\"text\"">>;
literal('Symbol') -> <<"#name">>;
literal('Character') -> <<"$a">>;
literal('List') -> <<"#(1, 2)">>;
literal('Array') -> <<"#[1, 2]">>;
literal('Dictionary') -> <<"#{#key => 1}">>;
literal('Block') -> <<"[:x | x + 1]">>;
literal('Boolean') -> <<"true, false">>;
literal('True') -> <<"true">>;
literal('False') -> <<"false">>;
literal('UndefinedObject') -> <<"nil">>;
literal('Interval') -> <<"1 to: 10">>;
literal(_) -> none.

%%% Wrong values

wants(Selector, Class, Wanted, Got) ->
    iolist_to_binary(["'", atom_to_binary(Selector), "' on ", atom_to_binary(Class), " wants ", Wanted, ", got ",
                      described(Got)]).

%% The message of an actor starts with the place of the fault, which stays.
arithmetic(Selector, Operands, Message, Hint) ->
    Place = binary:part(Message, 0, byte_size(Message) - byte_size(<<"bad arithmetic operation">>)),
    {Said, Advice} =
        case {Selector, [Operand || Operand <- Operands, not is_number(Operand)], Operands} of
            {_, [Wrong | _], [Receiver | _]} ->
                {wants(Selector, beamtalk_dispatch:class_name(Receiver), <<"a Number">>, Wrong), nil};
            {_, [], [Dividend, Divisor]} when Divisor == 0 ->
                {["Division by zero: ", beamtalk_display:print(Dividend), " ", atom_to_binary(Selector), " ",
                  beamtalk_display:print(Divisor)], nil};
            {_, [], [Receiver | _]} ->
                {["The result of '", atom_to_binary(Selector), "' on ",
                  atom_to_binary(beamtalk_dispatch:class_name(Receiver)), " is too large"], Hint}
        end,
    {iolist_to_binary([Place, Said]), Advice}.

selector('div') -> '//';
selector('rem') -> '%';
selector(Operator) -> Operator.

%% A short value as it is printed, with its class. Only what prints without running anybody's code.
described(nil) -> <<"nil">>;
described(Value) when is_boolean(Value) -> atom_to_binary(Value);
described(Value) when is_number(Value); is_atom(Value); is_binary(Value) ->
    Class = article(beamtalk_dispatch:class_name(Value)),
    Printed = beamtalk_display:print(Value),
    case string:length(Printed) =< ?SHOWN of
        true -> [Printed, " (", Class, ")"];
        false -> Class
    end;
described({beamtalk_object, _, _, Name}) when is_atom(Name) -> ["the class ", atom_to_binary(Name)];
described(Value) -> article(beamtalk_dispatch:class_name(Value)).

article(Class) ->
    case atom_to_binary(Class) of
        <<First, _/binary>> = Name when First =:= $A; First =:= $E; First =:= $I; First =:= $O -> ["an ", Name];
        Name -> ["a ", Name]
    end.

%%% Wrong selectors

understood(Class) ->
    Name = atom_to_binary(Class),
    case binary:split(Name, <<" class">>) of
        [Instances, <<>>] ->
            {beamtalk_object, Metaclass, _, _} = beamtalk_class:named(binary_to_existing_atom(Instances)),
            selectors(Metaclass);
        _ -> selectors(Class)
    end.

selectors(Class) -> maps:keys(maps:remove('$info', beamtalk_dispatch:table(Class))).

%% A selector that begins with this one, the shortest first: its other arguments are missing.
nearest(Selector, Known) ->
    Text = atom_to_list(Selector),
    case lists:sort([{length(Name), Name} || lists:suffix(":", Text), Candidate <- Known,
                                             Name <- [atom_to_list(Candidate)], lists:prefix(Text, Name)]) of
        [{_, Longer} | _] -> list_to_existing_atom(Longer);
        [] -> similar(Text, Known)
    end.

%% Short selectors must be nearer: `foo' does not mean `do:'.
similar(Text, Known) ->
    Limit = min(?FARTHEST, (length(Text) - parameters(Text)) div 2),
    Near = [{Distance, parameters(Name) =/= parameters(Text), Name}
            || Candidate <- Known, Name <- [atom_to_list(Candidate)], abs(length(Name) - length(Text)) =< Limit,
               Distance <- [distance(Text, Name)], Distance =< Limit],
    case lists:sort(Near) of
        [{_, _, Name} | _] -> list_to_existing_atom(Name);
        [] -> none
    end.

parameters(Text) -> length([$: || $: <- Text]).

%% Insertions, deletions and replacements that make one text of the other, row by row.
distance(From, To) ->
    lists:last(lists:foldl(fun(Char, [Corner | _] = Above) -> row(Char, To, Above, Corner + 1) end,
                           lists:seq(0, length(To)), From)).

row(Char, To, Above, First) -> [First | row(Char, To, Above, First, [])].

row(_, [], [_], _, Row) -> lists:reverse(Row);
row(Char, [Other | To], [Corner, Up | Above], Left, Row) ->
    Changed = case Char of
                  Other -> Corner;
                  _ -> Corner + 1
              end,
    Cost = min(Changed, min(Up, Left) + 1),
    row(Char, To, [Up | Above], Cost, [Cost | Row]).
