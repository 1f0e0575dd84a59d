%% What SystemNavigation cannot ask the classes themselves: the list of all
%% classes, and which package an extension comes from.
-module(beamtalk_system_navigation).

-export([navigation/1, allClasses/1, extensions/0, 'extendersOf:'/2, 'extensionsBy:'/2,
         'classesInPackage:'/2, 'isPrimitiveMethod:in:'/3, sites/1]).

-define(CLASS, 'SystemNavigation').

-spec navigation(term()) -> map().
navigation(_Class) ->
    #{'$beamtalk_class' => ?CLASS}.

-spec allClasses(map()) -> [tuple()].
allClasses(_Self) ->
    [beamtalk_class:named(Name) || Name <- lists:sort(beamtalk_class:all())].

-spec 'classesInPackage:'(map(), term()) -> [tuple()].
'classesInPackage:'(_Self, Package) when is_binary(Package); is_atom(Package) ->
    Name = beamtalk_display:display(Package),
    case beamtalk_package:find(Name) of
        nil ->
            beamtalk_error:raise(package_not_found, ?CLASS, 'classesInPackage:',
                                 <<"No package named '", Name/binary, "' is loaded">>);
        #{classes := Classes} ->
            [beamtalk_class:named(Class) || Class <- Classes]
    end;
'classesInPackage:'(_, _) ->
    beamtalk_argument:fail(?CLASS, 'classesInPackage:', <<"Expected the name of a package">>).

-spec 'isPrimitiveMethod:in:'(map(), term(), term()) -> boolean().
'isPrimitiveMethod:in:'(_Self, Selector, Behaviour) ->
    (is_atom(Selector) andalso beamtalk_reflect:is_behaviour(Behaviour)) orelse
        beamtalk_error:raise(user_error, ?CLASS, 'isPrimitiveMethod:in:', <<"wrong class of argument">>, nil, #{}),
    case beamtalk_reflect:definer(Behaviour, Selector) of
        nil -> false;
        Definer -> maps:get(primitive, beamtalk_reflect:method_info(Definer, Selector), false)
    end.

-spec 'extendersOf:'(map(), term()) -> [map()].
'extendersOf:'(_Self, {beamtalk_object, _, _, Class}) ->
    Names = lists:usort([Package || {Class2, _, _, Package} <- extensions(), Class2 =:= Class,
                                    Package =/= nil]),
    [Package || Name <- Names, Package <- [beamtalk_package:find(Name)], Package =/= nil].

-spec 'extensionsBy:'(map(), map()) -> [map()].
'extensionsBy:'(_Self, #{name := Name}) ->
    [#{class => side(Class, Side), selector => Selector}
     || {Class, Side, Selector, Package} <- lists:sort(extensions()), Package =:= Name].

%% What every loaded method mentions, as the compiler noted it: `#class #selector #kind #name #line', and for a call of
%% Erlang `#module #name #arity'. Nothing outside a workspace, unless the application variable `navigation' says so.
-spec sites(map()) -> [map()].
sites(_Self) ->
    case beamtalk_workspace:is_live() orelse application:get_env(beamtalk, navigation, false) of
        true ->
            [site(Site, #{class => side(Class, Side), selector => Selector})
             || {Class, Side, Selector, #{sites := Sites}} <- methods(), Site <- Sites];
        false ->
            []
    end.

site({erlang, Module, Function, Arity, Line}, Base) ->
    Base#{kind => erlang, module => Module, name => Function, arity => Arity, line => Line};
site({Kind, Name, Line}, Base) ->
    Base#{kind => Kind, name => Name, line => Line}.

%% Class, side, selector and full description of every method: class bodies, live changes, extensions.
methods() ->
    lists:append([of_class(Name) || Name <- beamtalk_class:all()])
        ++ [{Class, Side, Selector, Info}
            || {{Class, Side, Selector}, _, _, Info} <- lists:sort(ets:tab2list(beamtalk_extensions))].

of_class(Name) ->
    #{patches := Patches, removed := Removed} = beamtalk_class:record(Name),
    #{method_info := Methods, class_method_info := ClassMethods} = beamtalk_class:meta(Name),
    Own = maps:from_list([{{Side, Selector}, Info}
                          || {Side, Infos} <- [{instance, Methods}, {class, ClassMethods}],
                             {Selector, Info} <- maps:to_list(Infos)]),
    Live = maps:map(fun(_, {_, _, Info}) -> Info end, Patches),
    [{Name, Side, Selector, Info}
     || {{Side, Selector}, Info} <- lists:sort(maps:to_list(maps:without(Removed, maps:merge(Own, Live))))].

side(Class, instance) -> beamtalk_class:named(Class);
side(Class, class) -> beamtalk_dispatch:class_of(beamtalk_class:named(Class)).

%% Class, side, selector and package of every extension.
-spec extensions() -> [{atom(), instance | class, atom(), binary() | nil}].
extensions() ->
    [{Class, Side, Selector, package(Module)}
     || {{Class, Side, Selector}, Module, _, _} <- ets:tab2list(beamtalk_extensions)].

package(Module) ->
    case binary:split(atom_to_binary(Module), <<"@">>, [global]) of
        [<<"bt">>, Package, _ | _] -> Package;
        _ -> nil
    end.
