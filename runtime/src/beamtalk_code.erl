%% Loading the code of a module without ever killing a process.
%%
%% The VM keeps two versions of a module and kills processes that still run the
%% older one when a third is loaded; blocks of the older one fail then. So before
%% loading, the older version is purged if nothing of it is left; otherwise the new version is loaded under
%% another name (`bt@geo@rect@1', …): the first such *slot* whose older version
%% is unused. Slots are reused, so any number of reloads needs only as many
%% names as there are versions still running. Code that actors with an older
%% state go on with (beamtalk_former) is not loaded over either.
-module(beamtalk_code).

-export([prepare_beam/3, prepare_compiled/2, prepare_forms/1, metadata/1, literal/3, module_of/1,
         current/0, load/1, load_later/1, load_waiting/0, compile_forms/1, unload/1, slot/2]).

-export_type([prepared/0]).

%% For each slot, probes of its current and of its older version.
-define(PROBES, beamtalk_probes).
%% How many modules are loaded in the background at once.
-define(AT_ONCE, 20).
-define(OPTIONS, [binary, return_errors, nowarn_unused_vars, nowarn_export_all, deterministic,
                  no_spawn_compiler_process]).

%% A module ready to be loaded, with its metadata when that is known without
%% loading it.
-type prepared() :: {module(), binary(), map() | unknown}.
-type current() :: #{module() => module()}.

-spec prepare_beam(module(), binary(), current()) -> {ok, prepared()} | {error, term()}.
prepare_beam(Module, Beam, Current) ->
    Meta = case beam_lib:chunks(Beam, [abstract_code]) of
        {ok, {_, [{abstract_code, {_, Forms}}]}} -> metadata(Forms);
        _ -> unknown
    end,
    %% Code whose metadata shows only after loading must not replace what is in
    %% use before it has been accepted.
    Avoided = case Meta of
        unknown -> maps:get(Module, Current, none);
        _ -> none
    end,
    in_free_slot(Module, Beam, Meta, Avoided).

%% Code compiled here, whose metadata was read from its forms.
-spec prepare_compiled(prepared(), current()) -> {ok, prepared()} | {error, term()}.
prepare_compiled({Module, Beam, unknown}, Current) -> prepare_beam(Module, Beam, Current);
prepare_compiled({Module, Beam, Meta}, _Current) -> in_free_slot(Module, Beam, Meta, none).

in_free_slot(Module, Beam, Meta, Avoided) ->
    case free_slot(Module, 0, Avoided) of
        Module -> {ok, {Module, Beam, Meta}};
        Slot ->
            case renamed(Slot, Beam) of
                {ok, Renamed} -> {ok, {Slot, Renamed, Meta}};
                {error, _} = Error -> Error
            end
    end.

%% The names under which the classes of modules are loaded now. Asked once for all that is loaded together; of the
%% records, which are large, only the names are taken.
-spec current() -> current().
current() ->
    maps:from_list(ets:select(beamtalk_classes, [{{'_', #{module => '$1', code => '$2'}}, [], [{{'$1', '$2'}}]}])).

%% The same code under another module name, which is the first atom of the file.
renamed(Slot, Beam) ->
    {ok, _, Chunks} = beam_lib:all_chunks(Beam),
    case lists:keyfind("AtU8", 1, Chunks) of
        {_, <<Count:32/signed, Length, _:Length/binary, Rest/binary>>} when Count > 0 ->
            Name = atom_to_binary(Slot),
            Atoms = <<Count:32, (byte_size(Name)), Name/binary, Rest/binary>>,
            Kept = [Chunk || {Id, _} = Chunk <- Chunks, Id =/= "Dbgi", Id =/= "Docs"],
            beam_lib:build_module(lists:keyreplace("AtU8", 1, Kept, {"AtU8", Atoms}));
        _ ->
            case beam_lib:chunks(Beam, [abstract_code]) of
                {ok, {_, [{abstract_code, {_, Forms}}]}} ->
                    case compile_forms(rename(Slot, Forms)) of
                        {ok, _, Compiled} -> {ok, Compiled};
                        {error, _} = Error -> Error
                    end;
                _ -> {error, {code_in_use, Slot}}
            end
    end.

-spec prepare_forms([term()]) -> {ok, prepared()} | {error, term()}.
prepare_forms(Forms) ->
    case module_of(Forms) of
        none -> {error, missing_module_attribute};
        Module -> prepare_as(free_slot(Module, 0, none), Forms)
    end.

%% The module that the forms say they are.
-spec module_of([term()]) -> module() | none.
module_of(Forms) ->
    case lists:keyfind(module, 3, Forms) of
        {attribute, _, module, Module} -> Module;
        false -> none
    end.

prepare_as(Slot, Forms) ->
    case compile_forms(rename(Slot, Forms)) of
        {ok, Slot, Beam} -> {ok, {Slot, Beam, metadata(Forms)}};
        {error, _} = Error -> Error
    end.

-spec metadata([term()]) -> map() | unknown.
metadata(Forms) -> literal('__beamtalk_meta', Forms, unknown).

%% What a function without parameters answers, where it is a literal: it can be read without loading.
-spec literal(atom(), [term()], term()) -> term().
literal(Name, Forms, Default) ->
    case [Body || {function, _, Function, 0, [{clause, _, [], [], Body}]} <- Forms, Function =:= Name] of
        [[{value, _, Term}]] -> Term;
        [Body] ->
            {value, Value, _} = erl_eval:exprs(Body, erl_eval:new_bindings()),
            Value;
        [] -> Default
    end.

-spec compile_forms([term()]) -> {ok, module(), binary()} | {error, term()}.
compile_forms(Forms) ->
    %% A process of its own with room from the start: the compiler makes much garbage.
    {_, Monitor} = spawn_opt(fun() -> exit({compiled, beamtalk_forms:forms(Forms, ?OPTIONS)}) end,
                             [monitor, {min_heap_size, 300000}]),
    Outcome = receive
        {'DOWN', Monitor, process, _, {compiled, Answer}} -> Answer;
        {'DOWN', Monitor, process, _, Reason} -> {error, [{"compiler", [{none, ?MODULE, Reason}]}], []}
    end,
    case Outcome of
        {ok, Module, Beam} -> {ok, Module, Beam};
        {ok, Module, Beam, _Warnings} -> {ok, Module, Beam};
        {error, Errors, _Warnings} -> {error, {compile_failed, Errors}};
        error -> {error, {compile_failed, []}}
    end.

rename(Slot, Forms) ->
    [case Form of
         {attribute, Anno, module, _} -> {attribute, Anno, module, Slot};
         _ -> Form
     end || Form <- Forms].

%% Load prepared code, all or nothing; answers the names it was loaded under. The VM reads the modules beside each
%% other and puts them in place together, which for many costs a fraction of one after the other.
-spec load([prepared()]) -> {ok, [module()]} | {error, term()}.
load(Modules) ->
    Files = [{Module, atom_to_list(Module) ++ ".beam", Beam} || {Module, Beam, _Meta} <- Modules],
    case prepared(Files) of
        {ok, Prepared} ->
            case code:finish_loading(Prepared) of
                ok -> {ok, [remember(Module, Beam) || {Module, Beam, _Meta} <- Modules]};
                {error, Reasons} -> {error, {load_failed, Reasons}}
            end;
        {error, Reasons} -> {error, {load_failed, Reasons}}
    end.

%% Modules whose code the VM finds on its path when it is first called. Whatever nobody calls is loaded in the background,
%% a few at a time and behind everything else, so that the image does not depend on files for long.
-spec load_later([{module(), binary()}]) -> ok.
load_later(Modules) ->
    ets:insert(?PROBES, [{Module, later, Beam} || {Module, Beam} <- Modules]),
    spawn(fun() ->
        process_flag(priority, low),
        load_rest([Module || {Module, _} <- Modules])
    end),
    ok.

%% Load at once what waits in the background: files are about to change, or have.
-spec load_waiting() -> ok.
load_waiting() ->
    case ets:match(?PROBES, {'$1', later, '_'}) of
        [] -> ok;
        Waiting -> load_rest(lists:append(Waiting))
    end.

load_rest([]) -> ok;
load_rest(Modules) ->
    {Now, Rest} = lists:split(min(?AT_ONCE, length(Modules)), Modules),
    beamtalk_class:locked(fun() -> load_waiting(lists:append([ets:lookup(?PROBES, Module) || Module <- Now])) end),
    load_rest(Rest).

%% What was replaced meanwhile does not wait any more.
load_waiting(Rows) ->
    Waiting = [{Module, Beam} || {Module, later, Beam} <- Rows],
    _ = [code:load_binary(Module, atom_to_list(Module) ++ ".beam", Beam)
         || {Module, Beam} <- Waiting, not erlang:module_loaded(Module)],
    [ets:insert(?PROBES, {Module, beamtalk_fun_count:probes(Module, Beam), []}) || {Module, Beam} <- Waiting],
    ok.

%% A module that is no code at all is refused like one that cannot be loaded.
prepared(Files) ->
    try code:prepare_loading(Files)
    catch error:Reason -> {error, Reason}
    end.

remember(Module, Beam) ->
    {Before, _} = probes(Module),
    ets:insert(?PROBES, {Module, beamtalk_fun_count:probes(Module, Beam), Before}),
    Module.

free_slot(Module, N, Avoided) ->
    Slot = slot(Module, N),
    case Slot =/= Avoided andalso not beamtalk_former:is_needed(Slot) andalso purge(Slot) of
        true -> Slot;
        false -> free_slot(Module, N + 1, Avoided)
    end.

%% Nobody goes on with the slot's older version: no process runs it, and no block made in it lives.
purge(Slot) ->
    case erlang:check_old_code(Slot) of
        false -> true;
        true ->
            {Current, Old} = probes(Slot),
            beamtalk_fun_count:is_unreferenced(Old) andalso code:soft_purge(Slot)
                andalso ets:insert(?PROBES, {Slot, Current, []})
    end.

%% The probes of the current and of the older version of a slot.
probes(Slot) ->
    case ets:lookup(?PROBES, Slot) of
        [{_, later, Beam}] -> {waiting_probes(Slot, Beam), []};
        [{_, Current, Old}] -> {Current, Old};
        [] -> {[], []}
    end.

%% Code that was not called has no blocks.
waiting_probes(Slot, Beam) ->
    case erlang:module_loaded(Slot) of
        true -> beamtalk_fun_count:probes(Slot, Beam);
        false -> []
    end.

-spec slot(module(), non_neg_integer()) -> module().
slot(Module, 0) -> Module;
slot(Module, N) ->
    binary_to_atom(<<(atom_to_binary(Module))/binary, "@", (integer_to_binary(N))/binary>>).

%% Take a module out of service; code that is still running finishes.
-spec unload(module()) -> ok.
unload(Module) ->
    case not beamtalk_former:is_needed(Module) andalso purge(Module) of
        true ->
            {Current, _} = probes(Module),
            code:delete(Module),
            ets:insert(?PROBES, {Module, [], Current}),
            purge(Module),
            ok;
        false -> ok
    end.
