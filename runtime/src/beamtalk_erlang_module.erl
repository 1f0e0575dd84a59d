%% Primitives of ErlangModule, the proxy of an Erlang module.
-module(beamtalk_erlang_module).

-export(['doesNotUnderstand:args:'/3, 'call:args:'/3, methods/1, 'respondsTo:'/2, printString/1]).

%% A message of the Object protocol is answered by the proxy; any other calls a
%% function, named by the first keyword.
-spec 'doesNotUnderstand:args:'(map(), atom(), [term()]) -> term().
'doesNotUnderstand:args:'(#{module := Module} = Self, Selector, Args) ->
    case beamtalk_dispatch:method('Object', Selector) of
        none -> beamtalk_erlang:proxy_call(Module, function_name(Selector), Args);
        _ -> beamtalk_dispatch:call_local('Object', Self, Selector, Args)
    end.

function_name(Selector) ->
    case binary:split(atom_to_binary(Selector), <<":">>) of
        [_] -> Selector;
        [First, _] -> binary_to_atom(First)
    end.

-spec 'call:args:'(map(), term(), term()) -> term().
'call:args:'(#{module := Module}, Function, Args) when is_atom(Function), is_tuple(Args) ->
    beamtalk_erlang:proxy_call(Module, Function, tuple_to_list(Args));
'call:args:'(_, _, _) ->
    beamtalk_error:type_error('ErlangModule', 'call:args:', <<"The function is a Symbol, the arguments a Tuple">>).

-spec methods(map()) -> [binary()].
methods(#{module := Module}) -> beamtalk_erlang:methods(Module).

-spec 'respondsTo:'(map(), term()) -> true.
'respondsTo:'(_, _) -> true.

-spec printString(map()) -> binary().
printString(Self) -> beamtalk_display:native(Self).
