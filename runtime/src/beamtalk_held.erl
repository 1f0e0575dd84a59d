%% Values that a session holds without a name, and looking at values where they live.
%%
%% The evaluator keeps them in its own dictionary: nothing is copied when one is held, and only the window that is
%% shown leaves the process. They go with the evaluator, and the least recently used goes first.
-module(beamtalk_held).

-export([hold/1, serve/3, find/1]).
-export([ask/3]).

-define(MOST, 256).
%% How long an evaluator that is idle may take.
-define(WAIT, 3000).

%%% In the evaluator

%% Hold a value; the answer is its reference.
-spec hold(term()) -> binary().
hold(Value) ->
    {Next, Order} = case get('$bt_held') of
        undefined -> {1, []};
        Known -> Known
    end,
    put({'$bt_held', Next}, {value, Value}),
    Kept = lists:sublist([Next | Order], ?MOST),
    [erase({'$bt_held', Old}) || Old <- lists:nthtail(min(?MOST, length(Order) + 1), [Next | Order])],
    put('$bt_held', {Next + 1, Kept}),
    <<"v-", (integer_to_binary(Next))/binary>>.

%% Answer somebody who looks at a value of this process.
-spec serve({pid(), reference()}, {ref, binary()} | {variable, atom()}, fun((term()) -> term())) -> ok.
serve({From, Tag}, Wanted, Look) ->
    Answer = case find(Wanted) of
        {value, Value} ->
            try {ok, Look(Value)}
            catch
                throw:{op_failed, Failure} -> {failed, Failure};
                _:Reason -> {crashed, Reason}
            end;
        none -> gone
    end,
    From ! {Tag, Answer},
    ok.

%% A value of this process.
-spec find({ref, binary()} | {variable, atom()}) -> {value, term()} | none.
find({ref, <<"v-", Digits/binary>>}) ->
    try binary_to_integer(Digits) of
        Number -> used(Number, get({'$bt_held', Number}))
    catch error:badarg -> none
    end;
find({ref, _}) -> none;
find({variable, Name}) ->
    case get({'$bt_session', Name}) of
        {value, _} = Found -> Found;
        _ -> none
    end.

used(_, undefined) -> none;
used(Number, Found) ->
    {Next, Order} = get('$bt_held'),
    put('$bt_held', {Next, [Number | lists:delete(Number, Order)]}),
    Found.

%%% Elsewhere

%% Look at a value in the process that has it. `busy' while an evaluation runs.
-spec ask(pid() | none, {ref, binary()} | {variable, atom()}, fun((term()) -> term())) ->
    {ok, term()} | {failed, term()} | gone | busy.
ask(none, _, _) -> gone;
ask(Evaluator, Wanted, Look) ->
    Monitor = monitor(process, Evaluator),
    Evaluator ! {look, {self(), Monitor}, Wanted, Look},
    Answer = receive
        {Monitor, {crashed, Reason}} -> exit(Reason);
        {Monitor, Found} -> Found;
        {'DOWN', Monitor, process, _, _} -> gone
    after ?WAIT -> busy
    end,
    demonitor(Monitor, [flush]),
    Answer.
