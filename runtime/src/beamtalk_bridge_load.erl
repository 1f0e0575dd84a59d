%% Loading code that the daemon sends: forms to compile, or modules on disk. All or nothing.
-module(beamtalk_bridge_load).

-export([load/2]).

%% Bytes of forms that take long to optimise: some 25 methods of a few lines.
-define(LARGE, 65536).
%% Words of heap that compiling starts with at most. Memory that was never used costs more than moving what is left in
%% less of it: with 2,700,000 words a class of 550 KB of forms took half as long again as with 1,000,000 or 100,000.
-define(ROOM, 500000).

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
    beamtalk_code:load_waiting(),
    [beamtalk_package:describe(#{name => Name, version => Version, dependencies => Dependencies, source => Root,
                                 is_project => Name =:= maps:get(<<"project">>, Args, nil)})
     || {Name, #{<<"root">> := Root, <<"version">> := Version, <<"dependencies">> := Dependencies}}
            <- maps:to_list(maps:get(<<"packages">>, Args, #{}))],
    %% Native code and applications that the modules call.
    code:add_pathsa([binary_to_list(Path) || Path <- maps:get(<<"paths">>, Args, [])]),
    [application:ensure_all_started(binary_to_atom(Name)) || Name <- maps:get(<<"applications">>, Args, [])],
    case read(Units) of
        {ok, Modules} ->
            case news(Units, Modules) of
                {ok, New} -> install_later(New);
                none -> install(Modules)
            end;
        {error, Error} -> {error, Error}
    end.

%% Files that are loaded into a fresh image, with their summaries: nothing that runs is replaced, so their code can wait.
news(Units, Modules) ->
    Directories = lists:usort([filename:dirname(Path) || {beam, Path} <- Units]),
    try [{Module, Beam, summary(Module, Beam)} || {Module, Beam, unknown} <- Modules] of
        New when length(New) =:= length(Units), New =/= [] ->
            code:add_pathsa([binary_to_list(Directory) || Directory <- Directories]),
            {ok, New};
        _ -> none
    catch throw:not_new -> none
    end.

summary(Module, Beam) ->
    IsKnown = erlang:module_loaded(Module) orelse ets:member(beamtalk_modules, Module),
    case not IsKnown andalso beamtalk_summary:read(Beam) of
        {ok, #{meta := #{class := Class}} = Summary} ->
            case beamtalk_class:exists(Class) of
                true -> throw(not_new);
                false -> Summary
            end;
        {ok, Summary} -> Summary;
        _ -> throw(not_new)
    end.

install_later(Modules) ->
    Classes = [Class || {_, _, #{meta := #{class := Class}}} <- Modules],
    answered(attempt(fun() -> beamtalk_class:load_later(Modules) end), fun() -> #{<<"classes">> => names(Classes)} end).

install(Modules) ->
    Classes = [Class || {_, _, #{class := Class}} <- Modules],
    Shapes = beamtalk_migration:shapes(Classes ++ late(Modules)),
    answered(attempt(fun() -> beamtalk_class:load_compiled(Modules) end), fun() ->
        Late = late(Modules),
        maps:merge(#{<<"classes">> => names(Classes ++ Late)}, migrated(Shapes, Modules, Late))
    end).

answered(ok, Answer) -> {ok, Answer()};
answered({error, #{error := _} = Exception}, _) -> {error, beamtalk_bridge_error:of_exception(Exception)};
answered({error, Reason}, _) ->
    {error, beamtalk_bridge_error:new(<<"reload_failed">>, "the code could not be loaded",
                                      beamtalk_bridge_error:details(#{reason => Reason}))}.

attempt(Load) ->
    try Load()
    catch Class:Reason:Stack -> {error, beamtalk_error:from_caught(Class, Reason, Stack)}
    end.

names(Classes) ->
    [atom_to_binary(Class) || Class <- lists:usort(Classes)].

%% Classes of modules from disk, whose metadata shows only when they are loaded.
late(Modules) ->
    beamtalk_class:classes_of([Module || {Module, _, unknown} <- Modules]).

%% Classes that are new have no actors; nor has a class changed for them when only a method of it was replaced.
%% Looking for actors costs a walk over all processes.
migrated(Shapes, Modules, Late) ->
    Existing = [Shape || {_, Fields} = Shape <- Shapes, Fields =/= none],
    IsReplacement = Late =:= [] andalso lists:all(fun({_, _, Meta}) -> is_replacement(Meta) end, Modules),
    case Existing =/= [] andalso (not IsReplacement orelse has_changed(Existing)) of
        false -> #{};
        true ->
            #{affected := Count, failures := Failures} = beamtalk_migration:run(Existing),
            #{<<"affected_actors">> => Count,
              <<"migration_failures">> => [#{<<"actor">> => beamtalk_plain:pid(Pid), <<"reason">> => Text}
                                           || {Pid, Text} <- Failures]}
    end.

%% One method compiled by itself has no class's metadata; a class compiled again for one says so.
is_replacement(#{is_replacement := IsReplacement}) -> IsReplacement;
is_replacement(_) -> true.

has_changed(Shapes) ->
    beamtalk_migration:shapes([Class || {Class, _} <- Shapes]) =/= lists:sort(Shapes).

%%% Compiling

read(Units) ->
    case beamtalk_limited:run(fun() -> [module(Unit) || Unit <- Units] end, room(Units)) of
        {ok, Modules} -> {ok, Modules};
        {limit, What} -> {error, limit(atom_to_binary(What))};
        {crashed, {refused, Error}} -> {error, Error};
        {crashed, Reason} ->
            {error, beamtalk_bridge_error:of_exception(beamtalk_error:from_caught(exit, Reason, []))}
    end.

limit(What) ->
    beamtalk_bridge_error:new(<<"compiler_limit">>, ["compiling was stopped: limit of ", What, " reached"],
                              #{<<"limit">> => What}).

%% Compiling makes several words of data from each byte of the largest unit.
room(Units) ->
    Largest = lists:max([0 | [byte_size(Forms) || {forms, Forms} <- Units]]),
    min(Largest * 5, ?ROOM).

module({forms, Binary}) ->
    Forms = accepted(beamtalk_forms:read(Binary)),
    {Module, Beam} = accepted(beamtalk_forms:compile_read(Forms, haste(Binary))),
    {Module, Beam, metadata(Forms)};
module({beam, Path}) ->
    case file:read_file(Path) of
        {ok, Beam} -> {binary_to_atom(filename:basename(Path, <<".beam">>)), Beam, unknown};
        {error, Reason} ->
            Text = ["cannot read ", Path, ": ", file:format_error(Reason)],
            exit({refused, beamtalk_bridge_error:new(<<"read_error">>, Text)})
    end.

accepted({ok, Forms}) -> Forms;
accepted({ok, Module, Beam}) -> {Module, Beam};
accepted({error, Text}) -> exit({refused, beamtalk_bridge_error:new(<<"compile_failed">>, Text)}).

%% Somebody waits for a class that is sent as forms. Where it is large, half of the time would go into
%% optimising it; a build of the project makes the fast code.
haste(Forms) when byte_size(Forms) > ?LARGE ->
    [no_fold, no_alias, no_bool_opt, no_bsm_opt, no_recv_opt, no_ssa_opt, no_throw_opt, no_postopt];
haste(_) -> [].

metadata(Forms) ->
    case beamtalk_code:metadata(Forms) of
        unknown -> unknown;
        Meta -> Meta#{is_replacement => lists:any(fun is_replaced/1, Forms)}
    end.

is_replaced({function, _, '__beamtalk_replaced', 0, _}) -> true;
is_replaced(_) -> false.
