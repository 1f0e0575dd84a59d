%% Streams: a source and a list of lazy steps, both plain data, interpreted when a
%% terminal selector pulls elements.
-module(beamtalk_stream).

-export(['class new:'/2, 'class from:'/2, 'class from:by:'/3, 'class on:'/2, 'select:'/2,
         'reject:'/2, 'collect:'/2, 'drop:'/2, 'take:'/2, asList/1, 'do:'/2, 'inject:into:'/3,
         'detect:'/2, 'detect:ifNone:'/3, 'anySatisfy:'/2, 'allSatisfy:'/2, printString/1]).
-export([pulling/3, batches/4]).

-type step() :: {select | reject | collect, fun()} | {drop, non_neg_integer()}.
-type source() :: {on, term()} | {from, integer()} | {iterate, term(), fun()}
                | {pull, fun(() -> {value, term()} | done), fun(() -> term())}
                | {batches, fun((term()) -> {[term()], term()} | done), term(), fun(() -> term())}.
-type stream() :: #{'$beamtalk_class' := 'Stream', source := source(), steps := [step()],
                    text := binary()}.

-define(DETECT_HINT, <<"Use detect:ifNone: to supply a default">>).

%%% Class side

-spec 'class new:'(term(), term()) -> no_return().
'class new:'(_Class, _) ->
    Message = <<"use Stream on:, from: or from:by: instead of new:">>,
    beamtalk_error:raise(user_error, 'Stream', 'new:', Message, nil, #{}).

-spec 'class from:'(term(), term()) -> stream().
'class from:'(_Class, Start) ->
    beamtalk_argument:integer(Start, 'Stream', 'from:'),
    make({from, Start}, <<"from: ", (integer_to_binary(Start))/binary>>).

-spec 'class from:by:'(term(), term(), term()) -> stream().
'class from:by:'(_Class, Start, Step) ->
    beamtalk_argument:block(Step, 1, 'Stream', 'from:by:'),
    make({iterate, Start, Step},
         <<"from: ", (beamtalk_display:print(Start))/binary, " by: [...]">>).

-spec 'class on:'(term(), term()) -> stream().
'class on:'(_Class, Collection) ->
    IsCollection = beamtalk_dispatch:is_kind_of(Collection, 'Collection')
        andalso not beamtalk_dispatch:is_kind_of(Collection, 'Dictionary'),
    case IsCollection of
        true -> make({on, Collection}, <<"on: ", (abbreviation(Collection))/binary>>);
        false -> beamtalk_argument:fail('Stream', 'on:', <<"Expected a Collection other than a Dictionary">>)
    end.

abbreviation(Text) when is_binary(Text) -> <<"'...'">>;
abbreviation(#{'$beamtalk_class' := 'Set'}) -> <<"Set(...)">>;
abbreviation(_) -> <<"[...]">>.

%% A stream over a source that is read: `Pull' answers the next element, `Close'
%% is called after every terminal selector.
-spec pulling(fun(() -> {value, term()} | done), fun(() -> term()), binary()) -> stream().
pulling(Pull, Close, Text) ->
    make({pull, Pull, Close}, Text).

%% The same where elements come many at a time: `Next' is given a state and answers elements and the next state.
-spec batches(fun((State) -> {[term()], State} | done), State, fun(() -> term()), binary()) -> stream().
batches(Next, State, Close, Text) ->
    make({batches, Next, State, Close}, Text).

make(Source, Text) ->
    #{'$beamtalk_class' => 'Stream', source => Source, steps => [],
      text => <<"Stream(", Text/binary, ")">>}.

%%% Lazy selectors

-spec 'select:'(stream(), term()) -> stream().
'select:'(Self, Block) ->
    add_step(Self, {select, beamtalk_argument:block(Block, 1, 'Stream', 'select:')}).

-spec 'reject:'(stream(), term()) -> stream().
'reject:'(Self, Block) ->
    add_step(Self, {reject, beamtalk_argument:block(Block, 1, 'Stream', 'reject:')}).

-spec 'collect:'(stream(), term()) -> stream().
'collect:'(Self, Block) ->
    add_step(Self, {collect, beamtalk_argument:block(Block, 1, 'Stream', 'collect:')}).

-spec 'drop:'(stream(), term()) -> stream().
'drop:'(Self, Count) ->
    add_step(Self, {drop, beamtalk_argument:non_negative(Count, 'Stream', 'drop:')}).

add_step(#{steps := Steps, text := Text} = Self, Step) ->
    Self#{steps := Steps ++ [Step], text := <<Text/binary, " | ", (step_text(Step))/binary>>}.

step_text({drop, Count}) -> <<"drop: ", (integer_to_binary(Count))/binary>>;
step_text({Name, _}) -> <<(atom_to_binary(Name))/binary, ": [...]">>.

-spec printString(stream()) -> binary().
printString(#{text := Text}) ->
    Text.

%%% Terminal selectors

-spec 'take:'(stream(), term()) -> list().
'take:'(Self, Count) ->
    case beamtalk_argument:non_negative(Count, 'Stream', 'take:') of
        0 ->
            close(Self),
            [];
        _ ->
            {_, Taken} = run(Self, {Count, []},
                             fun(Element, {1, Acc}) -> {stop, {0, [Element | Acc]}};
                                (Element, {Left, Acc}) -> {next, {Left - 1, [Element | Acc]}}
                             end),
            lists:reverse(Taken)
    end.

-spec asList(stream()) -> list().
asList(Self) ->
    lists:reverse(run(Self, [], fun(Element, Acc) -> {next, [Element | Acc]} end)).

-spec 'do:'(stream(), term()) -> nil.
'do:'(Self, Block) ->
    beamtalk_argument:block(Block, 1, 'Stream', 'do:'),
    run(Self, nil, fun(Element, Acc) -> Block(Element), {next, Acc} end).

-spec 'inject:into:'(stream(), term(), term()) -> term().
'inject:into:'(Self, Initial, Block) ->
    beamtalk_argument:block(Block, 2, 'Stream', 'inject:into:'),
    run(Self, Initial, fun(Element, Acc) -> {next, Block(Acc, Element)} end).

-spec 'detect:'(stream(), term()) -> term().
'detect:'(Self, Block) ->
    case find(Self, Block, true, 'detect:') of
        {value, Element} -> Element;
        none -> beamtalk_error:raise(not_found, 'Stream', 'detect:', ?DETECT_HINT)
    end.

-spec 'detect:ifNone:'(stream(), term(), term()) -> term().
'detect:ifNone:'(Self, Block, None) ->
    beamtalk_argument:block(None, 0, 'Stream', 'detect:ifNone:'),
    case find(Self, Block, true, 'detect:ifNone:') of
        {value, Element} -> Element;
        none -> None()
    end.

-spec 'anySatisfy:'(stream(), term()) -> boolean().
'anySatisfy:'(Self, Block) ->
    find(Self, Block, true, 'anySatisfy:') =/= none.

-spec 'allSatisfy:'(stream(), term()) -> boolean().
'allSatisfy:'(Self, Block) ->
    find(Self, Block, false, 'allSatisfy:') =:= none.

find(Self, Block, Wanted, Selector) ->
    beamtalk_argument:block(Block, 1, 'Stream', Selector),
    run(Self, none, fun(Element, none) ->
                            case test(Block, Element, Selector) of
                                Wanted -> {stop, {value, Element}};
                                _ -> {next, none}
                            end
                    end).

%%% Interpretation

%% Folds over the elements until `Fun' answers `{stop, Acc}' or there are no more.
run(#{source := Source, steps := Steps} = Self, Acc, Fun) ->
    try
        loop(start(Source), Steps, Acc, Fun)
    after
        close(Self)
    end.

start({on, #{'$beamtalk_class' := 'Interval'} = Interval}) ->
    {batches, fun beamtalk_interval:batch/1, Interval, fun() -> ok end};
start({on, Collection}) -> {list, beamtalk_collection:elements(Collection)};
start(Source) -> Source.

close(#{source := {pull, _, Close}}) -> Close();
close(#{source := {batches, _, _, Close}}) -> Close();
close(_) -> ok.

loop({list, Elements}, Steps, Acc, Fun) ->
    element(2, fold(Elements, Steps, Acc, Fun));
loop({batches, Next, State, Close}, Steps, Acc, Fun) ->
    case Next(State) of
        done ->
            Acc;
        {Elements, NewState} ->
            case fold(Elements, Steps, Acc, Fun) of
                {stop, NewAcc} -> NewAcc;
                {NewSteps, NewAcc} -> loop({batches, Next, NewState, Close}, NewSteps, NewAcc, Fun)
            end
    end;
loop(Source, Steps, Acc, Fun) ->
    case next(Source) of
        done ->
            Acc;
        {Element, Rest} ->
            case fold([Element], Steps, Acc, Fun) of
                {stop, NewAcc} -> NewAcc;
                {NewSteps, NewAcc} -> loop(Rest, NewSteps, NewAcc, Fun)
            end
    end.

%% Over elements that are there: `{stop, Acc}', or the steps as they are now and the accumulator.
fold([Element | Rest], [], Acc, Fun) ->
    case Fun(Element, Acc) of
        {next, NewAcc} -> fold(Rest, [], NewAcc, Fun);
        {stop, _} = Stop -> Stop
    end;
fold([Element | Rest], Steps, Acc, Fun) ->
    case apply_steps(Steps, Element, []) of
        {skip, NewSteps} ->
            fold(Rest, NewSteps, Acc, Fun);
        {keep, Value, NewSteps} ->
            case Fun(Value, Acc) of
                {next, NewAcc} -> fold(Rest, NewSteps, NewAcc, Fun);
                {stop, _} = Stop -> Stop
            end
    end;
fold([], Steps, Acc, _) ->
    {Steps, Acc}.

%% An iterated source applies its block only when the element after it is wanted.
next({from, Number}) -> {Number, {from, Number + 1}};
next({iterate, Value, Step}) -> {Value, {iterated, Value, Step}};
next({iterated, Value, Step}) -> next({iterate, Step(Value), Step});
next({pull, Pull, _} = Source) ->
    case Pull() of
        {value, Element} -> {Element, Source};
        done -> done
    end.

apply_steps([], Element, Done) ->
    {keep, Element, lists:reverse(Done)};
apply_steps([{drop, Count} | Rest], _, Done) when Count > 0 ->
    {skip, lists:reverse(Done, [{drop, Count - 1} | Rest])};
apply_steps([{drop, 0} = Step | Rest], Element, Done) ->
    apply_steps(Rest, Element, [Step | Done]);
apply_steps([{collect, Block} = Step | Rest], Element, Done) ->
    apply_steps(Rest, Block(Element), [Step | Done]);
apply_steps([{select, Block} = Step | Rest], Element, Done) ->
    keep_if(test(Block, Element, 'select:'), Step, Rest, Element, Done);
apply_steps([{reject, Block} = Step | Rest], Element, Done) ->
    keep_if(not test(Block, Element, 'reject:'), Step, Rest, Element, Done).

keep_if(true, Step, Rest, Element, Done) -> apply_steps(Rest, Element, [Step | Done]);
keep_if(false, Step, Rest, _, Done) -> {skip, lists:reverse(Done, [Step | Rest])}.

test(Block, Element, Selector) ->
    beamtalk_argument:boolean(Block(Element), 'Stream', Selector).
