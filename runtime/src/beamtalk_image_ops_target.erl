%% What a request is about: an actor, a variable, a class or a value that is held, and the way from there further in.
%%
%% It is looked at where it lives, in the session's evaluator or in the actor: only what is shown is copied.
-module(beamtalk_image_ops_target).

-export([look/3, here/1, with_state/2, path/1, given/1, step/2]).

-import(beamtalk_image_ops_fields, [fail/2, fail/3]).

-type fields() :: beamtalk_image_ops_fields:fields().
-type looking() :: fun((term()) -> term()).

-define(ROOTS, [<<"ref">>, <<"binding">>, <<"class">>, <<"actor">>]).
%% How long an actor may take.
-define(LIMIT, 1000).

%% Answer what `Look' makes of the target. An actor is seen as its reference at the end of a path, and as its state on
%% the way.
-spec look(fields(), binary() | nil, looking()) -> term().
look(Fields, Session, Look) ->
    Path = path(Fields),
    See = fun(Root) -> inside(Path, Root, Look) end,
    Seen = case given(Fields) of
        [<<"ref">>] -> held(beamtalk_image_ops_fields:text(Fields, <<"ref">>), Session, See);
        [<<"binding">>] -> bound(beamtalk_image_ops_fields:text(Fields, <<"binding">>), Session, See);
        [<<"class">>] -> See(beamtalk_class:named(beamtalk_image_ops_fields:class(Fields, <<"class">>)));
        [_, _ | _] -> fail(invalid_parameter, "exactly one of 'actor', 'binding', 'class' and 'ref' is needed");
        _ ->
            case beamtalk_image_ops_actors:process(Fields) of
                {Pid, dead} -> fail(actor_not_alive, ["the actor ", beamtalk_plain:pid(Pid), " has ended"]);
                {_, {_, Known}} -> See(Known)
            end
    end,
    case Seen of
        {seen, Answer} -> Answer;
        %% From here on it is another process that has the value.
        {elsewhere, Actor, Rest} -> in_actor(Actor, Rest, Look)
    end.

%% The value itself, in the evaluator of the session that has it.
-spec here(fields()) -> term().
here(Fields) ->
    Root = case given(Fields) of
        [<<"ref">>] -> own({ref, beamtalk_image_ops_fields:text(Fields, <<"ref">>)});
        [<<"binding">>] ->
            Name = beamtalk_image_ops_fields:text(Fields, <<"binding">>),
            case beamtalk_image_ops_fields:existing(Name) of
                {ok, Variable} ->
                    case {beamtalk_held:find({variable, Variable}), beamtalk_workspace:global(Variable)} of
                        {{value, Value}, _} -> Value;
                        {none, {ok, Value}} -> Value;
                        _ -> unbound(Name)
                    end;
                none -> unbound(Name)
            end;
        _ -> look(Fields#{<<"path">> => nil}, nil, fun(Value) -> Value end)
    end,
    case inside(path(Fields), Root, fun(Inner) -> Inner end) of
        {seen, Found} -> Found;
        {elsewhere, Actor, Rest} -> in_actor(Actor, Rest, fun(Inner) -> Inner end)
    end.

own(Ref) ->
    case beamtalk_held:find(Ref) of
        {value, Value} -> Value;
        none -> fail(ref_gone, "the value is no longer held", <<"evaluate again">>)
    end.

-spec given(fields()) -> [binary()].
given(Fields) -> [Name || Name <- ?ROOTS, beamtalk_image_ops_fields:is_given(Fields, Name)].

-spec path(fields()) -> [binary() | integer()].
path(Fields) ->
    beamtalk_image_ops_fields:list(Fields, <<"path">>, fun(Step) -> is_binary(Step) orelse is_integer(Step) end).

%%% Where it lives

held(Ref, Session, Look) ->
    case beamtalk_held:ask(beamtalk_session_keeper:evaluator(Session), {ref, Ref}, Look) of
        {ok, Seen} -> Seen;
        {failed, Failure} -> throw({op_failed, Failure});
        busy -> fail(busy, "an evaluation runs in this session", <<"look again when it has ended">>);
        gone -> fail(ref_gone, "the value is no longer held", <<"evaluate again">>)
    end.

%% A variable is looked at where it is; while an evaluation runs, as the one before left it.
bound(Name, Session, Look) ->
    Asked = case beamtalk_image_ops_fields:existing(Name) of
        {ok, Variable} -> beamtalk_held:ask(beamtalk_session_keeper:evaluator(Session), {variable, Variable}, Look);
        none -> gone
    end,
    case Asked of
        {ok, Seen} -> Seen;
        {failed, Failure} -> throw({op_failed, Failure});
        _ -> Look(binding(Name, Session))
    end.

binding(Name, Session) ->
    case beamtalk_image_ops_fields:existing(Name) of
        {ok, Variable} ->
            case beamtalk_session_keeper:variable(Session, Variable) of
                {ok, Value} -> Value;
                none -> unbound(Name)
            end;
        none -> unbound(Name)
    end.

-spec unbound(binary()) -> no_return().
unbound(Name) -> fail(undefined_variable, ["the session has no variable '", Name, "'"]).

%% An actor itself is looked at from outside, and what is in its state in the actor.
in_actor(Actor, [], Look) -> Look(Actor);
in_actor(Actor, Path, Look) ->
    case in_process(Actor, fun(State) -> inside_named(Path, {actor, slot, slots(State)}, Look) end) of
        {seen, Found} -> Found;
        {elsewhere, Other, Rest} -> in_actor(Other, Rest, Look);
        unreadable -> fail(inspect_failed, [beamtalk_plain:text(Actor), " did not answer within 1 s"])
    end.

%% Do something in the actor, which sees its own state there. For one that does not answer it is done here: its state
%% is not to be had then.
-spec with_state(tuple(), fun(() -> Answer)) -> Answer when Answer :: term().
with_state(Actor, Do) ->
    Within = fun(State) ->
                     Before = put('$bt_state', State),
                     try {done, Do()}
                     after
                         case Before of
                             undefined -> erase('$bt_state');
                             _ -> put('$bt_state', Before)
                         end
                     end
             end,
    case in_process(Actor, Within) of
        {done, Answer} -> Answer;
        unreadable ->
            put('$bt_unreadable', true),
            try Do() after erase('$bt_unreadable') end
    end.

in_process({beamtalk_object, _, _, Target}, Do) ->
    Pid = beamtalk_actor:resolve(Target),
    {Self, Tag} = {self(), make_ref()},
    See = fun(State) ->
                  Self ! {Tag, try Do(State)
                               catch
                                   throw:{op_failed, Failure} -> {failed, Failure};
                                   _:_ -> unreadable
                               end},
                  State
          end,
    Answer = try
        is_pid(Pid) orelse exit(noproc),
        _ = sys:replace_state(Pid, See, ?LIMIT),
        receive {Tag, Seen} -> Seen after 0 -> unreadable end
    catch _:_ -> unreadable
    end,
    case Answer of
        {failed, Failure} -> throw({op_failed, Failure});
        _ -> Answer
    end.

slots(State) when is_map(State) -> beamtalk_inspector:slots(State);
slots(State) -> [{state, State}].

%%% The way in

inside(Path, {beamtalk_object, _, _, Process} = Actor, _) when not is_atom(Process) -> {elsewhere, Actor, Path};
inside([], Value, Look) -> {seen, Look(Value)};
inside([Step | Rest], Value, Look) when is_integer(Step), Step > 0 ->
    case beamtalk_window:look(Value, Step - 1, 1) of
        {collection, element, _, _, [{Step, Inner}]} -> inside(Rest, Inner, Look);
        _ -> inside_named([Step | Rest], beamtalk_inspector:look(Value), Look)
    end;
inside(Path, Value, Look) -> inside_named(Path, beamtalk_inspector:look(Value), Look).

inside_named([Step | Rest], {_, EntryKind, Entries}, Look) ->
    Named = [Inner || {Name, Inner} <- Entries, step(EntryKind, Name) =:= Step],
    case Named ++ [Inner || {Name, Inner} <- Entries, beamtalk_plain:label(Name) =:= Step] of
        [Inner | _] -> inside(Rest, Inner, Look);
        [] -> fail(inspect_failed, ["there is no field ", beamtalk_plain:text(Step)],
                   <<"The value may have changed; inspect it again from its root">>)
    end.

%% How a field is named in answers and paths. Keys are printed, so that `#a' and `"a"' are two; a label may stand for
%% them in a path.
-spec step(atom(), term()) -> binary() | integer().
step(_, Name) when is_integer(Name) -> Name;
step(association, Key) -> beamtalk_plain:text(Key);
step(_, Name) -> beamtalk_plain:label(Name).
