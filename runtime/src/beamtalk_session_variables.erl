%% Reading and writing a session's variables from code that runs in the image.
%%
%% In the session's own evaluator they are in its dictionary; anywhere else its keeper's table is read. Writes
%% wait until the running evaluation ends: in the evaluator's dictionary, or, from another process that
%% works for it, in the table.
-module(beamtalk_session_variables).

-export([names/1, value/2, write/3, remove/2, apply_pending/1]).

-spec names(binary()) -> [atom()].
names(Session) ->
    All = case is_own(Session) of
        true -> beamtalk_cell:session_names();
        false ->
            case beamtalk_session_keeper:variables(Session) of
                {ok, Variables} -> [Name || {Name, _} <- Variables];
                none -> []
            end
    end,
    [Name || Name <- All, beamtalk_session_keeper:is_visible(Name)].

-spec value(binary(), atom()) -> {ok, term()} | none.
value(Session, Name) ->
    case is_own(Session) of
        true -> beamtalk_cell:session_value(Name);
        false -> beamtalk_session_keeper:own_variable(Session, Name)
    end.

is_own(Session) -> get('$bt_session') =:= Session.

-spec write(binary(), atom(), term()) -> ok.
write(Session, Name, Value) -> later(Session, Name, {put, Value}).

-spec remove(binary(), atom()) -> ok.
remove(Session, Name) -> later(Session, Name, remove).

later(Session, Name, Change) ->
    case is_own(Session) of
        true ->
            Pending = case get('$bt_pending') of
                undefined -> [];
                Known -> Known
            end,
            put('$bt_pending', [{Name, Change} | Pending]),
            ok;
        false -> beamtalk_session_keeper:pend(Session, Name, beamtalk_cell:freeze(Change))
    end.

%% Called by the evaluator at the end of an evaluation.
-spec apply_pending(ets:tid()) -> ok.
apply_pending(Table) ->
    Others = [{Name, Change} || [Name, Change] <- ets:match(Table, {{pending, '$1'}, '$2'})],
    Others =:= [] orelse ets:match_delete(Table, {{pending, '_'}, '_'}),
    Own = case erase('$bt_pending') of
        undefined -> [];
        Pending -> lists:reverse(Pending)
    end,
    [change(Name, Change) || {Name, Change} <- Others ++ Own],
    ok.

change(Name, {put, Value}) -> beamtalk_cell:set_session(Name, Value);
change(Name, remove) -> beamtalk_cell:forget_session(Name).
