%% The process in which the inputs of a session run, one after another. Its dictionary holds the session's
%% variables; after each input those that changed are copied to the keeper's table, in one step.
-module(beamtalk_session_evaluator).

-export([init/3]).

%% Give memory back this long after the last input.
-define(IDLE, 1000).
-define(VALUE_LIMIT, 65536).
%% As the daemon names it.
-define(RECEIVER, beamtalkReceiver).

-spec init(pid(), binary(), ets:tid()) -> no_return().
init(Keeper, Session, Table) ->
    group_leader(Keeper, self()),
    beamtalk_cell:start_session(Session),
    Saved = maps:from_list([restore(Entry) || {Name, _} = Entry <- ets:tab2list(Table), is_atom(Name)]),
    idle(Keeper, Table, Saved).

restore({Name, Value}) ->
    beamtalk_cell:set_session(Name, Value),
    {{'$bt_session', Name}, get({'$bt_session', Name})}.

%% Saved maps a variable's key to its entry of the dictionary as the table has it.
idle(Keeper, Table, Saved) ->
    receive
        {evaluate, Id, Args} -> evaluate(Id, Args, Keeper, Table, Saved);
        {look, From, Wanted, Look} -> looked(From, Wanted, Look, Keeper, Table, Saved);
        {forget, Name} -> forget(Name, Keeper, Table, Saved)
    after ?IDLE ->
        collect(),
        receive
            {evaluate, Id, Args} -> evaluate(Id, Args, Keeper, Table, Saved);
            {look, From, Wanted, Look} -> looked(From, Wanted, Look, Keeper, Table, Saved);
            {forget, Name} -> forget(Name, Keeper, Table, Saved)
        end
    end.

%% The keeper's table has it no more.
forget(Name, Keeper, Table, Saved) ->
    beamtalk_cell:forget_session(Name),
    idle(Keeper, Table, maps:remove({'$bt_session', Name}, Saved)).

%% Somebody looks at a value that is here.
looked(From, Wanted, Look, Keeper, Table, Saved) ->
    beamtalk_held:serve(From, Wanted, Look),
    idle(Keeper, Table, Saved).

evaluate(Id, Args, Keeper, Table, Saved) ->
    Words = maps:get(<<"heap_words">>, Args, 0),
    process_flag(max_heap_size, beamtalk_guard:heap_flag(Words + kept(Words))),
    Binaries = beamtalk_guard:binaries(),
    Started = erlang:monotonic_time(millisecond),
    put('$bt_chain', [{Keeper, output}]),
    Frame = case outcome(Args) of
        {ok, Answer} -> {res, Id, Answer};
        {error, Error} -> {err, Id, Error}
    end,
    within_memory(beamtalk_guard:check_binaries(Words, Binaries, Started), Keeper, Id),
    beamtalk_session_variables:apply_pending(Table),
    element(1, Frame) =:= err andalso maps:get(<<"undo">>, Args, false) andalso undo(Saved),
    {NewSaved, IsNew} = save(get('$bt_session'), Table, Saved),
    erase('$bt_chain'),
    %% What was sent counts for everybody as soon as the input is answered.
    beamtalk_tracing:flush(),
    Keeper ! {evaluated, Id, with_names(IsNew, NewSaved, Frame)},
    idle(Keeper, Table, NewSaved).

%% What earlier inputs left is not held against this one. Their garbage goes first; what lives is counted once, where the
%% VM counts both copies while it collects.
kept(Words) ->
    case Words > 0 andalso heap_size() > Words div 4 of
        false -> 0;
        true ->
            collect(),
            heap_size()
    end.

heap_size() -> element(2, process_info(self(), total_heap_size)).

%% A collection for its own sake ends nobody.
collect() ->
    Limit = process_flag(max_heap_size, 0),
    erlang:garbage_collect(),
    process_flag(max_heap_size, Limit).

%% Nothing of an evaluation that took too much is kept, also when nobody noticed before its end.
within_memory(ok, _, _) -> ok;
within_memory({error, Error}, Keeper, Id) ->
    Keeper ! {exceeded, Id, Error},
    receive after infinity -> ok end.

%%% The copy of the variables

%% The variables as the input before left them.
undo(Saved) ->
    [beamtalk_cell:forget_session(Name) || {{'$bt_session', Name} = Key, {value, _}} <- get(),
                                           beamtalk_session_keeper:is_visible(Name), not is_map_key(Key, Saved)],
    maps:foreach(fun put/2, Saved).

%% Entries of the dictionary are tuples made by each assignment, so the very same tuple means that the
%% variable was not assigned, however large its value. The last value and the last error are not copied.
save(Session, Table, Saved) ->
    Now = maps:from_list([Entry || {{'$bt_session', Name}, {value, _}} = Entry <- get(),
                                   beamtalk_session_keeper:is_visible(Name)]),
    Changed = [{Name, Value} || {{_, Name} = Key, {value, Value} = Entry} <- maps:to_list(Now),
                                not is_same(Entry, maps:get(Key, Saved, none))],
    Gone = [Name || {_, Name} = Key <- maps:keys(Saved), not is_map_key(Key, Now)],
    Changed =:= [] orelse ets:insert(Table, Changed),
    [ets:delete(Table, Name) || Name <- Gone],
    {Changed, Gone} =:= {[], []} orelse beamtalk_workspace:bindings_changed(Session),
    {Now, Gone =/= [] orelse map_size(Now) =/= map_size(Saved)}.

is_same(A, B) -> erts_debug:same(A, B).

with_names(true, Saved, {Tag, Id, Map}) ->
    Names = [atom_to_binary(Name) || {_, Name} <- maps:keys(Saved)],
    {Tag, Id, Map#{<<"names">> => lists:sort(Names)}};
with_names(false, _, Frame) -> Frame.

%%% One input

outcome(#{<<"modules">> := [_ | _] = Modules} = Args) ->
    case beamtalk_bridge_load:load([{forms, Forms} || Forms <- Modules], Args) of
        {ok, Loaded} ->
            case expressions(Args) of
                {Tag, Answer} -> {Tag, maps:merge(maps:with([<<"classes">>, <<"migration_failures">>], Loaded), Answer)}
            end;
        {error, Error} -> {error, Error}
    end;
outcome(#{<<"self">> := Target} = Args) ->
    case self_of(Target) of
        {ok, Self} -> with_self(Self, Args);
        {error, Error} -> {error, Error}
    end;
outcome(Args) -> expressions(Args).

%%% Code with a self of its own

%% A value has it as a method of its class would; an actor is sent it as a message, being in a variable meanwhile.
with_self(Self, #{<<"method">> := Method} = Args) ->
    Ran = try {value, beamtalk_hot_code:run_method(binary_to_term(Method), Self)}
          catch Class:Reason:Stack -> {raised, beamtalk_error:from_caught(Class, Reason, Stack)}
          end,
    shown(Ran, Args);
with_self(Self, Args) ->
    beamtalk_cell:set_session(?RECEIVER, Self),
    try expressions(Args)
    after beamtalk_cell:forget_session(?RECEIVER)
    end.

self_of(Target) ->
    try {ok, beamtalk_image_ops_target:here(Target)}
    catch throw:{op_failed, Failure} -> {error, Failure}
    end.

expressions(#{<<"steps">> := Steps} = Args) when is_list(Steps) -> steps(Steps, Args, []);
expressions(#{<<"expression">> := Binary} = Args) when is_binary(Binary) -> shown(beamtalk_eval:value(Binary), Args);
expressions(_) -> {ok, #{}}.

%% The value of every step; the last one is the answer.
steps([#{<<"expression">> := Binary} = Step | Rest], Args, Done) ->
    Outcome = shown(beamtalk_eval:value(Binary), maps:merge(Args, Step)),
    case {Outcome, Rest} of
        {{ok, #{<<"text">> := Text}}, [_ | _]} -> steps(Rest, Args, [step(Step, Text) | Done]);
        {{ok, #{<<"text">> := Text} = Answer}, []} ->
            {ok, Answer#{<<"steps">> => lists:reverse([step(Step, Text) | Done])}};
        {{Tag, Answer}, _} -> {Tag, Answer#{<<"steps">> => lists:reverse(Done)}}
    end;
steps([], _, _) -> {ok, #{}}.

step(Step, Text) -> (maps:with([<<"src">>], Step))#{<<"text">> => Text}.

%% Printing runs methods of the image, which may fail.
shown({value, Value}, Args) ->
    try beamtalk_session_view:shown(Value, Args, maps:get(<<"value_bytes">>, Args, ?VALUE_LIMIT)) of
        Shown -> {ok, held(Value, Args, Shown)}
    catch Class:Reason:Stack -> failed(beamtalk_error:from_caught(Class, Reason, Stack), Args)
    end;
shown({ended, Status}, _) -> {ok, #{<<"exit_code">> => Status, <<"text">> => <<>>}};
shown({raised, Exception}, Args) -> failed(Exception, Args).

held(Value, #{<<"hold">> := true}, Shown) -> Shown#{<<"ref">> => beamtalk_held:hold(Value)};
held(_, _, Shown) -> Shown.

failed(Exception, Args) ->
    Error = beamtalk_bridge_error:of_exception(Exception),
    {error, retained(Exception, Args, with_line(beamtalk_eval:failed_line(), Error))}.

%% The exception itself can be looked at, and what the message that failed was sent with.
retained(Exception, #{<<"hold_failure">> := true}, Error) ->
    Held = in_actor(Exception, Error#{<<"ref">> => beamtalk_held:hold(Exception)}),
    case beamtalk_error:retained(Exception) of
        {Receiver, Arguments} ->
            Kept = #{<<"receiver">> => beamtalk_held:hold(Receiver),
                     <<"arguments">> => [beamtalk_held:hold(Argument) || Argument <- Arguments]},
            Held#{<<"stack">> => on_top(Kept, maps:get(<<"stack">>, Error, []), Error)};
        none -> Held
    end;
retained(_, _, Error) -> Error.

%% An error that came from an actor names it.
in_actor(#{error := E}, Error) ->
    case get('$bt_failed_in') of
        {E, {beamtalk_object, _, _, Target}} ->
            case beamtalk_actor:resolve(Target) of
                Pid when is_pid(Pid) ->
                    Details = maps:get(<<"details">>, Error, #{}),
                    Error#{<<"details">> => Details#{<<"actor">> => beamtalk_plain:pid(Pid)}};
                _ -> Error
            end;
        _ -> Error
    end;
in_actor(_, Error) -> Error.

%% What was sent from the input itself has no frame of its own.
on_top(Kept, [Frame | Rest], _) -> [maps:merge(Frame, Kept) | Rest];
on_top(Kept, [], Error) -> [maps:merge(maps:with([<<"class">>, <<"selector">>], Error), Kept)].

%% Where nothing below the input has a place, its own line is the place.
with_line(Line, Error) when is_integer(Line), not is_map_key(<<"location">>, Error) ->
    Error#{<<"location">> => #{<<"file">> => <<"session">>, <<"line">> => Line}};
with_line(_, Error) -> Error.
