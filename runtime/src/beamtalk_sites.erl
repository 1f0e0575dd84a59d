%% Where code can become hot: the blocks and loops of a statement, each a function of the variables it uses.
%%
%% A statement is an abstract expression as the compiler makes it. Its sites are numbered in the order in which they
%% stand, so the numbers are the same whenever the statement is read. `walked/2' gives what the interpreter runs, in which
%% a site is data for beamtalk_walk; `compiled/3' gives a module in which every site is a function.
-module(beamtalk_sites).

-export([walked/2, compiled/3, entered/3]).
-export_type([site/0]).

%% Unit is what the sites of one statement share (see beamtalk_walk), Free names the variables from outside. The name of a
%% loop stands for the loop itself in its clauses.
-type site() :: {site, Unit :: term(), Index :: pos_integer(), Free :: [atom()], Loop :: atom(), Clauses :: [tuple()]}.

%% A function of a module has a name, which the VM keeps for ever, and at most 255 arguments.
-define(MAX_SITES, 100).
-define(MAX_ARITY, 200).

-record(rewriting, {target :: {walked, Unit :: term()} | compiled,
                    last = 0 :: non_neg_integer(),
                    functions = [] :: [tuple()]}).

-spec walked(tuple(), term()) -> tuple().
walked(Form, Unit) ->
    {Walked, _} = rewrite(Form, #{}, #rewriting{target = {walked, Unit}}),
    Walked.

%% Its function `call/5' goes on at a site with the variables from outside and the arguments, each in a tuple. Who comes with
%% another ticket wants code that was here before. Throws where the statement is too large.
-spec compiled(tuple(), module(), pos_integer()) -> [tuple()].
compiled(Form, Module, Ticket) ->
    {_, #rewriting{functions = Functions}} = rewrite(Form, #{}, #rewriting{target = compiled}),
    [{attribute, 1, module, Module},
     {attribute, 1, export, [{call, 5}]},
     {function, 1, call, 5, [entry(Ticket, Function) || Function <- Functions] ++ [stale()]}
     | [{function, Line, function_name(Index), Arity, Clauses} || {Index, Line, _, Arity, Clauses} <- Functions]].

%% The same for the forms of a module with one unary method, which is site 0.
-spec entered([tuple()], module(), pos_integer()) -> [tuple()].
entered(Forms, Module, Ticket) ->
    [Method | _] = [Name || {attribute, _, export, Exports} <- Forms, {Name, 1} <- Exports],
    [Self] = parameters(1, 1),
    Head = [{integer, 1, Ticket}, {integer, 1, 0}, {tuple, 1, []}, {tuple, 1, [Self]}, {var, 1, '_'}],
    Entry = {clause, 1, Head, [], [{call, 1, {atom, 1, Method}, [Self]}]},
    Renamed = [case Form of
                   {attribute, Line, module, _} -> {attribute, Line, module, Module};
                   _ -> Form
               end || Form <- Forms],
    {Attributes, Functions} = lists:splitwith(fun(Form) -> element(1, Form) =:= attribute end, Renamed),
    Attributes ++ [{attribute, 1, export, [{call, 5}]}, {function, 1, call, 5, [Entry, stale()]} | Functions].

entry(Ticket, {Index, Line, Count, Arity, _}) ->
    Parameters = parameters(Line, Arity),
    {Variables, Args} = lists:split(Count, Parameters),
    Head = [{integer, Line, Ticket}, {integer, Line, Index}, {tuple, Line, Variables}, {tuple, Line, Args},
            {var, Line, '_'}],
    {clause, Line, Head, [], [{call, Line, {atom, Line, function_name(Index)}, Parameters}]}.

stale() ->
    [Ticket, Args, Closure] = parameters(1, 3),
    Other = {var, 1, '_'},
    {clause, 1, [Ticket, Other, Other, Args, Closure], [], [walk(1, stale, [Ticket, Closure, Args])]}.

%%% Every site of an expression

%% Loops maps the names of the loops around to their index and variables.
rewrite({'fun', Line, {clauses, Clauses}}, Loops, State) ->
    site({block, Line, none, Clauses, []}, Loops, State);
rewrite({call, Line, {remote, _, {atom, _, beamtalk_cell}, {atom, _, block}} = Function,
         [{'fun', At, {clauses, Clauses}}, Cells]}, Loops, State) ->
    {Maker, Made} = site({maker, At, none, Clauses, []}, Loops, State),
    {NewCells, Done} = rewrite(Cells, Loops, Made),
    {{call, Line, Function, [Maker, NewCells]}, Done};
rewrite({call, Line, {named_fun, _, Name, Clauses}, Args}, Loops, State) ->
    {NewArgs, Done} = rewrite_all(Args, Loops, State),
    site({loop, Line, Name, Clauses, NewArgs}, Loops, Done);
rewrite({call, Line, {var, _, Name} = Variable, Args}, Loops, State) ->
    {NewArgs, #rewriting{target = Target} = Done} = rewrite_all(Args, Loops, State),
    case Loops of
        #{Name := Loop} -> {again(Target, Line, Variable, Loop, NewArgs), Done};
        _ -> {{call, Line, Variable, NewArgs}, Done}
    end;
rewrite({clause, Line, Patterns, Guards, Body}, Loops, State) ->
    {NewBody, Done} = rewrite_all(Body, Loops, State),
    {{clause, Line, Patterns, Guards, NewBody}, Done};
rewrite({match, Line, Pattern, Value}, Loops, State) ->
    {NewValue, Done} = rewrite(Value, Loops, State),
    {{match, Line, Pattern, NewValue}, Done};
rewrite({Kind, _, _} = Form, _, State) when Kind =:= var; Kind =:= atom; Kind =:= integer; Kind =:= float; Kind =:= bin ->
    {Form, State};
rewrite(Form, Loops, State) when is_tuple(Form) ->
    {Elements, Done} = rewrite_all(tuple_to_list(Form), Loops, State),
    {list_to_tuple(Elements), Done};
rewrite(Forms, Loops, State) when is_list(Forms) -> rewrite_all(Forms, Loops, State);
rewrite(Other, _, State) -> {Other, State}.

rewrite_all(Forms, Loops, State) ->
    lists:mapfoldl(fun(Form, Now) -> rewrite(Form, Loops, Now) end, State, Forms).

site({Kind, Line, Name, Clauses, Args}, Loops, #rewriting{last = Last} = State) ->
    Index = Last + 1,
    Free = lists:delete(Name, free(Clauses)),
    Inside = case Kind of
        loop -> Loops#{Name => {Index, Free}};
        _ -> Loops
    end,
    {NewClauses, Done} = rewrite_all(Clauses, Inside, State#rewriting{last = Index}),
    emit({Kind, Line, Name, NewClauses, Args}, Index, Free, Done).

%%% Sites as data

emit({Kind, Line, Name, Clauses, Args}, Index, Free, #rewriting{target = {walked, Unit}} = State) ->
    Variables = {tuple, Line, variables(Line, Free)},
    Shared = case Kind of
        %% What makes a block again must go on making the same one.
        maker -> none;
        _ -> Unit
    end,
    %% The interpreter answers whatever stands in a literal.
    Site = {atom, Line, {site, Shared, Index, Free, Name, Clauses}},
    Form = case Kind of
        loop -> walk(Line, turn, [{tuple, Line, [Site, Variables]}, {tuple, Line, Args}]);
        _ -> walk(Line, block, [Site, Variables])
    end,
    {Form, State};

%%% Sites as functions

emit({Kind, Line, _, Clauses, Args}, Index, Free, #rewriting{target = compiled, functions = Functions} = State) ->
    [{clause, _, Patterns, _, _} | _] = Clauses,
    Outside = variables(Line, Free),
    Arity = length(Outside) + length(Patterns),
    Index =< ?MAX_SITES andalso Arity =< ?MAX_ARITY orelse throw(too_large),
    Lifted = [{clause, At, Outside ++ Head, Guards, Body} || {clause, At, Head, Guards, Body} <- Clauses],
    Form = case Kind of
        loop -> call_site(Line, Index, Outside ++ Args);
        _ ->
            Given = parameters(Line, length(Patterns)),
            {'fun', Line, {clauses, [{clause, Line, Given, [], [call_site(Line, Index, Outside ++ Given)]}]}}
    end,
    {Form, State#rewriting{functions = [{Index, Line, length(Outside), Arity, Lifted} | Functions]}}.

%% The next turn of a loop.
again({walked, _}, Line, Variable, _, Args) -> walk(Line, turn, [Variable, {tuple, Line, Args}]);
again(compiled, Line, _, {Index, Free}, Args) -> call_site(Line, Index, variables(Line, Free) ++ Args).

call_site(Line, Index, Args) -> {call, Line, {atom, Line, function_name(Index)}, Args}.

walk(Line, Function, Args) ->
    {call, Line, {remote, Line, {atom, Line, beamtalk_walk}, {atom, Line, Function}}, Args}.

function_name(Index) -> list_to_atom("site " ++ integer_to_list(Index)).

variables(Line, Names) -> [{var, Line, Name} || Name <- Names].

parameters(Line, Count) -> [{var, Line, list_to_atom("P" ++ integer_to_list(N))} || N <- lists:seq(1, Count)].

%%% Variables from outside

%% The compiler binds a name once in a function: what is bound anywhere in it is its own.
free(Clauses) ->
    {Used, Bound} = scan(Clauses, {[], []}),
    ordsets:subtract(ordsets:from_list(Used), ordsets:from_list(Bound)).

scan({var, _, Name}, {Used, Bound}) -> {[Name | Used], Bound};
scan({Kind, _, _}, Seen) when Kind =:= atom; Kind =:= integer; Kind =:= float; Kind =:= string -> Seen;
scan({match, _, Pattern, Value}, Seen) -> scan(Value, bind(Pattern, Seen));
scan({clause, _, Patterns, Guards, Body}, Seen) -> scan(Body, scan(Guards, bind(Patterns, Seen)));
scan({'fun', _, {clauses, Clauses}}, {Used, Bound}) -> {free(Clauses) ++ Used, Bound};
scan({named_fun, _, Name, Clauses}, {Used, Bound}) -> {lists:delete(Name, free(Clauses)) ++ Used, Bound};
scan(Form, Seen) when is_tuple(Form) -> scan(tuple_to_list(Form), Seen);
scan([First | Rest], Seen) -> scan(Rest, scan(First, Seen));
scan(_, Seen) -> Seen.

%% Keys and sizes in patterns are used, not bound.
bind({var, _, Name}, {Used, Bound}) -> {Used, [Name | Bound]};
bind({map_field_exact, _, Key, Value}, Seen) -> bind(Value, scan(Key, Seen));
bind({bin_element, _, Value, Size, _}, Seen) -> bind(Value, scan(Size, Seen));
bind({Kind, _, _}, Seen) when Kind =:= atom; Kind =:= integer; Kind =:= float; Kind =:= string -> Seen;
bind(Form, Seen) when is_tuple(Form) -> bind(tuple_to_list(Form), Seen);
bind([First | Rest], Seen) -> bind(Rest, bind(First, Seen));
bind(_, Seen) -> Seen.
