-module(beamtalk_error_words_tests).

-include("assertions.hrl").

told(Fun) ->
    try Fun() of
        Value -> {answered, Value}
    catch
        Class:Reason:Stack -> beamtalk_error_words:told(beamtalk_error:from_caught(Class, Reason, Stack))
    end.

words_test_() ->
    {setup,
     fun() ->
             beamtalk_support:start(),
             beamtalk_support:define(#{name => 'Lantern', superclass => 'Object', kind => object,
                                       class_methods => [{toggleAll, 0, "fun(_) -> nil end"},
                                                         {'light:for:', 2, "fun(_, _, _) -> nil end"}]})
     end,
     fun(_) -> ok end,
     [{Name, fun() -> ?assertEqual(Expected, told(Fun)) end} || {Name, Expected, Fun} <- cases()]}.

cases() ->
    Send = fun(Receiver, Selector, Arguments) ->
                   fun() -> beamtalk_dispatch:send_list(Receiver, Selector, Arguments) end
           end,
    [{"what was got", {<<"'++' on String wants a String, got 42 (an Integer)">>, nil},
      fun() -> beamtalk_argument:binary(42, 'String', '++') end},
     {"long values by class", {<<"'at:' on List wants an Integer, got a String">>, nil},
      fun() -> beamtalk_argument:integer(binary:copy(<<"x">>, 100), 'List', 'at:') end},
     {"nobody's code is run", {<<"'at:' on List wants an Integer, got a Loud">>, nil},
      fun() -> beamtalk_argument:integer(#{'$beamtalk_class' => 'Loud'}, 'List', 'at:') end},
     {"blocks", {<<"'do:' on List wants a Block with one parameter, got nil">>, nil},
      fun() -> beamtalk_argument:block(nil, 1, 'List', 'do:') end},
     {"operands", {<<"'%' on Integer wants a Number, got #a (a Symbol)">>, nil},
      fun() -> erlang:raise(error, badarith, [{erlang, 'rem', [1, a], []}]) end},
     {"zero", {<<"Division by zero: 1 % 0">>, nil},
      fun() -> erlang:raise(error, badarith, [{erlang, 'rem', [1, 0], []}]) end},
     {"operands nobody knows", {<<"bad arithmetic operation">>,
                                <<"Both operands must be numbers and a divisor must not be zero">>},
      fun() -> erlang:raise(error, badarith, [{m, f, 1, []}]) end},
     {"the nearest selector", {<<"Lantern class does not understand 'togleAll'. Did you mean 'toggleAll'?">>, nil},
      fun() -> beamtalk_dispatch:send_list(beamtalk_class:named('Lantern'), togleAll, []) end},
     {"short selectors are not guessed", {<<"Integer does not understand 'fo'">>,
                                          <<"Check the spelling, or ask: Integer respondsTo: #fo">>},
      Send(3, fo, [])},
     {"arguments that are missing", {<<"Lantern class does not understand 'light:'. Did you mean 'light:for:'?">>, nil},
      fun() -> beamtalk_dispatch:send_list(beamtalk_class:named('Lantern'), 'light:', [2]) end},
     {"no block", {<<"Integer does not understand 'value'">>,
                   <<"Blocks understand 'value': where one is wanted, write it in brackets">>},
      Send(3, value, [])},
     {"what is written as it is", {<<"Integer does not understand 'new'">>, <<"An Integer is written as it is: 42">>},
      Send(5, new, [])},
     {"classes", {<<"Class 'Lanttern' not found. Did you mean 'Lantern'?">>, nil},
      fun() -> beamtalk_class:named('Lanttern') end},
     {"variables", {<<"Undefined variable: x2">>, <<"Give it a value first: x2 := 42">>},
      fun() -> beamtalk_cell:read(beamtalk_cell:session(x2)) end},
     {"indexes", {<<"'at:' on String: there is no index 10, the size is 3">>, nil}, fun() -> beamtalk_string:'at:'(<<"abc">>, 10) end},
     {"indexes of lists", {<<"'at:' on List: there is no index 0, the size is 2">>, nil}, fun() -> beamtalk_list:'at:'([1, 2], 0) end}].

%% A class that got the method after the message was sent.
never_the_same_selector_test() ->
    beamtalk_support:start(),
    Spec = #{name => 'Latecomer', superclass => 'Object', kind => object},
    Class = beamtalk_support:define(Spec),
    Exception = beamtalk_support:catch_error(fun() -> beamtalk_dispatch:send(Class, arrive) end),
    beamtalk_support:define(Spec#{class_methods => [{arrive, 0, "fun(_) -> nil end"}]}),
    ?assertEqual({<<"Latecomer class does not understand 'arrive'">>,
                  <<"Check the spelling, or ask: Latecomer class respondsTo: #arrive">>},
                 beamtalk_error_words:told(Exception)).
