%% Primitives of ChangeLog, over the daemon's log.
-module(beamtalk_change_log).

-export([current/0, dirtyMethods/1, 'diffOf:'/2, 'revert:'/2, 'take:of:'/3, 'discard:'/2, 'restore:'/2, clear/1]).
-export(['flushKinds:confirmDestructive:'/3]).

-define(CLASS, 'ChangeLog').
-define(KINDS, [instance, class, 'new-class', 'remove-method', 'remove-class']).
-define(AUTHORS, [human, agent]).

%% The log as it is now.
-spec current() -> map().
current() ->
    Answer = ask(<<"changes">>, #{<<"all">> => true}, changes),
    #{'$beamtalk_class' => ?CLASS, entries => [entry(Entry) || Entry <- maps:get(<<"entries">>, Answer, [])]}.

entry(Entry) ->
    Text = fun(Key) -> maps:get(Key, Entry, nil) end,
    Symbol = fun(Key, Default) ->
                     case Text(Key) of
                         nil -> Default;
                         Name -> binary_to_atom(Name)
                     end
             end,
    Is = fun(Key, Default) -> maps:get(Key, Entry, Default) =:= true end,
    #{'$beamtalk_class' => 'ChangeEntry', seq => maps:get(<<"seq">>, Entry, 0),
      className => Symbol(<<"class">>, unknown), selector => Symbol(<<"selector">>, nil),
      kind => Symbol(<<"kind">>, unknown), side => Symbol(<<"side">>, nil), intent => Symbol(<<"intent">>, unknown),
      authorKind => Symbol(<<"author_kind">>, unknown), sourceFile => Text(<<"source_file">>),
      diff => Text(<<"diff">>), flushable => Is(<<"flushable">>, false), orphan => Is(<<"orphan">>, false),
      priorEpoch => Is(<<"prior_epoch">>, Is(<<"orphan">>, false)),
      active => Is(<<"active">>, not Is(<<"orphan">>, false)),
      shadowed => Is(<<"shadowed">>, false), clean => Is(<<"clean">>, false)}.

-spec dirtyMethods(map()) -> map().
dirtyMethods(_Self) ->
    Dirty = maps:get(<<"dirty">>, ask(<<"dirty">>, #{}, dirtyMethods), #{}),
    maps:from_list([{binary_to_atom(Class), set([binary_to_atom(Selector) || Selector <- Selectors])}
                    || {Class, Selectors} <- maps:to_list(Dirty)]).

set(Elements) -> #{'$beamtalk_class' => 'Set', elements => lists:usort(Elements)}.

-spec 'revert:'(map(), term()) -> tuple() | nil.
'revert:'(_Self, #{'$beamtalk_class' := 'ChangeEntry', seq := Seq, className := Class}) ->
    _ = ask(<<"revert">>, #{<<"seq">> => Seq}, 'revert:'),
    case beamtalk_class:find(Class) of
        {ok, Object} -> Object;
        none -> nil
    end;
'revert:'(_Self, _) -> beamtalk_error:type_error(?CLASS, 'revert:', <<"The argument is a ChangeEntry">>).

%% Entries made by hand are in no log, and a program of its own has none.
-spec 'diffOf:'(map(), map()) -> binary() | nil.
'diffOf:'(_Self, #{seq := Seq}) when is_integer(Seq), Seq > 0 ->
    case beamtalk_bridge:ask(<<"diff">>, #{<<"seq">> => Seq}) of
        {ok, #{<<"diff">> := Unified}} -> lines_of(Unified);
        _ -> nil
    end;
'diffOf:'(_Self, _) -> nil.

lines_of(Unified) -> iolist_to_binary(lists:join("\n", changed(binary:split(Unified, <<"\n">>, [global])))).

%% Without the names of the files and the places.
changed([<<"--- ", _/binary>>, <<"+++ ", _/binary>>, <<"@@", _/binary>> | Rest]) -> changed(Rest);
changed([<<Mark, Text/binary>> | Rest]) when Mark =:= $\s; Mark =:= $-; Mark =:= $+ ->
    [<<Mark, " ", Text/binary>> | changed(Rest)];
changed([_ | Rest]) -> changed(Rest);
changed([]) -> [].

-spec 'take:of:'(map(), term(), term()) -> [map()].
'take:of:'(_Self, Side, What) when Side =:= image; Side =:= disk ->
    Args = (meant(What, 'take:of:'))#{<<"from">> => atom_to_binary(Side)},
    entries(ask(<<"take">>, Args, 'take:of:'));
'take:of:'(_Self, _, _) -> beamtalk_error:type_error(?CLASS, 'take:of:', <<"The side is #image or #disk">>).

-spec 'discard:'(map(), term()) -> [map()].
'discard:'(_Self, all) -> entries(ask(<<"discard">>, #{<<"all">> => true}, 'discard:'));
'discard:'(_Self, What) -> entries(ask(<<"discard">>, meant(What, 'discard:'), 'discard:')).

-spec 'restore:'(map(), term()) -> [map()].
'restore:'(_Self, all) -> entries(ask(<<"restore">>, #{<<"all">> => true}, 'restore:'));
'restore:'(_Self, What) -> entries(ask(<<"restore">>, meant(What, 'restore:'), 'restore:')).

meant(#{'$beamtalk_class' := 'ChangeEntry', seq := Seq}, _) -> #{<<"seq">> => Seq};
meant({beamtalk_object, _, _, Class}, _) when is_atom(Class) -> #{<<"class">> => atom_to_binary(Class)};
meant(_, Selector) -> beamtalk_error:type_error(?CLASS, Selector, <<"The argument is a ChangeEntry or a class">>).

entries(Answer) -> [entry(Entry) || Entry <- maps:get(<<"entries">>, Answer, [])].

-spec clear(map()) -> map().
clear(_Self) ->
    _ = ask(<<"clear-changes">>, #{}, clear),
    current().

-spec 'flushKinds:confirmDestructive:'(map(), term(), term()) -> map().
'flushKinds:confirmDestructive:'(_Self, Kinds, Confirmed) when is_boolean(Confirmed) ->
    All = elements(Kinds),
    Wanted = [K || K <- All, lists:member(K, ?KINDS)],
    Authors = [K || K <- All, lists:member(K, ?AUTHORS)],
    All =/= [] andalso length(All) =:= length(Wanted) + length(Authors) orelse unknown_kinds(),
    Names = fun(Symbols) -> [atom_to_binary(Symbol) || Symbol <- Symbols] end,
    Args = maps:filter(fun(_, Value) -> Value =/= [] end,
                       #{<<"kind">> => Names(Wanted), <<"author_kind">> => Names(Authors)}),
    Answer = ask(<<"flush">>, Args#{<<"confirm_destructive">> => Confirmed}, 'flushKinds:'),
    beamtalk_workspace_interface:flushed(Answer);
'flushKinds:confirmDestructive:'(_Self, _, _) -> unknown_kinds().

elements(List) when is_list(List) -> List;
elements(#{'$beamtalk_class' := 'Set', elements := Elements}) -> Elements;
elements(_) -> unknown_kinds().

-spec unknown_kinds() -> no_return().
unknown_kinds() ->
    Hint = <<"Kinds are #instance #class #'new-class' #'remove-method' #'remove-class' #human #agent">>,
    beamtalk_error:type_error(?CLASS, 'flushKinds:', Hint).

ask(Op, Args, Selector) -> beamtalk_workspace_interface:ask(Op, Args, Selector).
