%% The assertions of TestCase.
-module(beamtalk_assert).

-export([assert/2, deny/2, assert_equals/3, should_raise/3, assert_ok/2, assert_error/3, fail/2,
         skip/1, skip/2]).

-spec assert(term(), term()) -> nil.
assert(_Self, true) -> nil;
assert(Self, Other) -> failed(Self, 'assert:', <<"true">>, Other).

-spec deny(term(), term()) -> nil.
deny(_Self, false) -> nil;
deny(Self, Other) -> failed(Self, 'deny:', <<"false">>, Other).

-spec assert_equals(term(), term(), term()) -> nil.
assert_equals(Self, Actual, Expected) ->
    case beamtalk_collection:are_equal(Actual, Expected) of
        true ->
            nil;
        false ->
            Text = beamtalk_display:print(Expected),
            Message = [expectation(Text, beamtalk_display:print(Actual)), diff(Expected, Actual)],
            failed(Self, 'assert:equals:', Text, Actual, Message)
    end.

-spec should_raise(term(), term(), term()) -> nil.
should_raise(Self, Block, Kind) ->
    beamtalk_argument:block(Block, 0, 'TestCase', 'should:raise:'),
    beamtalk_argument:symbol(Kind, 'TestCase', 'should:raise:'),
    Expected = beamtalk_display:native(Kind),
    Outcome = beamtalk_block:on_do(fun() -> {value, Block()} end, nil, fun(E) -> {raised, E} end),
    case Outcome of
        {raised, Exception} ->
            case lists:member(Kind, kinds(Exception)) of
                true ->
                    nil;
                false ->
                    Actual = beamtalk_error:field(Exception, kind),
                    Message = ["Expected ", Expected, " to be raised, got ",
                               beamtalk_display:native(Actual), ": ",
                               beamtalk_error:field(Exception, message)],
                    failed(Self, 'should:raise:', Expected, Actual, Message)
            end;
        {value, Value} ->
            Message = ["Expected ", Expected, " to be raised, but the block answered ",
                       beamtalk_display:print(Value)],
            failed(Self, 'should:raise:', Expected, Value, Message)
    end.

%% The kind, and the tag of the Erlang fault behind the exception.
kinds(Exception) ->
    Kind = beamtalk_error:field(Exception, kind),
    case beamtalk_error:field(Exception, details) of
        #{erlang_error := Reason} -> [Kind, beamtalk_error:erlang_tag(Reason)];
        _ -> [Kind]
    end.

-spec assert_ok(term(), term()) -> term().
assert_ok(_Self, #{'$beamtalk_class' := 'Result', isOk := true, okValue := Value}) -> Value;
assert_ok(Self, Other) -> failed(Self, 'assertOk:', <<"Result ok:">>, Other).

-spec assert_error(term(), term(), term()) -> nil.
assert_error(_Self, #{'$beamtalk_class' := 'Result', isOk := false, errReason := Actual}, Reason)
  when Actual =:= Reason ->
    nil;
assert_error(Self, Other, Reason) ->
    Expected = <<"Result error: ", (beamtalk_display:print(Reason))/binary>>,
    failed(Self, 'assertError:equals:', Expected, Other).

-spec fail(term(), term()) -> no_return().
fail(Self, Text) ->
    beamtalk_argument:string(Text, 'TestCase', 'fail:'),
    raise(Self, 'fail:', Text, #{}).

-spec skip(term()) -> no_return().
skip(_Self) ->
    beamtalk_test:skip(<<>>).

-spec skip(term(), term()) -> no_return().
skip(_Self, Reason) ->
    beamtalk_test:skip(beamtalk_argument:string(Reason, 'TestCase', 'skip:')).

-spec failed(term(), atom(), binary(), term()) -> no_return().
failed(Self, Selector, Expected, Actual) ->
    failed(Self, Selector, Expected, Actual, expectation(Expected, beamtalk_display:print(Actual))).

-spec failed(term(), atom(), binary(), term(), iodata()) -> no_return().
failed(Self, Selector, Expected, Actual, Message) ->
    Details = #{expected => Expected, actual => beamtalk_display:print(Actual)},
    raise(Self, Selector, iolist_to_binary(Message), Details).

-spec raise(term(), atom(), binary(), map()) -> no_return().
raise(Self, Selector, Message, Details) ->
    Class = beamtalk_collection:class_name(Self),
    beamtalk_error:raise(assertion_failed, Class, Selector, Message, nil, Details).

expectation(Expected, Actual) ->
    ["Expected ", Expected, ", got ", Actual].

%% The lines that differ, for texts of several lines.
diff(Expected, Actual) when is_binary(Expected), is_binary(Actual) ->
    Old = binary:split(Expected, <<"\n">>, [global]),
    New = binary:split(Actual, <<"\n">>, [global]),
    case length(Old) > 1 orelse length(New) > 1 of
        true ->
            {OldMiddle, NewMiddle} = differing(Old, New),
            [[["\n- ", Line] || Line <- OldMiddle], [["\n+ ", Line] || Line <- NewMiddle]];
        false ->
            []
    end;
diff(_, _) ->
    [].

%% Without the lines both begin with and both end with.
differing(Old, New) ->
    {Left, Right} = without_common_start(Old, New),
    {RightEnd, LeftEnd} = without_common_start(lists:reverse(Right), lists:reverse(Left)),
    {lists:reverse(LeftEnd), lists:reverse(RightEnd)}.

without_common_start([Line | Old], [Line | New]) -> without_common_start(Old, New);
without_common_start(Old, New) -> {Old, New}.
