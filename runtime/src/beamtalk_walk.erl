%% Runs the expressions of sessions and scripts: by walking their forms, until they turn out hot.
%%
%% Walking starts at once and makes no code, which is right for nearly everything a person types. Every call of a block and
%% every turn of a loop is counted for its statement. After a thousand of them the statement is compiled beside the
%% evaluation (beamtalk_hot_code), and whichever block or loop of it comes next goes on in the compiled code with the same
%% variables. Until then, and if no code comes, walking goes on.
%%
%% A block that was made by walking stays one: it holds its forms, not code, so it may be kept anywhere for ever.
-module(beamtalk_walk).

-export([statement/4, set_threshold/1]).
-export([is_block/1, captured/1, place/1, with_captured/2]).
%% Called by walked and compiled expressions.
-export([block/2, turn/2, stale/3]).

%% How many calls and turns are walked before code is made: about what making it costs.
-define(THRESHOLD, 1000).

%% What the sites of a statement share: how often they ran and where their code is, the forms of its input and its number
%% there. Binaries are shared by all who hold a block.
-type unit() :: {atomics:atomics_ref(), Input :: binary(), Statement :: pos_integer()}.
-export_type([unit/0]).

%% A site with the values of the variables from outside: what a block or a running loop is.
-type closure() :: {beamtalk_sites:site(), Variables :: tuple()}.

%% In the atomics of a unit. The count starts below zero and asks for code when it gets there.
-define(COUNT, 1).
-define(TICKET, 2).

%% One statement of an input, given by its form, the forms of the whole input, and its number there.
-spec statement(tuple(), binary(), pos_integer(), map()) -> {term(), map()}.
statement(Form, Input, Number, Bindings) ->
    Heat = atomics:new(2, [{signed, true}]),
    {Threshold, _} = setting(),
    atomics:put(Heat, ?COUNT, -Threshold),
    Walked = beamtalk_sites:walked(Form, {Heat, Input, Number}),
    {value, Value, NewBindings} = erl_eval:expr(Walked, Bindings, none, none, none),
    {Value, NewBindings}.

%% For tests: code is made after so many calls and turns, and waited for with `wait'; never with `infinity'.
-spec set_threshold({non_neg_integer(), wait | go_on} | infinity | default) -> ok.
set_threshold(default) ->
    persistent_term:erase(?MODULE),
    ok;
set_threshold(infinity) -> set_threshold({1 bsl 60, go_on});
set_threshold(Setting) -> persistent_term:put(?MODULE, Setting).

setting() -> persistent_term:get(?MODULE, {?THRESHOLD, go_on}).

%%% Sites

%% A loop's next turn. A loop is no value: only its own code goes on with it.
-spec turn(closure(), tuple()) -> term().
turn(Loop, Args) -> enter(Loop, Args).

%% A block over the values of the variables it uses.
-spec block(beamtalk_sites:site(), tuple()) -> fun().
block({site, _, _, _, _, [{clause, _, Patterns, _, _} | _]} = Site, Variables) ->
    X = {Site, Variables},
    case length(Patterns) of
        0 -> fun() -> enter(X, {}) end;
        1 -> fun(A) -> enter(X, {A}) end;
        2 -> fun(A, B) -> enter(X, {A, B}) end;
        3 -> fun(A, B, C) -> enter(X, {A, B, C}) end;
        4 -> fun(A, B, C, D) -> enter(X, {A, B, C, D}) end;
        5 -> fun(A, B, C, D, E) -> enter(X, {A, B, C, D, E}) end;
        6 -> fun(A, B, C, D, E, F) -> enter(X, {A, B, C, D, E, F}) end;
        7 -> fun(A, B, C, D, E, F, G) -> enter(X, {A, B, C, D, E, F, G}) end;
        8 -> fun(A, B, C, D, E, F, G, H) -> enter(X, {A, B, C, D, E, F, G, H}) end;
        9 -> fun(A, B, C, D, E, F, G, H, I) -> enter(X, {A, B, C, D, E, F, G, H, I}) end;
        10 -> fun(A, B, C, D, E, F, G, H, I, J) -> enter(X, {A, B, C, D, E, F, G, H, I, J}) end;
        11 -> fun(A, B, C, D, E, F, G, H, I, J, K) -> enter(X, {A, B, C, D, E, F, G, H, I, J, K}) end;
        12 -> fun(A, B, C, D, E, F, G, H, I, J, K, L) -> enter(X, {A, B, C, D, E, F, G, H, I, J, K, L}) end;
        13 -> fun(A, B, C, D, E, F, G, H, I, J, K, L, M) -> enter(X, {A, B, C, D, E, F, G, H, I, J, K, L, M}) end;
        14 ->
            fun(A, B, C, D, E, F, G, H, I, J, K, L, M, N) ->
                enter(X, {A, B, C, D, E, F, G, H, I, J, K, L, M, N})
            end;
        15 ->
            fun(A, B, C, D, E, F, G, H, I, J, K, L, M, N, O) ->
                enter(X, {A, B, C, D, E, F, G, H, I, J, K, L, M, N, O})
            end;
        16 ->
            fun(A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P) ->
                enter(X, {A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P})
            end;
        17 ->
            fun(A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q) ->
                enter(X, {A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q})
            end;
        18 ->
            fun(A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R) ->
                enter(X, {A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R})
            end;
        19 ->
            fun(A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S) ->
                enter(X, {A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S})
            end;
        20 ->
            fun(A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S, T) ->
                enter(X, {A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S, T})
            end;
        Count -> too_many_parameters(Count)
    end.

too_many_parameters(Count) ->
    Text = <<"a block written in a session or script has at most 20 parameters, not ", (integer_to_binary(Count))/binary>>,
    beamtalk_error:raise(argument_error, 'Block', nil, Text, <<"write it in a method, or give it a List">>, #{}).

enter({{site, none, _, _, _, _}, _} = Closure, Args) -> walk(Closure, Args);
enter({{site, {Heat, _, _}, Index, _, _, _}, Variables} = Closure, Args) ->
    case ticket(Heat) of
        0 ->
            case atomics:add_get(Heat, ?COUNT, 1) of
                0 -> become_hot(Closure, Args);
                _ -> walk(Closure, Args)
            end;
        elsewhere -> walk(Closure, Args);
        Ticket -> (beamtalk_hot_code:module(Ticket)):call(Ticket, Index, Variables, Args, Closure)
    end.

%% A block that came from another node counts nowhere.
ticket(Heat) ->
    try atomics:get(Heat, ?TICKET)
    catch error:badarg -> elsewhere
    end.

become_hot({{site, Unit, _, _, _, _}, _} = Closure, Args) ->
    case setting() of
        {_, wait} ->
            beamtalk_hot_code:await(Unit),
            enter(Closure, Args);
        {_, go_on} ->
            beamtalk_hot_code:want(Unit),
            walk(Closure, Args)
    end.

%% The code went for other code meanwhile: what is hot still asks again.
-spec stale(pos_integer(), closure() | {method, [tuple()]}, tuple()) -> term().
stale(_, {method, Forms}, {Self}) -> beamtalk_hot_code:run_method(Forms, Self);
stale(Ticket, {{site, {Heat, _, _}, _, _, _, _}, _} = Closure, Args) ->
    case atomics:compare_exchange(Heat, ?TICKET, Ticket, 0) of
        ok ->
            {Threshold, _} = setting(),
            atomics:put(Heat, ?COUNT, -Threshold);
        _ -> ok
    end,
    walk(Closure, Args).

walk({{site, _, _, Free, Loop, Clauses}, Variables} = Closure, Args) ->
    Outside = maps:from_list(lists:zip(Free, tuple_to_list(Variables))),
    Bindings = case Loop of
        none -> Outside;
        _ -> Outside#{Loop => Closure}
    end,
    {Body, Bound} = begun(Clauses, tuple_to_list(Args), Bindings),
    %% With `value' the last call of the body is a tail call, so that loops need no stack.
    erl_eval:expr({block, 0, Body}, Bound, none, none, value).

begun([{clause, _, Patterns, [], Body}] = Clauses, Args, Bindings) ->
    case named(Patterns, Args, Bindings) of
        none -> matched(Clauses, Args, Bindings);
        Bound -> {Body, Bound}
    end;
begun(Clauses, Args, Bindings) -> matched(Clauses, Args, Bindings).

named([{var, _, '_'} | Patterns], [_ | Args], Bindings) -> named(Patterns, Args, Bindings);
named([{var, _, Name} | Patterns], [Arg | Args], Bindings) -> named(Patterns, Args, Bindings#{Name => Arg});
named([], [], Bindings) -> Bindings;
named(_, _, _) -> none.

matched(Clauses, Args, Bindings) ->
    case erl_eval:match_clause(Clauses, Args, Bindings, none) of
        nomatch -> erlang:error(function_clause);
        Begun -> Begun
    end.

%%% Blocks as beamtalk_cell sees them

%% Was the fun made by walking?
-spec is_block(fun()) -> boolean().
is_block(Fun) -> erlang:fun_info(Fun, module) =:= {module, ?MODULE}.

%% The values of the variables it uses.
-spec captured(fun()) -> [term()].
captured(Block) ->
    {_, Variables} = closure(Block),
    tuple_to_list(Variables).

%% The place of the block, in one evaluation of its statement.
-spec place(fun()) -> {unit() | none, pos_integer()}.
place(Block) ->
    {{site, Unit, Index, _, _, _}, _} = closure(Block),
    {Unit, Index}.

%% The same block over other values.
-spec with_captured(fun(), [term()]) -> fun().
with_captured(Block, Values) ->
    {Site, _} = closure(Block),
    block(Site, list_to_tuple(Values)).

closure(Block) ->
    {env, [Closure]} = erlang:fun_info(Block, env),
    Closure.
