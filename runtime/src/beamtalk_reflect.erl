%% What classes can tell about themselves: chains, selectors, methods,
%% documentation. A *behaviour* here is a class object or a metaclass; sent to a
%% metaclass, questions are about the class side.
-module(beamtalk_reflect).

-export([target/1, superclass/1, ancestors/1, own_selectors/1, all_selectors/1, definer/2,
         method/2, method_info/2, own_methods/1, method_doc/2, class_doc/1, set_class_doc/2, set_method_doc/3, is_behaviour/1,
         metaclass/1]).

-type behaviour() :: {beamtalk_object, atom(), module(), atom()}.
-type side() :: instance | class.

-spec is_behaviour(term()) -> boolean().
is_behaviour({beamtalk_object, _, _, Name}) -> is_atom(Name);
is_behaviour(_) -> false.

%% Side and class name a behaviour speaks for.
-spec target(behaviour()) -> {side(), atom()}.
target({_, 'Metaclass', _, Name}) -> {class, Name};
target({_, _, _, Name}) -> {instance, Name}.

-spec metaclass(atom()) -> behaviour().
metaclass(Name) -> beamtalk_dispatch:class_of(beamtalk_class:named(Name)).

-spec superclass(behaviour()) -> behaviour() | nil.
superclass(Behaviour) ->
    {Side, Name} = target(Behaviour),
    case {Side, record(Name)} of
        {instance, #{superclass := Super}} -> beamtalk_class:class_object(Super);
        {class, #{superclass := nil}} -> beamtalk_class:named('Class');
        {class, #{superclass := Super}} -> metaclass(Super)
    end.

record(Name) ->
    case beamtalk_class:record(Name) of
        none -> beamtalk_error:raise(class_not_found, Name, nil);
        Record -> Record
    end.

%% Nearest first, up to the root.
-spec ancestors(behaviour()) -> [behaviour()].
ancestors(Behaviour) ->
    case superclass(Behaviour) of
        nil -> [];
        Super -> [Super | ancestors(Super)]
    end.

%% Selectors the class itself defines, extensions included, sorted.
-spec own_selectors(behaviour()) -> [atom()].
own_selectors(Behaviour) ->
    {Side, Name} = target(Behaviour),
    Methods = case Side of
        instance -> beamtalk_table:instance_methods(record(Name));
        class -> beamtalk_table:class_methods(record(Name))
    end,
    Extensions = [S || [S] <- ets:match(beamtalk_extensions, {{Name, Side, '$1'}, '_', '_', '_'})],
    lists:usort(maps:keys(Methods) ++ Extensions).

%% Everything an instance (the class object) answers, sorted.
-spec all_selectors(behaviour()) -> [atom()].
all_selectors(Behaviour) ->
    Table = case target(Behaviour) of
        {instance, Name} -> beamtalk_dispatch:table(Name);
        {class, Name} -> beamtalk_dispatch:table(element(2, beamtalk_class:named(Name)))
    end,
    lists:sort(maps:keys(maps:remove('$info', Table))).

%% The first behaviour, walking up, that defines the selector.
-spec definer(behaviour(), atom()) -> behaviour() | nil.
definer(Behaviour, Selector) ->
    first([B || B <- [Behaviour | ancestors(Behaviour)], defines(B, Selector)]).

first([First | _]) -> First;
first([]) -> nil.

defines(Behaviour, Selector) ->
    {Side, Name} = target(Behaviour),
    ets:member(beamtalk_extensions, {Name, Side, Selector}) orelse
        case {Side, record(Name)} of
            {instance, Record} -> is_map_key(Selector, beamtalk_table:instance_methods(Record));
            {class, Record} -> is_map_key(Selector, beamtalk_table:class_methods(Record))
        end.

%% The CompiledMethod an instance would run, or nil.
-spec method(behaviour(), atom()) -> map() | nil.
method(Behaviour, Selector) ->
    case definer(Behaviour, Selector) of
        nil -> nil;
        Definer ->
            [{_, Info, Doc}] = methods(Definer, [Selector]),
            {_, Name} = target(Definer),
            #{'$beamtalk_class' => 'CompiledMethod',
              selector => Selector,
              source => source_from_head(Info),
              doc => Doc,
              argumentCount => maps:get(arity, Info, 0),
              '__owner' => Name}
    end.

%% What is kept begins with the modifiers; a CompiledMethod shows the text from the selector on.
source_from_head(#{primitive := true}) ->
    nil;
source_from_head(#{source := Source, head := Modifiers}) when is_binary(Source) ->
    binary:part(Source, Modifiers, byte_size(Source) - Modifiers);
source_from_head(Info) ->
    maps:get(source, Info, nil).

%% Full information about a method the behaviour itself defines: the live
%% replacement, the body's method or an extension.
-spec method_info(behaviour(), atom()) -> map().
method_info(Behaviour, Selector) ->
    [{_, Info, _}] = methods(Behaviour, [Selector]),
    Info.

%% The same of all its methods in their order, each with its documentation. What is known of a class is copied once, not for
%% each of them.
-spec own_methods(behaviour()) -> [{atom(), map(), binary() | nil}].
own_methods(Behaviour) ->
    methods(Behaviour, own_selectors(Behaviour)).

methods(Behaviour, Selectors) ->
    {Side, Name} = target(Behaviour),
    Record = record(Name),
    Known = case Side of
        instance -> method_info;
        class -> class_method_info
    end,
    Infos = maps:get(Known, beamtalk_class:meta_of(Record), #{}),
    [begin
         Info = method_info(Record, {Name, Side, Selector}, Infos),
         {Selector, Info, doc_of(Record, Side, Selector, Info)}
     end || Selector <- Selectors].

method_info(#{patches := Patches, removed := Removed}, {Name, Side, Selector}, Infos) ->
    case {Patches, Infos} of
        {#{{Side, Selector} := {_, _, Info}}, _} -> Info;
        {_, #{Selector := Info}} ->
            case lists:member({Side, Selector}, Removed) of
                false -> Info;
                true -> extension_info(Name, Side, Selector)
            end;
        _ -> extension_info(Name, Side, Selector)
    end.

extension_info(Name, Side, Selector) ->
    case ets:lookup(beamtalk_extensions, {Name, Side, Selector}) of
        [{_, _, _, Info}] -> Info;
        [] -> #{}
    end.

doc_of(#{docs := Docs}, Side, Selector, _) when is_map_key({Side, Selector}, Docs) -> map_get({Side, Selector}, Docs);
doc_of(_, _, _, Info) -> maps:get(doc, Info, nil).

%% Documentation of a method, `nil' when there is none or no such method.
-spec method_doc(behaviour(), atom()) -> binary() | nil.
method_doc(Behaviour, Selector) ->
    case definer(Behaviour, Selector) of
        nil -> nil;
        Definer ->
            [{_, _, Doc}] = methods(Definer, [Selector]),
            Doc
    end.

-spec class_doc(behaviour()) -> binary() | nil.
class_doc(Behaviour) ->
    {_, Name} = target(Behaviour),
    case record(Name) of
        #{docs := #{class := Doc}} -> Doc;
        #{doc := Doc} -> Doc;
        _ -> maps:get(doc, beamtalk_class:meta(Name), nil)
    end.

-spec set_class_doc(behaviour(), binary() | nil) -> ok.
set_class_doc(Behaviour, Doc) ->
    {_, Name} = target(Behaviour),
    set_doc(Name, class, Doc).

-spec set_method_doc(behaviour(), atom(), binary() | nil) -> ok.
set_method_doc(Behaviour, Selector, Doc) ->
    {Side, Name} = target(Behaviour),
    set_doc(Name, {Side, Selector}, Doc).

set_doc(Name, Key, Doc) ->
    beamtalk_class:change(Name, fun(#{docs := Docs} = Record) -> Record#{docs := Docs#{Key => Doc}} end).
