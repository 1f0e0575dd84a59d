%% Variables captured by closures.
%%
%% A cell is `{'$bt_cell', Key, Frozen}'. While it is live in a process its value is
%% `{value, V}' under Key in the process dictionary; otherwise it is looked up in
%% Frozen, a map of keys to stored values. A closure with cells carries
%% `{'$bt_env', Maker, Cells}' and is made anew, over other cells, by calling
%% Maker.
%%
%% Freezing gives a closure cells of its own that start from the values of the
%% moment. All cells a closure reaches, through blocks held in other cells too,
%% are stored in one map, so a block may reach itself; blocks inside stored
%% values are kept as `{'$bt_block', Maker, Keys}' and plain funs that hold blocks
%% as `{'$bt_fun', Fun, Environment}', and are made again when they are read.
%%
%% Two moments freeze: a value that leaves the process takes the current value of
%% every variable (`freeze/1'); at the end of a message blocks kept in state fix
%% the variables made in that message, while blocks frozen earlier and session
%% variables stay as they are (`end_message/2').
-module(beamtalk_cell).

-export([new/1, read/1, read/2, write/2, write/3, cell/2, session/1, block/2]).
-export([computed/1, operate/5]).
-export([freeze/1, has_live/0, end_message/2, end_evaluation/0]).
-export([start_session/1, session_names/0, session_value/1, set_session/2, forget_session/1]).

-type cell() :: {'$bt_cell', term(), map()}.
-type environment() :: {'$bt_env', fun(), tuple()}.

-spec new(term()) -> cell().
new(Value) ->
    Key = make_ref(),
    put(Key, {value, Value}),
    remember(Key),
    {'$bt_cell', Key, #{}}.

remember(Key) ->
    case get('$bt_cells') of
        undefined -> put('$bt_cells', [Key]);
        Keys -> put('$bt_cells', [Key | Keys])
    end.

-spec read(cell()) -> term().
read({_, Key, Frozen}) ->
    case get(Key) of
        {value, Value} -> Value;
        undefined -> stored(Key, Frozen)
    end.

-spec read(environment(), pos_integer()) -> term().
read({_, _, Cells}, Index) ->
    read(element(Index, Cells)).

-spec write(cell(), Value) -> Value when Value :: term().
write({_, Key, _}, Value) ->
    case put(Key, {value, Value}) of
        undefined when is_reference(Key) -> remember(Key);
        _ when is_reference(Key) -> ok;
        _ -> beamtalk_announcer:binding_changed(element(2, Key), Value)
    end,
    Value.

-spec write(environment(), pos_integer(), Value) -> Value when Value :: term().
write({_, _, Cells}, Index, Value) ->
    write(element(Index, Cells), Value).

%%% Loops that hold the values of cells and write them back

%% The present values, unless somebody is told of every assignment, or one has none.
-spec computed(tuple()) -> tuple() | none.
computed(Cells) ->
    case beamtalk_announcer:is_watched() of
        true -> none;
        false -> computed(tuple_to_list(Cells), [])
    end.

computed([{_, Key, Frozen} | Cells], Values) ->
    case get(Key) of
        {value, Value} -> computed(Cells, [Value | Values]);
        undefined ->
            case Frozen of
                #{Key := {plain, Value}} -> computed(Cells, [Value | Values]);
                _ -> none
            end
    end;
computed([], Values) -> list_to_tuple(lists:reverse(Values)).

%% An operation of such a loop that may fail.
-spec operate(atom(), number(), number(), tuple(), tuple()) -> number().
operate(Operator, Left, Right, Cells, Values) ->
    try beamtalk_walk:operate(Operator, Left, Right)
    catch error:Reason:Stack ->
        [write(Cell, Value) || {Cell, Value} <- lists:zip(tuple_to_list(Cells), tuple_to_list(Values))],
        erlang:raise(error, Reason, Stack)
    end.

%% The cell itself, for a block inside the block.
-spec cell(environment(), pos_integer()) -> cell().
cell({_, _, Cells}, Index) ->
    element(Index, Cells).

stored(Key, Frozen) ->
    case Frozen of
        #{Key := {plain, Value}} -> Value;
        #{Key := {blocks, Value}} -> thaw(Value, Frozen);
        #{Key := {unbound, Name}} -> undefined_variable(Name);
        _ ->
            case Key of
                {'$bt_session', Name} -> global(Name);
                _ -> nil
            end
    end.

%% A name the session has not assigned may be one of the workspace.
global(Name) ->
    case beamtalk_workspace:global(Name) of
        {ok, Value} -> Value;
        none -> undefined_variable(Name)
    end.

undefined_variable(Name) ->
    beamtalk_error:raise(undefined_variable, nil, Name).

%% A closure over cells.
-spec block(fun((environment()) -> fun()), tuple()) -> fun().
block(Maker, Cells) ->
    Maker({'$bt_env', Maker, Cells}).

%%% Session variables: cells of the evaluator's process that are never released.

-spec session(atom()) -> cell().
session(Name) -> {'$bt_cell', {'$bt_session', Name}, #{}}.

%% Mark the calling process as the evaluator of a session.
-spec start_session(term()) -> ok.
start_session(Id) ->
    put('$bt_session', Id),
    ok.

-spec session_names() -> [atom()].
session_names() ->
    lists:sort([Name || {{'$bt_session', Name}, {value, _}} <- get()]).

-spec session_value(atom()) -> {ok, term()} | none.
session_value(Name) ->
    case get({'$bt_session', Name}) of
        {value, Value} -> {ok, Value};
        undefined -> none
    end.

-spec set_session(atom(), term()) -> ok.
set_session(Name, Value) ->
    put({'$bt_session', Name}, {value, Value}),
    ok.

-spec forget_session(atom()) -> ok.
forget_session(Name) ->
    erase({'$bt_session', Name}),
    ok.

%%% Freezing

-spec has_live() -> boolean().
has_live() ->
    get('$bt_cells') =/= undefined orelse get('$bt_session') =/= undefined.

%% The term as it may leave this process.
-spec freeze(Term) -> Term when Term :: term().
freeze(Term) ->
    case has_live() of
        false -> Term;
        true -> walk(Term, leave)
    end.

%% State of an actor at the end of a message. Slots that still hold what they
%% held before cannot contain a new block and are not searched.
-spec end_message(map(), map()) -> map().
end_message(Old, New) ->
    case get('$bt_cells') of
        undefined -> New;
        Keys ->
            Kept = maps:map(fun(Slot, Value) ->
                                    case Old of
                                        #{Slot := Before} when Before =:= Value -> Value;
                                        _ -> walk(Value, keep)
                                    end
                            end, New),
            release(Keys),
            Kept
    end.

%% End of a session's evaluation: blocks in its variables keep what they
%% captured from methods.
-spec end_evaluation() -> ok.
end_evaluation() ->
    case get('$bt_cells') of
        undefined -> ok;
        Keys ->
            [put(Key, {value, walk(Value, keep)})
             || {{'$bt_session', _} = Key, {value, Value}} <- get()],
            release(Keys)
    end.

release(Keys) ->
    [erase(Key) || Key <- Keys],
    erase('$bt_cells'),
    ok.

%% Replace every block in the term by its frozen copy.
walk(Term, Mode) when is_function(Term) -> freeze_block(Term, Mode);
walk([Head | Tail], Mode) -> [walk(Head, Mode) | walk(Tail, Mode)];
walk(Term, Mode) when is_map(Term) ->
    case has_block(Term) of
        true -> maps:from_list([{walk(K, Mode), walk(V, Mode)} || {K, V} <- maps:to_list(Term)]);
        false -> Term
    end;
walk(Term, Mode) when is_tuple(Term), tuple_size(Term) > 0 ->
    case has_block(Term) of
        true -> list_to_tuple(walk(tuple_to_list(Term), Mode));
        false -> Term
    end;
walk(Term, _) -> Term.

has_block(Term) when is_function(Term) -> true;
has_block([Head | Tail]) -> has_block(Head) orelse has_block(Tail);
has_block(Term) when is_map(Term) -> map_has_block(maps:next(maps:iterator(Term)));
has_block(Term) when is_tuple(Term) -> tuple_has_block(Term, tuple_size(Term));
has_block(_) -> false.

map_has_block({K, V, Iterator}) ->
    has_block(V) orelse has_block(K) orelse map_has_block(maps:next(Iterator));
map_has_block(none) -> false.

tuple_has_block(_, 0) -> false;
tuple_has_block(Tuple, N) -> has_block(element(N, Tuple)) orelse tuple_has_block(Tuple, N - 1).

%% One block becomes the root of a group of cells of its own.
freeze_block(Fun, Mode) ->
    {Stored, #{values := Values}} = encode(Fun, #{mode => Mode, keys => #{}, values => #{}}),
    thaw(Stored, Values).

%% Encode a term: blocks become descriptions over new keys, whose values are
%% collected in the accumulator.
encode(Fun, Acc) when is_function(Fun) ->
    Environment = environment(Fun),
    case find_env(Environment) of
        {'$bt_env', Maker, Cells} = Env ->
            case is_made_by(Fun, Maker, Env) of
                true -> encode_block(Fun, Maker, tuple_to_list(Cells), Acc);
                false -> encode_plain(Fun, Environment, Acc)
            end;
        none -> encode_plain(Fun, Environment, Acc)
    end;
encode([Head | Tail], Acc) ->
    {NewHead, Acc1} = encode(Head, Acc),
    {NewTail, Acc2} = encode(Tail, Acc1),
    {[NewHead | NewTail], Acc2};
encode(Map, Acc) when is_map(Map) ->
    {Pairs, NewAcc} = encode(maps:to_list(Map), Acc),
    {maps:from_list(Pairs), NewAcc};
encode({'$bt_cell', _, _} = Cell, #{mode := Mode} = Acc) ->
    case Mode =:= keep andalso is_settled(Cell) of
        true -> {Cell, Acc};
        false ->
            {Key, NewAcc} = encode_cell(Cell, Acc),
            {{'$bt_key', Key}, NewAcc}
    end;
encode(Tuple, Acc) when is_tuple(Tuple) ->
    {Elements, NewAcc} = encode(tuple_to_list(Tuple), Acc),
    {list_to_tuple(Elements), NewAcc};
encode(Term, Acc) -> {Term, Acc}.

encode_block(Fun, Maker, Cells, #{mode := Mode} = Acc) ->
    case Mode =:= keep andalso lists:all(fun is_settled/1, Cells) of
        true -> {Fun, Acc};
        false ->
            {Keys, Acc1} = lists:mapfoldl(fun encode_cell/2, Acc, Cells),
            {NewMaker, Acc2} = encode(Maker, Acc1),
            {{'$bt_block', NewMaker, Keys}, Acc2}
    end.

%% Cells that the end of a message leaves alone.
is_settled({_, {'$bt_session', _}, _}) -> true;
is_settled({_, Key, Frozen}) -> is_map_key(Key, Frozen).

encode_cell({_, Key, _} = Cell, #{mode := Mode, keys := Keys, values := Values} = Acc) ->
    case {Keys, Key} of
        {#{Key := NewKey}, _} -> {NewKey, Acc};
        {_, {'$bt_session', _}} when Mode =:= keep -> {Key, Acc};
        _ ->
            NewKey = make_ref(),
            Known = Acc#{keys := Keys#{Key => NewKey}},
            case current(Cell) of
                {unbound, _} = Unbound -> {NewKey, Known#{values := Values#{NewKey => Unbound}}};
                {value, Value} ->
                    {Stored, #{values := More} = After} = encode(Value, Known),
                    Entry = if
                        Stored =:= Value -> {plain, Value};
                        true -> {blocks, Stored}
                    end,
                    {NewKey, After#{values := More#{NewKey => Entry}}}
            end
    end.

current({_, Key, Frozen}) ->
    case get(Key) of
        {value, _} = Live -> Live;
        undefined ->
            case {Frozen, Key} of
                {#{Key := {unbound, _} = Unbound}, _} -> Unbound;
                {#{Key := _}, _} -> {value, stored(Key, Frozen)};
                {_, {'$bt_session', Name}} -> {unbound, Name};
                _ -> {value, nil}
            end
    end.

%% Any other fun: cells and blocks among its free variables are replaced.
encode_plain(Fun, Environment, Acc) ->
    case has_captured(Environment) of
        false -> {Fun, Acc};
        true ->
            case encode(Environment, Acc) of
                {Environment, NewAcc} -> {Fun, NewAcc};
                {Encoded, NewAcc} -> {{'$bt_fun', Fun, Encoded}, NewAcc}
            end
    end.

has_captured(Environment) ->
    lists:any(fun({'$bt_env', _, _}) -> true;
                 ({'$bt_cell', _, _}) -> true;
                 (Term) -> has_block(Term)
              end, Environment).

%% The values of a fun's free variables.
environment(Fun) ->
    case {erlang:fun_info(Fun, type), beamtalk_walk:is_block(Fun)} of
        {{type, external}, _} -> [];
        {_, true} -> beamtalk_walk:captured(Fun);
        {_, false} ->
            {env, Environment} = erlang:fun_info(Fun, env),
            Environment
    end.

find_env([{'$bt_env', _, _} = Env | _]) -> Env;
find_env([_ | Rest]) -> find_env(Rest);
find_env([]) -> none.

%% Is this the closure that the maker makes, not one nested in it?
is_made_by(Fun, Maker, Env) ->
    Probe = Maker(Env),
    is_function(Probe) andalso code_of(Probe) =:= code_of(Fun).

code_of(Fun) ->
    case beamtalk_walk:is_block(Fun) of
        true -> beamtalk_walk:place(Fun);
        false -> [erlang:fun_info(Fun, Item) || Item <- [module, new_index, new_uniq]]
    end.

%% Make the blocks of a stored term again, over the cells of its group.
thaw({'$bt_block', Maker, Keys}, Frozen) ->
    block(thaw(Maker, Frozen), list_to_tuple([thaw_cell(Key, Frozen) || Key <- Keys]));
thaw({'$bt_fun', Fun, Environment}, Frozen) ->
    with_environment(Fun, thaw(Environment, Frozen));
thaw({'$bt_key', Key}, Frozen) -> thaw_cell(Key, Frozen);
thaw([Head | Tail], Frozen) -> [thaw(Head, Frozen) | thaw(Tail, Frozen)];
thaw(Map, Frozen) when is_map(Map) ->
    maps:from_list(thaw(maps:to_list(Map), Frozen));
thaw(Tuple, Frozen) when is_tuple(Tuple) ->
    list_to_tuple(thaw(tuple_to_list(Tuple), Frozen));
thaw(Term, _) -> Term.

with_environment(Fun, Environment) ->
    case beamtalk_walk:is_block(Fun) of
        true -> beamtalk_walk:with_captured(Fun, Environment);
        false -> beamtalk_fun:with_environment(Fun, Environment)
    end.

thaw_cell({'$bt_session', _} = Key, _) -> {'$bt_cell', Key, #{}};
thaw_cell(Key, Frozen) -> {'$bt_cell', Key, Frozen}.
