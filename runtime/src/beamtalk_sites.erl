%% Where code can become hot: the blocks and loops of a statement, each a function of the variables it uses.
%%
%% A statement is an abstract expression as the compiler makes it. Sites inside others belong to the outermost one, and become
%% hot and are compiled together: of a loop that the compiler has written in two ways only the one that runs. Outermost
%% sites, and those of one, are numbered in the order in which they stand, so the numbers are the same whenever the statement is
%% read. `walked/2' gives what the interpreter runs, in which a site is data for beamtalk_walk; `compiled/4' gives a module in
%% which every site of an outermost one is a function.
-module(beamtalk_sites).

-export([has_sites/1, walked/2, compiled/4, entered/3, empty/1]).
-export_type([site/0]).

%% Unit is what the sites of an outermost one share (see beamtalk_walk), Free names the variables from outside. The name of a
%% loop stands for the loop itself in its clauses.
-type site() :: {site, Unit :: term(), Index :: pos_integer(), Free :: [atom()], Loop :: atom(), Clauses :: [tuple()]}.

%% A function of a module has a name, which the VM keeps for ever, and at most 255 arguments.
-define(MAX_SITES, 100).
-define(MAX_ARITY, 200).
%% The variables of so many operations have names of their own.
-define(MAX_OPERATIONS, 1000).

%% Around is the number of the outermost site that is being read, and Unit what belongs to it.
-record(rewriting, {target :: {walked, fun((pos_integer()) -> term())} | {compiled, pos_integer()},
                    around = none :: pos_integer() | none,
                    unit = none :: term(),
                    outermost = 0 :: non_neg_integer(),
                    last = 0 :: non_neg_integer(),
                    operations = 0 :: non_neg_integer(),
                    functions = [] :: [tuple()]}).

-spec has_sites(tuple()) -> boolean().
has_sites({'fun', _, {clauses, _}}) -> true;
has_sites({named_fun, _, _, _}) -> true;
has_sites({Kind, _, _}) when Kind =:= var; Kind =:= atom; Kind =:= integer; Kind =:= float; Kind =:= bin -> false;
has_sites(Form) when is_tuple(Form) -> has_sites(tuple_to_list(Form));
has_sites([Form | Rest]) -> has_sites(Form) orelse has_sites(Rest);
has_sites(_) -> false.

-spec walked(tuple(), fun((Outermost :: pos_integer()) -> Unit :: term())) -> tuple().
walked(Form, UnitOf) ->
    {Walked, _} = rewrite(Form, #{}, #rewriting{target = {walked, UnitOf}}),
    Walked.

%% Its function `call/5' goes on at a site with the variables from outside and the arguments, each in a tuple. Who comes for
%% other sites walks. Throws where they are too large.
-spec compiled(tuple(), pos_integer(), module(), beamtalk_hot_code:id()) -> [tuple()].
compiled(Form, Outermost, Module, Id) ->
    {_, #rewriting{functions = Functions}} = rewrite(Form, #{}, #rewriting{target = {compiled, Outermost}}),
    module(Module, [entry(Id, Function) || Function <- Functions])
     ++ [{function, Line, function_name(Index), Arity, Clauses} || {Index, Line, _, Arity, Clauses} <- Functions].

%% A module for no statement.
-spec empty(module()) -> [tuple()].
empty(Module) -> module(Module, []).

%% The same for the forms of a module with one unary method, which is site 0.
-spec entered([tuple()], module(), beamtalk_hot_code:id()) -> [tuple()].
entered(Forms, Module, Id) ->
    [Method | _] = [Name || {attribute, _, export, Exports} <- Forms, {Name, 1} <- Exports],
    [Self] = parameters(1, 1),
    Entry = clause(1, [Id, 0, {tuple, 1, []}, {tuple, 1, [Self]}, {var, 1, '_'}], {call, 1, {atom, 1, Method}, [Self]}),
    Kept = [Form || Form <- Forms, not (element(1, Form) =:= attribute andalso lists:member(element(3, Form), [module, export]))],
    module(Module, [Entry]) ++ Kept.

module(Module, Entries) ->
    Parameters = parameters(1, 5),
    Missed = clause(1, Parameters, walk(1, call, Parameters)),
    [{attribute, 1, module, Module},
     {attribute, 1, export, [{call, 5}]},
     {function, 1, call, 5, Entries ++ [Missed]}].

entry(Id, {Index, Line, Count, Arity, _}) ->
    Parameters = parameters(Line, Arity),
    {Variables, Args} = lists:split(Count, Parameters),
    Head = [Id, Index, {tuple, Line, Variables}, {tuple, Line, Args}, {var, Line, '_'}],
    clause(Line, Head, call_site(Line, Index, Parameters)).

clause(Line, Head, Body) ->
    Patterns = [case Pattern of
                    Number when is_integer(Number) -> {integer, Line, Number};
                    _ -> Pattern
                end || Pattern <- Head],
    {clause, Line, Patterns, [], [Body]}.

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
rewrite({op, Line, Operator, Left, Right}, Loops, #rewriting{target = {compiled, _}, around = Around} = State)
  when Around =/= none,
       (Operator =:= '+' orelse Operator =:= '-' orelse Operator =:= '*' orelse Operator =:= '/'
        orelse Operator =:= 'div' orelse Operator =:= 'rem') ->
    {Operands, #rewriting{operations = Before} = Done} = rewrite_all([Left, Right], Loops, State),
    Before < ?MAX_OPERATIONS orelse throw(too_large),
    {operation(Line, Operator, Operands, Before), Done#rewriting{operations = Before + 1}};
rewrite({Kind, _, _} = Form, _, State) when Kind =:= var; Kind =:= atom; Kind =:= integer; Kind =:= float; Kind =:= bin ->
    {Form, State};
rewrite(Form, Loops, State) when is_tuple(Form) ->
    {Elements, Done} = rewrite_all(tuple_to_list(Form), Loops, State),
    {list_to_tuple(Elements), Done};
rewrite(Forms, Loops, State) when is_list(Forms) -> rewrite_all(Forms, Loops, State);
rewrite(Other, _, State) -> {Other, State}.

rewrite_all(Forms, Loops, State) ->
    lists:mapfoldl(fun(Form, Now) -> rewrite(Form, Loops, Now) end, State, Forms).

site(Site, Loops, #rewriting{around = none, outermost = Before, target = Target} = State) ->
    Number = Before + 1,
    Entered = State#rewriting{around = Number, last = 0, outermost = Number},
    {Form, Done} = case Target of
        {walked, UnitOf} -> inside(Site, Loops, Entered#rewriting{unit = UnitOf(Number)});
        {compiled, Number} -> inside(Site, Loops, Entered);
        %% What is outside is not compiled.
        {compiled, _} -> {{nil, 0}, Entered}
    end,
    {Form, Done#rewriting{around = none}};
site(Site, Loops, State) -> inside(Site, Loops, State).

inside({Kind, Line, Name, Clauses, Args}, Loops, #rewriting{last = Last} = State) ->
    Index = Last + 1,
    Free = lists:delete(Name, free(Clauses)),
    Inside = case Kind of
        loop -> Loops#{Name => {Index, Free}};
        _ -> Loops
    end,
    {NewClauses, Done} = rewrite_all(Clauses, Inside, State#rewriting{last = Index}),
    emit({Kind, Line, Name, counted(Clauses, NewClauses, Done), Args}, Index, Free, Done).

%% Where all it computes with are integers the VM need not look at each operation, so that is a clause of its own.
counted([{clause, _, _, [], Body}], [{clause, Line, Patterns, [], NewBody} = Clause], #rewriting{target = {compiled, _}}) ->
    case operands(Body, ordsets:new()) of
        [] -> [Clause];
        Operands ->
            Given = ordsets:union(free([Clause]), ordsets:from_list([Name || {var, _, Name} <- Patterns])),
            Tests = [{call, Line, {atom, Line, is_integer}, [{var, Line, Name}]}
                     || Name <- ordsets:intersection(Operands, Given)],
            [{clause, Line, Patterns, [Tests], NewBody} || Tests =/= []] ++ [Clause]
    end;
counted(_, Clauses, _) -> Clauses.

%% The variables an arithmetic operation is done with, outside the sites inside.
operands({'fun', _, _}, Found) -> Found;
operands({named_fun, _, _, _}, Found) -> Found;
operands({op, _, Operator, Left, Right}, Found)
  when Operator =:= '+'; Operator =:= '-'; Operator =:= '*'; Operator =:= 'div'; Operator =:= 'rem' ->
    operands([Left, Right], lists:foldl(fun ordsets:add_element/2, Found, [Name || {var, _, Name} <- [Left, Right]]));
operands(Form, Found) when is_tuple(Form) -> operands(tuple_to_list(Form), Found);
operands([First | Rest], Found) -> operands(Rest, operands(First, Found));
operands(_, Found) -> Found.

%%% Sites as data

emit({Kind, Line, Name, Clauses, Args}, Index, Free, #rewriting{target = {walked, _}, unit = Unit} = State) ->
    Variables = {tuple, Line, variables(Line, Free)},
    Shared = case Kind of
        %% What makes a block again must go on making the same one.
        maker -> none;
        _ -> Unit
    end,
    %% The interpreter answers whatever stands in a literal.
    Site = {atom, Line, {site, Shared, Index, Free, Name, Clauses}},
    Form = case Kind of
        loop -> walk(Line, loop, [Site, Variables, {tuple, Line, Args}]);
        _ -> walk(Line, block, [Site, Variables])
    end,
    {Form, State};

%%% Sites as functions

emit({Kind, Line, _, Clauses, Args}, Index, Free, #rewriting{target = {compiled, _}, functions = Functions} = State) ->
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
again({compiled, _}, Line, _, {Index, Free}, Args) -> call_site(Line, Index, variables(Line, Free) ++ Args).

%% Compiled code that fails in an operation does not tell its operands, as messages do. So what may fail is done elsewhere.
operation(Line, Operator, [First, Second], Number) ->
    [Left, Right] = Named = [{var, Line, list_to_atom(Side ++ integer_to_list(Number))} || Side <- ["L", "R"]],
    Integers = [{call, Line, {atom, Line, is_integer}, [Operand]} || Operand <- Named],
    Guards = case Operator of
        '/' -> [{atom, Line, false}];
        _ when Operator =:= 'div'; Operator =:= 'rem' -> Integers ++ [{op, Line, '=/=', Right, {integer, Line, 0}}];
        _ -> Integers
    end,
    Fast = {clause, Line, [Right], [Guards], [{op, Line, Operator, Left, Right}]},
    Other = {clause, Line, [Right], [], [walk(Line, operate, [{atom, Line, Operator} | Named])]},
    {'case', Line, First, [{clause, Line, [Left], [], [{'case', Line, Second, [Fast, Other]}]}]}.

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
