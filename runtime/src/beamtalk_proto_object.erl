%% Primitives of ProtoObject, the root of all classes.
-module(beamtalk_proto_object).

-export([class/1, 'doesNotUnderstand:args:'/3, 'perform:withArguments:'/3,
         'perform:withArguments:timeout:'/4]).

-spec class(term()) -> tuple().
class(Self) -> beamtalk_dispatch:class_of(Self).

-spec 'doesNotUnderstand:args:'(term(), term(), term()) -> no_return().
'doesNotUnderstand:args:'(Self, Selector, Args) when is_atom(Selector), is_list(Args) ->
    beamtalk_error:does_not_understand(Self, Selector, Args);
'doesNotUnderstand:args:'(Self, Selector, _) when is_atom(Selector) ->
    beamtalk_error:does_not_understand(Self, Selector, []);
'doesNotUnderstand:args:'(Self, _, _) ->
    type_error(Self, 'doesNotUnderstand:args:', <<"A selector is a Symbol">>).

-spec 'perform:withArguments:'(term(), term(), term()) -> term().
'perform:withArguments:'(Self, Selector, Args) ->
    check(Self, 'perform:withArguments:', Selector, Args),
    beamtalk_dispatch:send_list(Self, Selector, Args).

-spec 'perform:withArguments:timeout:'(term(), term(), term(), term()) -> term().
'perform:withArguments:timeout:'(Self, Selector, Args, Timeout) ->
    check(Self, 'perform:withArguments:timeout:', Selector, Args),
    Limit = limit(Self, Timeout),
    case Self of
        {beamtalk_object, _, _, X} when not is_atom(X) -> beamtalk_actor:send(Self, Selector, Args, Limit);
        _ -> beamtalk_dispatch:send_list(Self, Selector, Args)
    end.

limit(_, infinity) -> infinity;
limit(_, Timeout) when is_integer(Timeout), Timeout >= 0 -> Timeout;
limit(_, #{'$beamtalk_class' := 'Duration'} = Duration) ->
    max(0, beamtalk_dispatch:send(Duration, asMilliseconds));
limit(Self, _) ->
    type_error(Self, 'perform:withArguments:timeout:',
               <<"A limit is a number of milliseconds, a Duration or #infinity">>).

check(Self, Operation, Selector, _)
  when not is_atom(Selector); Selector =:= nil; is_boolean(Selector) ->
    type_error(Self, Operation, <<"A selector is a Symbol">>);
check(Self, Operation, _, Args) when not is_list(Args) ->
    type_error(Self, Operation, <<"The arguments must be a List">>);
check(_, _, _, _) -> ok.

-spec type_error(term(), atom(), binary()) -> no_return().
type_error(Self, Selector, Hint) ->
    beamtalk_error:type_error(beamtalk_dispatch:class_name(Self), Selector, Hint).
