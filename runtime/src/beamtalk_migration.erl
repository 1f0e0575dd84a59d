%% Bringing living actors to the shape of a class that was loaded again.
%%
%% Every actor migrates between two messages. Those that are busy do it before their next one; nobody waits
%% for them.
-module(beamtalk_migration).

-export([shapes/1, run/1, log_dropped/3]).

-define(PATIENCE, 1000).

-type shapes() :: [{atom(), [atom()] | none}].

%% The slots of the classes and of everything below them, before a change.
-spec shapes([atom()]) -> shapes().
shapes(Classes) ->
    Affected = lists:usort(Classes ++ lists:append([beamtalk_class:all_subclasses(Class) || Class <- Classes])),
    [{Class, fields(Class)} || Class <- Affected].

fields(Class) ->
    case beamtalk_dispatch:info(Class) of
        #{fields := Fields} -> Fields;
        none -> none
    end.

%% Migrate the actors of the classes whose slots differ from what they were, and those that could not follow an
%% earlier change; answers how many actors the classes have, and the failures.
-spec run(shapes()) -> #{affected := non_neg_integer(), failures := [{pid(), binary()}]}.
run(Shapes) ->
    Known = [Class || {Class, Fields} <- Shapes, Fields =/= none],
    Actors = actors(Known),
    Changed = [Class || {Class, Fields} <- Shapes, Fields =/= none,
                        fields(Class) =/= Fields orelse beamtalk_former:is_remembered(Class)],
    Moving = [{Pid, Class} || {Pid, Class} <- Actors, lists:member(Class, Changed)],
    {Migrated, Failures} = migrate(Moving),
    Behind = [Class || {_, Class} <- Moving -- Migrated],
    [beamtalk_former:forget(Class) || Class <- Changed, not lists:member(Class, Behind)],
    #{affected => length(Actors), failures => Failures}.

actors([]) -> [];
actors(Classes) ->
    [{Pid, Class} || {_, Class, _, Pid} <- beamtalk_actor_class:all(), is_pid(Pid), lists:member(Class, Classes),
                     not is_native(Class)].

is_native(Class) ->
    case beamtalk_dispatch:info(Class) of
        #{native := nil} -> false;
        _ -> true
    end.

migrate([]) -> {[], []};
migrate(Moving) ->
    Reference = make_ref(),
    [gen_server:cast(Pid, {'$bt_migrate', self(), Reference}) || {Pid, _} <- Moving],
    Deadline = erlang:monotonic_time(millisecond) + ?PATIENCE,
    Answers = collect(Reference, maps:from_list(Moving), Deadline, []),
    Dropped = [{Class, Slots} || {_, Class, {migrated, [_ | _] = Slots}} <- Answers],
    [log_dropped(Class, Slots, Count) || {{Class, Slots}, Count} <- counted(Dropped)],
    Migrated = [{Pid, Class} || {Pid, Class, {migrated, _}} <- Answers],
    {Migrated, [{Pid, Text} || {Pid, _, {failed, Text}} <- Answers]}.

collect(_, Waiting, _, Answers) when map_size(Waiting) =:= 0 -> Answers;
collect(Reference, Waiting, Deadline, Answers) ->
    receive
        {Reference, Pid, Outcome} ->
            {Class, Rest} = maps:take(Pid, Waiting),
            collect(Reference, Rest, Deadline, [{Pid, Class, Outcome} | Answers])
    after max(0, Deadline - erlang:monotonic_time(millisecond)) -> Answers
    end.

counted(Items) ->
    maps:to_list(lists:foldl(fun(Item, Acc) -> maps:update_with(Item, fun(N) -> N + 1 end, 1, Acc) end, #{}, Items)).

-spec log_dropped(atom(), [atom()], pos_integer()) -> ok.
log_dropped(Class, Slots, Count) ->
    Names = lists:join(", ", [atom_to_list(Slot) || Slot <- Slots]),
    logger:warning("~ts: removed slots (~ts) of ~b actor(s) are dropped", [Class, Names, Count],
                   #{domain => [beamtalk, runtime]}).
