%% Primitives of Object.
-module(beamtalk_object).

-export(['ifNotNil:'/2, printString/1, hash/1, 'respondsTo:'/2, fieldNames/1, 'fieldAt:'/2,
         'fieldAt:put:'/3, 'perform:'/2, 'isKindOf:'/2, 'error:'/2]).
-export([subclassResponsibility/1, notImplemented/1, delegate/1, 'class delegate'/1]).
-export([strictly_equal/2, loosely_equal/2, strictly_different/2, loosely_different/2]).

%% The block takes the receiver or nothing.
-spec 'ifNotNil:'(term(), term()) -> term().
'ifNotNil:'(Self, Block) -> beamtalk_block:call(Block, [Self]).

-spec printString(term()) -> binary().
printString(Self) -> beamtalk_display:native(Self).

-spec hash(term()) -> non_neg_integer().
hash(Self) -> erlang:phash2(Self).

-spec strictly_equal(term(), term()) -> boolean().
strictly_equal(Self, Other) -> Self =:= Other.

-spec strictly_different(term(), term()) -> boolean().
strictly_different(Self, Other) -> Self =/= Other.

-spec loosely_equal(term(), term()) -> boolean().
loosely_equal(Self, Other) -> Self == Other.

-spec loosely_different(term(), term()) -> boolean().
loosely_different(Self, Other) -> Self /= Other.

-spec 'respondsTo:'(term(), term()) -> boolean().
'respondsTo:'(Self, Selector) when is_atom(Selector), Selector =/= nil, not is_boolean(Selector) ->
    beamtalk_dispatch:responds_to(Self, Selector);
'respondsTo:'(Self, _) -> not_a_symbol(Self, 'respondsTo:').

-spec 'perform:'(term(), term()) -> term().
'perform:'(Self, Selector)
  when is_atom(Selector), Selector =/= nil, not is_boolean(Selector) ->
    beamtalk_dispatch:send_list(Self, Selector, []);
'perform:'(Self, _) -> not_a_symbol(Self, 'perform:').

%%% Fields by name

-spec fieldNames(term()) -> [atom()].
fieldNames(#{'$beamtalk_class' := _} = Self) ->
    case beamtalk_error:is_exception(Self) of
        true -> [];
        false -> beamtalk_value:field_names(Self)
    end;
fieldNames({beamtalk_object, Class, _, X}) when not is_atom(X) ->
    #{fields := Fields} = beamtalk_dispatch:info(Class),
    lists:sort(fun(A, B) -> atom_to_binary(A) =< atom_to_binary(B) end, Fields);
fieldNames(_) -> [].

-spec 'fieldAt:'(term(), term()) -> term().
'fieldAt:'(Self, Name) when not is_atom(Name); Name =:= nil; is_boolean(Name) -> not_a_symbol(Self, 'fieldAt:');
'fieldAt:'(#{'$beamtalk_class' := Class} = Self, Name) ->
    case Self of
        #{Name := Value} when Name =/= '$beamtalk_class' -> Value;
        _ ->
            case beamtalk_dispatch:info(Class) of
                #{fields := Fields} ->
                    case lists:member(Name, Fields) of
                        true -> beamtalk_value:missing_field(Self, Name);
                        false -> nil
                    end;
                none -> nil
            end
    end;
'fieldAt:'({beamtalk_object, _, _, Pid}, Name) when Pid =:= self() -> beamtalk_actor:get_field(Name);
'fieldAt:'(Self, _) -> immutable(Self, 'fieldAt:').

-spec 'fieldAt:put:'(term(), term(), term()) -> term().
'fieldAt:put:'(Self, Name, _) when not is_atom(Name); Name =:= nil; is_boolean(Name) -> not_a_symbol(Self, 'fieldAt:put:');
'fieldAt:put:'({beamtalk_object, Class, _, Pid}, Name, Value) when Pid =:= self() ->
    beamtalk_value:check_fields(Class, 'fieldAt:put:', #{Name => Value}),
    beamtalk_actor:put_field(Name, Value);
'fieldAt:put:'(Self, _, _) -> immutable(Self, 'fieldAt:put:').

%%% Kinds

-spec 'isKindOf:'(term(), term()) -> boolean().
'isKindOf:'(Self, {beamtalk_object, 'Metaclass', _, Name} = Meta) when is_atom(Name) ->
    case Self of
        {beamtalk_object, _, _, X} when is_atom(X) ->
            beamtalk_dispatch:class_of(Self) =:= Meta orelse beamtalk_class:inherits(X, Name);
        _ -> false
    end;
'isKindOf:'(Self, {beamtalk_object, _, _, Name}) when is_atom(Name) ->
    beamtalk_dispatch:is_kind_of(Self, Name);
'isKindOf:'(Self, _) ->
    beamtalk_error:type_error(beamtalk_dispatch:class_name(Self), 'isKindOf:', <<"The argument must be a class">>).

%%% Raising

-spec 'error:'(term(), term()) -> no_return().
'error:'(Self, Message) ->
    beamtalk_error:raise(user_error, beamtalk_dispatch:class_name(Self), 'error:',
                         beamtalk_display:display(Message), nil, #{}).

-spec subclassResponsibility(term()) -> no_return().
subclassResponsibility(Self) ->
    user_error(Self, subclassResponsibility, <<"abstract method: a subclass must define it">>).

-spec notImplemented(term()) -> no_return().
notImplemented(Self) -> user_error(Self, notImplemented, <<"not implemented yet">>).

-spec delegate(term()) -> no_return().
delegate(Self) -> user_error(Self, delegate, <<"delegate called on a non-native Object">>).

-spec 'class delegate'(term()) -> no_return().
'class delegate'(Self) -> delegate(Self).

-spec user_error(term(), atom(), binary()) -> no_return().
user_error(Self, Selector, Message) ->
    beamtalk_error:raise(user_error, beamtalk_dispatch:class_name(Self), Selector, Message, nil, #{}).

-spec not_a_symbol(term(), atom()) -> no_return().
not_a_symbol(Self, Selector) ->
    beamtalk_error:type_error(beamtalk_dispatch:class_name(Self), Selector, <<"The argument must be a Symbol">>).

-spec immutable(term(), atom()) -> no_return().
immutable(Self, Selector) ->
    beamtalk_error:raise(immutable_value, beamtalk_dispatch:class_name(Self), Selector,
        <<"Values do not change: use a with…: message to make a changed copy"/utf8>>).
