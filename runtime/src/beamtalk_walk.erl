%% Runs the expressions of sessions and scripts: by walking their forms, until they turn out hot.
%%
%% Walking starts at once and makes no code, which is right for nearly everything a person types. Every call of a block and
%% every turn of a loop is counted for the outermost block or loop around it. After some hundred of them that is compiled beside
%% the evaluation (beamtalk_hot_code), and whichever block or loop of it comes next goes on in the compiled code with the same
%% variables. Until then, and if no code comes, walking goes on.
%%
%% A block that was made by walking stays one: it holds its forms, not code, so it may be kept anywhere for ever.
-module(beamtalk_walk).

-export([statement/4, set_threshold/1]).
-export([is_block/1, captured/1, place/1, with_captured/2]).
%% Called by walked expressions, and by compiled ones for what they do not have.
-export([block/2, loop/3, turn/2, call/5, operate/3]).

%% How many calls and turns are walked before code is made: about what making it costs.
-define(THRESHOLD, 500).

%% What an outermost site of a statement shares with those inside: the slot their code is expected in, or 0; what they are known
%% by; their heat; the forms of their input and their place there. All who hold a block share the binary.
-type unit() :: {Slot :: non_neg_integer(), beamtalk_hot_code:id(), heat(), Input :: binary(), place()}.
-type place() :: {Statement :: pos_integer(), Outermost :: pos_integer()}.
%% How often sites ran, from below zero up to when code is asked for, and the slot of the code when it came.
-type heat() :: atomics:atomics_ref().
-export_type([unit/0, place/0]).

%% A site with the values of the variables from outside: what a block or a running loop is. What is needed to go on in
%% compiled code stands first.
-type closure() :: {Slot :: non_neg_integer(), beamtalk_hot_code:id() | none, Index :: pos_integer(),
                    Variables :: tuple(), beamtalk_sites:site()}.

-define(COUNT, 1).
-define(SLOT, 2).

%% One statement of an input, given by its form, the forms of the whole input, and its place there.
-spec statement(tuple(), binary(), pos_integer(), map()) -> {term(), map()}.
statement(Form, Input, Statement, Bindings) ->
    Walked = case beamtalk_sites:has_sites(Form) of
        true -> beamtalk_sites:walked(Form, fun(Outermost) -> unit(Input, {Statement, Outermost}) end);
        false -> Form
    end,
    {value, Value, NewBindings} = erl_eval:expr(Walked, Bindings, none, none, none),
    {Value, NewBindings}.

unit(Input, Place) ->
    Id = beamtalk_hot_code:id({sites, Input, Place}),
    Expected = beamtalk_hot_code:slot(Id),
    Slot = case erlang:module_loaded(beamtalk_hot_code:module(Expected)) of
        true -> Expected;
        false -> 0
    end,
    Heat = atomics:new(2, [{signed, true}]),
    {Threshold, _} = setting(),
    atomics:put(Heat, ?COUNT, -Threshold),
    {Slot, Id, Heat, Input, Place}.

%% For tests: code is made after so many calls and turns, and waited for with `wait'; never with `infinity'.
-spec set_threshold({pos_integer(), wait | go_on} | infinity | default) -> ok.
set_threshold(default) ->
    persistent_term:erase(?MODULE),
    ok;
set_threshold(infinity) -> set_threshold({1 bsl 60, go_on});
set_threshold(Setting) -> persistent_term:put(?MODULE, Setting).

setting() -> persistent_term:get(?MODULE, {?THRESHOLD, go_on}).

%%% Sites

%% A loop begins. It is no value: only its own code goes on with it.
-spec loop(beamtalk_sites:site(), tuple(), tuple()) -> term().
loop(Site, Variables, Args) -> enter(closure(Site, Variables), Args).

%% A loop's next turn.
-spec turn(closure(), tuple()) -> term().
turn(Loop, Args) -> enter(Loop, Args).

closure({site, none, Index, _, _, _} = Site, Variables) -> {0, none, Index, Variables, Site};
closure({site, {Slot, Id, _, _, _}, Index, _, _, _} = Site, Variables) -> {Slot, Id, Index, Variables, Site}.

%% A block over the values of the variables it uses.
-spec block(beamtalk_sites:site(), tuple()) -> fun().
block({site, _, _, _, _, [{clause, _, Patterns, _, _} | _]} = Site, Variables) ->
    X = closure(Site, Variables),
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

enter({Slot, Id, Index, Variables, _} = Closure, Args) ->
    beamtalk_hot_code:call(Slot, Id, Index, Variables, Args, Closure).

%% Where the code should have been is none, or that of another statement.
-spec call(beamtalk_hot_code:id() | none, non_neg_integer(), tuple(), tuple(), Who) -> term()
    when Who :: closure() | {again, closure()} | {method, [tuple()]}.
call(none, _, _, Args, Closure) -> walk(Closure, Args);
call(_, _, _, {Self}, {method, Forms}) -> beamtalk_hot_code:run_method(Forms, Self);
call(_, _, _, Args, {again, {_, _, _, _, {site, {_, _, Heat, _, _}, _, _, _, _}} = Closure}) ->
    cool(Heat),
    walk(Closure, Args);
call(Id, Index, Variables, Args, {_, _, _, _, {site, {_, _, Heat, _, _} = Unit, _, _, _, _}} = Closure) ->
    case slot(Heat) of
        0 ->
            case atomics:add_get(Heat, ?COUNT, 1) of
                0 -> become_hot(Unit, Closure, Args);
                _ -> walk(Closure, Args)
            end;
        none -> walk(Closure, Args);
        Slot -> beamtalk_hot_code:call(Slot, Id, Index, Variables, Args, {again, Closure})
    end.

%% A block that came from another node has no heat here.
slot(Heat) ->
    try atomics:get(Heat, ?SLOT)
    catch error:badarg -> none
    end.

become_hot(Unit, Closure, Args) ->
    case setting() of
        {_, wait} ->
            beamtalk_hot_code:await(Unit),
            enter(Closure, Args);
        {_, go_on} ->
            beamtalk_hot_code:want(Unit),
            walk(Closure, Args)
    end.

%% The code has gone for other code: what is still hot asks again.
cool(Heat) ->
    {Threshold, _} = setting(),
    atomics:put(Heat, ?SLOT, 0),
    atomics:put(Heat, ?COUNT, -Threshold).

walk({_, _, _, Variables, {site, _, _, Free, Loop, Clauses}} = Closure, Args) ->
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

%% An operation that is not of integers, or fails: with its operands in the stack, as when it is walked.
-spec operate(atom(), term(), term()) -> term().
operate(Operator, Left, Right) ->
    try
        case Operator of
            '+' -> Left + Right;
            '-' -> Left - Right;
            '*' -> Left * Right;
            '/' -> Left / Right;
            'div' -> Left div Right;
            'rem' -> Left rem Right
        end
    catch error:badarith -> apply(erlang, Operator, [Left, Right])
    end.

%%% Blocks as beamtalk_cell sees them

%% Was the fun made by walking?
-spec is_block(fun()) -> boolean().
is_block(Fun) -> erlang:fun_info(Fun, module) =:= {module, ?MODULE}.

%% The values of the variables it uses.
-spec captured(fun()) -> [term()].
captured(Block) -> tuple_to_list(element(4, closure(Block))).

%% The place of the block, in one evaluation of its statement.
-spec place(fun()) -> {unit() | none, pos_integer()}.
place(Block) ->
    {_, _, Index, _, {site, Unit, _, _, _, _}} = closure(Block),
    {Unit, Index}.

%% The same block over other values.
-spec with_captured(fun(), [term()]) -> fun().
with_captured(Block, Values) -> block(element(5, closure(Block)), list_to_tuple(Values)).

closure(Block) ->
    {env, [Closure]} = erlang:fun_info(Block, env),
    Closure.
