%% The functions of compiled Erlang modules with their types, as Beamtalk writes them.
-module(beamtalk_specs).

-export([functions/2, type/1]).

-type row() :: {binary(), [{binary(), binary()}], binary()}.

%% The exported functions of a module: name, parameters and result, sorted. The module is looked for in the directories,
%% then on the code path; it is not loaded.
-spec functions(binary(), [file:filename()]) -> {ok, [row()]} | {error, binary()}.
functions(Module, Directories) ->
    File = unicode:characters_to_list(<<Module/binary, ".beam">>),
    case find(File, Directories) of
        non_existing -> {error, <<"no .beam file is on the code path">>};
        Path -> read(Path)
    end.

find(File, Directories) ->
    case [Path || Directory <- Directories, Path <- [filename:join(Directory, File)], filelib:is_regular(Path)] of
        [Path | _] -> Path;
        [] -> code:where_is_file(File)
    end.

read(Path) ->
    case beam_lib:chunks(Path, [exports, abstract_code], [allow_missing_chunks]) of
        {ok, {_, [{exports, Exports}, {abstract_code, Code}]}} ->
            Specs = specs(Code),
            Public = lists:sort([Key || {Name, _} = Key <- Exports, Name =/= module_info]),
            {ok, [row(Key, Specs) || Key <- Public]};
        {error, beam_lib, Reason} ->
            {error, unicode:characters_to_binary(beam_lib:format_error(Reason))}
    end.

%% The first clause of each specification; a module without debug information has none.
specs({raw_abstract_v1, Forms}) ->
    maps:from_list([{Key, clause(Type)} || {attribute, _, spec, {Key, [Type | _]}} <- Forms]);
specs(_) ->
    #{}.

%% Parameters and result of one clause, with the types that its constraints give to variables.
clause({type, _, bounded_fun, [Fun, Constraints]}) ->
    Bounds = [{Name, Type} || {type, _, constraint, [{atom, _, is_subtype}, [{var, _, Name}, Type]]} <- Constraints],
    clause(Fun, maps:from_list(Bounds));
clause(Fun) ->
    clause(Fun, #{}).

clause({type, _, 'fun', [{type, _, product, Parameters}, Result]}, Bounds) ->
    {[{parameter_name(Parameter), text(members(Parameter, Bounds))} || Parameter <- Parameters],
     result(Result, Bounds)}.

parameter_name({ann_type, _, [{var, _, Name} | _]}) -> atom_to_binary(Name);
parameter_name({var, _, Name}) -> atom_to_binary(Name);
parameter_name(_) -> <<>>.

row({Name, Arity}, Specs) ->
    Unknown = {[{<<>>, <<"Dynamic">>} || _ <- lists:seq(1, Arity)], <<"Dynamic">>},
    {Parameters, Result} = maps:get({Name, Arity}, Specs, Unknown),
    {atom_to_binary(Name), Parameters, Result}.

%% What a call answers: tuples and atoms of success and failure arrive as a Result.
result({var, _, Name}, Bounds) when is_map_key(Name, Bounds) ->
    {Type, Rest} = maps:take(Name, Bounds),
    result(Type, Rest);
result({ann_type, _, [_, Type]}, Bounds) ->
    result(Type, Bounds);
result(Type, Bounds) ->
    {Outcomes, Others} = lists:partition(fun is_outcome/1, alternatives(Type)),
    Values = lists:append([members(Other, Bounds) || Other <- Others]),
    text(case Outcomes of
             [] -> Values;
             _ -> [outcome(Outcomes, Bounds) | Values]
         end).

alternatives({type, _, union, Types}) -> lists:append([alternatives(Type) || Type <- Types]);
alternatives(Type) -> [Type].

is_outcome({atom, _, Name}) -> Name =:= ok orelse Name =:= error;
is_outcome({type, _, tuple, [{atom, _, Name}, _]}) -> Name =:= ok orelse Name =:= error;
is_outcome(_) -> false.

outcome(Outcomes, Bounds) ->
    Value = fun({atom, _, _}) -> [<<"Nil">>]; ({type, _, tuple, [_, Type]}) -> members(Type, Bounds) end,
    Name = fun({atom, _, Which}) -> Which; ({type, _, tuple, [{atom, _, Which}, _]}) -> Which end,
    Side = fun(Which) ->
        case [Value(Outcome) || Outcome <- Outcomes, Name(Outcome) =:= Which] of
            [] -> <<"Dynamic">>;
            Found -> text(lists:append(Found))
        end
    end,
    applied(<<"Result">>, [Side(ok), Side(error)]).

%% A type by itself, for tests and tools.
-spec type(erl_parse:abstract_type()) -> binary().
type(Type) -> text(members(Type, #{})).

%% The members of the union that a type is.
members({ann_type, _, [_, Type]}, Bounds) -> members(Type, Bounds);
members({var, _, Name}, Bounds) when is_map_key(Name, Bounds) ->
    {Type, Rest} = maps:take(Name, Bounds),
    members(Type, Rest);
members({type, _, union, Types}, Bounds) -> lists:append([members(Type, Bounds) || Type <- Types]);
members({atom, _, Name}, _) -> [symbol(Name)];
members({type, _, tuple, any}, _) -> [<<"Tuple">>];
members({type, _, tuple, []}, _) -> [<<"Tuple">>];
members({type, _, tuple, Types}, Bounds) -> [applied(<<"Tuple">>, texts(Types, Bounds))];
members({type, _, Kind, [Element]}, Bounds) when Kind =:= list; Kind =:= nonempty_list ->
    [applied(<<"List">>, texts([Element], Bounds))];
members({type, _, 'fun', [{type, _, product, Parameters}, Result]}, Bounds) ->
    [applied(<<"Block">>, texts(Parameters ++ [Result], Bounds))];
members({type, _, Name, _}, _) -> simple(Name);
members({integer, _, _}, _) -> [<<"Integer">>];
members({char, _, _}, _) -> [<<"Integer">>];
members({op, _, _, _}, _) -> [<<"Integer">>];
members({op, _, _, _, _}, _) -> [<<"Integer">>];
members(_, _) -> [<<"Dynamic">>].

simple(Name) ->
    case Name of
        atom -> [<<"Symbol">>];
        module -> [<<"Symbol">>];
        node -> [<<"Symbol">>];
        boolean -> [<<"Boolean">>];
        integer -> [<<"Integer">>];
        non_neg_integer -> [<<"Integer">>];
        pos_integer -> [<<"Integer">>];
        neg_integer -> [<<"Integer">>];
        arity -> [<<"Integer">>];
        byte -> [<<"Integer">>];
        char -> [<<"Integer">>];
        range -> [<<"Integer">>];
        float -> [<<"Float">>];
        number -> [<<"Number">>];
        binary -> [<<"String">>, <<"Binary">>];
        nonempty_binary -> [<<"String">>, <<"Binary">>];
        bitstring -> [<<"Binary">>];
        list -> [<<"List">>];
        nonempty_list -> [<<"List">>];
        nil -> [<<"List">>];
        string -> [<<"List(Integer)">>];
        nonempty_string -> [<<"List(Integer)">>];
        map -> [<<"Dictionary">>];
        record -> [<<"Tuple">>];
        mfa -> [<<"Tuple(Symbol, Symbol, Integer)">>];
        'fun' -> [<<"Block">>];
        function -> [<<"Block">>];
        pid -> [<<"Pid">>];
        port -> [<<"Port">>];
        reference -> [<<"Reference">>];
        timeout -> [<<"Integer">>, <<"#infinity">>];
        no_return -> [<<"Never">>];
        none -> [<<"Never">>];
        _ -> [<<"Dynamic">>]
    end.

%% `true' and `false' are types of their own; an atom that needs quotes is any Symbol.
symbol(true) -> <<"true">>;
symbol(false) -> <<"false">>;
symbol(nil) -> <<"Nil">>;
symbol(Name) ->
    Text = atom_to_binary(Name),
    case re:run(Text, "^[a-z][a-zA-Z0-9_]*$", [{capture, none}]) of
        match -> <<"#", Text/binary>>;
        nomatch -> <<"Symbol">>
    end.

texts(Types, Bounds) -> [text(members(Type, Bounds)) || Type <- Types].

applied(Name, Arguments) ->
    iolist_to_binary([Name, "(", lists:join(", ", Arguments), ")"]).

%% A union names each member once; what may be anything is unknown.
text(Members) ->
    Found = lists:foldl(fun(Member, Seen) -> [Member || not lists:member(Member, Seen)] ++ Seen end, [], Members),
    case lists:member(<<"Dynamic">>, Found) of
        true -> <<"Dynamic">>;
        false -> iolist_to_binary(lists:join(" | ", booleans(lists:reverse(Found))))
    end.

booleans(Members) ->
    case lists:member(<<"true">>, Members) andalso lists:member(<<"false">>, Members) of
        true -> [<<"Boolean">> | Members -- [<<"true">>, <<"false">>, <<"Boolean">>]];
        false -> Members
    end.
