%% Questions of the image to what stands beside its workspace: the agents, the loop.
-module(beamtalk_asking).

-export([ask/3, result/2, demand/3, text/4]).

-type answer() :: {ok, term()} | {error, map()}.

%% Without a workspace there is nobody to ask; `Alone' is the error that says so: kind, message, hint.
-spec ask(binary(), map(), {atom(), binary(), binary()}) -> answer().
ask(Whom, Question, {Kind, Message, Hint}) ->
    case whereis(beamtalk_bridge) of
        undefined -> {error, beamtalk_error:new(Kind, nil, nil, Message, Hint, #{})};
        _ -> beamtalk_bridge:ask(Whom, Question)
    end.

%% The answer as a Result.
-spec result(answer(), fun((term()) -> term())) -> map().
result({ok, Answer}, Make) -> beamtalk_result:ok(Make(Answer));
result({error, Exception}, _) -> beamtalk_result:error(Exception).

%% The answer, or the error raised where it was asked.
-spec demand(answer(), atom(), atom()) -> term().
demand({ok, Answer}, _, _) -> Answer;
demand({error, #{error := Error} = Exception}, Class, Selector) ->
    erlang:error(Exception#{error := setelement(4, setelement(3, Error, Class), Selector)}).

%% Names are Symbols or Strings.
-spec text(term(), atom(), atom(), binary()) -> binary().
text(Text, _, _, _) when is_binary(Text) -> Text;
text(Name, _, _, _) when is_atom(Name), Name =/= nil, not is_boolean(Name) -> atom_to_binary(Name);
text(_, Class, Selector, Expected) -> beamtalk_error:type_error(Class, Selector, Expected).
