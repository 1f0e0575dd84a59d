%% Primitives of Result, and how library code makes Results.
-module(beamtalk_result).

-export(['class ok:'/2, 'class error:'/2, 'class tryDo:'/2, 'class fromTuple:'/2]).
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
'class fromTuple:'(_Class, {error, #{'$beamtalk_class' := _, error := _} = Exception}) ->
    error(Exception);
'class fromTuple:'(_Class, {error, _} = Tuple) ->
    beamtalk_erlang:convert_result(Tuple);
'class fromTuple:'(_Class, _) ->
    beamtalk_argument:fail('Result', 'fromTuple:', <<"Expected {ok, value} or {error, reason}">>).

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
    error(beamtalk_error:make(Kind, Class, Selector, Message, Hint, Details)).
