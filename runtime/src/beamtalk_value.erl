%% Value instances: making them, and their fields by name.
-module(beamtalk_value).

-export(['class new'/1, 'class new:'/2, printString/1]).
-export([new/2, new_with/2, missing_field/2, with/3, defaults/1, defaults/2, default/2, check_fields/3, field_names/1,
         fields_in_order/1]).

-type class_object() :: {beamtalk_object, atom(), module(), atom()}.

-spec 'class new'(class_object()) -> map().
'class new'({_, _, _, Class}) ->
    check_constructible(Class, new),
    defaults(Class).

-spec 'class new:'(class_object(), term()) -> map().
'class new:'({_, _, _, Class}, Fields) ->
    check_constructible(Class, 'new:'),
    new(Class, Fields).

%% An instance with some fields given, the others at their defaults.
-spec new(atom(), term()) -> map().
new(Class, Fields) ->
    check_fields(Class, 'new:', Fields),
    maps:merge(defaults(Class), Fields).

%% A generated keyword constructor, sent to this class or a subclass.
-spec new_with(class_object(), map()) -> map().
new_with({_, _, _, Class}, Fields) ->
    check_constructible(Class, 'new:'),
    maps:merge(defaults(Class), Fields).

%% Every slot at its default, ancestors first.
-spec defaults(atom()) -> map().
defaults(Class) ->
    case beamtalk_dispatch:info(Class) of
        #{defaults := Modules} -> defaults(Class, Modules);
        none -> beamtalk_error:raise(class_not_found, Class, new)
    end.

%% The same from what is known of the class: the modules that declare slots.
-spec defaults(atom(), [module()]) -> map().
defaults(Class, Modules) -> add_defaults(Modules, #{'$beamtalk_class' => Class}).

add_defaults([Module | Modules], Slots) -> add_defaults(Modules, Module:'__defaults'(Slots));
add_defaults([], Slots) -> Slots.

%% The default of one slot; no other is evaluated.
-spec default(atom(), atom()) -> term().
default(Class, Field) ->
    case beamtalk_dispatch:info(Class) of
        #{defaults := Modules} -> nearest_default(lists:reverse(Modules), Field);
        none -> nil
    end.

nearest_default([], _) -> nil;
nearest_default([Module | Above], Field) ->
    #{slots := Slots} = Module:'__beamtalk_meta'(),
    case {lists:any(fun(#{name := Name}) -> Name =:= Field end, Slots), erlang:function_exported(Module, '__default', 1)} of
        {false, _} -> nearest_default(Above, Field);
        {true, true} -> Module:'__default'(Field);
        %% A built class keeps plain values.
        {true, false} -> maps:get(Field, Module:'__defaults'(#{}))
    end.

%% The argument of `new:' and `spawnWith:': a Dictionary of declared slots.
-spec check_fields(atom(), atom(), term()) -> ok.
check_fields(Class, Selector, Fields)
  when not is_map(Fields); is_map_key('$beamtalk_class', Fields) ->
    beamtalk_error:type_error(Class, Selector, <<"The argument must be a Dictionary of slots">>);
check_fields(Class, _, Fields) ->
    #{fields := Declared} = beamtalk_dispatch:info(Class),
    case [Key || Key <- maps:keys(Fields), not lists:member(Key, Declared)] of
        [] -> ok;
        [Unknown | _] ->
            Name = beamtalk_display:native_display(Unknown),
            Message = <<"Unknown field '", Name/binary, "' for ", (atom_to_binary(Class))/binary>>,
            Names = lists:join(<<", ">>, lists:sort([atom_to_binary(F) || F <- Declared])),
            beamtalk_error:raise(unknown_field, Class, nil, Message,
                                 iolist_to_binary([<<"Declared fields: ">> | Names]), #{})
    end.

check_constructible(Class, Selector) ->
    case beamtalk_dispatch:info(Class) of
        #{abstract := true} ->
            beamtalk_error:raise(instantiation_error, Class, Selector,
                <<"The class is abstract: instantiate a subclass">>);
        #{native := Native, fields := []} when Native =/= nil -> refuse(Class, Selector);
        #{built := true} -> ok;
        #{kind := value} ->
            case is_native_term(Class) of
                true -> refuse(Class, Selector);
                false -> ok
            end;
        _ -> refuse(Class, Selector)
    end.

refuse(Class, Selector) ->
    beamtalk_error:raise(instantiation_error, Class, Selector).

%% Library classes whose instances are not plain records.
is_native_term(Class) ->
    lists:member(Class, ['Integer', 'Float', 'Character', 'String', 'Binary', 'True', 'False',
                         'CompiledMethod', 'DateTime', 'Duration', 'Regex', 'Uuid']).

%% A field added to the class after this instance was made has its default.
-spec missing_field(map(), atom()) -> term().
missing_field(#{'$beamtalk_class' := Class}, Field) -> default(Class, Field).

%% A copy with one field replaced.
-spec with(map(), atom(), term()) -> map().
with(Self, Field, Value) -> Self#{Field => Value}.

%% Names of the fields of an instance, sorted.
-spec field_names(map()) -> [atom()].
field_names(Self) ->
    Names = [atom_to_binary(K) || K <- maps:keys(Self), is_atom(K), K =/= '$beamtalk_class'],
    [binary_to_existing_atom(N) || N <- lists:sort(Names), binary:match(N, <<"__">>) =/= {0, 2}].

%% The fields in the order of their declaration, then those that nobody declares any more.
-spec fields_in_order(map()) -> [atom()].
fields_in_order(#{'$beamtalk_class' := Class} = Self) ->
    Declared = case beamtalk_dispatch:info(Class) of
        #{fields := Fields} -> [Name || Name <- Fields, is_map_key(Name, Self)];
        _ -> []
    end,
    Declared ++ (field_names(Self) -- Declared).

-spec printString(map()) -> binary().
printString(Self) -> beamtalk_display:native(Self).
