%% Class side of Actor and the lifecycle and name messages of actors. They run
%% in the sender's process.
-module(beamtalk_actor_class).

-export([spawn_default/1, spawn_with/2, spawn_as/2, spawn_with_as/3]).
-export([refuse_new/1, refuse_new/2, find_named/2, all_registered/1]).
-export([register_as/2, unregister/1, registeredName/1, isRegistered/1]).
-export([pid/1, monitor/1, on_exit/2, stop/1, kill/1, isAlive/1, delegate/1]).
-export([with_timeout/2]).
-export([all/0, instances/1, reference_of/1]).

-define(TIMEOUT, 5000).

-type class_object() :: {beamtalk_object, atom(), module(), atom()}.
-type handle() :: beamtalk_actor:handle().

%%% Making actors

-spec spawn_default(class_object()) -> handle().
spawn_default({_, _, _, Class}) -> spawn_actor(Class, spawn, #{}).

-spec spawn_with(class_object(), term()) -> handle().
spawn_with({_, _, _, Class}, Slots) -> spawn_actor(Class, 'spawnWith:', Slots).

-spec spawn_as(class_object(), term()) -> map().
spawn_as({_, _, _, Class}, Name) -> spawn_named(Class, 'spawnAs:', #{}, Name).

-spec spawn_with_as(class_object(), term(), term()) -> map().
spawn_with_as({_, _, _, Class}, Slots, Name) ->
    spawn_named(Class, 'spawnWith:as:', Slots, Name).

-spec refuse_new(class_object()) -> no_return().
refuse_new({_, _, _, Class}) ->
    beamtalk_error:raise(instantiation_error, Class, new, <<"Use spawn instead">>).

-spec refuse_new(class_object(), term()) -> no_return().
refuse_new({_, _, _, Class}, _) ->
    beamtalk_error:raise(instantiation_error, Class, 'new:', <<"Use spawnWith: instead">>).

spawn_actor(Class, Selector, Slots) ->
    #{native := Native, module := Module} = check_class(Class, Selector),
    Started = case Native of
        nil ->
            Slots =:= #{} orelse beamtalk_value:check_fields(Class, Selector, Slots),
            beamtalk_actor:start(Class, Slots, is_linked(), undefined);
        _ -> start_native(Native, Class, Selector, Slots)
    end,
    case Started of
        {ok, Pid} -> {beamtalk_object, Class, Module, Pid};
        {error, Reason} -> start_failed(Class, Selector, Reason)
    end.

check_class(Class, Selector) ->
    case beamtalk_dispatch:info(Class) of
        #{abstract := true} ->
            beamtalk_error:raise(instantiation_error, Class, Selector,
                <<"The class is abstract: spawn a subclass">>);
        Info -> Info
    end.

%% Actors made by a session belong to nobody in it.
is_linked() -> get('$bt_session') =:= undefined.

start_native(_, Class, Selector, Slots) when not is_map(Slots) ->
    beamtalk_error:type_error(Class, Selector, <<"The argument must be a Dictionary">>);
start_native(Module, Class, Selector, Slots) ->
    beamtalk_capability:require_native(Class, Selector),
    beamtalk_guard:check_process(Class, Selector),
    Config = beamtalk_cell:freeze(Slots),
    case guarded(fun() -> Module:start_link(Config) end) of
        {ok, Pid} ->
            get('$bt_session') =:= undefined orelse unlink(Pid),
            beamtalk_native_actor:started(Class, Pid),
            {ok, Pid};
        Failed -> Failed
    end.

%% A linked start that fails must not send its maker an exit signal.
guarded(Start) ->
    Trapping = process_flag(trap_exit, true),
    Result = try Start()
             catch Class:Reason:Stack ->
                 {error, beamtalk_error:from_caught(Class, Reason, Stack)}
             end,
    case Result of
        {ok, _} -> ok;
        _ -> receive {'EXIT', _, _} -> ok after 0 -> ok end
    end,
    process_flag(trap_exit, Trapping),
    Result.

-spec start_failed(atom(), atom(), term()) -> no_return().
start_failed(Class, Selector, Reason) ->
    erlang:error(start_exception(Class, Selector, Reason)).

%% What went wrong inside initialize, as `instantiation_error' of the class.
start_exception(Class, Selector, {shutdown, {beamtalk_start, Exception}}) ->
    start_exception(Class, Selector, Exception);
start_exception(_, _, #{error := {_, Kind, _, _, _, _, _}} = Exception)
  when Kind =:= instantiation_error; Kind =:= process_limit ->
    maps:remove(stacktrace, Exception);
%% A native module looks at its configuration itself.
start_exception(Class, _, #{error := {_, unknown_field, Class, _, _, _, _}} = Exception) ->
    maps:remove(stacktrace, Exception);
start_exception(Class, Selector, #{error := {_, Kind, _, _, Message, Hint, Details}}) ->
    Text = iolist_to_binary([atom_to_binary(Class), " could not be started: ", Message]),
    beamtalk_error:new(instantiation_error, Class, Selector, Text, Hint, Details#{cause => Kind});
start_exception(Class, Selector, Reason) ->
    Hint = <<"The process could not be started: ", (beamtalk_display:native(Reason))/binary>>,
    beamtalk_error:new(instantiation_error, Class, Selector, undefined, Hint, #{reason => Reason}).

%%% Names

spawn_named(Class, Selector, Slots, Name) ->
    try
        check_name(Class, Selector, Name),
        whereis(Name) =:= undefined orelse taken(Class, Selector, Name),
        #{native := Native} = check_class(Class, Selector),
        case Native of
            nil ->
                is_map(Slots) orelse beamtalk_error:type_error(Class, Selector, nil),
                beamtalk_value:check_fields(Class, Selector, Slots),
                case beamtalk_actor:start(Class, Slots, is_linked(), Name) of
                    {ok, Pid} -> beamtalk_actor:reference(Class, Pid);
                    {error, {shutdown, {beamtalk_start, {name_taken, _}}}} -> taken(Class, Selector, Name);
                    {error, Reason} -> start_failed(Class, Selector, Reason)
                end;
            _ ->
                Actor = spawn_actor(Class, Selector, Slots),
                register_actor(Actor, Selector, Name)
        end
    of Made -> ok(Made)
    catch error:#{error := _} = Exception -> failed(Exception)
    end.

ok(Value) -> #{'$beamtalk_class' => 'Result', isOk => true, okValue => Value, errReason => nil}.

failed(Exception) ->
    #{'$beamtalk_class' => 'Result', isOk => false, okValue => nil, errReason => Exception}.

-spec register_as(handle(), term()) -> map().
register_as({_, Class, _, _} = Actor, Name) ->
    try
        check_name(Class, 'registerAs:', Name),
        register_actor(Actor, 'registerAs:', Name)
    of Registered -> ok(Registered)
    catch error:#{error := _} = Exception -> failed(Exception)
    end.

register_actor({_, Class, _, _} = Actor, Selector, Name) ->
    Pid = pid(Actor),
    is_process_alive(Pid) orelse beamtalk_error:raise(actor_dead, Class, Selector),
    try register(Name, Pid) of
        true -> Actor
    catch error:badarg -> taken(Class, Selector, Name)
    end.

taken(Class, Selector, Name) ->
    Text = atom_to_binary(Name),
    beamtalk_error:raise(name_registered, Class, Selector,
        <<"The name '", Text/binary, "' is already registered, or its actor has another name">>).

check_name(Class, Selector, Name) when not is_atom(Name); Name =:= undefined; Name =:= nil; is_boolean(Name) ->
    beamtalk_error:type_error(Class, Selector, <<"A name is a Symbol">>);
check_name(Class, Selector, Name) ->
    case is_reserved(Name) of
        true ->
            beamtalk_error:raise(reserved_name, Class, Selector,
                <<"The name '", (atom_to_binary(Name))/binary, "' belongs to the system">>);
        false -> ok
    end.

is_reserved(Name) ->
    case atom_to_list(Name) of
        "beamtalk_" ++ _ -> true;
        _ ->
            lists:member(Name,
                [application_controller, code_server, erl_prim_loader, erl_signal_server,
                 error_logger, erts_code_purger, file_server_2, global_group, global_group_check,
                 global_name_server, inet_db, init, kernel_refc, kernel_safe_sup, kernel_sup,
                 logger, logger_handler_watcher, logger_proxy, logger_std_h_default, logger_sup,
                 net_kernel, net_sup, rex, socket_registry, standard_error, standard_error_sup,
                 standard_error_writer, user, user_drv, user_drv_reader, user_drv_writer])
    end.

-spec find_named(class_object(), term()) -> map().
find_named({_, _, _, Class}, Name) when is_atom(Name), Name =/= undefined, Name =/= nil, not is_boolean(Name) ->
    case whereis(Name) of
        undefined -> failed(not_registered(Class, Name));
        Pid when is_pid(Pid) ->
            case reference_of(Pid) of
                {ok, {_, Actual, Module, _}} ->
                    case beamtalk_class:inherits(Actual, Class) of
                        true -> ok({beamtalk_object, Actual, Module, {registered, Name}});
                        false -> failed(wrong_class(Class, Name, Actual))
                    end;
                none -> failed(wrong_class(Class, Name, 'Pid'))
            end;
        _ -> failed(wrong_class(Class, Name, 'Port'))
    end;
find_named({_, _, _, Class}, _) ->
    failed(beamtalk_error:new(type_error, Class, 'named:', undefined, <<"A name is a Symbol">>, #{})).

not_registered(Class, Name) ->
    beamtalk_error:new(name_not_registered, Class, 'named:', undefined,
        <<"No process is currently registered under name '", (atom_to_binary(Name))/binary, "'">>,
        #{name => Name}).

wrong_class(Class, Name, Actual) ->
    beamtalk_error:new(wrong_class, Class, 'named:', undefined,
        iolist_to_binary([<<"The process registered as '">>, atom_to_binary(Name), <<"' is a ">>,
                          atom_to_binary(Actual), <<", not a ">>, atom_to_binary(Class)]),
        #{name => Name}).

-spec all_registered(class_object()) -> [handle()].
all_registered(_) ->
    [{beamtalk_object, Class, Module, {registered, Name}}
     || Name <- lists:sort(registered()), Pid <- [whereis(Name)], is_pid(Pid),
        {ok, {_, Class, Module, _}} <- [reference_of(Pid)]].

%% The actor a process is, if it is one.
-spec reference_of(pid()) -> {ok, handle()} | none.
reference_of(Pid) ->
    case erlang:process_info(Pid, dictionary) of
        {dictionary, Dictionary} ->
            case {lists:keyfind('$bt_self', 1, Dictionary), beamtalk_native_actor:find(Pid)} of
                {{_, Reference}, _} -> {ok, Reference};
                {false, {Class, _}} -> {ok, beamtalk_actor:reference(Class, Pid)};
                {false, none} -> none
            end;
        undefined -> none
    end.

%% Every living actor of the node.
-spec all() -> [handle()].
all() ->
    [Reference || Pid <- processes(), {ok, Reference} <- [reference_of(Pid)]].

-spec instances(atom()) -> [handle()].
instances(Class) ->
    [Actor || {_, Actual, _, _} = Actor <- all(), Actual =:= Class].

-spec unregister(handle()) -> ok.
unregister({_, _, _, {registered, Name}}) ->
    unregister_name(Name);
unregister({_, _, _, Pid}) ->
    case erlang:process_info(Pid, registered_name) of
        {registered_name, Name} -> unregister_name(Name);
        _ -> ok
    end.

unregister_name(Name) ->
    try erlang:unregister(Name) of
        true -> ok
    catch error:badarg -> ok
    end.

-spec registeredName(handle()) -> atom().
registeredName({_, _, _, {registered, Name}}) -> Name;
registeredName({_, _, _, Pid}) ->
    case erlang:process_info(Pid, registered_name) of
        {registered_name, Name} -> Name;
        _ -> nil
    end.

-spec isRegistered(handle()) -> boolean().
isRegistered(Actor) -> registeredName(Actor) =/= nil.

%%% Lifecycle

-spec pid(handle()) -> pid().
pid({_, Class, _, {registered, Name} = Target}) ->
    case beamtalk_actor:resolve(Target) of
        undefined ->
            beamtalk_error:raise(no_such_process, Class, pid,
                <<"No process is currently registered under name '", (atom_to_binary(Name))/binary, "'">>);
        Pid -> Pid
    end;
pid({_, _, _, Pid}) -> Pid.

-spec monitor(handle()) -> reference().
monitor(Actor) -> erlang:monitor(process, pid(Actor)).

%% Run the block with the exit reason in a process of its own.
-spec on_exit(handle(), term()) -> ok.
on_exit({_, Class, _, _} = Actor, Block) when is_function(Block, 1); is_function(Block, 0) ->
    Pid = pid(Actor),
    beamtalk_guard:check_process(Class, 'onExit:'),
    Frozen = beamtalk_cell:freeze(Block),
    Caller = self(),
    Ready = make_ref(),
    spawn(fun() ->
        Monitor = erlang:monitor(process, Pid),
        Caller ! Ready,
        receive {'DOWN', Monitor, _, _, Reason} -> run_hook(Class, Frozen, Reason) end
    end),
    receive Ready -> ok end;
on_exit({_, Class, _, _}, _) ->
    beamtalk_error:type_error(Class, 'onExit:', <<"onExit: needs a block of at most one parameter">>).

run_hook(Class, Block, Reason) ->
    try beamtalk_block:call(Block, [Reason])
    catch Kind:Error:Stack ->
        Exception = beamtalk_error:from_caught(Kind, Error, Stack),
        logger:warning("~ts onExit: block failed: ~ts", [Class, beamtalk_display:exception(Exception)],
                       #{domain => [beamtalk]})
    end.

-spec isAlive(handle()) -> boolean().
isAlive({_, _, _, Target}) ->
    case beamtalk_actor:resolve(Target) of
        undefined -> false;
        Pid -> is_alive(Pid)
    end.

is_alive(Pid) when node(Pid) =:= node() -> is_process_alive(Pid);
is_alive(Pid) -> erpc:call(node(Pid), erlang, is_process_alive, [Pid]).

%% End the actor after the messages already in its mailbox. An actor that stops
%% itself ends when its current message does.
-spec stop(handle()) -> ok.
stop({_, Class, _, Target} = Actor) ->
    case beamtalk_actor:resolve(Target) of
        undefined -> ok;
        Pid when Pid =:= self() ->
            put('$bt_stopping', true),
            ok;
        Pid ->
            #{native := Native} = beamtalk_dispatch:info(Class),
            await_end(Actor, Pid, stop, fun() -> ask_to_stop(Native, Pid) end)
    end.

ask_to_stop(nil, Pid) -> gen_server:cast(Pid, '$bt_stop');
ask_to_stop(_, Pid) ->
    spawn(fun() ->
        try gen_server:stop(Pid, normal, ?TIMEOUT)
        catch exit:_ -> ok
        end
    end).

-spec kill(handle()) -> ok.
kill({_, Class, _, Target} = Actor) ->
    case beamtalk_actor:resolve(Target) of
        undefined -> ok;
        Pid ->
            beamtalk_tracing:killed(Pid, Class),
            await_end(Actor, Pid, kill, fun() -> exit(Pid, kill) end)
    end.

await_end({_, Class, _, _}, Pid, Selector, Ask) ->
    Monitor = erlang:monitor(process, Pid),
    Ask(),
    case beamtalk_actor_waits:wait_for_end(Pid, Monitor, ?TIMEOUT) of
        down -> ok;
        deadlock -> beamtalk_actor:deadlock(Class, Selector);
        timeout ->
            beamtalk_error:raise(timeout, Class, Selector,
                <<"The actor did not end in time; kill ends it at once">>)
    end.

-spec delegate(handle()) -> no_return().
delegate({_, Class, _, _}) ->
    beamtalk_error:raise(signal, Class, delegate, <<"delegate called on a non-native Actor">>, nil, #{}).

%% A proxy that sends with another limit.
-spec with_timeout(handle(), term()) -> handle().
with_timeout({_, Class, _, _} = Actor, Limit) ->
    Timeout = milliseconds(Class, 'withTimeout:', Limit),
    spawn_actor('TimeoutProxy', spawn, #{target => Actor, timeoutMs => Timeout}).

milliseconds(_, _, infinity) -> infinity;
milliseconds(_, _, N) when is_integer(N), N >= 0 -> N;
milliseconds(_, _, #{'$beamtalk_class' := 'Duration'} = Duration) ->
    beamtalk_dispatch:send(Duration, asMilliseconds);
milliseconds(Class, Selector, _) ->
    beamtalk_error:type_error(Class, Selector,
        <<"A limit is a number of milliseconds, a Duration or #infinity">>).
