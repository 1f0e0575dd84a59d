%% Loading code that the daemon sends: forms to compile, or modules on disk. All or nothing.
-module(beamtalk_bridge_load).

-export([load/2]).

-type unit() :: {forms, binary()} | {beam, binary()}.

%% Runs in a process of its own, so that whoever asked may die without leaving half of it behind.
-spec load([unit()], map()) -> {ok, map()} | {error, map()}.
load(Units, Args) ->
    {_, Monitor} = spawn_monitor(fun() -> exit({loaded, perform(Units, Args)}) end),
    receive
        {'DOWN', Monitor, process, _, {loaded, Outcome}} -> Outcome;
        {'DOWN', Monitor, process, _, Reason} ->
            {error, beamtalk_bridge_error:of_exception(beamtalk_error:from_caught(exit, Reason, []))}
    end.

perform(Units, _Args) ->
    case read(Units) of
        {ok, Modules} -> install(Modules);
        {error, Error} -> {error, Error}
    end.

install(Modules) ->
    case try_load(Modules) of
        ok -> {ok, #{<<"classes">> => [atom_to_binary(Class) || {Module, _} <- Modules,
                                                                {ok, Class} <- [class_of(Module)]]}};
        {error, #{error := _} = Exception} -> {error, beamtalk_bridge_error:of_exception(Exception)};
        {error, Reason} ->
            {error, beamtalk_bridge_error:new(<<"reload_failed">>, "the code could not be loaded",
                                              beamtalk_bridge_error:details(#{reason => Reason}))}
    end.

try_load(Modules) ->
    try beamtalk_class:load_all(Modules)
    catch Class:Reason:Stack -> {error, beamtalk_error:from_caught(Class, Reason, Stack)}
    end.

class_of(Module) ->
    case [Name || {_, #{module := M, name := Name}} <- ets:tab2list(beamtalk_classes), M =:= Module] of
        [Name | _] -> {ok, Name};
        [] -> none
    end.

%%% Compiling

read(Units) ->
    case beamtalk_limited:run(fun() -> [module(Unit) || Unit <- Units] end) of
        {ok, Modules} -> {ok, Modules};
        {limit, What} -> {error, limit(atom_to_binary(What))};
        {crashed, {refused, Error}} -> {error, Error};
        {crashed, Reason} ->
            {error, beamtalk_bridge_error:of_exception(beamtalk_error:from_caught(exit, Reason, []))}
    end.

limit(What) ->
    beamtalk_bridge_error:new(<<"compiler_limit">>, ["compiling was stopped: limit of ", What, " reached"],
                              #{<<"limit">> => What}).

module({forms, Binary}) ->
    case beamtalk_forms:compile(Binary) of
        {ok, Module, Beam} -> {Module, Beam};
        {error, Text} -> exit({refused, beamtalk_bridge_error:new(<<"compile_failed">>, Text)})
    end;
module({beam, Path}) ->
    case file:read_file(Path) of
        {ok, Beam} -> {binary_to_atom(filename:basename(Path, <<".beam">>)), Beam};
        {error, Reason} ->
            Text = ["cannot read ", Path, ": ", file:format_error(Reason)],
            exit({refused, beamtalk_bridge_error:new(<<"read_error">>, Text)})
    end.
