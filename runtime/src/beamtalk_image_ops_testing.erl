%% Requests that run tests and entry points in the image.
-module(beamtalk_image_ops_testing).

-export([list_tests/1, test/1, test_all/1, run_entry/1]).

-import(beamtalk_image_ops_fields, [fail/2, fail/3]).

%% Bytes of the printed value of an entry point.
-define(VALUE_LIMIT, 65536).
-define(TEST_TIME, 60000).
%% Of the stack of a failure.
-define(FRAMES, 20).

-type fields() :: beamtalk_image_ops_fields:fields().

-spec list_tests(fields()) -> map().
list_tests(_) ->
    #{tests => [#{class => Class, methods => beamtalk_test:test_selectors(Class), file => file(Class)}
                || Class <- beamtalk_test_runner:test_classes()]}.

file(Class) ->
    #{source_file := File} = beamtalk_class:record(Class),
    File.

%%% Running tests

-spec test(fields()) -> map().
test(Fields) ->
    case {beamtalk_image_ops_fields:optional_class(Fields, <<"class">>),
          beamtalk_image_ops_fields:is_given(Fields, <<"method">>),
          beamtalk_image_ops_fields:text(Fields, <<"file">>, none)} of
        {none, true, _} -> beamtalk_image_ops_fields:class(Fields, <<"class">>);
        {none, _, none} -> test_all(Fields);
        {none, _, File} -> run(of_file(File), Fields);
        {Class, false, _} -> run([test_class(Class)], Fields);
        {Class, true, _} -> run_method(test_class(Class), Fields)
    end.

-spec test_all(fields()) -> map().
test_all(Fields) -> run(beamtalk_test_runner:test_classes(), Fields).

jobs(Fields) -> beamtalk_image_ops_fields:integer(Fields, <<"jobs">>, 0, 0).

%% How long one test may take.
time(Fields) -> beamtalk_image_ops_fields:integer(Fields, <<"test_timeout_ms">>, 1, ?TEST_TIME).

test_class(Class) ->
    beamtalk_class:inherits(Class, 'TestCase') orelse
        fail(invalid_parameter, [atom_to_binary(Class), " is no subclass of TestCase"]),
    Class.

%% Paths are compared by their ends, since one side may be relative.
of_file(File) ->
    case [Class || Class <- beamtalk_test_runner:test_classes(), is_path(File, file(Class))] of
        [] -> fail(file_not_found, ["no loaded test class comes from '", File, "'"],
                   <<"Load the tests of the project first">>);
        Classes -> Classes
    end.

is_path(_, nil) -> false;
is_path(File, Known) ->
    Wanted = lists:reverse(filename:split(File)),
    Parts = lists:reverse(filename:split(Known)),
    lists:prefix(Wanted, Parts) orelse lists:prefix(Parts, Wanted).

run_method(Class, Fields) ->
    case beamtalk_image_ops_fields:selector(Fields, <<"method">>) of
        {ok, Selector} ->
            lists:member(Selector, beamtalk_test:test_selectors(Class)) orelse no_test(Class, atom_to_binary(Selector)),
            Time = time(Fields),
            results(fun() -> beamtalk_test:run_class(Class, #{only => [Selector], timeout => Time}) end);
        {unknown, Text} -> no_test(Class, Text)
    end.

-spec no_test(atom(), binary()) -> no_return().
no_test(Class, Method) -> fail(selector_not_found, [atom_to_binary(Class), " has no test '", Method, "'"]).

run(Classes, Fields) ->
    {Jobs, Time} = {jobs(Fields), time(Fields)},
    results(fun() -> beamtalk_test_runner:outcomes(Classes, Jobs, Time) end).

%% The order of classes is that of their names, so there is no seed but 0.
results(Run) ->
    Started = erlang:monotonic_time(microsecond),
    Outcomes = Run(),
    Duration = (erlang:monotonic_time(microsecond) - Started) / 1.0e6,
    Count = fun(Wanted) -> length([S || #{status := S} <- Outcomes, lists:member(S, Wanted)]) end,
    %% `failed' is for the daemon, which flags the answer with it.
    #{failed => Count([fail, error]) > 0,
      results => #{total => length(Outcomes), passed => Count([pass]), failed => Count([fail, error]),
                   skipped => Count([skip]), duration => Duration, seed => 0,
                   tests => [test_result(Outcome) || Outcome <- Outcomes]}}.

test_result(#{class := Class, name := Name, status := Status, duration := Duration, error := Error,
              output := Output}) ->
    File = file(Class),
    Line = case failing_line(File, Error) of
        nil -> maps:get(line, beamtalk_reflect:method_info(definer(Class, Name), Name), nil);
        Found -> Found
    end,
    Result = #{class => Class, name => Name, status => Status, duration => Duration, file => File, line => Line,
               output => Output},
    case Error of
        nil -> Result;
        _ -> Result#{error => error_report(Error)}
    end.

definer(Class, Selector) -> beamtalk_reflect:definer(beamtalk_class:named(Class), Selector).

%% Where the test's own file is on the stack, innermost first.
failing_line(File, #{frames := Frames}) when File =/= nil ->
    case [Line || {Where, Line, _} <- Frames, Where =:= File, Line =/= nil] of
        [Line | _] -> Line;
        [] -> nil
    end;
failing_line(_, _) -> nil.

error_report(#{kind := Kind, message := Message, expected := Expected, actual := Actual, frames := Frames}) ->
    Stack = case [Text || {_, _, Text} <- lists:sublist(Frames, ?FRAMES)] of
        [] -> nil;
        Texts -> Texts
    end,
    Values = [{expected, shown(Expected)}, {actual, shown(Actual)}, {stack, Stack}],
    maps:from_list([{kind, Kind}, {message, Message} | [Value || {_, Shown} = Value <- Values, Shown =/= nil]]).

shown(nil) -> nil;
shown(Text) when is_binary(Text) -> Text;
shown(Value) -> beamtalk_plain:text(Value).

%%% Entry points

%% A unary class method, or one with one argument that gets the list of words.
-spec run_entry(fields()) -> map().
run_entry(Fields) ->
    Class = beamtalk_image_ops_fields:class(Fields, <<"class">>),
    Words = beamtalk_image_ops_fields:list(Fields, <<"args">>, fun is_binary/1),
    Selector = case beamtalk_image_ops_fields:selector(Fields, <<"selector">>) of
        {ok, Known} -> Known;
        {unknown, Text} -> not_understood(Class, Text)
    end,
    Object = beamtalk_class:named(Class),
    beamtalk_dispatch:responds_to(Object, Selector) orelse not_understood(Class, atom_to_binary(Selector)),
    Arguments = arguments(Selector, Words),
    try beamtalk_dispatch:send_list(Object, Selector, Arguments) of
        Value -> (beamtalk_session_view:shown(Value, #{}, ?VALUE_LIMIT))#{exit_code => 0}
    catch
        throw:{'$bt_exit', Status} -> #{value => nil, exit_code => Status};
        Kind:Reason:Stack -> beamtalk_image_ops_fields:raised(Kind, Reason, Stack)
    end.

-spec not_understood(atom(), binary()) -> no_return().
not_understood(Class, Selector) ->
    fail(selector_not_found, [atom_to_binary(Class), " has no class method '", Selector, "'"]).

arguments(Selector, Words) ->
    case {binary:matches(atom_to_binary(Selector), <<":">>), Words} of
        {[], []} -> [];
        {[_], _} -> [Words];
        {[], _} -> fail(invalid_parameter, "a unary entry point takes no arguments");
        _ -> fail(invalid_parameter, "an entry point is a unary selector or one keyword")
    end.
