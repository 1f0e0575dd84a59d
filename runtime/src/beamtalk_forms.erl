%% From the compiler's Erlang forms to code: compiling many modules at once, writing and loading them.
-module(beamtalk_forms).

-export([compile/1, compile_with_summary/1, read/1, compile_read/2, forms/2, messages/1, parallel/3, write/2]).
-export([core_transform/2]).

%% Compile one module from the external format of its forms.
-spec compile(binary()) -> {ok, module(), binary()} | {error, binary()}.
compile(Forms) ->
    case read(Forms) of
        {ok, Abstract} -> compile_read(Abstract, []);
        {error, _} = Error -> Error
    end.

%% The same for a file that a workspace loads without its code.
-spec compile_with_summary(binary()) -> {ok, module(), binary()} | {error, binary()}.
compile_with_summary(Forms) ->
    case read(Forms) of
        {ok, Abstract} -> compile_read(Abstract, beamtalk_summary:chunk(Abstract));
        {error, _} = Error -> Error
    end.

-spec read(binary()) -> {ok, [term()]} | {error, binary()}.
read(Forms) ->
    try {ok, binary_to_term(Forms)}
    catch error:badarg -> {error, <<"the compiler sent damaged forms">>}
    end.

%% The same from the forms themselves, with more options of the Erlang compiler.
-spec compile_read([term()], [compile:option()]) -> {ok, module(), binary()} | {error, binary()}.
compile_read(Abstract, Options) ->
    case forms(Abstract, Options ++ options()) of
        {ok, Module, Beam} -> {ok, Module, Beam};
        {ok, Module, Beam, _Warnings} -> {ok, Module, Beam};
        {error, Errors, _Warnings} -> {error, describe(Errors)}
    end.

options() ->
    [binary, return_errors, deterministic, no_spawn_compiler_process].

%% The Erlang compiler's answer for forms of ours.
-spec forms([term()], [compile:option()]) -> term().
forms(Abstract, Options) ->
    case literals(Abstract) of
        [] -> compile:noenv_forms(Abstract, Options);
        Literals ->
            %% Not an option: those are written into the module. `no_copt' leaves the transform out.
            put(?MODULE, maps:from_list(Literals)),
            try compile:noenv_forms([placeholder(Form) || Form <- Abstract],
                                    [{core_transform, ?MODULE}, no_spawn_compiler_process | Options -- [no_copt]])
            after erase(?MODULE)
            end
    end.

%% Functions that answer a term which came as it is. No form of Erlang says so; its code as an expression of many parts
%% would cost each pass of the compiler, so it is put in behind the passes that look into expressions.
literals(Abstract) ->
    [{Name, Term} || {function, _, Name, 0, [{clause, _, [], [], [{value, _, Term}]}]} <- Abstract].

placeholder({function, Line, Name, 0, [{clause, At, [], [], [{value, _, _}]}]}) ->
    {function, Line, Name, 0, [{clause, At, [], [], [{nil, At}]}]};
placeholder(Form) -> Form.

%% Called by the Erlang compiler.
-spec core_transform(cerl:c_module(), [compile:option()]) -> cerl:c_module().
core_transform(Core, _Options) ->
    Literals = get(?MODULE),
    Defined = [{Name, literal(cerl:fname_id(Name), cerl:fname_arity(Name), Fun, Literals)}
               || {Name, Fun} <- cerl:module_defs(Core)],
    cerl:update_c_module(Core, cerl:module_name(Core), cerl:module_exports(Core), cerl:module_attrs(Core), Defined).

literal(Name, 0, Fun, Literals) when is_map_key(Name, Literals) ->
    cerl:update_c_fun(Fun, [], cerl:abstract(map_get(Name, Literals)));
literal(_, _, Fun, _) -> Fun.

describe(Errors) ->
    iolist_to_binary([[Line, $\n] || Line <- lines("error", Errors)]).

%% One line for each error and warning of a compilation.
-spec messages({ok, term(), list()} | {error, list(), list()}) -> [binary()].
messages({ok, _, Warnings}) -> lines("warning", Warnings);
messages({error, Errors, Warnings}) -> lines("error", Errors) ++ lines("warning", Warnings).

lines(Severity, Files) ->
    [unicode:characters_to_binary(
         io_lib:format("~ts:~ts ~ts: ~ts", [File, place(Place), Severity, Module:format_error(What)]))
     || {File, Items} <- Files, {Place, Module, What} <- [normalize(Item) || Item <- Items]].

normalize({Module, What}) -> {none, Module, What};
normalize({Place, Module, What}) -> {Place, Module, What}.

place({Line, Column}) -> io_lib:format("~b:~b:", [Line, Column]);
place(Line) when is_integer(Line) -> io_lib:format("~b:", [Line]);
place(none) -> "".

%% Call Work for every item in at most Jobs processes, and Done in the calling process for every
%% result, in the order in which they finish.
-spec parallel([Item], {pos_integer(), fun((Item) -> Result)}, fun((Item, Result) -> any())) -> ok.
parallel(Items, {Jobs, Work}, Done) ->
    {Now, Later} = split(Jobs, Items),
    Running = maps:from_list([start(Item, Work) || Item <- Now]),
    collect(Running, Later, Work, Done).

split(Count, Items) when length(Items) =< Count -> {Items, []};
split(Count, Items) -> lists:split(Count, Items).

start(Item, Work) ->
    {_, Monitor} = spawn_opt(fun() -> exit({result, Work(Item)}) end, [monitor, {min_heap_size, 100000}]),
    {Monitor, Item}.

collect(Running, [], _Work, _Done) when map_size(Running) =:= 0 -> ok;
collect(Running, Later, Work, Done) ->
    receive
        {'DOWN', Monitor, process, _, Reason} when is_map_key(Monitor, Running) ->
            {Item, Rest} = maps:take(Monitor, Running),
            Done(Item, result(Reason)),
            case Later of
                [Next | Others] ->
                    {Started, NextItem} = start(Next, Work),
                    collect(Rest#{Started => NextItem}, Others, Work, Done);
                [] ->
                    collect(Rest, [], Work, Done)
            end
    end.

result({result, Result}) -> Result;
result(Reason) -> {error, unicode:characters_to_binary(io_lib:format("internal error: ~0tp", [Reason]))}.

%% Write a file so that nobody ever sees half of it.
-spec write(file:name_all(), iodata()) -> ok | {error, binary()}.
write(Path, Content) ->
    Temporary = unicode:characters_to_binary([Path, ".new"]),
    case file:write_file(Temporary, Content, [raw]) of
        ok -> rename(Temporary, Path);
        {error, Reason} -> {error, failed("write", Path, Reason)}
    end.

rename(From, To) ->
    case file:rename(From, To) of
        ok -> ok;
        {error, Reason} -> {error, failed("write", To, Reason)}
    end.

failed(Action, Path, Reason) ->
    unicode:characters_to_binary(["cannot ", Action, " ", Path, ": ", file:format_error(Reason)]).
