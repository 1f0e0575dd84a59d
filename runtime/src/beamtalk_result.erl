%% Primitives of Result, and how library code makes Results.
-module(beamtalk_result).

-export(['class ok:'/2, 'class error:'/2, 'class tryDo:'/2, 'class fromTuple:'/2]).
-export(['valueOrDo:'/2, 'map:'/2, 'andThen:'/2, 'mapError:'/2, 'ifError:'/2, 'ifOk:ifError:'/3]).
-export([ok/1, error/1, failure/6, failure/5]).

-compile({no_auto_import, [error/1]}).

-type result() :: #{'$beamtalk_class' := 'Result', isOk := boolean(), okValue := term(),
                    errReason := term()}.

-spec 'class ok:'(term(), term()) -> result().
'class ok:'(_Class, Value) ->
    ok(Value).

-spec 'class error:'(term(), term()) -> result().
'class error:'(_Class, Reason) ->
    error(Reason).

-spec 'class tryDo:'(term(), term()) -> result().
'class tryDo:'(_Class, Block) ->
    beamtalk_argument:block(Block, 0, 'Result', 'tryDo:'),
    beamtalk_block:on_do(fun() -> ok(Block()) end, nil, fun(Exception) -> error(Exception) end).

-spec 'class fromTuple:'(term(), term()) -> result().
'class fromTuple:'(_Class, {ok, Value}) ->
    ok(Value);
'class fromTuple:'(_Class, {error, Reason}) ->
    case beamtalk_error:is_exception(Reason) of
        true -> error(Reason);
        false -> error(beamtalk_error:wrap_reason(Reason))
    end;
'class fromTuple:'(_Class, _) ->
    beamtalk_argument:fail('Result', 'fromTuple:', <<"Expected {ok, value} or {error, reason}">>).

%%% Instance side

-spec 'valueOrDo:'(result(), term()) -> term().
'valueOrDo:'(Self, Block) ->
    beamtalk_argument:block(Block, 1, 'Result', 'valueOrDo:'),
    case Self of
        #{isOk := true, okValue := Value} -> Value;
        #{errReason := Reason} -> Block(Reason)
    end.

-spec 'map:'(result(), term()) -> result().
'map:'(Self, Block) ->
    beamtalk_argument:block(Block, 1, 'Result', 'map:'),
    case Self of
        #{isOk := true, okValue := Value} -> ok(Block(Value));
        _ -> Self
    end.

-spec 'andThen:'(result(), term()) -> term().
'andThen:'(Self, Block) ->
    beamtalk_argument:block(Block, 1, 'Result', 'andThen:'),
    case Self of
        #{isOk := true, okValue := Value} -> Block(Value);
        _ -> Self
    end.

-spec 'mapError:'(result(), term()) -> result().
'mapError:'(Self, Block) ->
    beamtalk_argument:block(Block, 1, 'Result', 'mapError:'),
    case Self of
        #{isOk := true} -> Self;
        #{errReason := Reason} -> error(Block(Reason))
    end.

-spec 'ifError:'(result(), term()) -> term().
'ifError:'(Self, Block) ->
    beamtalk_argument:block(Block, 1, 'Result', 'ifError:'),
    case Self of
        #{isOk := true} -> Self;
        #{errReason := Reason} -> Block(Reason)
    end.

-spec 'ifOk:ifError:'(result(), term(), term()) -> term().
'ifOk:ifError:'(Self, OkBlock, ErrorBlock) ->
    beamtalk_argument:block(OkBlock, 1, 'Result', 'ifOk:ifError:'),
    beamtalk_argument:block(ErrorBlock, 1, 'Result', 'ifOk:ifError:'),
    case Self of
        #{isOk := true, okValue := Value} -> OkBlock(Value);
        #{errReason := Reason} -> ErrorBlock(Reason)
    end.

%%% Used by library code

-spec ok(term()) -> result().
ok(Value) ->
    #{'$beamtalk_class' => 'Result', isOk => true, okValue => Value, errReason => nil}.

-spec error(term()) -> result().
error(Reason) ->
    #{'$beamtalk_class' => 'Result', isOk => false, okValue => nil, errReason => Reason}.

%% A `Result error:' with an exception of the given kind inside.
-spec failure(atom(), atom(), atom(), binary() | nil, map()) -> result().
failure(Kind, Class, Selector, Hint, Details) ->
    failure(Kind, Class, Selector, undefined, Hint, Details).

-spec failure(atom(), atom(), atom(), binary() | undefined, binary() | nil, map()) -> result().
failure(Kind, Class, Selector, Message, Hint, Details) ->
    error(beamtalk_error:new(Kind, Class, Selector, Message, Hint, Details)).
