%% Protocols: named lists of required selectors, each also a class object.
-module(beamtalk_protocol).

-export([register/1, forget/1, class_record/1]).
-export(['class requiredMethods:'/2, 'class conformingClasses:'/2, 'class isProtocol:'/2,
         'class allProtocols'/1]).
-export(['class requiredMethods'/1, 'class conformingClasses'/1]).
-export([conforms/2, protocols_of/1, required/1]).

-spec register(map()) -> ok.
register(#{name := Name} = Protocol) ->
    ets:insert(beamtalk_protocols, {Name, Protocol}),
    ok.

-spec forget(atom()) -> ok.
forget(Name) ->
    ets:delete(beamtalk_protocols, Name),
    ok.

%% The class object a protocol is at run time: abstract, sealed, below Protocol,
%% with two class methods of its own.
-spec class_record(map()) -> map().
class_record(#{name := Name, module := Module} = Protocol) ->
    Own = fun(Selector, Function) ->
                  {Selector, #{arity => 0, visibility => public, sealed => true, line => 1,
                               parameters => [], return_type => <<"List(Symbol)">>,
                               generated => true, function => {?MODULE, Function}}}
          end,
    ClassMethods = maps:from_list([Own(requiredMethods, 'class requiredMethods'),
                                   Own(conformingClasses, 'class conformingClasses')]),
    Meta = #{class => Name, superclass => 'Protocol', kind => object, module => Module,
             package => maps:get(package, Protocol, nil), modifiers => [abstract, sealed],
             visibility => public, native => nil, handle_scope => nil,
             doc => maps:get(doc, Protocol, nil), source_file => maps:get(source_file, Protocol, nil),
             line => 1, type_parameters => [], slots => [], class_slots => [],
             method_info => #{}, class_method_info => ClassMethods, locked => [], version => 1},
    #{name => Name, superclass => 'Protocol', module => Module, code => Module, kind => object,
      package => maps:get(package, Meta), modifiers => [abstract, sealed], native => nil,
      source_file => maps:get(source_file, Meta), slots => [], class_slots => [],
      method_info => #{}, class_method_info => ClassMethods, has_defaults => false, has_initial => false,
      has_class_defaults => false, patches => #{}, removed => [], docs => #{}, meta => Meta}.

-spec 'class requiredMethods:'(term(), term()) -> [atom()].
'class requiredMethods:'(_, Name) ->
    required_names(beamtalk_argument:symbol(Name, 'Protocol', 'requiredMethods:')).

-spec 'class conformingClasses:'(term(), term()) -> [tuple()].
'class conformingClasses:'(_, Name) ->
    Checked = beamtalk_argument:symbol(Name, 'Protocol', 'conformingClasses:'),
    [beamtalk_class:named(C) || C <- conforming(Checked)].

-spec 'class isProtocol:'(term(), term()) -> boolean().
'class isProtocol:'(_, Name) ->
    ets:member(beamtalk_protocols, beamtalk_argument:symbol(Name, 'Protocol', 'isProtocol:')).

-spec 'class allProtocols'(term()) -> [atom()].
'class allProtocols'(_) ->
    lists:sort([Name || {Name, _} <- ets:tab2list(beamtalk_protocols)]).

-spec 'class requiredMethods'(tuple()) -> [atom()].
'class requiredMethods'({_, _, _, Name}) -> required_names(Name).

-spec 'class conformingClasses'(tuple()) -> [atom()].
'class conformingClasses'({_, _, _, Name}) -> conforming(Name).

%% Do instances of the class answer everything the protocol requires?
-spec conforms(atom(), atom()) -> boolean().
conforms(Class, Name) ->
    case required(Name) of
        none -> false;
        Required -> lists:all(fun(R) -> answers(Class, R) end, Required)
    end.

-spec protocols_of(atom()) -> [atom()].
protocols_of(Class) ->
    [Name || Name <- 'class allProtocols'(nil), conforms(Class, Name)].

conforming(Name) ->
    case required(Name) of
        none -> [];
        _ -> [C || C <- beamtalk_class:all(), conforms(C, Name),
                   not ets:member(beamtalk_protocols, C)]
    end.

answers(Class, {instance, Sel}) -> beamtalk_dispatch:method(Class, Sel) =/= none;
answers(Class, {class, Sel}) ->
    {_, Tag, _, _} = beamtalk_class:named(Class),
    beamtalk_dispatch:method(Tag, Sel) =/= none.

%% Signatures of the protocol and of those it extends; `none' when there is no such protocol.
-spec required(atom()) -> [{instance | class, atom()}] | none.
required(Name) ->
    case ets:lookup(beamtalk_protocols, Name) of
        [{_, #{required := Own, extending := nil}}] -> Own;
        [{_, #{required := Own, extending := Extended}}] ->
            case required(Extended) of
                none -> Own;
                More -> More ++ (Own -- More)
            end;
        [] -> none
    end.

required_names(Name) ->
    case required(Name) of
        none -> [];
        Required ->
            [case R of
                 {instance, Sel} -> Sel;
                 {class, Sel} -> binary_to_atom(<<"class ", (atom_to_binary(Sel))/binary>>)
             end || R <- Required]
    end.
