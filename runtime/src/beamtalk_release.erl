%% A released program: an OTP application whose top supervisor is the one of the package. Nothing is compiled and
%% nothing listens; the end of the supervisor ends the node, and a stop of the node stops the supervisor first.
-module(beamtalk_release).
-behaviour(application).

-export([boot/0]).
-export([start/2, stop/1]).

%% Where the node of a release starts: the settings name the packages in the order in which they are loaded, the
%% released one last.
-spec boot() -> ok.
boot() ->
    spawn(fun run/0),
    ok.

run() ->
    try prepare() of
        Package ->
            case application:ensure_all_started(Package, permanent) of
                {ok, _} -> ok;
                {error, Reason} -> fail(cause(Reason))
            end
    catch
        Kind:Reason:Stack ->
            #{message := Message} = beamtalk_report:caught(Kind, Reason, Stack),
            fail(Message)
    end.

prepare() ->
    beamtalk_boot:prepare_streams(),
    beamtalk_boot:start([{image, filename:join(code:lib_dir(beamtalk), "image")}]),
    {ok, Packages} = application:get_env(beamtalk, packages),
    Package = lists:last(Packages),
    application:set_env(beamtalk, program, atom_to_binary(Package)),
    application:set_env(beamtalk, owns_node, true),
    ok = beamtalk_class:load_all(lists:append([modules(Each) || Each <- Packages])),
    Package.

modules(Package) ->
    ok = application:load(Package),
    {ok, Modules} = application:get_key(Package, modules),
    [begin
         {Module, Beam, _} = code:get_object_code(Module),
         {Module, Beam}
     end || Module <- Modules].

-spec start(application:start_type(), atom()) -> {ok, pid()} | {error, term()}.
start(_Type, Supervisor) ->
    Class = beamtalk_class:named(Supervisor),
    case beamtalk_dispatch:send(Class, supervise) of
        #{okValue := {beamtalk_supervisor, _, _, Pid}} when is_pid(Pid) -> {ok, Pid};
        #{errReason := Reason} -> {error, {supervisor, beamtalk_display:native_display(Reason)}}
    end.

-spec stop(term()) -> ok.
stop(_State) -> ok.

%% The sentence of our own start function, out of what the application controller wraps it in.
cause({_, {{supervisor, Text}, {?MODULE, start, _}}}) -> Text;
cause({_, {bad_return, {_, {'EXIT', {Reason, Stack}}}}}) ->
    maps:get(message, beamtalk_report:caught(error, Reason, Stack));
cause(Reason) -> io_lib:format("~0tp", [Reason]).

-spec fail(iodata()) -> no_return().
fail(Text) ->
    io:format(standard_error, "Error: ~ts~n", [Text]),
    halt(1).
