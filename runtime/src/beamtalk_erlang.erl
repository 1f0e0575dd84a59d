%% Erlang interop: the gateway `Erlang', module proxies, conversion of results.
-module(beamtalk_erlang).

-export(['class doesNotUnderstand:args:'/3, convert_result/1]).
-export([call/3, proxy_call/3, delegate/5, methods/1, proxy/1]).

%% Modules whose character lists are text.
-define(TEXT_MODULES, [os, file, filename, filelib, calendar, io_lib, inet, init, code, string, unicode]).

-spec proxy(module()) -> map().
proxy(Module) -> #{'$beamtalk_class' => 'ErlangModule', module => Module}.

%% `Erlang lists': whatever a class object does not understand is a module.
-spec 'class doesNotUnderstand:args:'(term(), atom(), [term()]) -> map().
'class doesNotUnderstand:args:'(_Self, Module, []) ->
    beamtalk_capability:require(ffi, 'Erlang', Module),
    proxy(Module);
'class doesNotUnderstand:args:'(Self, Selector, Args) ->
    beamtalk_error:does_not_understand(Self, Selector, Args).

%% `Erlang module function: a', compiled. The library does without it, so it may be switched off.
-spec call(module(), atom(), [term()]) -> term().
call(Module, Function, Args) ->
    beamtalk_capability:require(ffi, 'Erlang', Module),
    apply_function(Module, Function, Args).

%% The same through a proxy that is a value.
-spec proxy_call(module(), atom(), [term()]) -> term().
proxy_call(Module, Function, Args) ->
    beamtalk_capability:require(ffi, 'ErlangModule', Function),
    apply_function(Module, Function, Args).

%% Call `Module:Function(Args…)' by the rules of interop.
apply_function(erlang, process_flag, [trap_exit, Flag]) when is_boolean(Flag) ->
    %% From now on the actor wants exit signals as messages, see beamtalk_actor.
    erase('$bt_auto_trap'),
    process_flag(trap_exit, Flag);
apply_function(Module, Function, Args) ->
    Arity = length(Args),
    case is_exported(Module, Function, Arity) of
        true -> checked_call(Module, Function, Args);
        false -> missing(Module, Function, Arity)
    end.

is_exported(Module, Function, Arity) ->
    erlang:function_exported(Module, Function, Arity)
        orelse erlang:is_builtin(Module, Function, Arity)
        orelse (code:ensure_loaded(Module) =:= {module, Module}
                andalso erlang:function_exported(Module, Function, Arity)).

checked_call(Module, Function, Args) ->
    Leaving = case is_sending(Module, Function) of
        true ->
            is_spawning(Function) andalso beamtalk_guard:check_process('ErlangModule', Function),
            beamtalk_cell:freeze(Args);
        false -> Args
    end,
    try apply(Module, Function, Leaving) of
        Value -> converted(Module, Value)
    catch
        error:badarg:Stack -> retry(Module, Function, Args, Stack);
        error:#{'$beamtalk_class' := _, error := _} = Exception:Stack ->
            erlang:raise(error, Exception, Stack);
        error:Reason:Stack -> failed(Module, Function, Reason, Stack)
    end.

%% Functions that take values to other processes or shared tables.
is_sending(erlang, Function) ->
    lists:member(Function, [send, send_nosuspend, send_after, start_timer, '!', spawn, spawn_link,
                            spawn_monitor, spawn_opt]);
is_sending(Module, _) ->
    lists:member(Module, [ets, gen_server, gen_statem, gen, timer, persistent_term, rpc, erpc, proc_lib,
                          supervisor, dets, mnesia]).

is_spawning(Function) ->
    lists:member(Function, [spawn, spawn_link, spawn_monitor, spawn_opt, start, start_link, start_monitor, start_child]).

%% Once more with character lists for Strings and pids for actors.
retry(Module, Function, Args, Stack) ->
    case [adjusted(A) || A <- Args] of
        Args -> failed(Module, Function, badarg, Stack);
        Adjusted ->
            try apply(Module, Function, Adjusted) of
                Value -> convert_result(as_text(Value))
            catch
                error:#{'$beamtalk_class' := _, error := _} = Exception:Again ->
                    erlang:raise(error, Exception, Again);
                error:Reason:Again -> failed(Module, Function, Reason, Again)
            end
    end.

adjusted(A) when is_binary(A) ->
    case beamtalk_dispatch:is_text(A) of
        true -> unicode:characters_to_list(A);
        false -> A
    end;
adjusted({beamtalk_object, _, _, {registered, Name}} = A) ->
    case whereis(Name) of
        undefined -> A;
        Pid -> Pid
    end;
adjusted({beamtalk_object, _, _, Pid}) when is_pid(Pid) -> Pid;
adjusted(A) -> A.

converted(Module, Value) when is_list(Value) ->
    case lists:member(Module, ?TEXT_MODULES) of
        true -> as_text(Value);
        false -> Value
    end;
converted(Module, {ok, Value}) when is_list(Value) -> convert_result({ok, converted(Module, Value)});
converted(_, Value) -> convert_result(Value).

as_text([_ | _] = Value) ->
    case io_lib:printable_unicode_list(Value) of
        true -> unicode:characters_to_binary(Value);
        false -> Value
    end;
as_text(Value) -> Value.

%% The outermost value an Erlang function answered, as Beamtalk sees it.
-spec convert_result(term()) -> term().
convert_result({ok, Value}) -> result(true, Value, nil);
convert_result({error, Reason}) -> result(false, nil, beamtalk_error:wrap_reason(Reason));
convert_result(ok) -> result(true, nil, nil);
convert_result(error) -> result(false, nil, nil);
convert_result(Value) -> Value.

result(IsOk, Value, Reason) ->
    #{'$beamtalk_class' => 'Result', isOk => IsOk, okValue => Value, errReason => Reason}.

-spec failed(module(), atom(), term(), list()) -> no_return().
failed(Module, Function, Reason, Stack) ->
    #{error := {_, Kind, _, _, Message, _, Details}} = beamtalk_error:from_caught(error, Reason, Stack),
    {NewKind, NewMessage} = reclassified(Reason, Kind, Message, Stack),
    Hint = unicode:characters_to_binary(
             io_lib:format("Erlang error in ~ts:~ts: ~0tp", [Module, Function, beamtalk_error:erlang_tag(Reason)])),
    Exception = beamtalk_error:new(NewKind, 'ErlangModule', Function, NewMessage, Hint,
                                   Details#{erlang_error => Reason, erlang_stacktrace => Stack}),
    erlang:raise(error, Exception, Stack).

%% Arguments a function did not accept are the caller's fault here.
reclassified(badarg, _, Message, _) -> {type_error, Message};
reclassified(function_clause, _, _, _) ->
    {arity_mismatch, <<"no clause of the function matches the arguments">>};
reclassified(_, Kind, Message, _) -> {Kind, Message}.

-spec missing(module(), atom(), arity()) -> no_return().
missing(Module, Function, Arity) ->
    case code:ensure_loaded(Module) of
        {module, Module} ->
            case lists:usort([A || {F, A} <- Module:module_info(exports), F =:= Function]) of
                [] ->
                    not_understood(Function,
                        <<"No such Erlang function; check its name and the number of arguments">>);
                Arities ->
                    Text = lists:join(", ", [integer_to_list(A) || A <- Arities]),
                    Hint = io_lib:format("~ts:~ts/~ts exists but was called with ~b arguments",
                                         [Module, Function, Text, Arity]),
                    beamtalk_error:raise(arity_mismatch, 'ErlangModule', Function,
                                         unicode:characters_to_binary(Hint))
            end;
        {error, _} -> not_loaded(Module, Function)
    end.

-spec not_loaded(module(), atom()) -> no_return().
not_loaded(Module, Selector) ->
    not_understood(Selector, <<"Erlang module '", (atom_to_binary(Module))/binary,
                               "' is not loaded. Is it on the code path?">>).

-spec not_understood(atom(), binary()) -> no_return().
not_understood(Selector, Hint) ->
    beamtalk_error:raise(does_not_understand, 'ErlangModule', Selector, Hint).

%% Exported functions as `"name/arity"'.
-spec methods(module()) -> [binary()].
methods(Module) ->
    beamtalk_capability:require(ffi, 'ErlangModule', methods),
    case code:ensure_loaded(Module) of
        {module, Module} ->
            lists:sort([iolist_to_binary([atom_to_binary(F), "/", integer_to_binary(A)])
                        || {F, A} <- Module:module_info(exports)]);
        {error, _} -> not_loaded(Module, methods)
    end.

%% `self delegate' in a class with a backing module: the function is the first keyword of the selector.
-spec delegate(module(), instance | class, term(), atom(), [term()]) -> term().
delegate(Module, Side, Self, Selector, Arguments) ->
    beamtalk_capability:require_native(declared_name(Self), Selector),
    [Name | _] = binary:split(atom_to_binary(Selector), <<":">>),
    Function = binary_to_atom(Name),
    All = case Side of
        instance -> [Self | Arguments];
        class -> Arguments
    end,
    try apply(Module, Function, All) of
        Result -> convert_result(Result)
    catch
        error:Reason:Stack when not is_map(Reason) ->
            Exception = beamtalk_error:from_caught(error, Reason, Stack),
            #{error := {beamtalk_error, Kind, _, _, Message, Hint, Details}} = Exception,
            beamtalk_error:raise(Kind, declared_name(Self), Selector, Message, Hint, Details)
    end.

%% The class as it is written, on both sides.
declared_name({beamtalk_object, _, _, Name}) when is_atom(Name) -> Name;
declared_name(Self) -> beamtalk_dispatch:class_name(Self).
