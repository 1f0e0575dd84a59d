%% Taking code out of the image, as the daemon asks for it.
-module(beamtalk_bridge_change).

-export([remove_method/1, remove_class/1]).

-type answer() :: {ok, map()} | {error, map()}.

%% With `restore' what the body of the class has takes the place of what goes.
-spec remove_method(map()) -> answer().
remove_method(#{<<"class">> := ClassName, <<"selector">> := SelectorName} = Args) ->
    Side = case Args of
        #{<<"side">> := <<"class">>} -> class;
        _ -> instance
    end,
    case class(ClassName) of
        {ok, Class} ->
            case existing(SelectorName) =/= none
                andalso remove_method(Args, Class, Side, existing(SelectorName)) of
                ok -> {ok, #{}};
                generated ->
                    Why = beamtalk_class:not_removed(Class, existing(SelectorName)),
                    {error, beamtalk_bridge_error:new(<<"forbidden">>, Why)};
                _ -> {error, beamtalk_bridge_error:new(<<"selector_not_found">>,
                                                       [ClassName, " has no method '", SelectorName, "'"])}
            end;
        Error -> Error
    end.

remove_method(#{<<"restore">> := true}, Class, Side, Selector) -> beamtalk_class:restore_method(Class, Side, Selector);
remove_method(_, Class, Side, Selector) -> beamtalk_class:remove_method(Class, Side, Selector).

%% Refused while there are subclasses, for classes of the library, and, if asked so, while actors live.
-spec remove_class(map()) -> answer().
remove_class(#{<<"class">> := ClassName} = Args) ->
    case class(ClassName) of
        {ok, Class} -> remove(Class, ClassName, maps:get(<<"stop_actors">>, Args, true));
        Error -> Error
    end.

remove(Class, Name, StopActors) ->
    Actors = beamtalk_actor_class:instances(Class),
    case {beamtalk_class:is_library(Class), beamtalk_class:subclasses(Class), Actors} of
        {true, _, _} -> refused(<<"forbidden">>, Name, "it belongs to the standard library");
        {_, [_ | _], _} -> refused(<<"runtime_error">>, Name, "it has subclasses");
        {_, _, [_ | _]} when not StopActors -> refused(<<"actors_exist">>, Name, "it has living actors");
        _ ->
            [beamtalk_behaviour:stop_actor(Actor) || Actor <- Actors],
            beamtalk_class:remove_class(Class),
            {ok, #{<<"stopped_actors">> => length(Actors)}}
    end.

refused(Kind, Name, Why) ->
    {error, beamtalk_bridge_error:new(Kind, [Name, " cannot be removed: ", Why])}.

class(Name) ->
    Class = existing(Name),
    case Class =/= none andalso beamtalk_class:exists(Class) of
        true -> {ok, Class};
        false -> {error, beamtalk_bridge_error:new(<<"class_not_found">>, ["Class '", Name, "' not found"])}
    end.

existing(Name) ->
    try binary_to_existing_atom(Name) catch error:badarg -> none end.
