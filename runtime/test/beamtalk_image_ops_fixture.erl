%% The image that the tests of beamtalk_image_ops look at: a lamp with a source file, traps that tell when their code
%% runs, and tests of all outcomes.
-module(beamtalk_image_ops_fixture).

-export([start/0, lamp/0, lamp/1, pid/1, perform/2, failure/2, bind/2, is_quiet/0, directory/0]).

-define(WITNESS, beamtalk_image_ops_witness).

%% Every method of a trap tells the witness.
-define(TELL, "whereis(beamtalk_image_ops_witness) ! ran").

-spec start() -> ok.
start() ->
    beamtalk_support:start(),
    whereis(?WITNESS) =:= undefined andalso register(?WITNESS, spawn(fun() -> witness(0) end)),
    case beamtalk_class:exists('Lamp') of
        true -> ok;
        false -> define()
    end.

%% Did no code of a trap run since the last question?
-spec is_quiet() -> boolean().
is_quiet() ->
    ?WITNESS ! {count, self()},
    receive {?WITNESS, Count} -> Count =:= 0 end.

witness(Count) ->
    receive
        ran -> witness(Count + 1);
        {count, From} ->
            From ! {?WITNESS, Count},
            witness(0)
    end.

-spec directory() -> file:filename().
directory() -> filename:absname("_build/image_ops").

define() ->
    File = filename:join(directory(), "Lamp.bt"),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, <<"Actor subclass: Lamp\n  state: on = false\n  toggle => self.on := self.on not\n">>),
    Loud = [{Selector, Arity, function(Arity)}
            || {Selector, Arity} <- [{printString, 0}, {displayString, 0}, {fieldNames, 0}, {asList, 0}, {'do:', 1},
                                     {hash, 0}, {'=:=', 1}, {size, 0}, {inspect, 0}, {asJson, 0}, {class, 0}]],
    Source = unicode:characters_to_binary(File),
    _ = [beamtalk_support:define(Spec) || Spec <-
        [#{name => 'Lamp', superclass => 'Actor', kind => actor, slots => [{on, "false"}],
           meta => #{source_file => Source, doc => <<"A lamp.">>, line => 1,
                     slots => [#{name => on, type => <<"Boolean">>, has_default => true, default => <<"false">>,
                                 required => false, doc => nil}]},
           methods => [{toggle, 0, "fun(_) -> beamtalk_actor:put_field(on, not beamtalk_actor:get_field(on)) end",
                        #{line => 3, source => <<"toggle => self.on := self.on not">>, return_type => <<"Boolean">>,
                          doc => <<"Switch.\n\nThe other way.">>}},
                       {both, 0, "fun(_) -> nil end",
                        #{line => 20, sites => [{send, toggle, 1}, {self_send, toggle, 3}, {class, 'Trap', 2},
                                                {send, 'Trap', 2}, {erlang, lists, seq, 2, 1}]}},
                       {'set:to:', 2, "fun(_, _, V) -> beamtalk_actor:put_field(on, V) end",
                        #{line => 9, source => <<"set: name to: value => self.on := value">>,
                          parameters => [{<<"name">>, nil}, {<<"value">>, <<"Object">>}]}},
                       {wait, 0, "fun(_) -> timer:sleep(3000) end"} | Loud]},
         #{name => 'Trap', superclass => 'Value', kind => value, slots => [{x, "1"}], methods => Loud,
           class_methods => [{serial, 0, "fun(_) -> " ++ ?TELL ++ " end"}]},
         #{name => 'TrapList', superclass => 'Collection', kind => value, slots => [{items, "[]"}], methods => Loud},
         #{name => 'TestCase', superclass => 'Value', kind => value, package => <<"stdlib">>,
           methods => [{Selector, 0, "fun(S) -> S end"} || Selector <- [setUp, tearDown, setUpOnce, tearDownOnce]],
           class_methods => [{serial, 0, "fun(_) -> false end"}]},
         #{name => 'LampTest', superclass => 'TestCase', kind => value, meta => #{source_file => <<"test/LampTest.bt">>},
           methods => [{testGood, 0, "fun(_) -> io:put_chars(\"said\"), nil end", #{line => 4}},
                       {testBad, 0, "fun(_) -> beamtalk_error:raise(assertion_failed, 'LampTest', testBad, <<\"differs\">>, "
                                    "nil, #{expected => 1, actual => 2}) end", #{line => 7}},
                       {testBroken, 0, "fun(_) -> erlang:error(badarg) end"},
                       {testLater, 0, "fun(_) -> beamtalk_test:skip(<<\"later\">>) end"}]},
         #{name => 'Entry', superclass => 'Object',
           class_methods => [{main, 0, "fun(_) -> 42 end"}, {'main:', 1, "fun(_, Words) -> length(Words) end"},
                             {quit, 0, "fun(_) -> throw({'$bt_exit', 3}) end"},
                             {'a:b:', 2, "fun(_, _, _) -> nil end"},
                             {fail, 0, "fun(_) -> beamtalk_error:raise(type_error, 'Entry', fail) end"}]}]],
    ok.

function(Arity) ->
    Names = lists:join(", ", ["_S" | ["_A" || _ <- lists:seq(1, Arity)]]),
    lists:flatten(["fun(", Names, ") -> ", ?TELL, ", <<\"loud\">> end"]).

-spec lamp() -> tuple().
lamp() -> lamp(false).

%% A lamp that is on in that way.
-spec lamp(term()) -> tuple().
lamp(State) ->
    {ok, Pid} = beamtalk_actor:start('Lamp', #{on => State}, false, undefined),
    beamtalk_actor:reference('Lamp', Pid).

-spec pid(tuple()) -> binary().
pid({_, _, _, Pid}) -> beamtalk_plain:pid(Pid).

%% The answer to a request that succeeds.
-spec perform(binary(), map()) -> map().
perform(Op, Fields) ->
    {ok, Answer} = beamtalk_image_ops:perform(Op, Fields, <<"s-1">>),
    Answer.

%% The kind of a request's failure; every failure has a message.
-spec failure(binary(), map()) -> atom().
failure(Op, Fields) ->
    {error, #{<<"kind">> := Kind, <<"message">> := <<_, _/binary>>}} =
        beamtalk_image_ops:perform(Op, Fields, <<"s-1">>),
    binary_to_existing_atom(Kind).

%% Give the session of the requests a variable.
-spec bind(atom(), term()) -> ok.
bind(Name, Value) ->
    ets:whereis(beamtalk_sessions) =:= undefined andalso ets:new(beamtalk_sessions, [named_table, public]),
    Table = ets:new(variables, [public]),
    ets:insert(Table, {Name, Value}),
    ets:insert(beamtalk_sessions, {<<"s-1">>, self(), Table, #{}}),
    ok.
