%% Blocks: evaluation, loops, exception handling.
-module(beamtalk_block).

-export([value/1, 'value:'/2, 'value:value:'/3, 'value:value:value:'/4, 'valueWithArguments:'/2]).
-export([arity/1, 'whileTrue:'/2, 'whileFalse:'/2, repeat/1]).
-export([on_do/3, ensure/2, call/2, idle/1, 'on:do:'/3, 'ensure:'/2]).

-spec value(fun()) -> term().
value(Block) -> Block().

-spec 'value:'(fun(), term()) -> term().
'value:'(Block, A) -> Block(A).

-spec 'value:value:'(fun(), term(), term()) -> term().
'value:value:'(Block, A, B) -> Block(A, B).

-spec 'value:value:value:'(fun(), term(), term(), term()) -> term().
'value:value:value:'(Block, A, B, C) -> Block(A, B, C).

-spec 'valueWithArguments:'(fun(), [term()]) -> term().
'valueWithArguments:'(Block, Args) when is_list(Args) -> apply(Block, Args);
'valueWithArguments:'(_, _) ->
    beamtalk_error:type_error('Block', 'valueWithArguments:', <<"The arguments must be a List">>).

-spec arity(fun()) -> arity().
arity(Block) ->
    {arity, Arity} = erlang:fun_info(Block, arity),
    Arity.

%% Evaluate an argument of a control-flow message: a block gets the arguments
%% it can take, anything else is sent `value'.
-spec call(term(), [term()]) -> term().
call(Block, _) when is_function(Block, 0) -> Block();
call(Block, [A]) when is_function(Block, 1) -> Block(A);
call(Block, Args) when is_function(Block) -> apply(Block, Args);
call(Other, _) -> beamtalk_dispatch:send(Other, value).

%% A block that does nothing, for messages that only fail.
-spec idle(0 | 1) -> fun().
idle(0) -> fun() -> nil end;
idle(1) -> fun(_) -> nil end.

-spec 'whileTrue:'(fun(), term()) -> nil.
'whileTrue:'(Condition, Body) ->
    case Condition() of
        true ->
            call(Body, []),
            'whileTrue:'(Condition, Body);
        false -> nil;
        Other -> beamtalk_error:bad_condition(Other)
    end.

-spec 'whileFalse:'(fun(), term()) -> nil.
'whileFalse:'(Condition, Body) ->
    case Condition() of
        false ->
            call(Body, []),
            'whileFalse:'(Condition, Body);
        true -> nil;
        Other -> beamtalk_error:bad_condition(Other)
    end.

-spec repeat(fun()) -> no_return().
repeat(Block) ->
    Block(),
    repeat(Block).

-spec 'on:do:'(fun(), term(), term()) -> term().
'on:do:'(Body, Class, Handler) -> on_do(Body, Class, Handler).

-spec 'ensure:'(fun(), term()) -> term().
'ensure:'(Body, Cleanup) -> ensure(Body, Cleanup).

%% Run the body; an exception of the class (any with `nil') goes to the handler,
%% which may take it or not. Returns through `^' and `Program exit:' pass.
-spec on_do(term(), term(), term()) -> term().
on_do(Body, Class, Handler) ->
    try call(Body, [])
    catch
        throw:{'$bt_return', _, _} = Return -> throw(Return);
        throw:{'$bt_exit', _} = Exit -> throw(Exit);
        Kind:Reason:Stack ->
            Exception = beamtalk_error:from_caught(Kind, Reason, Stack),
            case handles(Class, Exception) of
                true -> call(Handler, [Exception]);
                false when Kind =:= error -> erlang:raise(error, Exception, Stack);
                false -> erlang:raise(Kind, Reason, Stack)
            end
    end.

handles(nil, _) -> true;
handles({beamtalk_object, _, _, Name}, #{'$beamtalk_class' := Class}) when is_atom(Name) ->
    beamtalk_class:inherits(Class, Name);
handles(Other, _) ->
    beamtalk_error:type_error('Block', 'on:do:',
        <<"on: needs an exception class or nil, not ", (beamtalk_display:print(Other))/binary>>).

%% Run the cleanup exactly once after the body, however that ends.
-spec ensure(term(), term()) -> term().
ensure(Body, Cleanup) ->
    try call(Body, [])
    after call(Cleanup, [])
    end.
