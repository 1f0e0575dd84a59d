%% Chains of `select:', `collect:', `inject:into:' and the like that the compiler has joined into one loop (decision 30).
%%
%% The loop has no effects. Where it fails, or the receiver or the library's methods are not those it was made for, the
%% answer is '$bt_apart': the messages are then sent one after the other, as if the loop had not been tried.
-module(beamtalk_chain).

-export([is_for_loop/1, elements/2, value/2, range/4]).

-define(APART, '$bt_apart').

%% Does the loop of one message do for this receiver what the message does?
-spec is_for_loop(term()) -> boolean().
is_for_loop(Receiver) -> is_list(Receiver) andalso persistent_term:get('$bt_joined', false).

%% The loop answers the list of the new collection's elements.
-spec elements(term(), fun((list()) -> list())) -> term().
elements(List, Loop) when is_list(List) -> attempt(Loop, List);
elements(#{'$beamtalk_class' := 'Array', data := Data}, Loop) ->
    case attempt(Loop, beamtalk_array:data_to_list(Data)) of
        ?APART -> ?APART;
        Elements -> beamtalk_array:from_list(Elements)
    end;
elements(_, _) -> ?APART.

%% The loop answers what the elements come to.
-spec value(term(), fun((list()) -> term())) -> term().
value(List, Loop) when is_list(List) -> attempt(Loop, List);
value(#{'$beamtalk_class' := 'Array', data := Data}, Loop) -> attempt(Loop, beamtalk_array:data_to_list(Data));
value(_, _) -> ?APART.

attempt(Loop, List) ->
    case persistent_term:get('$bt_joined', false) of
        true ->
            try Loop(List)
            catch error:_ -> ?APART
            end;
        false -> ?APART
    end.

%% The loop counts from one bound to the other.
-spec range(term(), term(), term(), fun(() -> term())) -> term().
range(From, To, Step, Loop) when is_integer(From), is_integer(To), is_integer(Step), Step =/= 0 ->
    case persistent_term:get('$bt_joined', false) of
        true ->
            try Loop()
            catch error:_ -> ?APART
            end;
        false -> ?APART
    end;
range(_, _, _, _) -> ?APART.
