%% `^' inside a closure: ends the home method from however deep.
%%
%% The home is marked in the process dictionary while its method is active, so
%% a `^' that comes too late, or in another process, is noticed where it stands.
-module(beamtalk_return).

-export([run/2, return/2]).

-type home() :: {reference(), pid(), atom()}.

-spec run(fun((home()) -> Value), atom()) -> Value when Value :: term().
run(Body, Selector) ->
    Reference = make_ref(),
    Home = {Reference, self(), Selector},
    put(Reference, '$bt_home'),
    try Body(Home)
    catch throw:{'$bt_return', Home, Value} -> Value
    after erase(Reference)
    end.

-spec return(home(), term()) -> no_return().
return({Reference, Pid, Selector} = Home, Value) ->
    case get(Reference) of
        '$bt_home' -> throw({'$bt_return', Home, Value});
        _ when Pid =/= self() -> fail(Selector, <<"belongs to another process">>);
        _ -> fail(Selector, <<"the method has already returned">>)
    end.

fail(Selector, Why) ->
    Name = atom_to_binary(Selector),
    Message = <<"BlockContext: cannot return from '", Name/binary, "' — "/utf8, Why/binary>>,
    beamtalk_error:raise(block_context, nil, Selector, Message, nil, #{}).
