%% Packages of the running image, by the classes that name them.
%%
%% Whoever loads a package registers its version and dependencies here; a
%% package nobody described has an unknown version.
-module(beamtalk_package).

-export([describe/1, 'class all'/1, 'class named:'/2, 'class classes:'/2, 'class dependencies:'/2,
         'class packageNameFor:'/2, find/1, root/1, project/0]).

%% `#{name, version, dependencies, source}', all binaries; `source' is the directory. `is_project' marks the package
%% that is worked on.
-spec describe(map()) -> ok.
describe(#{name := Name} = Description) ->
    Known = persistent_term:get('$bt_packages', #{}),
    persistent_term:put('$bt_packages', Known#{Name => Description}).

%% The directory of a package; empty when it is not known.
-spec root(binary() | nil) -> binary().
root(Name) ->
    case persistent_term:get('$bt_packages', #{}) of
        #{Name := #{source := Root}} -> Root;
        _ -> <<>>
    end.

%% The package that is worked on.
-spec project() -> binary() | none.
project() ->
    case [Name || {Name, #{is_project := true}} <- maps:to_list(persistent_term:get('$bt_packages', #{}))] of
        [Name | _] -> Name;
        [] -> none
    end.

-spec 'class all'(term()) -> [binary()].
'class all'(_) ->
    lists:usort([<<"stdlib">> | [P || {_, #{package := P}} <- ets:tab2list(beamtalk_classes), P =/= nil]]
                ++ maps:keys(persistent_term:get('$bt_packages', #{}))).

-spec 'class named:'(tuple(), term()) -> map().
'class named:'(Self, Name) when is_binary(Name) ->
    case find(Name) of
        nil ->
            beamtalk_error:raise(package_not_found, element(4, Self), 'named:',
                <<"No package named '", Name/binary, "' is loaded">>);
        Package -> Package
    end;
'class named:'(Self, _) ->
    beamtalk_error:type_error(element(4, Self), 'named:', <<"A package name is a String">>).

-spec find(binary() | nil) -> map() | nil.
find(nil) -> nil;
find(Name) ->
    case lists:member(Name, 'class all'(nil)) of
        false -> nil;
        true ->
            Description = description(Name),
            #{'$beamtalk_class' => 'Package', name => Name,
              version => maps:get(version, Description, nil),
              classes => classes(Name),
              dependencies => maps:get(dependencies, Description, []),
              source => maps:get(source, Description, nil)}
    end.

description(<<"stdlib">> = Name) ->
    maps:get(Name, persistent_term:get('$bt_packages', #{}), #{version => <<"0.1.0">>});
description(Name) ->
    maps:get(Name, persistent_term:get('$bt_packages', #{}), #{}).

classes(Name) ->
    lists:sort([C || {C, #{package := P}} <- ets:tab2list(beamtalk_classes), P =:= Name]).

-spec 'class classes:'(term(), term()) -> [atom()].
'class classes:'(_, Name) -> classes(beamtalk_argument:string(Name, 'Package', 'classes:')).

-spec 'class dependencies:'(term(), term()) -> [binary()].
'class dependencies:'(_, Name) ->
    maps:get(dependencies, description(beamtalk_argument:string(Name, 'Package', 'dependencies:')), []).

-spec 'class packageNameFor:'(term(), term()) -> binary() | nil.
'class packageNameFor:'(_, Class) ->
    case beamtalk_class:record(beamtalk_argument:symbol(Class, 'Package', 'packageNameFor:')) of
        #{package := Package} -> Package;
        none -> nil
    end.
