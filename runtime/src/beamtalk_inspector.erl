%% Primitives of Inspector: an immutable cursor into one object.
%%
%% The snapshot is taken when the cursor is made; collections are shown in
%% windows, everything else whole.
-module(beamtalk_inspector).

-export(['class on:'/2]).
-export([look/1, slots/1, is_drillable/1]).
-export([subject/1, kind/1, fields/1, size/1, 'at:'/2, 'page:'/2, 'evaluate:'/2, parent/1, root/1,
         path/1, refresh/1, 'printStringExpanded:'/2, asDictionaries/1, asDictionary/1]).

-define(WINDOW, 50).
-define(LIMIT, 1000).
-define(CLASS, 'Inspector').

-type inspector() :: #{'$beamtalk_class' := 'Inspector', target := term(), subject := term(),
                       kind := value | actor | collection | foreign,
                       entries := [{term(), term()}], entry_kind := atom(), page := pos_integer(),
                       parent := inspector() | nil, path := list()}.

-spec 'class on:'(term(), term()) -> inspector().
'class on:'(_Class, Target) ->
    cursor(Target, nil, []).

cursor(Target, Parent, Path) ->
    {Kind, Subject, EntryKind, Entries} = snapshot(Target),
    #{'$beamtalk_class' => ?CLASS, target => Target, subject => Subject, kind => Kind,
      entries => Entries, entry_kind => EntryKind, page => 1, parent => Parent, path => Path}.

%% What there is to see without sending a message: kind, kind of the entries, entries.
-spec look(term()) -> {value | actor | collection | foreign, atom(), [{term(), term()}]}.
look(Target) ->
    {Kind, _, EntryKind, Entries} = snapshot(Target, fun quiet_elements/1),
    {Kind, EntryKind, Entries}.

%% An Interval is shown by its ends: its elements may be too many.
quiet_elements(#{'$beamtalk_class' := 'Interval'}) -> none;
quiet_elements(Target) -> beamtalk_collection:native_elements(Target).

%%% Snapshots

snapshot(Target) -> snapshot(Target, fun(Collection) -> {ok, beamtalk_collection:elements(Collection)} end).

%% `Elements' answers those of a collection that is not a Dictionary, or `none'.
snapshot({beamtalk_object, _, _, Process} = Actor, _) when is_pid(Process);
                                                                    element(1, Process) =:= registered ->
    case actor_state(Actor) of
        {ok, State} ->
            {actor, State, slot, slots(State)};
        error ->
            {actor, nil, slot, [{status, unavailable}]}
    end;
snapshot({beamtalk_object, _, _, _} = Class, _) ->
    {value, Class, slot, []};
snapshot({beamtalk_supervisor, _, _, Pid} = Supervisor, _) ->
    {foreign, Supervisor, processInfo, process_facts(Pid)};
snapshot(Pid, _) when is_pid(Pid) ->
    {foreign, Pid, processInfo, process_facts(Pid)};
snapshot(Text, _) when is_binary(Text) ->
    {value, Text, slot, []};
snapshot(Target, Elements) ->
    case beamtalk_dispatch:is_kind_of(Target, 'Collection') of
        true -> collection(Target, Elements);
        false -> value(Target)
    end.

%% The slots in the state of an actor.
-spec slots(map()) -> [{atom(), term()}].
slots(State) -> lists:sort([{Name, Value} || {Name, Value} <- maps:to_list(State), is_field(Name)]).

collection(Target, Elements) ->
    case beamtalk_dispatch:class_name(Target) of
        'Dictionary' ->
            {collection, Target, association, lists:sort(maps:to_list(Target))};
        _ ->
            case Elements(Target) of
                {ok, All} -> {collection, Target, element, lists:zip(lists:seq(1, length(All)), All)};
                none -> value(Target)
            end
    end.

value(Target) -> {value, Target, slot, value_fields(Target)}.

value_fields(#{'$beamtalk_class' := _} = Value) ->
    [{Name, maps:get(Name, Value)} || Name <- beamtalk_value:field_names(Value)];
value_fields(_) ->
    [].

is_field('$beamtalk_class') -> false;
is_field(Name) when is_atom(Name) -> string:prefix(atom_to_list(Name), "__") =:= nomatch;
is_field(_) -> false.

%% The slots an actor has now, asked once with a limit.
actor_state({beamtalk_object, Class, _, Target}) ->
    case beamtalk_actor:resolve(Target) of
        Pid when Pid =:= self() ->
            own_state();
        Pid when is_pid(Pid) ->
            case {get('$bt_unreadable'), beamtalk_dispatch:info(Class)} of
                {true, _} -> error;
                {_, #{native := nil}} -> asked_state(Pid);
                _ -> native_state(asked_state(Pid))
            end;
        undefined ->
            error
    end.

own_state() ->
    case get('$bt_state') of
        undefined -> error;
        State -> native_state({ok, State})
    end.

asked_state(Pid) ->
    try sys:get_state(Pid, ?LIMIT) of
        State -> {ok, State}
    catch
        _:_ -> error
    end.

%% The process of a native class may have any term for its state.
native_state({ok, State}) when not is_map(State) -> {ok, #{state => State}};
native_state(Other) -> Other.

process_facts(Pid) ->
    Items = [current_function, initial_call, links, memory, message_queue_len, reductions,
             registered_name, status],
    case process_info(Pid, Items) of
        undefined -> [{status, dead}];
        Facts -> lists:sort([{Name, Value} || {Name, Value} <- Facts])
    end.

%%% Questions

-spec subject(inspector()) -> term().
subject(#{subject := Subject}) -> Subject.

-spec kind(inspector()) -> atom().
kind(#{kind := Kind}) -> Kind.

-spec parent(inspector()) -> inspector() | nil.
parent(#{parent := Parent}) -> Parent.

-spec root(inspector()) -> inspector().
root(#{parent := nil} = Self) -> Self;
root(#{parent := Parent}) -> root(Parent).

-spec path(inspector()) -> list().
path(#{path := Path}) -> Path.

-spec size(inspector()) -> non_neg_integer().
size(#{entries := Entries}) -> length(Entries).

-spec fields(inspector()) -> [map()].
fields(#{entry_kind := Kind} = Self) ->
    [#{'$beamtalk_class' => 'InspectorField', name => Name, label => beamtalk_display:display(Name),
       value => Value, kind => Kind, drillable => is_drillable(Value)}
     || {Name, Value} <- window(Self)].

window(#{kind := collection, entries := Entries, page := Page}) ->
    Skipped = (Page - 1) * ?WINDOW,
    case length(Entries) =< Skipped of
        true -> [];
        false -> lists:sublist(lists:nthtail(Skipped, Entries), ?WINDOW)
    end;
window(#{entries := Entries}) ->
    Entries.

-spec is_drillable(term()) -> boolean().
is_drillable(Value) when is_number(Value); is_atom(Value); is_binary(Value); is_function(Value);
                         is_reference(Value); is_port(Value) ->
    false;
is_drillable({beamtalk_object, _, _, Name}) when is_atom(Name) ->
    false;
is_drillable(_) ->
    true.

-spec 'at:'(inspector(), term()) -> map().
'at:'(#{entries := Entries, path := Path} = Self, Key) ->
    case [Value || {Name, Value} <- Entries, Name =:= Key] of
        [Value | _] ->
            beamtalk_result:ok(cursor(Value, Self, Path ++ [Key]));
        [] ->
            Hint = <<"No field ", (beamtalk_display:print(Key))/binary>>,
            beamtalk_result:failure(no_such_field, ?CLASS, 'at:', Hint, #{key => Key})
    end.

-spec 'page:'(inspector(), term()) -> map().
'page:'(Self, Page) ->
    beamtalk_argument:positive(Page, ?CLASS, 'page:'),
    case Self of
        #{kind := collection} -> beamtalk_result:ok(Self#{page := Page});
        _ -> beamtalk_result:failure(not_a_collection, ?CLASS, 'page:',
                                     <<"Only collections have pages">>, #{})
    end.

-spec 'evaluate:'(inspector(), term()) -> map().
'evaluate:'(#{kind := Kind, subject := Subject}, Source) ->
    beamtalk_argument:string(Source, ?CLASS, 'evaluate:'),
    case Kind =:= actor orelse Kind =:= foreign of
        true ->
            beamtalk_result:failure(actor_eval_unsupported, ?CLASS, 'evaluate:',
                                    <<"Send the actor a message instead">>, #{});
        false ->
            evaluate(Source, Subject)
    end.

%% Needs the compiler beside the node; the source is run as a method of the subject's class that is
%% installed nowhere.
evaluate(Source, Subject) ->
    case beamtalk_compiler_port:is_attached() of
        true ->
            Run = fun() ->
                          {Class, Side} = class_and_side(Subject),
                          Request = {evaluate, Class, Side, inspectorEvaluation, Source},
                          Forms = beamtalk_compiler_port:request(?CLASS, 'evaluate:', Request),
                          beamtalk_result:ok(beamtalk_hot_code:run_method(Forms, Subject))
                  end,
            beamtalk_block:on_do(Run, nil, fun(E) -> eval_failed(beamtalk_error:field(E, message)) end);
        false ->
            eval_failed(<<"There is no compiler beside this node">>)
    end.

class_and_side({beamtalk_object, _, _, Name}) when is_atom(Name) -> {Name, class};
class_and_side(Subject) -> {beamtalk_dispatch:class_name(Subject), instance}.

eval_failed(Message) ->
    beamtalk_result:failure(eval_failed, ?CLASS, 'evaluate:', Message, nil, #{}).

-spec refresh(inspector()) -> inspector().
refresh(#{target := Target, parent := Parent, path := Path}) ->
    cursor(Target, Parent, Path).

%%% Text

-spec 'printStringExpanded:'(inspector(), term()) -> binary().
'printStringExpanded:'(Self, Depth) ->
    beamtalk_argument:integer(Depth, ?CLASS, 'printStringExpanded:'),
    iolist_to_binary(lists:join("\n", tree(Self, Depth, []))).

%% The lines of a cursor; `Above' are the actors on the way to it.
tree(#{target := Target} = Self, Depth, Above) ->
    Header = <<"Inspector(", (class_text(Target))/binary, ")">>,
    [Header | lists:flatmap(fun({Name, Value}) ->
                                    entry(beamtalk_display:display(Name), Value, Self, Depth,
                                          [Target | Above])
                            end, window(Self))].

entry(Label, Value, Self, Depth, Above) ->
    case {lists:member(Value, Above) andalso is_actor(Value), Depth > 1 andalso is_drillable(Value)} of
        {true, _} ->
            [<<"  ", Label/binary, ": ", "↩ "/utf8, (beamtalk_display:native(Value))/binary>>];
        {false, true} ->
            [First | Rest] = tree(cursor(Value, Self, []), Depth - 1, Above),
            [<<"  ", Label/binary, ": ", First/binary>> | [<<"  ", Line/binary>> || Line <- Rest]];
        _ ->
            [<<"  ", Label/binary, ": ", (text(Value))/binary>>]
    end.

is_actor({beamtalk_object, _, _, Process}) -> not is_atom(Process);
is_actor(_) -> false.

%% An actor is not asked for its printString, so a stuck one cannot hold this up.
text(Value) ->
    case is_actor(Value) of
        true -> beamtalk_display:native(Value);
        false -> beamtalk_display:print(Value)
    end.

class_text({beamtalk_object, Class, _, _}) -> atom_to_binary(Class);
class_text(Target) -> atom_to_binary(beamtalk_dispatch:class_name(Target)).

-spec asDictionaries(inspector()) -> [map()].
asDictionaries(Self) ->
    [#{name => Name, label => Label, value => text(Value), kind => Kind, drillable => Drillable}
     || #{name := Name, label := Label, value := Value, kind := Kind, drillable := Drillable} <- fields(Self)].

-spec asDictionary(inspector()) -> map().
asDictionary(#{kind := Kind, path := Path, page := Page, entries := Entries} = Self) ->
    #{kind => Kind, path => Path, childCount => length(Entries), page => Page,
      fields => asDictionaries(Self)}.
