%% Primitives of Exception.
-module(beamtalk_exception).

-export(['class new'/1, 'class signal'/1, 'class signal:'/2, 'class signalKind:class:selector:hint:'/5]).
-export([message/1, hint/1, kind/1, selector/1, errorClass/1, details/1, stackTrace/1, printString/1,
         signal/1, 'signal:'/2]).

-type class_object() :: {beamtalk_object, atom(), module(), atom()}.

%% An instance that has not been raised.
-spec 'class new'(class_object()) -> map().
'class new'({_, _, _, Class}) -> #{'$beamtalk_class' => Class}.

-spec 'class signal'(class_object()) -> no_return().
'class signal'({_, _, _, Class}) -> beamtalk_error:signal(Class, atom_to_binary(Class)).

-spec 'class signal:'(class_object(), term()) -> no_return().
'class signal:'({_, _, _, Class}, Text) -> beamtalk_error:signal(Class, text(Class, Text)).

-spec 'class signalKind:class:selector:hint:'(class_object(), term(), term(), term(), term()) -> no_return().
'class signalKind:class:selector:hint:'({_, _, _, Self}, Kind, Class, Selector, Hint)
  when is_atom(Class), is_atom(Selector), is_binary(Hint) orelse Hint =:= nil ->
    case beamtalk_error:is_listed_kind(Kind) of
        true -> beamtalk_error:raise(Kind, Class, Selector, Hint);
        false -> wrong_kind(Self)
    end;
'class signalKind:class:selector:hint:'({_, _, _, Self}, _, _, _, _) ->
    beamtalk_error:type_error(Self, 'signalKind:class:selector:hint:',
        <<"Kind, class and selector are Symbols, the hint a String">>).

-spec wrong_kind(atom()) -> no_return().
wrong_kind(Self) ->
    beamtalk_error:type_error(Self, 'signalKind:class:selector:hint:', <<"No such kind of exception">>).

text(_, Text) when is_binary(Text) -> Text;
text(Class, _) -> beamtalk_error:type_error(Class, 'signal:', <<"The message must be a String">>).

-spec message(map()) -> binary().
message(Self) -> beamtalk_error:field(Self, message).

-spec hint(map()) -> binary() | nil.
hint(Self) -> beamtalk_error:field(Self, hint).

-spec kind(map()) -> atom().
kind(Self) -> beamtalk_error:field(Self, kind).

-spec selector(map()) -> atom().
selector(Self) -> beamtalk_error:field(Self, selector).

-spec errorClass(map()) -> atom().
errorClass(Self) -> beamtalk_error:field(Self, errorClass).

-spec details(map()) -> map().
details(Self) -> beamtalk_error:field(Self, details).

-spec stackTrace(map()) -> [map()].
stackTrace(#{stacktrace := Stack}) -> beamtalk_stack:trace(Stack);
stackTrace(_) -> [].

-spec printString(map()) -> binary().
printString(Self) -> beamtalk_display:exception(Self).

%% Raise this instance; a caught one unchanged.
-spec signal(map()) -> no_return().
signal(#{error := _} = Self) -> beamtalk_error:reraise(Self);
signal(#{'$beamtalk_class' := Class}) -> beamtalk_error:signal(Class, atom_to_binary(Class)).

-spec 'signal:'(map(), term()) -> no_return().
'signal:'(#{'$beamtalk_class' := Class}, Text) -> beamtalk_error:signal(Class, text(Class, Text)).
