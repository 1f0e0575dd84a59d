%% Requests of the daemon that concern no session's variables. Each runs in a process of its own.
-module(beamtalk_bridge_request).

-export([serve/4]).

-spec serve(beamtalk_bridge:id(), binary() | nil, binary(), map()) -> ok.
serve(Id, Session, Op, Args) ->
    Answer = try perform(Op, Args, Session)
             catch Class:Reason:Stack ->
                 {error, beamtalk_bridge_error:of_exception(beamtalk_error:from_caught(Class, Reason, Stack))}
             end,
    case Answer of
        {ok, Map} -> beamtalk_bridge:respond(Id, Map);
        {error, Error} -> beamtalk_bridge:refuse(Id, Error)
    end.

perform(<<"load">>, #{<<"modules">> := Units} = Args, _Session) ->
    beamtalk_bridge_load:load(Units, Args);
perform(<<"remove-method">>, #{<<"class">> := _, <<"selector">> := _} = Args, _) ->
    beamtalk_bridge_change:remove_method(Args);
perform(<<"remove-class">>, #{<<"class">> := _} = Args, _) ->
    beamtalk_bridge_change:remove_class(Args);
perform(<<"cluster">>, Args, _) ->
    beamtalk_cluster:start(Args);
perform(<<"ping">>, _, _) ->
    {ok, #{}};
perform(Op, Args, Session) ->
    case beamtalk_bridge_image:perform(Op, Args) of
        unknown -> beamtalk_image_ops:perform(Op, Args, Session);
        Answer -> Answer
    end.
