%% What SystemNavigation cannot ask the classes themselves: the list of all
%% classes, and which package an extension comes from.
-module(beamtalk_system_navigation).

-export([navigation/1, allClasses/1, extensions/0, 'extendersOf:'/2, 'extensionsBy:'/2,
         'classesInPackage:'/2]).

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

-spec 'extendersOf:'(map(), term()) -> [map()].
'extendersOf:'(_Self, {beamtalk_object, _, _, Class}) ->
    Names = lists:usort([Package || {Class2, _, _, Package} <- extensions(), Class2 =:= Class,
                                    Package =/= nil]),
    [Package || Name <- Names, Package <- [beamtalk_package:find(Name)], Package =/= nil].

-spec 'extensionsBy:'(map(), map()) -> [map()].
'extensionsBy:'(_Self, #{name := Name}) ->
    [#{class => side(Class, Side), selector => Selector}
     || {Class, Side, Selector, Package} <- lists:sort(extensions()), Package =:= Name].

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
