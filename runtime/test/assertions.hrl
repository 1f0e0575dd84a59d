%% The assertions our tests use. EUnit's own header belongs to the Erlang
%% development package, which a machine that only runs Erlang does not have.
-compile({parse_transform, eunit_autoexport}).

-define(assert(Condition), ?assertEqual(true, Condition)).
-define(assertNot(Condition), ?assertEqual(false, Condition)).

-define(assertEqual(Expected, Actual),
        ((fun(X__) ->
              case (Actual) of
                  X__ -> ok;
                  V__ -> erlang:error({assertEqual, [{module, ?MODULE}, {line, ?LINE},
                                                     {expression, (??Actual)},
                                                     {expected, X__}, {value, V__}]})
              end
          end)(Expected))).

-define(assertMatch(Pattern, Actual),
        ((fun() ->
              case (Actual) of
                  Pattern -> ok;
                  V__ -> erlang:error({assertMatch, [{module, ?MODULE}, {line, ?LINE},
                                                     {expression, (??Actual)},
                                                     {pattern, (??Pattern)}, {value, V__}]})
              end
          end)())).

%% The expression raises an Erlang error with that reason.
-define(assertError(Reason, Expression),
        ?assertMatch({error, Reason}, try {value, Expression} catch error:R__ -> {error, R__} end)).

%% The expression raises an exception of that kind.
-define(assertRaises(Kind, Expression),
        ?assertMatch({error, #{error := {beamtalk_error, Kind, _, _, _, _, _}}},
                     try {value, Expression} catch error:R__ -> {error, R__} end)).
