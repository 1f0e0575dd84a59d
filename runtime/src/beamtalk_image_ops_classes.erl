%% Requests about loaded classes, and navigation over their methods.
-module(beamtalk_image_ops_classes).

-export([info/1, modules/1, list_classes/1, methods/1, unload/1, nav_query/1, nav_symbols/1]).

-import(beamtalk_image_ops_fields, [fail/2, fail/4]).

-type fields() :: beamtalk_image_ops_fields:fields().

%%% What a name is

-spec info(fields()) -> map().
info(Fields) ->
    Symbol = beamtalk_image_ops_fields:text(Fields, <<"symbol">>),
    Info = case beamtalk_image_ops_fields:existing(Symbol) of
        {ok, Name} -> described(Name, beamtalk_class:record(Name));
        none -> #{found => false}
    end,
    #{info => Info#{symbol => Symbol}}.

described(Name, none) ->
    case implementors(Name) of
        [] -> #{found => false};
        Sites -> #{found => true, kind => selector, implementors => Sites}
    end;
described(Name, #{superclass := Super, source_file := File, package := Package} = Record) ->
    Class = beamtalk_class:named(Name),
    Names = fun(Slots) -> [Slot || #{name := Slot} <- maps:get(Slots, Record, [])] end,
    #{found => true, kind => kind(Name),
      superclass => Super,
      superclass_chain => [C || {_, _, _, C} <- beamtalk_reflect:ancestors(Class)],
      methods => beamtalk_reflect:own_selectors(Class),
      class_methods => beamtalk_reflect:own_selectors(beamtalk_reflect:metaclass(Name)),
      slots => Names(slots), class_slots => Names(class_slots), package => Package,
      source => File, line => maps:get(line, Record, nil), doc => beamtalk_reflect:class_doc(Class)}.

kind(Name) ->
    case ets:member(beamtalk_protocols, Name) of
        true -> protocol;
        false -> class
    end.

%%% Lists

%% What was loaded into the image beside the library.
-spec modules(fields()) -> map().
modules(_) ->
    Actors = lists:foldl(fun({_, Class, _, _}, Counts) ->
                                 maps:update_with(Class, fun(N) -> N + 1 end, 1, Counts)
                         end, #{}, beamtalk_actor_class:all()),
    #{modules => [#{name => Module, class => Class, source_file => File,
                    actor_count => maps:get(Class, Actors, 0), load_time => maps:get(loaded_at, Record, nil)}
                  || #{name := Class, module := Module, source_file := File} = Record <- records(user)]}.

%% Records of all classes, or of those that do not belong to the library, by name.
records(all) -> records(beamtalk_class:all());
records(user) -> records(beamtalk_class:all('=/=', <<"stdlib">>));
records(stdlib) -> records(beamtalk_class:all('=:=', <<"stdlib">>));
records(Names) -> [Record || Name <- Names, #{} = Record <- [beamtalk_class:record(Name)]].

-spec list_classes(fields()) -> map().
list_classes(Fields) ->
    Records = case beamtalk_image_ops_fields:text(Fields, <<"filter">>, none) of
        none -> records(all);
        <<"stdlib">> -> records(stdlib);
        <<"user">> -> records(user);
        Name ->
            Above = beamtalk_image_ops_fields:class_named(Name),
            records([Class || Class <- beamtalk_class:all(), Class =/= Above, beamtalk_class:inherits(Class, Above)])
    end,
    #{class_list => [#{name => Name, superclass => Super, doc => beamtalk_reflect:class_doc(beamtalk_class:named(Name)),
                       sealed => lists:member(sealed, Modifiers), abstract => lists:member(abstract, Modifiers)}
                     || #{name := Name, superclass := Super, modifiers := Modifiers} <- Records]}.

-spec methods(fields()) -> map().
methods(Fields) ->
    Class = beamtalk_image_ops_fields:class(Fields, <<"class">>),
    #{methods => own_methods(Class)}.

own_methods(Class) ->
    [#{selector => Selector, side => Side, line => line(Side, Class, Selector)}
     || {Side, Behaviour} <- sides(Class), Selector <- beamtalk_reflect:own_selectors(Behaviour)].

sides(Class) -> [{instance, beamtalk_class:named(Class)}, {class, beamtalk_reflect:metaclass(Class)}].

%% The line of a method the class itself defines; what was made without source has none.
line(Side, Class, Selector) ->
    #{patches := Patches, method_info := Methods, class_method_info := ClassMethods} = beamtalk_class:record(Class),
    Body = case Side of
        instance -> Methods;
        class -> ClassMethods
    end,
    case {Patches, Body} of
        {#{{Side, Selector} := {_, _, Info}}, _} -> maps:get(line, Info, nil);
        {_, #{Selector := Info}} -> maps:get(line, Info, nil);
        _ ->
            case ets:lookup(beamtalk_extensions, {Class, Side, Selector}) of
                [{_, _, _, Info}] -> maps:get(line, Info, nil);
                [] -> nil
            end
    end.

%%% Unloading

-spec unload(fields()) -> map().
unload(Fields) ->
    Class = beamtalk_image_ops_fields:class(Fields, <<"class">>),
    Force = beamtalk_image_ops_fields:boolean(Fields, <<"force">>, false),
    Name = atom_to_binary(Class),
    beamtalk_class:is_library(Class) andalso
        fail(invalid_parameter, [Name, " belongs to the standard library and cannot be unloaded"]),
    beamtalk_class:subclasses(Class) =:= [] orelse
        fail(invalid_parameter, [Name, " has subclasses; unload them first"]),
    Actors = beamtalk_actor_class:instances(Class),
    Actors =:= [] orelse Force orelse
        fail(actors_exist, [integer_to_list(length(Actors)), " actors of ", Name, " are alive"],
             <<"Stop them first, or unload with force">>, #{<<"count">> => length(Actors)}),
    lists:foreach(fun beamtalk_image_ops_actors:stop/1, Actors),
    beamtalk_class:remove_class(Class),
    #{}.

%%% Navigation

-spec nav_query(fields()) -> map().
nav_query(Fields) ->
    beamtalk_image_ops_fields:text(Fields, <<"kind">>),
    Sites = case beamtalk_image_ops_fields:choice(Fields, <<"kind">>, [senders, implementors, references], none) of
        references -> sites([class], beamtalk_image_ops_fields:class(Fields, <<"class">>));
        Kind ->
            case beamtalk_image_ops_fields:selector(Fields, <<"selector">>) of
                {ok, Selector} when Kind =:= implementors -> implementors(Selector);
                {ok, Selector} -> sites([send, self_send], Selector);
                {unknown, _} -> []
            end
    end,
    #{sites => Sites}.

implementors(Selector) ->
    [site(Class, Side, Selector, line(Side, Class, Selector))
     || Class <- beamtalk_class:all(), {Side, Behaviour} <- sides(Class),
        lists:member(Selector, beamtalk_reflect:own_selectors(Behaviour))].

%% What methods mention, as the compiler noted it; lines are counted from the start of the method.
sites(Kinds, Wanted) ->
    [site(Class, Side, Method, place(Info, Line))
     || Class <- beamtalk_class:all(), {Side, Behaviour} <- sides(Class),
        {Method, Info, _} <- beamtalk_reflect:own_methods(Behaviour),
        {Kind, Name, Line} <- maps:get(sites, Info, []), Name =:= Wanted, lists:member(Kind, Kinds)].

place(#{line := Start}, Line) when is_integer(Start) -> Start + Line - 1;
place(_, _) -> nil.

site(Class, Side, Method, Line) ->
    #{source_file := File} = beamtalk_class:record(Class),
    #{class => Class, class_side => Side =:= class, method => Method, line => Line, source_file => File}.

-spec nav_symbols(fields()) -> map().
nav_symbols(Fields) ->
    Scope = beamtalk_image_ops_fields:choice(Fields, <<"scope">>, [user, all], user),
    #{classes => [#{name => Name, source_file => File, line => maps:get(line, Record, nil),
                    methods => own_methods(Name)}
                  || #{name := Name, source_file := File} = Record <- records(Scope)]}.
