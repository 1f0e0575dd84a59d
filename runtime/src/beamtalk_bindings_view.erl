%% Primitives of BindingsView: the variables of a session, or the names of the workspace.
-module(beamtalk_bindings_view).

-export(['at:'/2, 'at:put:'/3, 'removeKey:'/2, 'includesKey:'/2, keys/1, asDictionary/1]).

-define(CLASS, 'BindingsView').

-type view() :: #{'$beamtalk_class' := 'BindingsView', scope := globals | binary()}.

-spec 'at:'(view(), term()) -> term().
'at:'(View, Name) ->
    check_name(Name, 'at:'),
    case value(View, Name) of
        {ok, Value} -> Value;
        none -> nil
    end.

value(#{scope := globals}, Name) -> beamtalk_workspace:global(Name);
value(#{scope := Session}, Name) -> beamtalk_session_variables:value(Session, Name).

-spec 'at:put:'(view(), term(), term()) -> term().
'at:put:'(#{scope := globals}, Name, Value) ->
    check_name(Name, 'at:put:'),
    beamtalk_workspace:bind(Name, Value),
    Value;
'at:put:'(#{scope := Session}, Name, Value) ->
    check_name(Name, 'at:put:'),
    beamtalk_session:check_own(Session, ?CLASS, 'at:put:'),
    beamtalk_workspace:check_free(Name, ?CLASS, 'at:put:'),
    beamtalk_session_variables:write(Session, Name, Value),
    Value.

-spec 'removeKey:'(view(), term()) -> nil.
'removeKey:'(#{scope := globals}, Name) ->
    check_name(Name, 'removeKey:'),
    _ = beamtalk_workspace:unbind(Name),
    nil;
'removeKey:'(#{scope := Session}, Name) ->
    check_name(Name, 'removeKey:'),
    beamtalk_session:check_own(Session, ?CLASS, 'removeKey:'),
    beamtalk_session_variables:remove(Session, Name),
    nil.

-spec 'includesKey:'(view(), term()) -> boolean().
'includesKey:'(View, Name) ->
    check_name(Name, 'includesKey:'),
    value(View, Name) =/= none.

-spec keys(view()) -> [atom()].
keys(#{scope := globals}) -> beamtalk_workspace:global_names();
keys(#{scope := Session}) -> beamtalk_session_variables:names(Session).

-spec asDictionary(view()) -> map().
asDictionary(View) ->
    maps:from_list([{Name, Value} || Name <- keys(View), {ok, Value} <- [value(View, Name)]]).

check_name(Name, _) when is_atom(Name) -> ok;
check_name(_, Selector) ->
    beamtalk_error:type_error(?CLASS, Selector, <<"A name is a Symbol">>).
