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

perform(Units, Args) ->
    case read(Units) of
        {ok, Modules} -> install(Modules, Args);
        {error, Error} -> {error, Error}
    end.

install(Modules, Args) ->
    Classes = [Class || {_, _, #{class := Class}} <- Modules],
    Shapes = beamtalk_migration:shapes(Classes),
    case try_load(Modules) of
        ok -> {ok, maps:merge(#{<<"classes">> => names(Modules, Classes)}, migrated(Shapes, Args))};
        {error, #{error := _} = Exception} -> {error, beamtalk_bridge_error:of_exception(Exception)};
        {error, Reason} ->
            {error, beamtalk_bridge_error:new(<<"reload_failed">>, "the code could not be loaded",
                                              beamtalk_bridge_error:details(#{reason => Reason}))}
    end.

try_load(Modules) ->
    try beamtalk_class:load_compiled(Modules)
    catch Class:Reason:Stack -> {error, beamtalk_error:from_caught(Class, Reason, Stack)}
    end.

%% Classes whose metadata showed only after loading are found by their module.
names(Modules, Known) ->
    Late = case [Module || {Module, _, unknown} <- Modules] of
        [] -> [];
        Unknown -> [Class || {Class, #{module := Module}} <- ets:tab2list(beamtalk_classes),
                             lists:member(Module, Unknown)]
    end,
    [atom_to_binary(Class) || Class <- lists:usort(Known ++ Late)].

%% Classes that are new have no actors; looking for them costs a walk over all processes.
migrated(Shapes, Args) ->
    Existing = [Shape || {_, Fields} = Shape <- Shapes, Fields =/= none],
    case Existing =/= [] andalso (maps:get(<<"actors">>, Args, false) orelse has_changed(Existing)) of
        false -> #{};
        true ->
            #{affected := Count, failures := Failures} = beamtalk_migration:run(Existing),
            #{<<"affected_actors">> => Count,
              <<"migration_failures">> => [#{<<"actor">> => list_to_binary(pid_to_list(Pid)), <<"reason">> => Text}
                                           || {Pid, Text} <- Failures]}
    end.

has_changed(Shapes) ->
    beamtalk_migration:shapes([Class || {Class, _} <- Shapes]) =/= lists:sort(Shapes).

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
        {ok, Module, Beam} -> {Module, Beam, beamtalk_code:metadata(binary_to_term(Binary))};
        {error, Text} -> exit({refused, beamtalk_bridge_error:new(<<"compile_failed">>, Text)})
    end;
module({beam, Path}) ->
    case file:read_file(Path) of
        {ok, Beam} -> {binary_to_atom(filename:basename(Path, <<".beam">>)), Beam, unknown};
        {error, Reason} ->
            Text = ["cannot read ", Path, ": ", file:format_error(Reason)],
            exit({refused, beamtalk_bridge_error:new(<<"read_error">>, Text)})
    end.
