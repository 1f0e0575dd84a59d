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
    case beamtalk_bridge:ask(Op, method(Class, Side, Selector, Source)) of
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
handle({evaluate, Class, Side, Selector, Source}) ->
    case beamtalk_bridge:ask(<<"compile-evaluation">>, method(Class, Side, Selector, Source)) of
        {ok, #{<<"forms">> := Forms}} -> {ok, binary_to_term(Forms)};
        {error, Exception} -> {error, Exception}
    end;
handle(_Notice) ->
    ok.

method(Class, Side, Selector, Source) ->
    #{<<"class">> => name(Class), <<"side">> => name(Side), <<"selector">> => name(Selector), <<"source">> => Source}.

answer({ok, _}) -> {ok, nil};
answer({error, Exception}) -> {error, Exception}.

name(Name) -> atom_to_binary(Name).

findings(Answer) ->
    Known = fun(Key, Default) -> maps:get(Key, Answer, Default) end,
    #{findings => [finding(Found) || Found <- Known(<<"findings">>, [])], checked => Known(<<"checked">>, 0),
      totalCandidates => Known(<<"total_candidates">>, 0), notChecked => Known(<<"not_checked">>, 0),
      capNote => Known(<<"cap_note">>, nil), checkedOwners => Known(<<"checked_owners">>, [])}.

finding(Found) ->
    Known = fun(Key) -> maps:get(Key, Found, nil) end,
    #{owner => symbol(Known(<<"owner">>)), changedClass => symbol(Known(<<"changed_class">>)),
      selector => symbol(Known(<<"selector">>)), classification => symbol(Known(<<"classification">>)),
      severity => symbol(Known(<<"severity">>)), category => symbol(Known(<<"category">>)),
      message => Known(<<"message">>), note => Known(<<"note">>), sites => Known(<<"sites">>),
      start => Known(<<"start">>), 'end' => Known(<<"end">>)}.

%% Names of classes and selectors that exist, and a few fixed words.
symbol(nil) -> nil;
symbol(Text) -> binary_to_atom(Text).
