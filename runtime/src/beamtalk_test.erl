%% The life cycle of tests: `setUpOnce', then for every test `setUp', the test and
%% `tearDown' in a process of its own, then `tearDownOnce'.
%%
%% A TestCase is a value, but its methods may assign its fields within one test.
%% Assignments are kept in a table that lives as long as the process that runs
%% the test; the instance carries the table and its own number under `__test',
%% so blocks see the fields wherever they are evaluated.
-module(beamtalk_test).

-export([run_class/2, run_test/3, test_selectors/1, is_serial/1]).
-export([get_field/2, put_field/3, with_field/3, suite_fixture/1, skip/1]).

-type class_name() :: atom().
-type outcome() :: #{class := class_name(), name := atom(), status := pass | fail | skip | error,
                     duration := float(), error := map() | nil, output := binary()}.

-export_type([outcome/0]).

-define(DEFAULT_TIMEOUT, 60000).
-define(STOP_LIMIT, 1000).

%%% Running

%% Runs the tests of a class in alphabetical order.
-spec run_class(class_name(), #{timeout => timeout(), only => [atom()] | all}) -> [outcome()].
run_class(Class, Options) ->
    Selectors = case maps:get(only, Options, all) of
                    all -> test_selectors(Class);
                    Only -> lists:sort(Only)
                end,
    Timeout = maps:get(timeout, Options, ?DEFAULT_TIMEOUT),
    Output = beamtalk_test_output:start(),
    Suite = fun() -> run_suite(Class, Selectors, Timeout) end,
    Result = isolate(Suite, infinity, Output),
    beamtalk_test_output:stop(Output),
    case Result of
        {ok, Outcomes} ->
            Outcomes;
        {died, Reason} ->
            Exception = beamtalk_error:from_caught(exit, Reason, []),
            [outcome(Class, Selector, {failed, Exception, <<>>}, 0.0, <<>>) || Selector <- Selectors]
    end.

%% Runs any unary selector of a class as a test.
-spec run_test(class_name(), atom(), timeout()) -> outcome().
run_test(Class, Selector, Timeout) ->
    [Outcome] = run_class(Class, #{only => [Selector], timeout => Timeout}),
    Outcome.

-spec test_selectors(class_name()) -> [atom()].
test_selectors(Class) ->
    Names = [atom_to_binary(Selector) || Selector <- maps:keys(beamtalk_dispatch:table(Class))],
    [binary_to_existing_atom(Name) || <<"test", _/binary>> = Name <- lists:sort(Names),
                                      binary:match(Name, <<":">>) =:= nomatch].

-spec is_serial(class_name()) -> boolean().
is_serial(Class) ->
    beamtalk_dispatch:send(beamtalk_class:named(Class), serial) =:= true.

run_suite(_Class, [], _Timeout) ->
    [];
run_suite(Class, Selectors, Timeout) ->
    Instance = tracked(new_instance(Class), nil),
    case catching(fun() -> beamtalk_dispatch:send(Instance, setUpOnce) end) of
        {passed, Fixture} ->
            Outcomes = [run_one(Class, Selector, Fixture, Timeout) || Selector <- Selectors],
            set_fixture(Instance, Fixture),
            catching(fun() -> beamtalk_dispatch:send(Instance, tearDownOnce) end),
            Outcomes;
        Ended ->
            Prefixed = prefixed(Ended, <<"setUpOnce failed: ">>),
            [outcome(Class, Selector, Prefixed, 0.0, <<>>) || Selector <- Selectors]
    end.

run_one(Class, Selector, Fixture, Timeout) ->
    Output = beamtalk_test_output:start(),
    Started = erlang:monotonic_time(microsecond),
    Result = isolate(fun() -> life_cycle(Class, Selector, Fixture) end, Timeout, Output),
    Duration = (erlang:monotonic_time(microsecond) - Started) / 1.0e6,
    Ended = case Result of
                {ok, Value} ->
                    Value;
                {died, Reason} ->
                    {failed, beamtalk_error:from_caught(exit, Reason, []), <<>>};
                timeout ->
                    Message = iolist_to_binary(["the test took longer than ",
                                                integer_to_list(Timeout), " ms"]),
                    {failed, beamtalk_error:new(timeout, Class, Selector, Message, nil, #{}), <<>>}
            end,
    outcome(Class, Selector, Ended, Duration, beamtalk_test_output:stop(Output)).

life_cycle(Class, Selector, Fixture) ->
    Fresh = tracked(new_instance(Class), Fixture),
    case catching(fun() -> beamtalk_dispatch:send(Fresh, setUp) end) of
        {passed, Answer} ->
            Instance = prepared(Class, Fresh, Answer),
            Ended = catching(fun() -> beamtalk_dispatch:send(Instance, Selector) end),
            tear_down(Instance),
            Ended;
        Ended ->
            tear_down(Fresh),
            prefixed(Ended, <<"setUp failed: ">>)
    end.

tear_down(Instance) ->
    catching(fun() -> beamtalk_dispatch:send(Instance, tearDown) end).

new_instance(Class) ->
    beamtalk_dispatch:send(beamtalk_class:named(Class), new).

%% The instance `setUp' answered, with what `setUp' assigned after making it.
prepared(Class, #{'__test' := {Table, Origin}}, #{'$beamtalk_class' := Class} = Answer) ->
    case Answer of
        #{'__test' := {Table, Number}} when Number =/= Origin ->
            Later = ets:select(Table, [{{{Origin, '$1'}, '$2', '$3'}, [{'>', '$3', Number}],
                                        [{{'$1', '$2'}}]}]),
            lists:foreach(fun({Field, Value}) -> put_field(Answer, Field, Value) end, Later),
            Answer;
        #{'__test' := _} ->
            Answer;
        _ ->
            Answer#{'__test' => {Table, Origin}}
    end;
prepared(_, Fresh, _) ->
    Fresh.

%% Runs the code of a test: its value, the exception that ended it, or a skip.
catching(Body) ->
    beamtalk_return:run(
      fun(Home) ->
              put('__test_home', Home),
              try {passed, Body()}
              catch
                  throw:{'$bt_return', Home, Reason} ->
                      {skipped, Reason};
                  Class:Reason:Stack ->
                      {failed, beamtalk_error:from_caught(Class, Reason, Stack), <<>>}
              after
                  erase('__test_home')
              end
      end, test).

prefixed({failed, Exception, _}, Prefix) -> {failed, Exception, Prefix};
prefixed(Ended, _) -> Ended.

%% Ends the running test as skipped.
-spec skip(binary()) -> no_return().
skip(Reason) ->
    case get('__test_home') of
        undefined ->
            beamtalk_error:raise(user_error, 'TestCase', skip, <<"skip outside of a test">>, nil, #{});
        Home ->
            beamtalk_return:return(Home, Reason)
    end.

%%% Processes

%% Runs `Fun' in a process of its own that traps exits and writes to `Output'. It
%% ends with all processes linked to it; after a time-out, with every process
%% that has `Output' as its group leader.
isolate(Fun, Timeout, Output) ->
    Caller = self(),
    Tag = make_ref(),
    {Pid, Monitor} = spawn_monitor(fun() -> isolated(Fun, Output, Caller, Tag) end),
    Reaper = spawn(fun() -> reap(Caller, Pid, Output) end),
    Result = receive
                 {Tag, Value} -> {ok, Value};
                 {'DOWN', Monitor, process, Pid, Reason} -> {died, Reason}
             after Timeout -> timeout
             end,
    case Result of
        {ok, _} ->
            receive {'DOWN', Monitor, process, Pid, _} -> ok end;
        timeout ->
            kill_group(Output, Pid),
            receive {'DOWN', Monitor, process, Pid, _} -> ok end,
            receive {Tag, _} -> ok after 0 -> ok end;
        {died, _} ->
            ok
    end,
    exit(Reaper, kill),
    Result.

isolated(Fun, Output, Caller, Tag) ->
    process_flag(trap_exit, true),
    group_leader(Output, self()),
    Value = Fun(),
    beamtalk_tracing:flush(),
    Caller ! {Tag, Value},
    stop_linked(),
    exit(shutdown).

%% When the caller dies, nothing of its run may stay behind.
reap(Caller, Pid, Output) ->
    Monitor = monitor(process, Caller),
    receive {'DOWN', Monitor, process, Caller, _} -> kill_group(Output, Pid), exit(Output, kill) end.

stop_linked() ->
    {links, Links} = process_info(self(), links),
    Watched = [{Pid, monitor(process, Pid)} || Pid <- Links, is_pid(Pid)],
    lists:foreach(fun({Pid, _}) -> exit(Pid, shutdown) end, Watched),
    lists:foreach(fun({Pid, Monitor}) ->
                          receive
                              {'DOWN', Monitor, process, Pid, _} -> ok
                          after ?STOP_LIMIT ->
                                  unlink(Pid),
                                  exit(Pid, kill)
                          end
                  end, Watched).

kill_group(Output, Pid) ->
    exit(Pid, kill),
    lists:foreach(fun(Other) ->
                          case process_info(Other, group_leader) of
                              {group_leader, Output} -> exit(Other, kill);
                              _ -> ok
                          end
                  end, processes()).

%%% Outcomes

outcome(Class, Selector, Ended, Duration, Output) ->
    {Status, Error} = describe(Ended),
    #{class => Class, name => Selector, status => Status, duration => Duration, error => Error,
      output => Output}.

describe({passed, _}) ->
    {pass, nil};
describe({skipped, Reason}) ->
    {skip, #{kind => skip, message => Reason, selector => nil, expected => nil, actual => nil, hint => nil,
             frames => []}};
describe({failed, Exception, Prefix}) ->
    Kind = beamtalk_error:field(Exception, kind),
    Details = beamtalk_error:field(Exception, details),
    {Message, Hint} = beamtalk_error_words:told(Exception),
    Error = #{kind => Kind,
              message => <<Prefix/binary, Message/binary>>,
              %% What programs see, who may compare it.
              plain => <<Prefix/binary, (beamtalk_error:field(Exception, message))/binary>>,
              hint => Hint,
              selector => beamtalk_error:field(Exception, selector),
              expected => maps:get(expected, Details, nil),
              actual => maps:get(actual, Details, nil),
              frames => [frame(Frame) || Frame <- frames(Exception)]},
    {status(Kind), Error}.

status(assertion_failed) -> fail;
status(timeout) -> fail;
status(_) -> error.

frames(#{stacktrace := Stack}) -> beamtalk_stack:frames(Stack);
frames(_) -> [].

frame(#{file := File, line := Line} = Frame) ->
    {File, Line, beamtalk_report:frame(Frame)}.

%%% Fields

%% The instance with a table for the fields its methods assign.
tracked(Instance, Fixture) ->
    Table = ets:new(?MODULE, [public]),
    ets:insert(Table, [{counter, 0}, {fixture, Fixture}]),
    Instance#{'__test' => {Table, 0}}.

set_fixture(#{'__test' := {Table, _}}, Fixture) ->
    ets:insert(Table, {fixture, Fixture}).

-spec suite_fixture(map()) -> term().
suite_fixture(#{'__test' := {Table, _}}) ->
    lookup(Table, fixture, nil);
suite_fixture(_) ->
    nil.

-spec get_field(map(), atom()) -> term().
get_field(#{'__test' := {Table, Number}} = Self, Field) ->
    case lookup(Table, {Number, Field}, {?MODULE, absent}) of
        {?MODULE, absent} -> own_field(Self, Field);
        Value -> Value
    end;
get_field(Self, Field) ->
    case get({?MODULE, Self}) of
        #{Field := Value} -> Value;
        _ -> own_field(Self, Field)
    end.

own_field(Self, Field) ->
    case Self of
        #{Field := Value} -> Value;
        _ -> beamtalk_value:missing_field(Self, Field)
    end.

-spec put_field(map(), atom(), Value) -> Value when Value :: term().
put_field(#{'__test' := {Table, Number}}, Field, Value) ->
    Order = ets:update_counter(Table, counter, 1),
    ets:insert(Table, {{Number, Field}, Value, Order}),
    Value;
put_field(Self, Field, Value) ->
    Assigned = case get({?MODULE, Self}) of
                   undefined -> #{};
                   Map -> Map
               end,
    put({?MODULE, Self}, Assigned#{Field => Value}),
    Value.

%% `withF:' of a TestCase: a copy with all assigned fields and the given one.
-spec with_field(map(), atom(), term()) -> map().
with_field(#{'__test' := {Table, Number}} = Self, Field, Value) ->
    Assigned = ets:select(Table, [{{{Number, '$1'}, '$2', '_'}, [], [{{'$1', '$2'}}]}]),
    Order = ets:update_counter(Table, counter, 1),
    Copy = maps:merge(Self, maps:from_list(Assigned)),
    Copy#{Field => Value, '__test' := {Table, Order}};
with_field(Self, Field, Value) ->
    case get({?MODULE, Self}) of
        undefined -> Self#{Field => Value};
        Assigned -> (maps:merge(Self, Assigned))#{Field => Value}
    end.

%% The table is gone when the process of the test has ended.
lookup(Table, Key, Default) ->
    try ets:lookup(Table, Key) of
        [{_, Value}] -> Value;
        [{_, Value, _}] -> Value;
        [] -> Default
    catch
        error:badarg -> Default
    end.
