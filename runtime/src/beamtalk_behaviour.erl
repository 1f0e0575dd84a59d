%% Primitives of Behaviour, Class and Metaclass: the protocol of class objects.
-module(beamtalk_behaviour).

-export([name/1, '>>'/2, superclass/1, allSuperclasses/1, subclasses/1, allSubclasses/1,
         superclassChain/1, 'inheritsFrom:'/2, 'includesBehaviour:'/2]).
-export([methods/1, allMethods/1, 'canUnderstand:'/2, 'includesSelector:'/2,
         'whichClassIncludesSelector:'/2]).
-export([fieldNames/1, allFieldNames/1, classVarNames/1, allClassVarNames/1]).
-export([doc/1, 'doc:'/2, 'setDocForMethod:to:'/3, 'docForMethod:'/2]).
-export(['conformsTo:'/2, protocols/1, sourceFile/1]).
-export([reload/1, 'compile:source:'/3, 'tryCompile:source:'/3, 'precheckCompile:source:'/3]).
-export(['removeSelector:'/2, 'removeSelector:ifAbsent:'/3, removeFromSystem/1, stop_actor/1]).
-export([printString/1, metaclass/1, thisClass/1, classMethods/1, localClassMethods/1, packageName/1,
         isMeta/1]).

-type behaviour() :: {beamtalk_object, atom(), module(), atom()}.

-spec name(behaviour()) -> atom().
name({_, 'Metaclass', _, Name}) -> binary_to_atom(<<(atom_to_binary(Name))/binary, " class">>);
name({_, _, _, Name}) -> Name.

-spec printString(behaviour()) -> binary().
printString(Self) -> atom_to_binary(name(Self)).

-spec isMeta(behaviour()) -> boolean().
isMeta({_, Tag, _, _}) -> Tag =:= 'Metaclass'.

-spec metaclass(behaviour()) -> behaviour().
metaclass(Self) -> beamtalk_dispatch:class_of(Self).

-spec thisClass(behaviour()) -> behaviour().
thisClass({_, _, _, Name}) -> beamtalk_class:named(Name).

-spec '>>'(behaviour(), term()) -> map() | nil.
'>>'(Self, Selector) ->
    check_symbol(Self, '>>', Selector),
    beamtalk_reflect:method(Self, Selector).

%%% Chains

-spec superclass(behaviour()) -> behaviour() | nil.
superclass(Self) -> beamtalk_reflect:superclass(Self).

-spec allSuperclasses(behaviour()) -> [behaviour()].
allSuperclasses(Self) -> beamtalk_reflect:ancestors(Self).

-spec subclasses(behaviour()) -> [behaviour()].
subclasses(Self) -> related(Self, fun beamtalk_class:subclasses/1).

-spec allSubclasses(behaviour()) -> [behaviour()].
allSubclasses(Self) -> related(Self, fun beamtalk_class:all_subclasses/1).

related(Self, Find) ->
    {Side, Name} = beamtalk_reflect:target(Self),
    [case Side of
         instance -> beamtalk_class:named(C);
         class -> beamtalk_reflect:metaclass(C)
     end || C <- Find(Name)].

%% The receiver first, ending at Object (or `Object class').
-spec superclassChain(behaviour()) -> [behaviour()].
superclassChain(Self) ->
    {Side, _} = beamtalk_reflect:target(Self),
    [Self | [B || B <- beamtalk_reflect:ancestors(Self),
                  {S, Name} <- [beamtalk_reflect:target(B)], S =:= Side, Name =/= 'ProtoObject']].

-spec 'inheritsFrom:'(behaviour(), term()) -> boolean().
'inheritsFrom:'(Self, Other) ->
    check_behaviour(Self, 'inheritsFrom:', Other),
    lists:member(Other, beamtalk_reflect:ancestors(Self)).

-spec 'includesBehaviour:'(behaviour(), term()) -> boolean().
'includesBehaviour:'(Self, Other) ->
    check_behaviour(Self, 'includesBehaviour:', Other),
    Self =:= Other orelse lists:member(Other, beamtalk_reflect:ancestors(Self)).

%%% Selectors

-spec methods(behaviour()) -> [atom()].
methods(Self) -> beamtalk_reflect:own_selectors(Self).

-spec allMethods(behaviour()) -> [atom()].
allMethods(Self) -> beamtalk_reflect:all_selectors(Self).

-spec 'canUnderstand:'(behaviour(), term()) -> boolean().
'canUnderstand:'(Self, Selector) ->
    check_symbol(Self, 'canUnderstand:', Selector),
    case beamtalk_reflect:target(Self) of
        {instance, Name} -> beamtalk_dispatch:method(Name, Selector) =/= none;
        {class, Name} -> beamtalk_dispatch:responds_to(beamtalk_class:named(Name), Selector)
    end.

-spec 'includesSelector:'(behaviour(), term()) -> boolean().
'includesSelector:'(Self, Selector) ->
    check_symbol(Self, 'includesSelector:', Selector),
    lists:member(Selector, beamtalk_reflect:own_selectors(Self)).

-spec 'whichClassIncludesSelector:'(behaviour(), term()) -> behaviour() | nil.
'whichClassIncludesSelector:'(Self, Selector) ->
    check_symbol(Self, 'whichClassIncludesSelector:', Selector),
    beamtalk_reflect:definer(Self, Selector).

%% Class-side selectors, inherited ones included, without the protocol that
%% every class object has.
-spec classMethods(behaviour()) -> [atom()].
classMethods({_, _, _, Name}) ->
    Chain = [beamtalk_reflect:metaclass(Name) | beamtalk_reflect:ancestors(beamtalk_reflect:metaclass(Name))],
    lists:usort(lists:append([beamtalk_reflect:own_selectors(B)
                              || {_, 'Metaclass', _, _} = B <- Chain])).

-spec localClassMethods(behaviour()) -> [atom()].
localClassMethods({_, _, _, Name}) -> beamtalk_reflect:own_selectors(beamtalk_reflect:metaclass(Name)).

%%% Slots

-spec fieldNames(behaviour()) -> [atom()].
fieldNames(Self) -> slots(Self, slots).

-spec allFieldNames(behaviour()) -> [atom()].
allFieldNames(Self) ->
    case beamtalk_reflect:target(Self) of
        {instance, Name} ->
            #{fields := Fields} = beamtalk_dispatch:info(Name),
            Fields;
        {class, _} -> []
    end.

-spec classVarNames(behaviour()) -> [atom()].
classVarNames({_, _, _, Name}) -> [V || #{name := V} <- maps:get(class_slots, beamtalk_class:record(Name))].

-spec allClassVarNames(behaviour()) -> [atom()].
allClassVarNames({_, _, _, Name}) ->
    #{ancestors := Ancestors} = beamtalk_dispatch:info(Name),
    unique(lists:append([[V || #{name := V} <- maps:get(class_slots, beamtalk_class:record(C))]
                         || C <- lists:reverse([Name | Ancestors])])).

slots(Self, Key) ->
    case beamtalk_reflect:target(Self) of
        {instance, Name} -> [S || #{name := S} <- maps:get(Key, beamtalk_class:record(Name))];
        {class, _} -> []
    end.

unique([First | Rest]) -> [First | unique([R || R <- Rest, R =/= First])];
unique([]) -> [].

%%% Documentation

-spec doc(behaviour()) -> binary() | nil.
doc(Self) -> beamtalk_reflect:class_doc(Self).

-spec 'doc:'(behaviour(), term()) -> behaviour().
'doc:'(Self, Text) ->
    check_text(Self, 'doc:', Text),
    beamtalk_reflect:set_class_doc(Self, Text),
    Self.

-spec 'setDocForMethod:to:'(behaviour(), term(), term()) -> behaviour().
'setDocForMethod:to:'(Self, Selector, Text) ->
    check_symbol(Self, 'setDocForMethod:to:', Selector),
    check_text(Self, 'setDocForMethod:to:', Text),
    beamtalk_reflect:set_method_doc(Self, Selector, Text),
    Self.

-spec 'docForMethod:'(behaviour(), term()) -> binary() | nil.
'docForMethod:'(Self, Selector) ->
    check_symbol(Self, 'docForMethod:', Selector),
    beamtalk_reflect:method_doc(Self, Selector).

%%% Protocols and origin

-spec 'conformsTo:'(behaviour(), term()) -> boolean().
'conformsTo:'({_, _, _, Name} = Self, Protocol) ->
    check_symbol(Self, 'conformsTo:', Protocol),
    beamtalk_protocol:conforms(Name, Protocol).

-spec protocols(behaviour()) -> [atom()].
protocols({_, _, _, Name}) -> beamtalk_protocol:protocols_of(Name).

-spec sourceFile(behaviour()) -> binary() | nil.
sourceFile({_, _, _, Name}) ->
    case beamtalk_class:record(Name) of
        #{package := <<"stdlib">>} -> nil;
        #{source_file := File} -> File
    end.

-spec packageName(behaviour()) -> binary() | nil.
packageName({_, _, _, Name}) -> maps:get(package, beamtalk_class:record(Name)).

%%% Live change

-spec reload(behaviour()) -> behaviour().
reload({_, _, _, Name} = Self) ->
    case sourceFile(Self) of
        nil ->
            beamtalk_error:raise(no_source_file, Name, reload,
                <<(atom_to_binary(Name))/binary, " has no source file">>, nil, #{});
        File ->
            beamtalk_compiler_port:request(Name, reload, {reload, Name, File}),
            Self
    end.

-spec 'compile:source:'(behaviour(), term(), term()) -> behaviour().
'compile:source:'(Self, Selector, Source) ->
    compile(Self, 'compile:source:', durable, Selector, Source),
    Self.

-spec 'tryCompile:source:'(behaviour(), term(), term()) -> behaviour().
'tryCompile:source:'(Self, Selector, Source) ->
    compile(Self, 'tryCompile:source:', ephemeral, Selector, Source),
    Self.

-spec 'precheckCompile:source:'(behaviour(), term(), term()) -> map().
'precheckCompile:source:'(Self, Selector, Source) ->
    compile(Self, 'precheckCompile:source:', precheck, Selector, Source).

compile(Self, Operation, Mode, Selector, Source) ->
    check_symbol(Self, Operation, Selector),
    is_binary(Source) orelse
        beamtalk_error:type_error(name(Self), Operation, <<"The source must be a String">>),
    {Side, Name} = beamtalk_reflect:target(Self),
    beamtalk_compiler_port:request(Name, Operation, {compile, Mode, Name, Side, Selector, Source}).

-spec 'removeSelector:'(behaviour(), term()) -> behaviour().
'removeSelector:'(Self, Selector) ->
    'removeSelector:ifAbsent:'(Self, Selector, fun() ->
        beamtalk_error:raise(selector_not_found, name(Self), Selector,
            <<"Use includesSelector: or whichClassIncludesSelector: to check first, "
              "or removeSelector:ifAbsent: to supply a fallback.">>)
    end).

-spec 'removeSelector:ifAbsent:'(behaviour(), term(), term()) -> term().
'removeSelector:ifAbsent:'(Self, Selector, Absent) ->
    check_symbol(Self, 'removeSelector:ifAbsent:', Selector),
    {Side, Name} = beamtalk_reflect:target(Self),
    case remove_method(Name, Side, Selector) of
        ok -> Self;
        not_found -> beamtalk_block:call(Absent, []);
        generated ->
            beamtalk_error:raise(runtime_error, Name, Selector, beamtalk_class:not_removed(Name, Selector), nil, #{})
    end.

%% In a workspace every change goes through the daemon, which logs it.
remove_method(Name, Side, Selector) ->
    case beamtalk_workspace:is_live() of
        true ->
            case beamtalk_class:has_own(Name, Side, Selector) of
                true ->
                    _ = beamtalk_compiler_port:request(Name, 'removeSelector:', {remove, Name, Side, Selector}),
                    ok;
                false -> not_found
            end;
        false ->
            Removed = beamtalk_class:remove_method(Name, Side, Selector),
            Removed =:= ok andalso beamtalk_compiler_port:notify({removed, Name, Side, Selector}),
            Removed
    end.

-spec removeFromSystem(behaviour()) -> nil.
removeFromSystem({_, _, _, Name}) ->
    Refuse = fun(Why) ->
        beamtalk_error:raise(runtime_error, Name, removeFromSystem,
            <<(atom_to_binary(Name))/binary, " cannot be removed: ", Why/binary>>, nil, #{})
    end,
    beamtalk_class:is_library(Name) andalso Refuse(<<"it belongs to the standard library">>),
    beamtalk_class:subclasses(Name) =:= [] orelse Refuse(<<"it has subclasses">>),
    case beamtalk_workspace:is_live() of
        true -> beamtalk_compiler_port:request(Name, removeFromSystem, {remove_class, Name});
        false ->
            [stop_actor(Actor) || Actor <- beamtalk_actor_class:instances(Name)],
            beamtalk_class:remove_class(Name),
            beamtalk_compiler_port:notify({class_removed, Name})
    end,
    nil.

%% An actor that does not stop in time is killed.
-spec stop_actor(beamtalk_actor:handle()) -> term().
stop_actor(Actor) ->
    try beamtalk_actor_class:stop(Actor)
    catch error:#{error := _} -> beamtalk_actor_class:kill(Actor)
    end.

%%% Checks

check_symbol(_, _, Term) when is_atom(Term), Term =/= nil, not is_boolean(Term) -> ok;
check_symbol(Self, Selector, _) ->
    beamtalk_error:type_error(name(Self), Selector, <<"The argument must be a Symbol">>).

check_text(_, _, Term) when is_binary(Term); Term =:= nil -> ok;
check_text(Self, Selector, _) ->
    beamtalk_error:type_error(name(Self), Selector, <<"The text must be a String or nil">>).

check_behaviour(Self, Selector, Other) ->
    beamtalk_reflect:is_behaviour(Other) orelse
        beamtalk_error:type_error(name(Self), Selector, <<"The argument must be a class">>).
