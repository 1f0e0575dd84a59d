%% Classes made at run time by a ClassBuilder.
%%
%% `register' turns the builder's configuration into a small module whose
%% functions call the blocks, which are kept in `persistent_term' under
%% `{beamtalk_built, Class}'. A block the compiler compiled like a method body comes as
%% `{'$bt_method', Fun, {Parameters, Body}}'; any other block is called as it stands.
-module(beamtalk_class_builder).

-export([register/1, builder_for/1]).
-export([instance_method/3, class_method/3, defaults/2, class_defaults/1, refuse_new/2]).
-export([variable/2, assign/3]).

%% `aClass classBuilder'
-spec builder_for({beamtalk_object, atom(), module(), atom()}) -> tuple().
builder_for(Class) ->
    beamtalk_actor_class:spawn_with(beamtalk_class:named('ClassBuilder'), #{superclassRef => Class}).

%% Make the class from the builder's state; runs inside the builder, which ends
%% after it.
-spec register(tuple()) -> tuple().
register(Self) ->
    Get = fun(Slot) -> beamtalk_actor:get_field(Slot) end,
    Name = required_name(Get(className)),
    Super = required_superclass(Get(superclassRef)),
    Spec = #{name => Name, superclass => Super, fields => dictionary('fields:', Get(fieldSpecs)),
             methods => dictionary('methods:', Get(methodSpecs)),
             class_methods => dictionary('classMethods:', Get(classMethodSpecs)),
             class_variables => dictionary('classVars:', Get(classVarSpecs)),
             metadata => Get(metadata)},
    check_blocks(Spec),
    Key = {beamtalk_built, Name},
    Before = persistent_term:get(Key, none),
    persistent_term:put(Key, maps:with([fields, methods, class_methods, class_variables], Spec)),
    case beamtalk_class:load_forms(forms(Spec)) of
        ok ->
            beamtalk_actor_class:stop(Self),
            beamtalk_class:named(Name);
        {error, Reason} ->
            Before =:= none orelse persistent_term:put(Key, Before),
            beamtalk_error:is_exception(Reason) andalso erlang:error(Reason),
            beamtalk_error:raise(runtime_error, Name, register, undefined,
                                 beamtalk_display:native(Reason), #{reason => Reason})
    end.

required_name(nil) -> missing(<<"name">>);
required_name(Name) when is_atom(Name) ->
    case beamtalk_class:is_library(Name) of
        true -> beamtalk_error:raise(stdlib_shadowing, Name, register);
        false -> Name
    end;
required_name(_) -> type_error(<<"A class name is a Symbol">>).

required_superclass(nil) -> missing(<<"superclass">>);
required_superclass({beamtalk_object, _, _, Name}) when is_atom(Name) -> required_superclass(Name);
required_superclass(Name) when is_atom(Name) ->
    case beamtalk_class:record(Name) of
        none -> beamtalk_error:raise(class_not_found, Name, register);
        #{modifiers := Modifiers} ->
            lists:member(sealed, Modifiers) andalso
                beamtalk_error:raise(instantiation_error, Name, register,
                    <<"Cannot subclass sealed class `", (atom_to_binary(Name))/binary, "`">>),
            Name
    end;
required_superclass(_) -> type_error(<<"A superclass is a class or its name">>).

dictionary(_, nil) -> #{};
dictionary(_, Map) when is_map(Map), not is_map_key('$beamtalk_class', Map) ->
    lists:all(fun is_atom/1, maps:keys(Map)) orelse type_error(<<"The keys must be Symbols">>),
    Map;
dictionary(Selector, _) ->
    beamtalk_error:type_error('ClassBuilder', Selector, <<"The argument must be a Dictionary">>).

-spec missing(binary()) -> no_return().
missing(What) ->
    beamtalk_error:raise(missing_parameter, 'ClassBuilder', register,
                         <<"Set the ", What/binary, " before register">>).

-spec type_error(binary()) -> no_return().
type_error(Hint) -> beamtalk_error:type_error('ClassBuilder', register, Hint).

check_blocks(#{methods := Methods, class_methods := ClassMethods}) ->
    [is_function(fun_of(B)) orelse type_error(<<"A method body is a block">>)
     || B <- maps:values(Methods) ++ maps:values(ClassMethods)],
    [beamtalk_block:arity(fun_of(Block)) =:= class_arity(Block, Selector) orelse
         beamtalk_error:raise(arity_mismatch, 'ClassBuilder', Selector,
             <<"The block of a class method takes the class, the class variables and the arguments">>)
     || {Selector, Block} <- maps:to_list(ClassMethods)],
    ok.

class_arity({'$bt_method', _, _}, Selector) -> arguments(Selector) + 1;
class_arity(_, Selector) -> arguments(Selector) + 2.

fun_of({'$bt_method', Fun, _}) -> Fun;
fun_of(Block) -> Block.

arguments(Selector) ->
    case atom_to_binary(Selector) of
        <<C, _/binary>> = Name when C >= $a, C =< $z; C >= $A, C =< $Z; C =:= $_ ->
            length(binary:matches(Name, <<":">>));
        _ -> 1
    end.

%%% The module

forms(#{name := Name, superclass := Super, methods := Methods, class_methods := ClassMethods,
        fields := Fields, class_variables := Variables} = Spec) ->
    #{kind := Kind} = beamtalk_dispatch:info(Super),
    Module = module_name(Name),
    Accessors = accessors(Kind, maps:keys(Fields), Methods),
    Constructors = constructors(Kind, Spec),
    Functions =
        [call(S, arguments(S) + 1, instance_method, [Name, S]) || S <- maps:keys(Methods)]
        ++ [call(decorated(S), arguments(S) + 1, class_method, [Name, S]) || S <- maps:keys(ClassMethods)]
        ++ [accessor(A) || A <- Accessors]
        ++ [constructor(C) || C <- Constructors]
        ++ [spread('__defaults', defaults, Name) || map_size(Fields) > 0]
        ++ [constant('__class_defaults', {call, 1, remote(?MODULE, class_defaults), [abstract(Name)]})
            || map_size(Variables) > 0]
        ++ [constant('__beamtalk_meta', abstract(meta(Spec, Kind, Module, Accessors, Constructors)))],
    [{attribute, 1, module, Module},
     {attribute, 1, export, [{F, A} || {function, _, F, A, _} <- Functions]} | Functions].

module_name(Name) ->
    Snake = re:replace(re:replace(atom_to_list(Name), "([A-Z]+)([A-Z][a-z])", "\\1_\\2", [global]),
                       "([a-z0-9])([A-Z])", "\\1_\\2", [global, {return, list}]),
    list_to_atom("bt@" ++ string:lowercase(Snake)).

decorated(Selector) -> beamtalk_table:function_name([<<"class ">>, atom_to_binary(Selector)]).

%% `Function(Self, A1, …) -> beamtalk_class_builder:Target(Class, Selector, [Self, A1, …])'.
call(Function, Arity, Target, [Name, Selector]) ->
    Variables = [{var, 1, list_to_atom("A" ++ integer_to_list(I))} || I <- lists:seq(1, Arity)],
    List = lists:foldr(fun(V, Tail) -> {cons, 1, V, Tail} end, {nil, 1}, Variables),
    {function, 1, Function, Arity,
     [{clause, 1, Variables, [],
       [{call, 1, remote(?MODULE, Target), [abstract(Name), abstract(Selector), List]}]}]}.

spread(Function, Target, Name) ->
    {function, 1, Function, 1,
     [{clause, 1, [{var, 1, 'Slots'}], [],
       [{call, 1, remote(?MODULE, Target), [abstract(Name), {var, 1, 'Slots'}]}]}]}.

constant(Function, Body) ->
    {function, 1, Function, 0, [{clause, 1, [], [], [Body]}]}.

remote(Module, Function) -> {remote, 1, {atom, 1, Module}, {atom, 1, Function}}.

abstract(Term) -> erl_parse:abstract(Term).

%% A Value class has getters and `with…:' setters of its own fields.
accessors(value, Fields, Methods) ->
    [A || F <- Fields, {S, _, _} = A <- [{F, 0, F}, {setter(F), 1, F}], not is_map_key(S, Methods)];
accessors(_, _, _) -> [].

setter(Field) ->
    <<First, Rest/binary>> = atom_to_binary(Field),
    binary_to_atom(<<"with", (string:to_upper(First)), Rest/binary, ":">>).

accessor({Selector, 0, Field}) ->
    {function, 1, Selector, 1,
     [{clause, 1, [{var, 1, 'Self'}], [],
       [{call, 1, remote(beamtalk_object, 'fieldAt:'), [{var, 1, 'Self'}, abstract(Field)]}]}]};
accessor({Selector, 1, Field}) ->
    {function, 1, Selector, 2,
     [{clause, 1, [{var, 1, 'Self'}, {var, 1, 'Value'}], [],
       [{call, 1, remote(beamtalk_value, with), [{var, 1, 'Self'}, abstract(Field), {var, 1, 'Value'}]}]}]}.

%% Built classes answer `new' whatever their kind, unless told otherwise.
constructors(actor, _) -> [];
constructors(_, #{metadata := #{isConstructible := false}, name := Name}) ->
    [{new, 0, {?MODULE, refuse_new, [abstract(Name), abstract(new)]}},
     {'new:', 1, {?MODULE, refuse_new, [abstract(Name), abstract('new:')]}}];
constructors(object, #{class_methods := Own}) ->
    Class = {var, 1, 'Self'},
    [C || {S, _, _} = C <- [{new, 0, {beamtalk_value, 'class new', [Class]}},
                            {'new:', 1, {beamtalk_value, 'class new:', [Class, {var, 1, 'Slots'}]}}],
          not is_map_key(S, Own)];
constructors(value, _) -> [].

constructor({Selector, Arguments, {Module, Function, Args}}) ->
    Variables = [{var, 1, 'Self'} | [{var, 1, 'Slots'} || Arguments =:= 1]],
    {function, 1, decorated(Selector), Arguments + 1,
     [{clause, 1, Variables, [], [{call, 1, remote(Module, Function), Args}]}]}.

meta(#{name := Name, superclass := Super, fields := Fields, class_variables := Variables,
       methods := Methods, class_methods := ClassMethods, metadata := Extra0},
     Kind, Module, Accessors, Constructors) ->
    Extra = if is_map(Extra0) -> Extra0; true -> #{} end,
    Slots = fun(Map) -> [#{name => S, type => nil, has_default => true, default => nil,
                           required => false, doc => nil} || S <- maps:keys(Map)] end,
    #{class => Name, superclass => Super, kind => Kind, module => Module, package => nil,
      modifiers => maps:get(modifiers, Extra, []), visibility => public,
      native => maps:get(native, Extra, nil), handle_scope => nil, doc => maps:get(classDoc, Extra, nil),
      source_file => nil, line => 1, type_parameters => [],
      slots => Slots(Fields), class_slots => Slots(Variables),
      method_info =>
          maps:merge(maps:map(fun(S, B) -> info(S, B, Extra, methodSource, methodDocs, methodReturnTypes) end, Methods),
                     maps:from_list([{S, generated(N)} || {S, N, _} <- Accessors])),
      class_method_info =>
          maps:merge(maps:from_list([{S, generated(N)} || {S, N, _} <- Constructors]),
                     maps:map(fun(S, B) -> info(S, B, Extra, classMethodSource, classMethodDocs,
                                                classMethodReturnTypes) end, ClassMethods)),
      locked => [], version => 1, built => true}.

info(Selector, Block, Extra, Sources, Docs, Types) ->
    Source = case {maps:get(Selector, maps:get(Sources, Extra, #{}), nil), Block} of
        {nil, {'$bt_method', _, {Parameters, Body}}} ->
            iolist_to_binary([head(atom_to_binary(Selector), Parameters), " => ", Body]);
        {Given, _} -> Given
    end,
    Type = case maps:get(Selector, maps:get(Types, Extra, #{}), nil) of
        nil -> nil;
        Name -> beamtalk_display:native_display(Name)
    end,
    (generated(arguments(Selector)))#{source => Source, return_type => Type, generated => false,
                                      doc => maps:get(Selector, maps:get(Docs, Extra, #{}), nil)}.

%% `at: k put: v', `+ other' or `size'.
head(Selector, Parameters) ->
    Parts = case binary:last(Selector) of
        $: -> [[Part, ":"] || Part <- binary:split(Selector, <<":">>, [global, trim])];
        _ -> [Selector]
    end,
    case length(Parts) =:= length(Parameters) of
        true -> lists:join(" ", lists:zipwith(fun(Part, Name) -> [Part, " ", Name] end, Parts, Parameters));
        false -> Selector
    end.

generated(Arguments) ->
    #{arity => Arguments, visibility => public, sealed => false, doc => nil, line => 1,
      source => nil, parameters => [], return_type => nil, generated => true}.

%%% Called by built modules

-spec instance_method(atom(), atom(), [term()]) -> term().
instance_method(Class, Selector, Args) ->
    #{methods := #{Selector := Block}} = persistent_term:get({beamtalk_built, Class}),
    apply(fun_of(Block), Args).

-spec class_method(atom(), atom(), [term()]) -> term().
class_method(Class, Selector, [Self | Args]) ->
    #{class_methods := #{Selector := Block}} = persistent_term:get({beamtalk_built, Class}),
    case Block of
        {'$bt_method', Fun, _} -> apply(Fun, [Self | Args]);
        _ -> apply(Block, [Self, beamtalk_class_state:variables(element(4, Self)) | Args])
    end.

%% `self.name' in a class method of a built class. Which variables there are shows only when it runs.
-spec variable({beamtalk_object, atom(), module(), atom()}, atom()) -> term().
variable({_, _, _, Class} = Self, Variable) ->
    check_variable(Class, Variable),
    beamtalk_class_state:get(Self, Variable).

%% `self.name := value' there.
-spec assign({beamtalk_object, atom(), module(), atom()}, atom(), Value) -> Value when Value :: term().
assign({_, _, _, Class} = Self, Variable, Value) ->
    check_variable(Class, Variable),
    beamtalk_class_state:put(Self, Variable, Value).

check_variable(Class, Variable) ->
    Declared = beamtalk_class_state:variables(Class),
    is_map_key(Variable, Declared) orelse
        beamtalk_error:raise(unknown_field, Class, nil,
                             <<"Unknown class variable '", (atom_to_binary(Variable))/binary, "' of ",
                               (atom_to_binary(Class))/binary>>,
                             iolist_to_binary(["Declared class variables: "
                                               | lists:join(", ", lists:sort([atom_to_binary(Name) || Name <- maps:keys(Declared)]))]),
                             #{}).

-spec defaults(atom(), map()) -> map().
defaults(Class, Slots) ->
    #{fields := Fields} = persistent_term:get({beamtalk_built, Class}),
    maps:merge(Slots, Fields).

-spec class_defaults(atom()) -> map().
class_defaults(Class) ->
    #{class_variables := Variables} = persistent_term:get({beamtalk_built, Class}),
    Variables.

-spec refuse_new(atom(), atom()) -> no_return().
refuse_new(Class, Selector) -> beamtalk_error:raise(instantiation_error, Class, Selector).
