%% Primitives of Session: a handle on a session by its id, alive or not.
-module(beamtalk_session).

-export(['class current'/1, 'class withId:'/2]).
-export([bindings/1, 'resolve:'/2, clear/1, id/1, kind/1, info/1]).
-export([of_id/1, check_own/3]).

-define(CLASS, 'Session').

-type session() :: #{'$beamtalk_class' := 'Session', id := binary(), kind := binary(), info := map()}.
-export_type([session/0]).

-spec 'class current'(term()) -> session() | nil.
'class current'(_Class) ->
    case beamtalk_workspace:current_session() of
        none -> nil;
        Id -> of_id(Id)
    end.

-spec 'class withId:'(term(), term()) -> session() | nil.
'class withId:'(_Class, Id) when is_binary(Id) -> of_id(Id);
'class withId:'(_Class, _) ->
    beamtalk_error:type_error(?CLASS, 'withId:', <<"The id of a session is a String">>).

-spec of_id(binary()) -> session() | nil.
of_id(Id) ->
    case beamtalk_session_keeper:describe(Id) of
        {ok, Kind, Info} -> #{'$beamtalk_class' => ?CLASS, id => Id, kind => Kind, info => Info};
        none -> nil
    end.

-spec bindings(session()) -> map().
bindings(#{id := Id}) ->
    check_alive(Id, bindings),
    #{'$beamtalk_class' => 'BindingsView', scope => Id}.

-spec 'resolve:'(session(), term()) -> term().
'resolve:'(#{id := Id}, Name) when is_atom(Name) ->
    check_alive(Id, 'resolve:'),
    case beamtalk_session_variables:value(Id, Name) of
        {ok, Value} -> Value;
        none ->
            case beamtalk_workspace:global(Name) of
                {ok, Value} -> Value;
                none ->
                    case beamtalk_class:find(Name) of
                        {ok, Class} -> Class;
                        none -> beamtalk_error:raise(undefined_variable, nil, Name)
                    end
            end
    end;
'resolve:'(_, _) ->
    beamtalk_error:type_error(?CLASS, 'resolve:', <<"A name is a Symbol">>).

-spec clear(session()) -> nil.
clear(#{id := Id}) ->
    check_alive(Id, clear),
    check_own(Id, ?CLASS, clear),
    [beamtalk_session_variables:remove(Id, Name) || Name <- beamtalk_session_variables:names(Id)],
    nil.

-spec id(session()) -> binary().
id(#{id := Id}) -> Id.

-spec kind(session()) -> binary().
kind(#{kind := Kind}) -> Kind.

-spec info(session()) -> map().
info(#{id := Id, kind := Kind, info := Info}) -> Info#{id => Id, kind => Kind}.

check_alive(Id, Selector) ->
    case beamtalk_session_keeper:describe(Id) of
        {ok, _, _} -> ok;
        none -> beamtalk_error:raise(session_not_found, ?CLASS, Selector,
                                     <<"No session '", Id/binary, "' is alive">>, nil, #{})
    end.

%% Another session's variables may be read and not written.
-spec check_own(binary(), atom(), atom()) -> ok.
check_own(Id, Class, Selector) ->
    case beamtalk_workspace:current_session() of
        Id -> ok;
        _ -> beamtalk_error:raise(cross_session_mutation_unsupported, Class, Selector,
                                  <<"The variables of another session cannot be changed">>,
                                  <<"Share a value with: Workspace bind: value as: #name">>, #{})
    end.
