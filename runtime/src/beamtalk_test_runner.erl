%% TestRunner and TestResult: tests run from within a program.
-module(beamtalk_test_runner).

-export([run_all/2, run/2, run/3, class_run_all/1, class_run/2]).
-export([test_classes/0, outcomes/3]).
-export([passed/1, failed/1, skipped/1, total/1, duration/1, failures/1, summary/1, print/1]).

-type result() :: #{'$beamtalk_class' := 'TestResult', outcomes := [beamtalk_test:outcome()],
                    duration := float()}.

-define(TIMEOUT, 60000).

%%% TestRunner

-spec run_all(term(), term()) -> result().
run_all(_Self, Jobs) when is_integer(Jobs), Jobs >= 0 ->
    timed(fun() -> outcomes(test_classes(), Jobs, ?TIMEOUT) end);
run_all(_Self, _) ->
    beamtalk_error:raise(invalid_argument, 'TestRunner', 'runAll:',
                         <<"Expected an Integer of at least 0">>).

%% Classes with tests to run, by name.
-spec test_classes() -> [atom()].
test_classes() ->
    lists:sort([Class || Class <- beamtalk_class:all_subclasses('TestCase'),
                         beamtalk_test:test_selectors(Class) =/= [], not is_abstract(Class)]).

%% Several classes at once, serial ones after the others; 0 jobs are as many as there are schedulers.
-spec outcomes([atom()], non_neg_integer(), timeout()) -> [beamtalk_test:outcome()].
outcomes(Classes, Jobs, Time) ->
    {Serial, Others} = lists:partition(fun beamtalk_test:is_serial/1, Classes),
    in_parallel(Others, workers(Jobs), Time) ++ in_parallel(Serial, 1, Time).

-spec run(term(), term()) -> result().
run(_Self, Class) ->
    Name = class_name(Class, 'run:'),
    timed(fun() -> beamtalk_test:run_class(Name, #{timeout => ?TIMEOUT}) end).

-spec run(term(), term(), term()) -> result().
run(_Self, Class, Selector) ->
    Name = class_name(Class, 'run:method:'),
    beamtalk_argument:symbol(Selector, 'TestRunner', 'run:method:'),
    timed(fun() -> [beamtalk_test:run_test(Name, Selector, ?TIMEOUT)] end).

workers(0) -> erlang:system_info(schedulers_online);
workers(Jobs) -> Jobs.

in_parallel(Classes, Jobs, Time) ->
    Run = fun(Class) -> beamtalk_test:run_class(Class, #{timeout => Time}) end,
    case Jobs of
        1 -> lists:flatmap(Run, Classes);
        _ -> lists:append(beamtalk_parallel:map(Run, Classes, Jobs))
    end.

is_abstract(Class) ->
    lists:member(abstract, maps:get(modifiers, beamtalk_class:record(Class))).

%% A test class, given as class object or by name.
class_name({beamtalk_object, _, _, Name}, Selector) when is_atom(Name) ->
    test_class(Name, Selector);
class_name(Name, Selector) when is_atom(Name), Name =/= nil, Name =/= true, Name =/= false ->
    test_class(element(4, beamtalk_class:named(Name)), Selector);
class_name(_, Selector) ->
    beamtalk_argument:fail('TestRunner', Selector, <<"Expected a subclass of TestCase">>).

test_class(Name, Selector) ->
    case beamtalk_class:inherits(Name, 'TestCase') of
        true -> Name;
        false -> beamtalk_argument:fail('TestRunner', Selector, <<"Expected a subclass of TestCase">>)
    end.

timed(Run) ->
    Started = erlang:monotonic_time(microsecond),
    Outcomes = Run(),
    Duration = (erlang:monotonic_time(microsecond) - Started) / 1.0e6,
    #{'$beamtalk_class' => 'TestResult', outcomes => Outcomes, duration => Duration}.

%%% Class side of TestCase

-spec class_run_all(tuple()) -> binary().
class_run_all(Self) ->
    report(run(Self, Self)).

-spec class_run(tuple(), term()) -> binary().
class_run(Self, Selector) ->
    report(run(Self, Self, Selector)).

report(Result) ->
    Blocks = [["\n\n", failure_text(Outcome)] || Outcome <- failed_outcomes(Result)],
    iolist_to_binary([summary(Result), Blocks]).

%%% TestResult

-spec passed(result()) -> non_neg_integer().
passed(Self) ->
    count(Self, [pass]).

-spec failed(result()) -> non_neg_integer().
failed(Self) ->
    count(Self, [fail, error]).

-spec skipped(result()) -> non_neg_integer().
skipped(Self) ->
    count(Self, [skip]).

-spec total(result()) -> non_neg_integer().
total(#{outcomes := Outcomes}) ->
    length(Outcomes).

-spec duration(result()) -> float().
duration(#{duration := Duration}) ->
    Duration.

-spec failures(result()) -> [map()].
failures(Self) ->
    [#{name => Name, class => Class, error => maps:get(plain, Error, maps:get(message, Error))}
     || #{name := Name, class := Class, error := Error} <- failed_outcomes(Self)].

-spec summary(result()) -> binary().
summary(#{duration := Duration} = Self) ->
    Total = total(Self),
    Parts = [[integer_to_list(Total), case Total of 1 -> " test"; _ -> " tests" end],
             [integer_to_list(passed(Self)), " passed"]]
        ++ [[integer_to_list(N), " skipped"] || N <- [skipped(Self)], N > 0]
        ++ [[integer_to_list(N), " failed"] || N <- [failed(Self)], N > 0],
    Seconds = float_to_binary(Duration, [{decimals, 1}]),
    iolist_to_binary([lists:join(", ", Parts), " (", Seconds, "s)"]).

-spec print(result()) -> binary().
print(Self) ->
    Failures = [[failure_text(Outcome), "\n"] || Outcome <- failed_outcomes(Self)],
    iolist_to_binary([Failures, "TestResult(", summary(Self), ")"]).

failure_text(#{class := Class, name := Name, error := #{message := Message}}) ->
    [<<"  ✗ "/utf8>>, atom_to_binary(Class), ">>", atom_to_binary(Name), "\n    ",
     binary:replace(Message, <<"\n">>, <<"\n    ">>, [global])].

failed_outcomes(#{outcomes := Outcomes}) ->
    [Outcome || #{status := Status} = Outcome <- Outcomes, Status =:= fail orelse Status =:= error].

count(#{outcomes := Outcomes}, Statuses) ->
    length([Status || #{status := Status} <- Outcomes, lists:member(Status, Statuses)]).
