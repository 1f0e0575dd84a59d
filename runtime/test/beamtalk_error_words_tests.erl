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
                                       class_methods => [{toggleAll, 0, "fun(_) -> nil end"}]})
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
      Send(3, fo, [])}].
