%% The compiler behind beamtalk_compiler_port: ops of the daemon.
-module(beamtalk_bridge_compiler).

-export([handle/1]).

-spec handle(tuple()) -> {ok, term()} | {error, map()} | ok.
handle({compile, Mode, Class, Side, Selector, Source}) ->
    Op = case Mode of
        durable -> <<"save-method">>;
        ephemeral -> <<"try-method">>;
        precheck -> <<"precheck-method">>
    end,
    case beamtalk_bridge:ask(Op, #{<<"class">> => name(Class), <<"side">> => name(Side),
                                   <<"selector">> => name(Selector), <<"source">> => Source}) of
        {ok, Answer} when Mode =:= precheck -> {ok, findings(Answer)};
        {ok, _} -> {ok, nil};
        {error, Exception} -> {error, Exception}
    end;
handle({reload, Class, _File}) ->
    answer(beamtalk_bridge:ask(<<"reload">>, #{<<"class">> => name(Class)}));
handle({remove, Class, Side, Selector}) ->
    answer(beamtalk_bridge:ask(<<"remove-method">>, #{<<"class">> => name(Class), <<"side">> => name(Side),
                                                      <<"selector">> => name(Selector)}));
handle({remove_class, Class}) ->
    answer(beamtalk_bridge:ask(<<"remove-class">>, #{<<"class">> => name(Class)}));
handle({evaluate, Source, Self}) ->
    {Class, Side} = case Self of
        {beamtalk_object, _, _, Name} when is_atom(Name) -> {Name, class};
        _ -> {beamtalk_dispatch:class_name(Self), instance}
    end,
    case beamtalk_bridge:ask(<<"compile-body">>, #{<<"class">> => name(Class), <<"side">> => name(Side),
                                                   <<"source">> => Source}) of
        {ok, #{<<"modules">> := [Forms]}} -> {ok, beamtalk_code:call_once(binary_to_term(Forms), Self)};
        {error, Exception} -> {error, Exception}
    end;
handle(_Notice) ->
    ok.

answer({ok, _}) -> {ok, nil};
answer({error, Exception}) -> {error, Exception}.

name(Name) -> atom_to_binary(Name).

findings(Answer) ->
    Known = fun(Key, Default) -> maps:get(Key, Answer, Default) end,
    #{findings => Known(<<"findings">>, []), checked => Known(<<"checked">>, 0),
      totalCandidates => Known(<<"total_candidates">>, 0), notChecked => Known(<<"not_checked">>, 0),
      capNote => Known(<<"cap_note">>, nil), checkedOwners => Known(<<"checked_owners">>, [])}.
