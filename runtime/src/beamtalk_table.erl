%% Computes the method table and the run-time facts of a class from its record,
%% its extensions and the table of its superclass.
-module(beamtalk_table).

-export([publish/2, put/3, own_selectors/1, instance_methods/1, class_methods/1, retract/1, function_name/1]).

%% A map of so many entries is searched from one end, which is faster than by hash.
-define(SMALL, 32).

-type class_record() :: map().

-define(JOINED, #{'List' => ?CHAINED, 'Array' => ?CHAINED, 'Interval' => ?CHAINED, 'Integer' => ['to:', 'to:by:']}).
-define(CHAINED, ['select:', 'reject:', 'collect:', 'inject:into:', 'count:', size, sum]).

%% Compute and publish the tables of the classes given in order, superclasses
%% first. `lookup' finds the record of a class.
-spec publish([class_record()], [class_record()]) -> ok.
publish(InstanceSide, ClassSide) ->
    [publish_instance_side(Record) || Record <- InstanceSide],
    [publish_class_side(Record) || Record <- ClassSide],
    Changed = [Name || #{name := Name} <- InstanceSide],
    [publish_text() || lists:member('String', Changed) orelse lists:member('Binary', Changed)],
    [publish_plain() || lists:member('String', Changed) orelse lists:member('Integer', Changed)],
    [publish_joined() || lists:any(fun(Class) -> is_map_key(Class, ?JOINED) end, Changed)],
    ok.

publish_plain() ->
    put_term('$bt_plain', is_plain('Integer', displayString, bt@stdlib@object)
                          andalso is_plain('Integer', printString, bt@stdlib@integer)
                          andalso is_plain('String', displayString, bt@stdlib@string)).

%% Do the messages of chains do what the library says? Only then may beamtalk_chain run them in one loop.
publish_joined() ->
    put_term('$bt_joined', lists:all(fun({Class, Selectors}) ->
                                             lists:all(fun(Selector) -> is_of_library(Class, Selector) end, Selectors)
                                     end, maps:to_list(?JOINED))).

is_of_library(Class, Selector) ->
    lists:any(fun(Module) -> is_plain(Class, Selector, Module) end,
              [bt@stdlib@collection, bt@stdlib@list, bt@stdlib@array, bt@stdlib@interval, bt@stdlib@integer]).

%% Is the method still the library's? Where all are, beamtalk_display shows Integers and Strings without a send.
is_plain(Class, Selector, Module) ->
    case table(Class) of
        #{Selector := Method} -> erlang:fun_info(Method, module) =:= {module, Module};
        _ -> false
    end.

publish_instance_side(#{name := Name, superclass := Super} = Record) ->
    Inherited = table(Super),
    Own = instance_methods(Record),
    Extensions = extensions(Name, instance),
    Defined = maps:merge(Extensions, Own),
    Table = maps:merge(Inherited, Defined),
    put(Name, Table#{'$info' => info(Record, Defined, maps:get('$info', Inherited, #{}))}, maps:keys(Defined)).

publish_class_side(#{name := Name, superclass := Super} = Record) ->
    Inherited = case Super of
        nil -> table('Class');
        _ -> table(tag(Super))
    end,
    Defined = maps:merge(extensions(Name, class), class_methods(Record)),
    put(tag(Name), maps:remove('$info', maps:merge(Inherited, Defined)), maps:keys(Defined)).

%% String and Binary in one table, see beamtalk_dispatch.
publish_text() ->
    case {table('String'), table('Binary')} of
        {Text, Bytes} when map_size(Text) > 0, map_size(Bytes) > 0 ->
            Selectors = lists:usort(maps:keys(Text) ++ maps:keys(Bytes)) -- ['$info'],
            put_term('$bt_text', maps:from_list([{S, agree(S, Text, Bytes)} || S <- Selectors]));
        {Text, _} when map_size(Text) > 0 ->
            put_term('$bt_text', maps:remove('$info', Text));
        _ -> ok
    end.

agree(Selector, Text, Bytes) ->
    case {maps:get(Selector, Text, none), maps:get(Selector, Bytes, none)} of
        {Same, Same} -> Same;
        Both -> Both
    end.

%% Publish a table, before it those of its entries that the class defines itself, which are asked for most: see beamtalk_dispatch.
-spec put(atom(), beamtalk_dispatch:table(), [atom()]) -> ok.
put(Key, Table, Own) ->
    Near = case length(Own) < ?SMALL of
        true -> maps:with(['$info' | Own], Table);
        false -> maps:with(['$info'], Table)
    end,
    put_term(Key, {Near, Table}).

%% The selectors that `put/3' was given, or none where they are many.
-spec own_selectors(atom()) -> [atom()].
own_selectors(Key) ->
    {Near, _} = persistent_term:get(Key),
    maps:keys(Near) -- ['$info'].

put_term(Key, Value) ->
    case persistent_term:get(Key, []) of
        Value -> ok;
        _ -> persistent_term:put(Key, Value)
    end.

table(nil) -> #{};
table(Class) -> beamtalk_dispatch:table(Class).

tag(Class) ->
    binary_to_atom(<<(atom_to_binary(Class))/binary, " class">>).

-spec retract(atom()) -> ok.
retract(Class) ->
    persistent_term:erase(Class),
    persistent_term:erase(tag(Class)),
    ok.

extensions(Class, Side) ->
    Rows = ets:match(beamtalk_extensions, {{Class, Side, '$1'}, '$2', '$3', '$4'}),
    maps:from_list([{Sel, external(Module, Function, Info)} || [Sel, Module, Function, Info] <- Rows]).

external(Module, Function, #{arity := Arity}) ->
    erlang:make_fun(Module, Function, Arity + 1).

%% Methods of the class body with live replacements, without removed ones.
-spec instance_methods(class_record()) -> #{atom() => fun()}.
instance_methods(#{method_info := Infos, code := Code} = Record) ->
    patched(Record, instance,
            maps:map(fun(module_info, Info) -> external(Code, 'module_info:', Info);
                        (Sel, Info) -> external(Code, Sel, Info)
                     end, Infos)).

-spec class_methods(class_record()) -> #{atom() => fun()}.
class_methods(#{class_method_info := Infos, code := Code} = Record) ->
    patched(Record, class,
            maps:map(fun(_, #{function := {Module, Function}, arity := Arity}) ->
                             erlang:make_fun(Module, Function, Arity + 1);
                        (Sel, Info) ->
                             external(Code, function_name([<<"class ">>, atom_to_binary(Sel)]), Info)
                     end, Infos)).

patched(#{patches := Patches, removed := Removed}, Side, Methods) ->
    Added = maps:fold(fun({S, Sel}, {Module, Function, Info}, Acc) when S =:= Side ->
                              Acc#{Sel => external(Module, Function, Info)};
                         (_, _, Acc) -> Acc
                      end, Methods, Patches),
    maps:without([Sel || {S, Sel} <- Removed, S =:= Side], Added).

%% Name of a decorated function. Atoms have at most 255 bytes; a longer name is
%% replaced by its hash.
-spec function_name(iodata()) -> atom().
function_name(Text) ->
    case iolist_to_binary(Text) of
        Name when byte_size(Name) =< 255 -> binary_to_atom(Name);
        Name ->
            Hash = string:lowercase(integer_to_list(fnv1a(Name, 16#cbf29ce484222325), 16)),
            list_to_atom("kw_" ++ lists:duplicate(16 - length(Hash), $0) ++ Hash)
    end.

fnv1a(<<Byte, Rest/binary>>, Hash) ->
    fnv1a(Rest, ((Hash bxor Byte) * 16#100000001b3) band 16#ffffffffffffffff);
fnv1a(<<>>, Hash) -> Hash.

%% Facts of the class the runtime needs at full speed. Slot lists are in slot
%% order, ancestors first; a redeclared slot keeps its place.
info(#{name := Name, module := Module, superclass := Super} = Record, Defined, Inherited) ->
    #{slots := Slots, modifiers := Modifiers, code := Code} = Record,
    Inits = maps:get(inits, Inherited, []),
    Defaults = maps:get(defaults, Inherited, []),
    #{name => Name,
      module => Module,
      object => {beamtalk_object, tag(Name), Module, Name},
      superclass => Super,
      ancestors => case Super of
                       nil -> [];
                       _ -> [Super | maps:get(ancestors, Inherited, [])]
                   end,
      kind => maps:get(kind, Record),
      native => maps:get(native, Record),
      abstract => lists:member(abstract, Modifiers),
      built => maps:get(built, Record, maps:get(built, Inherited, false)),
      version => erlang:unique_integer([positive, monotonic]),
      fields => add_fields([S || #{name := S} <- Slots], maps:get(fields, Inherited, [])),
      defaults => case maps:get(has_defaults, Record) of
                      true -> Defaults ++ [Code];
                      false -> Defaults
                  end,
      initial => case {Defaults, maps:get(has_initial, Record)} of
                     {[], true} -> fun Code:'__initial'/0;
                     _ -> none
                 end,
      inits => case Defined of
                   #{initialize := F} when Name =/= 'Actor' -> Inits ++ [F];
                   _ -> Inits
               end,
      terminates => case Defined of
                        #{'terminate:' := Method} -> not is_of_root(Name, Code, Method);
                        _ -> maps:get(terminates, Inherited, false)
                    end,
      required => required(Name, Slots, maps:get(required, Inherited, []))}.

%% What the library's roots do at the end of an actor is nothing.
is_of_root(Class, Code, Method) ->
    lists:member(Class, ['ProtoObject', 'Object', 'Actor']) andalso erlang:fun_info(Method, module) =:= {module, Code}.

add_fields(Own, Inherited) ->
    Inherited ++ [F || F <- Own, not lists:member(F, Inherited)].

required(Class, Slots, Inherited) ->
    Own = [Slot || #{name := Slot} <- Slots],
    [R || {Slot, _, _} = R <- Inherited, not lists:member(Slot, Own)]
        ++ [{Slot, Class, Type} || #{name := Slot, type := Type, required := true} <- Slots].
