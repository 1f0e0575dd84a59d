%% Primitives of RetryPolicy.
-module(beamtalk_retry_policy).

-export(['intervalForAttempt:'/2, 'do:'/2]).

-spec 'intervalForAttempt:'(map(), term()) -> non_neg_integer().
'intervalForAttempt:'(#{jitter := Jitter} = Self, Attempt) ->
    beamtalk_argument:integer(Attempt, 'RetryPolicy', 'intervalForAttempt:'),
    Interval = capped(Self, grown(Self, Attempt - 1)),
    case Jitter of
        true -> rand:uniform(Interval + 1) - 1;
        _ -> Interval
    end.

%% initial * coefficient^exponent, rounded up; `infinite' when it is beyond every number we have.
grown(#{initialInterval := Initial, backoffCoefficient := Coefficient}, Exponent) ->
    try Initial * math:pow(Coefficient, Exponent) of
        Product -> ceil(Product)
    catch
        error:badarith -> overflown(Initial, Coefficient, Exponent)
    end.

overflown(Initial, _, _) when Initial =< 0 -> 0;
overflown(_, Coefficient, Exponent) when abs(Coefficient) < 1, Exponent > 0 -> 0;
overflown(Initial, Coefficient, _) when Coefficient == 1 -> ceil(Initial);
overflown(_, Coefficient, Exponent) when Coefficient < 0, Exponent rem 2 =/= 0 -> 0;
overflown(_, _, _) -> infinite.

%% Without a maximum the longest pause is what the engine can wait at once.
capped(#{maximumInterval := Maximum}, Interval) ->
    Limit = case Maximum of
                nil -> 16#FFFFFFFF;
                _ -> Maximum
            end,
    case Interval of
        infinite -> max(0, ceil(Limit));
        _ when Maximum =:= nil -> max(0, Interval);
        _ -> max(0, ceil(min(Interval, Limit)))
    end.

-spec 'do:'(map(), term()) -> map().
'do:'(Self, Block) ->
    beamtalk_argument:block(Block, 1, 'RetryPolicy', 'do:'),
    attempt(Self, Block, 1).

attempt(Self, Block, Attempt) ->
    Outcome = beamtalk_block:on_do(fun() -> {ok, Block(Attempt)} end, nil, fun(E) -> {error, E} end),
    case Outcome of
        {ok, Value} ->
            beamtalk_result:ok(Value);
        {error, Exception} ->
            IsLast = beamtalk_dispatch:send(Self, 'isNonRetryable:', Exception)
                orelse beamtalk_dispatch:send(Self, 'retriesExhausted:', Attempt),
            case IsLast of
                true ->
                    beamtalk_result:error(Exception);
                false ->
                    timer:sleep(min('intervalForAttempt:'(Self, Attempt), 16#FFFFFFFF)),
                    attempt(Self, Block, Attempt + 1)
            end
    end.
