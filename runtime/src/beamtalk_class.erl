%% The class registry: which classes exist, where their code is, and how they
%% change.
%%
%% Records live in the ETS table `beamtalk_classes'; what a send needs is
%% published in `persistent_term' by beamtalk_table. Changes are made one at a
%% time under the lock `registry'; readers never wait.
-module(beamtalk_class).

-export([load/2, load_all/1, load_compiled/1, load_forms/1, load_later/1, register_module/1, register_all/1]).
-export([boot/1, write_image/2]).
-export([named/1, find/1, record/1, meta/1, meta_of/1, exists/1, all/0, all/2, of_module/1, inherits/2,
         subclasses/1, all_subclasses/1, class_object/1, classes_of/1, with_descendants/1]).
-export([remove_class/1, remove_method/3, not_removed/2, restore_method/3, has_own/3, change/2, locked/1, recompute/1, reconstitute/1]).
-export([is_library/1, register_record/1, without_texts/1]).

-type name() :: atom().

%%% Loading

%% Load one compiled module and register what it defines.
-spec load(module(), binary()) -> {ok, module()} | {error, term()}.
load(Module, Beam) ->
    case load_all([{Module, Beam}]) of
        ok -> {ok, Module};
        {error, _} = Error -> Error
    end.

%% Load several compiled modules and register them together; their order does
%% not matter. When one of them is refused nothing changes.
-spec load_all([{module(), binary()}]) -> ok | {error, term()}.
load_all(Modules) ->
    load_units(Modules, fun({Module, _}) -> {Module, unknown} end,
               fun({Module, Beam}, Current) -> beamtalk_code:prepare_beam(Module, Beam, Current) end).

%% The same for code whose metadata is known, so that a refusal leaves even the code as it was.
-spec load_compiled([beamtalk_code:prepared()]) -> ok | {error, term()}.
load_compiled(Modules) ->
    load_units(Modules, fun({Module, _, Meta}) -> {Module, Meta} end, fun beamtalk_code:prepare_compiled/2).

%% Modules on the code path that nothing is known of yet, with their summaries. Their classes are there at once; their
%% code is loaded when it is first called, and the rest of it in the background.
-spec load_later([{module(), binary(), beamtalk_summary:summary()}]) -> ok | {error, term()}.
load_later(Modules) ->
    locked(fun() ->
        case register_units([beamtalk_summary:unit(Module, Summary) || {Module, _, Summary} <- Modules]) of
            ok -> beamtalk_code:load_later([{Module, Beam} || {Module, Beam, _} <- Modules]);
            {error, _} = Error -> Error
        end
    end).

%% Compile, load and register one module, or several, given as abstract forms.
-spec load_forms([term()] | [[term()]]) -> ok | {error, term()}.
load_forms([Form | _] = Forms) when is_tuple(Form) -> load_forms([Forms]);
load_forms(Units) ->
    load_units(Units, fun(Forms) -> {beamtalk_code:module_of(Forms), beamtalk_code:metadata(Forms)} end,
               fun(Forms, _Current) -> beamtalk_code:prepare_forms(Forms) end).

%% Describe answers the module and the metadata of a unit. Actors that cannot follow a change of their slots go on with
%% the code they had, which is kept before the new code is chosen a name.
load_units(Units, Describe, Prepare) ->
    locked(fun() ->
        Former = beamtalk_former:remember(reshaped([Describe(Unit) || Unit <- Units])),
        Current = beamtalk_code:current(),
        try
            case each(fun(Unit) -> Prepare(Unit, Current) end, Units, []) of
                {ok, Prepared} ->
                    Records = [new_record(Code, Meta) || {Code, _, #{} = Meta} <- Prepared],
                    case ordered(Records) of
                        {error, _} = Error -> Error;
                        _ -> load_prepared(Prepared)
                    end;
                Error -> Error
            end
        after beamtalk_former:settle(Former)
        end
    end).

%% The known classes whose slots the modules change, or may change where that shows only after loading.
reshaped(Modules) ->
    Known = [{Name, Meta, record(Name)} || {_, #{class := Name} = Meta} <- Modules],
    [Name || {Name, Meta, #{} = Record} <- Known, has_other_slots(Meta, Record)]
        ++ classes_of([Module || {Module, unknown} <- Modules]).

has_other_slots(#{superclass := Super} = Meta, #{superclass := Super, slots := Slots}) ->
    Names = fun(All) -> [Name || #{name := Name} <- All] end,
    Names(Slots) =/= Names(maps:get(slots, Meta, []));
has_other_slots(_, _) -> true.

%% The classes of modules. Only names are taken out of the table: the records are large, and one that a match
%% specification calls a function with is copied first.
-spec classes_of([module()]) -> [name()].
classes_of([]) -> [];
classes_of(Modules) ->
    Wanted = maps:from_keys(Modules, wanted),
    Rows = ets:select(beamtalk_classes, [{{'$1', #{module => '$2'}}, [], [{{'$1', '$2'}}]}]),
    [Name || {Name, Module} <- Rows, is_map_key(Module, Wanted)].

load_prepared(Prepared) ->
    case beamtalk_code:load(Prepared) of
        {ok, Codes} -> register_all(Codes);
        Error -> Error
    end.

each(Function, [Unit | Rest], Done) ->
    case Function(Unit) of
        {ok, Result} -> each(Function, Rest, [Result | Done]);
        {error, _} = Error -> Error
    end;
each(_, [], Done) -> {ok, lists:reverse(Done)}.

-spec register_module(module()) -> ok | {error, term()}.
register_module(Code) ->
    register_all([Code]).

%% Register the classes, protocols and extensions of loaded modules.
-spec register_all([module()]) -> ok | {error, term()}.
register_all(Codes) ->
    locked(fun() -> register_units([unit(Code) || Code <- Codes]) end).

unit(Code) ->
    code:ensure_loaded(Code),
    Call = fun(Function, Default) ->
                   case erlang:function_exported(Code, Function, 0) of
                       true -> Code:Function();
                       false -> Default
                   end
           end,
    {Code, Call('__beamtalk_meta', none), Call('__beamtalk_protocol', none),
     {Call('__beamtalk_home', Code), Call('__beamtalk_extensions', [])}}.

register_units(Units) ->
    Classes = [new_record(Code, Meta) || {Code, Meta, _, _} <- Units, Meta =/= none],
    Protocols = [Protocol || {_, _, Protocol, _} <- Units, Protocol =/= none],
    ProtocolClasses = [beamtalk_protocol:class_record(P) || P <- Protocols],
    Records = Classes ++ ProtocolClasses,
    case checked(ordered(Records), [E || {_, _, _, {_, Extensions}} <- Units, E <- Extensions], Records) of
        {error, _} = Error -> Error;
        Ordered ->
            Known = maps:from_keys([Name || #{name := Name} <- Ordered, exists(Name)], known),
            [beamtalk_protocol:register(P) || P <- Protocols],
            Patched = lists:append([patch_code(record(Name)) || #{name := Name} <- Ordered]),
            [store(Record) || Record <- Ordered],
            Extended = [register_extensions(Home, Code, Extensions) || {Code, _, _, {Home, Extensions}} <- Units],
            recompute([Name || #{name := Name} <- Ordered] ++ lists:append(Extended)),
            Still = lists:append([patch_code(record(Name)) || #{name := Name} <- Ordered]),
            [beamtalk_code:unload(Code) || Code <- Patched -- Still],
            beamtalk_class_state:initialize([Name || #{name := Name} <- Ordered]),
            [beamtalk_announcer:system_event('ClassLoaded', #{className => Name}) || #{name := Name} <- Ordered],
            [beamtalk_bridge_events:class_registered(Name, not is_map_key(Name, Known))
             || #{name := Name} <- Ordered],
            [beamtalk_bridge_events:class_registered(Name, false) || Names <- Extended, Name <- Names],
            ok
    end.

%% A patch needs its class; an extension waits for it.
checked({error, _} = Error, _, _) -> Error;
checked(Ordered, Extensions, Records) ->
    Known = [Name || #{name := Name} <- Records],
    Missing = [E || #{class := Class, kind := patch} = E <- Extensions,
                    not lists:member(Class, Known), not exists(Class)],
    case Missing of
        [#{class := Class, selector := Sel} | _] ->
            {error, beamtalk_error:new(class_not_found, Class, Sel, undefined, nil, #{})};
        [] -> Ordered
    end.

%% Register a class that has no module of its own shape (built classes).
-spec register_record(map()) -> ok | {error, term()}.
register_record(Record) ->
    locked(fun() ->
        case ordered([Record]) of
            {error, _} = Error -> Error;
            [Checked] ->
                store(Checked),
                recompute([maps:get(name, Checked)]),
                beamtalk_class_state:initialize([maps:get(name, Checked)]),
                ok
        end
    end).

%% The texts of methods stay in the module; a record is read often and copied each time.
-spec without_texts(map()) -> map().
without_texts(#{method_info := Methods, class_method_info := ClassMethods} = Meta) ->
    Light = fun(Infos) -> maps:map(fun(_, I) -> maps:without([doc, source, sites], I) end, Infos) end,
    Meta#{method_info := Light(Methods), class_method_info := Light(ClassMethods)}.

%% Has the module the function? Of one that is not loaded, its summary tells.
has(_, Function, Arity, #{has := Functions}) -> lists:member({Function, Arity}, Functions);
has(Code, Function, Arity, _) -> erlang:function_exported(Code, Function, Arity).

new_record(Code, Meta) ->
    #{class := Name, superclass := Super, method_info := Methods, class_method_info := ClassMethods} =
        without_texts(Meta),
    Built = maps:with([built], Meta),
    {Patches, Removed} = live_changes(Meta, Code),
    Built#{name => Name,
      superclass => Super,
      module => maps:get(module, Meta, Code),
      code => Code,
      kind => maps:get(kind, Meta, object),
      package => maps:get(package, Meta, nil),
      modifiers => maps:get(modifiers, Meta, []),
      native => maps:get(native, Meta, nil),
      source_file => maps:get(source_file, Meta, nil),
      line => maps:get(line, Meta, nil),
      doc => maps:get(doc, Meta, nil),
      loaded_at => erlang:system_time(second),
      slots => maps:get(slots, Meta, []),
      class_slots => maps:get(class_slots, Meta, []),
      method_info => Methods,
      class_method_info => ClassMethods,
      has_defaults => has(Code, '__defaults', 1, Meta),
      has_initial => has(Code, '__initial', 0, Meta),
      has_class_defaults => has(Code, '__class_defaults', 0, Meta),
      patches => Patches, removed => Removed, docs => #{}}.

%% Live changes that survive. A class compiled again because one method was
%% replaced has the text of all its methods in it and keeps the changes of what
%% is not in that text; a new definition keeps none. What is generated in the
%% place of a method that was removed is there.
live_changes(#{class := Name} = Meta, Code) ->
    case has(Code, '__beamtalk_replaced', 0, Meta) andalso record(Name) of
        #{patches := Patches, removed := Removed} ->
            {maps:filter(fun(Method, _) -> not is_in_text(Method, Meta) end, Patches),
             [{Side, Sel} || {Side, Sel} <- Removed, not is_map_key(Sel, infos(Side, Meta))]};
        _ -> {#{}, []}
    end.

is_in_text({Side, Sel}, Meta) ->
    case infos(Side, Meta) of
        #{Sel := Info} -> not maps:get(generated, Info, false);
        _ -> false
    end.

%% Of the methods that the body of a class has.
infos(instance, #{method_info := Methods}) -> Methods;
infos(class, #{class_method_info := Methods}) -> Methods.

store(#{name := Name, code := Code} = Record) ->
    [ets:delete(beamtalk_modules, Old)
     || #{code := Old} <- [record(Name)], Old =/= Code],
    ets:insert(beamtalk_classes, {Name, Record}),
    ets:insert(beamtalk_modules, {Code, Name}),
    ok.

%% The modules of the patches of a class.
patch_code(#{patches := Patches}) ->
    [Code || {Code, _, _} <- maps:values(Patches)];
patch_code(none) -> [].

%% Superclasses before subclasses; refuses unknown or sealed superclasses,
%% cycles and the names of the library.
ordered(Records) ->
    Names = [Name || #{name := Name} <- Records],
    Problems = [P || Record <- Records, P <- problems(Record, Names)],
    case Problems of
        [Problem | _] -> {error, Problem};
        [] -> order(Records, [], [])
    end.

problems(#{name := Name, superclass := Super, package := Package, kind := Kind}, Names) ->
    [shadowing(Name) || is_library(Name), Package =/= <<"stdlib">>]
        ++ [incompatible(Name, Known, Kind) || #{kind := Known} <- [record(Name)], is_other_kind(Known, Kind)]
        ++ [beamtalk_error:new(class_not_found, Super, Name, undefined, nil, #{})
            || Super =/= nil, not lists:member(Super, Names), not exists(Super)].

%% An actor is a process and anything else is a value: what exists of one cannot become the other.
is_other_kind(Known, Kind) -> (Known =:= actor) =/= (Kind =:= actor).

incompatible(Name, Known, Kind) ->
    Text = [atom_to_binary(Name), " is of kind ", atom_to_binary(Known), " and cannot become one of kind ",
            atom_to_binary(Kind)],
    beamtalk_error:new(incompatible_reload, Name, nil, iolist_to_binary(Text),
                       <<"Remove the class first, or give the new one another name">>, #{}).

shadowing(Name) ->
    beamtalk_error:new(stdlib_shadowing, Name, nil, undefined, nil, #{}).

order([], [], Done) -> lists:reverse(Done);
order([], Waiting, Done) when length(Waiting) > 0 ->
    Names = [Name || #{name := Name} <- Waiting],
    {Ready, Blocked} = lists:partition(fun(#{superclass := S}) -> not lists:member(S, Names) end, Waiting),
    case Ready of
        [] -> {error, {superclass_cycle, Names}};
        _ -> order([], Blocked, lists:reverse(Ready) ++ Done)
    end;
order(Records, [], []) -> order([], Records, []).

%% The extensions of a file replace those it had before, under whatever name its
%% module was loaded then. The affected classes are answered. An entry of kind
%% `patch' replaces a method of the class body itself.
register_extensions(Home, Code, Extensions) ->
    Old = ets:match(beamtalk_extensions, {{'$1', '$2', '$3'}, '_', '_', #{home => Home}}),
    [ets:delete(beamtalk_extensions, {C, Side, Sel}) || [C, Side, Sel] <- Old],
    [register_extension(Home, Code, E) || E <- Extensions],
    lists:usort([C || [C, _, _] <- Old] ++ [C || #{class := C} <- Extensions]).

register_extension(_Home, Code, #{class := Class, side := Side, selector := Sel, kind := patch} = E) ->
    #{function := Function, info := Info} = E,
    #{patches := Patches, removed := Removed} = Record = record(Class),
    store(Record#{patches := Patches#{{Side, Sel} => {Code, Function, Info}},
                  removed := Removed -- [{Side, Sel}]});
register_extension(Home, Code, #{class := Class, side := Side, selector := Sel, function := F, info := Info}) ->
    %% A method that a session gave a class whose text has none gives way to the file's.
    case record(Class) of
        #{patches := Patches} = Record when is_map_key({Side, Sel}, Patches) ->
            is_in_text({Side, Sel}, Record) orelse
                store(Record#{patches := maps:remove({Side, Sel}, Patches)});
        _ -> ok
    end,
    ets:insert(beamtalk_extensions, {{Class, Side, Sel}, Code, F, Info#{home => Home}}).

%% Publish again the tables of the named classes and of all their descendants.
-spec recompute([name()]) -> ok.
recompute(Names) ->
    Roots = [N || N <- lists:usort(Names), exists(N)],
    Affected = with_descendants(Roots),
    ClassSide = case lists:member('Class', Affected) of
        true -> with_descendants(['ProtoObject' | Roots]);
        false -> Affected
    end,
    beamtalk_table:publish([record(N) || N <- Affected], [record(N) || N <- ClassSide]).

%% The classes and their descendants, superclasses first.
-spec with_descendants([name()]) -> [name()].
with_descendants(Roots) ->
    All = supers(),
    Children = lists:foldl(fun({Name, Super}, Acc) ->
                                   maps:update_with(Super, fun(L) -> [Name | L] end, [Name], Acc)
                           end, #{}, All),
    Supers = maps:from_list(All),
    Depth = fun(Name) -> depth(Name, Supers, 0) end,
    Reached = lists:usort(lists:append([reach(R, Children) || R <- Roots, is_map_key(R, Supers)])),
    [Name || {_, Name} <- lists:sort([{Depth(Name), Name} || Name <- Reached])].

%% Every class with its superclass; the records themselves are large and stay where they are.
supers() ->
    ets:select(beamtalk_classes, [{{'$1', #{superclass => '$2'}}, [], [{{'$1', '$2'}}]}]).

reach(Name, Children) ->
    [Name | lists:append([reach(C, Children) || C <- maps:get(Name, Children, [])])].

depth(Name, Supers, N) ->
    case Supers of
        #{Name := Super} when Super =/= nil -> depth(Super, Supers, N + 1);
        _ -> N
    end.

%%% Lookup

-spec named(name()) -> term().
named(Name) ->
    case persistent_term:get(Name, []) of
        {#{'$info' := #{object := Object}}, _} -> Object;
        _ ->
            %% `Transcript' and kin look like classes.
            case beamtalk_workspace:global(Name) of
                {ok, Value} -> Value;
                none -> beamtalk_error:raise(class_not_found, Name, nil)
            end
    end.

-spec find(name()) -> {ok, tuple()} | none.
find(Name) ->
    case beamtalk_dispatch:info(Name) of
        #{object := Object} -> {ok, Object};
        none -> none
    end.

-spec class_object(name()) -> tuple() | nil.
class_object(nil) -> nil;
class_object(Name) -> named(Name).

-spec exists(name()) -> boolean().
exists(Name) -> ets:member(beamtalk_classes, Name).

-spec record(name()) -> map() | none.
record(Name) ->
    case ets:lookup(beamtalk_classes, Name) of
        [{_, Record}] -> Record;
        [] -> none
    end.

%% Full metadata as the module has it, documentation and sources included.
-spec meta(name()) -> map().
meta(Name) ->
    case record(Name) of
        none -> beamtalk_error:raise(class_not_found, Name, nil);
        Record -> meta_of(Record)
    end.

-spec meta_of(map()) -> map().
meta_of(#{meta := Meta}) -> Meta;
meta_of(#{code := Code}) -> Code:'__beamtalk_meta'().

-spec all() -> [name()].
all() ->
    lists:sort(ets:select(beamtalk_classes, [{{'$1', '_'}, [], ['$1']}])).

%% Those that belong to a package, or those that do not, without a copy of what is known of the others.
-spec all('=:=' | '=/=', binary()) -> [name()].
all(Is, Package) ->
    lists:sort(ets:select(beamtalk_classes, [{{'$1', #{package => '$2'}}, [{Is, '$2', Package}], ['$1']}])).

%% The class a loaded module defines.
-spec of_module(module()) -> {ok, name()} | none.
of_module(Module) ->
    try ets:lookup(beamtalk_modules, Module) of
        [{_, Name}] -> {ok, Name};
        [] -> none
    catch error:badarg -> none
    end.

%% Is class `Name' the class `Ancestor' or below it? Both are tags as answered by
%% `beamtalk_dispatch:class_name/1', so the class side works too.
-spec inherits(name(), name()) -> boolean().
inherits(Name, Name) -> true;
inherits(Name, Ancestor) ->
    case beamtalk_dispatch:info(Name) of
        #{ancestors := Ancestors} -> lists:member(Ancestor, Ancestors);
        none -> false
    end.

-spec subclasses(name()) -> [name()].
subclasses(Name) ->
    lists:sort([C || {C, S} <- supers(), S =:= Name]).

%% Breadth first.
-spec all_subclasses(name()) -> [name()].
all_subclasses(Name) -> breadth(subclasses(Name)).

breadth([]) -> [];
breadth(Level) -> Level ++ breadth(lists:append([subclasses(C) || C <- Level])).

-spec is_library(name()) -> boolean().
is_library(Name) ->
    case record(Name) of
        #{package := <<"stdlib">>} -> true;
        _ -> false
    end.

%%% Change

%% Change a record in a way that its tables do not show.
-spec change(name(), fun((map()) -> map())) -> ok.
change(Name, Change) ->
    locked(fun() -> store(Change(record(Name))) end).

%% Remove what lookup finds on the class itself: its own method, else an extension. What is generated for the fields
%% belongs to them: it comes back when the method in its place goes, and does not go by itself.
-spec remove_method(name(), instance | class, atom()) -> ok | not_found | generated.
remove_method(Name, Side, Sel) ->
    locked(fun() ->
        #{patches := Patches, removed := Removed} = Record = record(Name),
        IsGenerated = is_generated(Side, Sel, Record),
        case {own(Record, Side), ets:member(beamtalk_extensions, {Name, Side, Sel})} of
            {#{Sel := _}, IsExtended} when IsGenerated, not is_map_key({Side, Sel}, Patches) ->
                case IsExtended of
                    true -> remove_extension(Name, Side, Sel);
                    false -> generated
                end;
            {#{Sel := _}, _} ->
                Left = case IsGenerated of
                    true -> Removed;
                    false -> [{Side, Sel} | Removed]
                end,
                store(Record#{patches := maps:remove({Side, Sel}, Patches), removed := Left}),
                recompute([Name]),
                [beamtalk_code:unload(Code) || #{{Side, Sel} := {Code, _, _}} <- [Patches]],
                ok;
            {_, true} -> remove_extension(Name, Side, Sel);
            _ -> not_found
        end
    end).

remove_extension(Name, Side, Sel) ->
    ets:delete(beamtalk_extensions, {Name, Side, Sel}),
    recompute([Name]).

is_generated(Side, Sel, Record) ->
    case infos(Side, Record) of
        #{Sel := #{generated := IsGenerated}} -> IsGenerated;
        _ -> false
    end.

%% Why what is generated stays.
-spec not_removed(name(), atom()) -> binary().
not_removed(Name, Sel) ->
    iolist_to_binary([atom_to_binary(Name), ">>", atom_to_binary(Sel),
                      " is generated and cannot be removed: take its field out, or define a method of that name"]).

%% What the body of the class has, generated or written, is there again in the place of what was changed or removed; what it
%% does not have goes.
-spec restore_method(name(), instance | class, atom()) -> ok | not_found.
restore_method(Name, Side, Sel) ->
    locked(fun() ->
        #{patches := Patches, removed := Removed} = Record = record(Name),
        case is_map_key(Sel, infos(Side, Record)) of
            true ->
                store(Record#{patches := maps:remove({Side, Sel}, Patches), removed := Removed -- [{Side, Sel}]}),
                recompute([Name]),
                [beamtalk_code:unload(Code) || #{{Side, Sel} := {Code, _, _}} <- [Patches]],
                ok;
            false -> remove_method(Name, Side, Sel)
        end
    end).

own(Record, instance) -> beamtalk_table:instance_methods(Record);
own(Record, class) -> beamtalk_table:class_methods(Record).

%% Would removing the method find something?
-spec has_own(name(), instance | class, atom()) -> boolean().
has_own(Name, Side, Sel) ->
    is_map_key(Sel, own(record(Name), Side)) orelse ets:member(beamtalk_extensions, {Name, Side, Sel}).

%% Forget a class and its code. The caller has stopped its actors. Other classes keep the methods that stand beside it in
%% its file, and the code of those stays.
-spec remove_class(name()) -> ok.
remove_class(Name) ->
    locked(fun() ->
        #{code := Code} = Record = record(Name),
        ets:delete(beamtalk_classes, Name),
        ets:delete(beamtalk_modules, Code),
        %% Its own methods go; those that other files add to it wait for the class to come back.
        {_, _, _, {Home, _}} = unit(Code),
        ets:match_delete(beamtalk_extensions, {{Name, '_', '_'}, '_', '_', #{home => Home}}),
        beamtalk_protocol:forget(Name),
        beamtalk_class_state:forget(Name),
        beamtalk_table:retract(Name),
        Own = case ets:match(beamtalk_extensions, {'$1', Code, '_', '_'}, 1) of
            '$end_of_table' -> [Code];
            _ -> []
        end,
        [beamtalk_code:unload(Old) || Old <- Own ++ patch_code(Record)],
        beamtalk_announcer:system_event('ClassRemoved', #{className => Name}),
        beamtalk_bridge_events:class_removed(Name, maps:get(source_file, Record, nil))
    end).

%% Run a change under the registry's lock; nested calls pass through.
-spec locked(fun(() -> Result)) -> Result when Result :: term().
locked(Change) ->
    case beamtalk_registry:holder(registry) =:= self() of
        true -> Change();
        false ->
            case beamtalk_registry:acquire(registry, 60000) of
                ok ->
                    try Change()
                    after beamtalk_registry:release(registry)
                    end;
                _ ->
                    {error, registry_busy}
            end
    end.

%%% Boot image

-spec boot(file:filename_all()) -> ok | {error, term()}.
boot(File) -> beamtalk_image:boot(File).

-spec write_image(file:filename_all(), file:filename_all()) -> ok | {error, term()}.
write_image(Ebin, File) -> beamtalk_image:write(Ebin, File).

%% Put back records read from an image.
-spec reconstitute([map()]) -> ok.
reconstitute(Records) ->
    ets:insert(beamtalk_classes, [{Name, R} || #{name := Name} = R <- Records]),
    ets:insert(beamtalk_modules, [{Code, Name} || #{name := Name, code := Code} <- Records]),
    ok.
