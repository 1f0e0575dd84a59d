%% The OTP application. Every node of Beamtalk starts it: a workspace, `beamtalk run', `beamtalk test', a packed program,
%% a release.
%%
%% Its variables say what the node is for: `role' is `workspace' where a daemon is served (without it the node runs one
%% program), `image' the file of the library's tables.
-module(beamtalk_app).
-behaviour(application).

-export([run/1]).
-export([start/2, stop/1]).

%% Start the application with these variables.
-spec run([{role | image, term()}]) -> ok | {error, term()}.
run(Settings) ->
    case application:load(beamtalk) of
        ok -> ok;
        {error, {already_loaded, beamtalk}} -> ok
    end,
    [application:set_env(beamtalk, Name, Value) || {Name, Value} <- Settings],
    case application:start(beamtalk) of
        ok -> ok;
        {error, {already_started, beamtalk}} -> ok;
        {error, {{image, Reason}, {?MODULE, start, _}}} -> {error, {image, Reason}};
        {error, Reason} -> {error, Reason}
    end.

-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) ->
    case beamtalk_sup:start_link() of
        {ok, Supervisor} ->
            case boot(application:get_env(beamtalk, image)) of
                ok ->
                    %% This process goes on, waiting, and would keep the image's file.
                    garbage_collect(),
                    serve(application:get_env(beamtalk, role, program), Supervisor);
                {error, Reason} -> {error, {image, Reason}}
            end;
        {error, Reason} -> {error, Reason}
    end.

boot({ok, Image}) -> beamtalk_class:boot(Image);
boot(undefined) -> ok.

serve(workspace, Supervisor) ->
    case beamtalk_sup:start_workspace() of
        {ok, _} -> {ok, Supervisor};
        {error, Reason} -> {error, Reason}
    end;
serve(program, Supervisor) -> {ok, Supervisor}.

%% A workspace without its tree answers nobody: the node ends, and the daemon starts another.
-spec stop(term()) -> ok.
stop(_State) ->
    case application:get_env(beamtalk, role, program) of
        workspace ->
            io:put_chars(standard_error, "the runtime's supervisor ended\n"),
            halt(70, [{flush, false}]);
        program -> ok
    end.
