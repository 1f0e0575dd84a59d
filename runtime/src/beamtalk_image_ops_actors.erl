%% Requests about actors and the processes around them.
-module(beamtalk_image_ops_actors).

-export([actors/1, inspect/2, pid_stats/1, top_actors/1, supervision_tree/1, kill/1]).
-export([stop/1, process/1]).

-import(beamtalk_image_ops_fields, [fail/2, fail/3]).

-type fields() :: beamtalk_image_ops_fields:fields().

-define(WINDOW, 50).
-define(LARGEST, 500).
%% Rows and classes in one answer.
-define(MOST, 200).

-spec actors(fields()) -> map().
actors(Fields) ->
    Wanted = beamtalk_image_ops_fields:optional_class(Fields, <<"class">>),
    #{actors => [actor(Pid, Class, Module)
                 || {_, Class, Module, Pid} <- beamtalk_actor_class:all(),
                    Wanted =:= none orelse beamtalk_class:inherits(Class, Wanted)]}.

actor(Pid, Class, Module) ->
    #{pid => beamtalk_plain:pid(Pid), class => Class, module => Module, spawned_at => spawned_at(Pid),
      name => registered_name(Pid)}.

%% Seconds since 1970.
spawned_at(Pid) ->
    case process_info(Pid, dictionary) of
        {dictionary, Dictionary} ->
            case lists:keyfind('$bt_started', 1, Dictionary) of
                {_, {_, Started}} -> seconds(Started);
                false -> native_start(beamtalk_native_actor:find(Pid))
            end;
        undefined -> nil
    end.

native_start({_, Started}) -> seconds(Started);
native_start(none) -> nil.

seconds(Started) -> erlang:convert_time_unit(Started + erlang:time_offset(), native, second).

registered_name(Pid) ->
    case process_info(Pid, registered_name) of
        {registered_name, Name} -> Name;
        _ -> nil
    end.

%%% The busiest

%% Which actors come first in an order. Only those are looked at closely: there may be many.
-spec top_actors(fields()) -> map().
top_actors(Fields) ->
    Order = beamtalk_image_ops_fields:choice(Fields, <<"sort">>, [queue, memory, reductions, class, name], queue),
    Limit = min(beamtalk_image_ops_fields:integer(Fields, <<"limit">>, 0, ?WINDOW), ?MOST),
    All = [{Class, Pid} || {_, Class, _, Pid} <- beamtalk_actor_class:all(), is_pid(Pid)],
    Counts = lists:foldl(fun({Class, _}, Done) -> maps:update_with(Class, fun(N) -> N + 1 end, 1, Done) end, #{}, All),
    First = case Limit of
        0 -> [];
        _ -> lists:sublist(lists:sort([{key(Order, Class, Pid), Class, Pid} || {Class, Pid} <- All]), Limit)
    end,
    #{total => length(All),
      classes => [#{class => Class, count => Count} || {Count, Class} <- by_count(Counts)],
      actors => [Row || {_, Class, Pid} <- First, Row <- top_actor(Class, Pid)]}.

by_count(Counts) ->
    Largest = lists:sort([{-Count, Class} || {Class, Count} <- maps:to_list(Counts)]),
    [{-Count, Class} || {Count, Class} <- lists:sublist(Largest, ?MOST)].

key(class, Class, _) -> Class;
key(name, _, Pid) ->
    case registered_name(Pid) of
        Name when Name =:= nil; Name =:= [] -> {1, nil};
        Name -> {0, Name}
    end;
key(queue, _, Pid) -> {largest(Pid, message_queue_len), largest(Pid, reductions)};
key(Order, _, Pid) -> largest(Pid, Order).

largest(Pid, Item) ->
    case process_info(Pid, Item) of
        {_, Number} -> -Number;
        undefined -> 0
    end.

%% One that ended meanwhile has no row.
top_actor(Class, Pid) ->
    case process_info(Pid, [message_queue_len, memory, reductions, status, current_stacktrace]) of
        undefined -> [];
        [{_, Length}, {_, Memory}, {_, Reductions}, _, {_, Stack}] ->
            [#{pid => beamtalk_plain:pid(Pid), class => Class, name => registered_name(Pid), queue_len => Length,
               memory => Memory, reductions => Reductions, message => message(Stack)}]
    end.

%% The method an actor is in: the outermost that its stack shows.
message(Stack) ->
    case lists:reverse(beamtalk_stack:frames(Stack)) of
        [#{method := Method} | _] when is_atom(Method), Method =/= nil -> atom_to_binary(Method);
        _ -> nil
    end.

%%% Which process is meant

%% The process the field `actor' names, by pid or by registered name, and what it is.
-spec process(fields()) -> {pid(), {actor, tuple()} | {supervisor, tuple()} | dead}.
process(Fields) ->
    Text = beamtalk_image_ops_fields:text(Fields, <<"actor">>),
    case pid(Text) of
        none -> invalid_actor(Text);
        Pid -> {Pid, known(Pid, Text)}
    end.

pid(Text) ->
    case re:run(Text, "\\A<?(0\\.[0-9]{1,9}\\.[0-9]{1,9})>?\\z", [{capture, all_but_first, list}]) of
        {match, [Number]} ->
            try list_to_pid("<" ++ Number ++ ">")
            catch error:badarg -> none
            end;
        nomatch ->
            case beamtalk_image_ops_fields:existing(Text) of
                {ok, Name} -> registered_pid(Name);
                none -> none
            end
    end.

registered_pid(Name) ->
    case whereis(Name) of
        Pid when is_pid(Pid) -> Pid;
        _ -> none
    end.

known(Pid, Text) ->
    case process_info(Pid, dictionary) of
        undefined -> dead;
        {dictionary, Dictionary} ->
            case {beamtalk_actor_class:reference_of(Pid), lists:keyfind('$bt_supervisor', 1, Dictionary)} of
                {{ok, Actor}, _} -> {actor, Actor};
                {_, {_, Supervisor}} -> {supervisor, Supervisor};
                _ -> invalid_actor(Text)
            end
    end.

-spec invalid_actor(binary()) -> no_return().
invalid_actor(Text) -> fail(invalid_actor, ["'", Text, "' is no actor of this workspace"]).

-spec not_alive(pid()) -> no_return().
not_alive(Pid) -> fail(actor_not_alive, ["the actor ", beamtalk_plain:pid(Pid), " has ended"]).

%%% Looking inside

-spec inspect(fields(), binary()) -> map().
inspect(Fields, Session) ->
    Look = look(Fields),
    case [Name || Name <- [<<"ref">>, <<"binding">>], beamtalk_image_ops_fields:is_given(Fields, Name)] of
        [<<"ref">> | _] -> held(beamtalk_image_ops_fields:text(Fields, <<"ref">>), Session, Look);
        [<<"binding">>] -> bound(beamtalk_image_ops_fields:text(Fields, <<"binding">>), Session, Look);
        [] ->
            case process(Fields) of
                {Pid, dead} -> not_alive(Pid);
                {_, {_, Known}} -> Look(Known)
            end
    end.

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

%% What is answered about a value. It runs in the process that has the value, and copies only what is shown.
look(Fields) ->
    IsStep = fun(Step) -> is_binary(Step) orelse is_integer(Step) end,
    Path = beamtalk_image_ops_fields:list(Fields, <<"path">>, IsStep),
    Page = beamtalk_image_ops_fields:integer(Fields, <<"page">>, 1, 1),
    Offset = beamtalk_image_ops_fields:integer(Fields, <<"offset">>, 0, (Page - 1) * ?WINDOW),
    Limit = min(beamtalk_image_ops_fields:integer(Fields, <<"limit">>, 1, ?WINDOW), ?LARGEST),
    Understands = beamtalk_image_ops_fields:boolean(Fields, <<"understands">>, false),
    fun(Target) ->
        Found = follow(Path, Target),
        {Kind, EntryKind, Order, Total, Entries} = beamtalk_window:look(Found, Offset, Limit),
        Seen = #{kind => Kind, class => beamtalk_plain:class(Found), total => Total, order => Order,
                 text => beamtalk_plain:text(Found),
                 fields => [field(EntryKind, Name, Value) || {Name, Value} <- Entries]},
        case Understands of
            true -> Seen#{understands => understood(Found)};
            false -> Seen
        end
    end.

%% The messages a value understands by the class they come from, its own first; each in one place only.
understood(Value) ->
    {Classes, _} = lists:mapfoldl(fun({Name, Behaviour}, Seen) ->
                                          Own = [S || S <- beamtalk_reflect:own_selectors(Behaviour),
                                                      not is_map_key(S, Seen)],
                                          {#{class => Name, selectors => lists:sort(Own)},
                                           maps:merge(Seen, maps:from_keys(Own, true))}
                                  end, #{}, behaviours(Value)),
    [Class || #{selectors := [_ | _]} = Class <- Classes].

behaviours({beamtalk_object, _, _, Class}) when is_atom(Class) ->
    [{<<(atom_to_binary(Name))/binary, " class">>, beamtalk_reflect:metaclass(Name)} || Name <- lineage(Class)]
        ++ instance_side(lineage('Class'));
behaviours(Value) -> instance_side(lineage(beamtalk_plain:class(Value))).

instance_side(Classes) -> [{atom_to_binary(Name), beamtalk_class:named(Name)} || Name <- Classes].

lineage(Class) ->
    case beamtalk_dispatch:info(Class) of
        #{ancestors := Ancestors} -> [Class | Ancestors];
        _ -> []
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

follow([], Value) -> Value;
follow([Step | Rest], Value) when is_integer(Step), Step > 0 ->
    case beamtalk_window:look(Value, Step - 1, 1) of
        {collection, element, _, _, [{Step, Inner}]} -> follow(Rest, Inner);
        _ -> follow_named([Step | Rest], Value)
    end;
follow(Path, Value) -> follow_named(Path, Value).

follow_named([Step | Rest], Value) ->
    {_, EntryKind, Entries} = beamtalk_inspector:look(Value),
    Named = [Inner || {Name, Inner} <- Entries, step(EntryKind, Name) =:= Step],
    case Named ++ [Inner || {Name, Inner} <- Entries, beamtalk_plain:label(Name) =:= Step] of
        [Inner | _] -> follow(Rest, Inner);
        [] -> fail(inspect_failed, ["there is no field ", beamtalk_plain:text(Step)],
                   <<"The value may have changed; inspect it again from its root">>)
    end.

%% How a field is named in answers and paths. Keys are printed, so that `#a' and `"a"' are two; a label may stand for
%% them in a path.
step(_, Name) when is_integer(Name) -> Name;
step(association, Key) -> beamtalk_plain:text(Key);
step(_, Name) -> beamtalk_plain:label(Name).

field(EntryKind, Name, Value) ->
    #{name => step(EntryKind, Name), label => beamtalk_plain:label(Name), text => beamtalk_plain:text(Value),
      class => beamtalk_plain:class(Value), drillable => beamtalk_inspector:is_drillable(Value)}.

%% The status of the process is told below `stats' only: beside the others it would take the place of the answer's own.
-spec pid_stats(fields()) -> map().
pid_stats(Fields) ->
    {Pid, _} = process(Fields),
    Stats = case process_info(Pid, [message_queue_len, memory, reductions, status, current_function]) of
        undefined -> #{status => dead};
        [{_, Length}, {_, Memory}, {_, Reductions}, {_, Status}, {_, Function}] ->
            #{queue_len => Length, memory => Memory, reductions => Reductions, status => Status,
              current_function => function(Function)}
    end,
    (maps:remove(status, Stats))#{stats => Stats}.

function({Module, Function, Arity}) ->
    unicode:characters_to_binary(io_lib:format("~ts:~ts/~b", [Module, Function, Arity]));
function(_) -> nil.

-spec supervision_tree(fields()) -> map().
supervision_tree(Fields) ->
    #{'__snapshot' := Rows} = case beamtalk_image_ops_fields:choice(Fields, <<"scope">>, [default, system], default) of
        default -> beamtalk_process_navigation:'class default'(nil);
        system -> beamtalk_process_navigation:'class system'(nil)
    end,
    #{nodes => [supervision_node(Row, Rows) || {_, Row} <- lists:sort(maps:to_list(Rows))]}.

supervision_node(#{pid := Pid, parent := Parent, name := Name, kind := Kind, class := Class, count := Count}, Rows) ->
    #{pid => pid_text(Pid), parent => parent(Parent, Rows), name => Name, kind => Kind, class => Class,
      child_count => Count}.

parent(none, _) -> nil;
parent(Number, Rows) -> pid_text(maps:get(pid, map_get(Number, Rows))).

pid_text(Pid) when is_pid(Pid) -> beamtalk_plain:pid(Pid);
pid_text(_) -> nil.

%%% Ending

-spec kill(fields()) -> map().
kill(Fields) ->
    IsGraceful = beamtalk_image_ops_fields:boolean(Fields, <<"graceful">>, true),
    case process(Fields) of
        {_, {actor, Actor}} when IsGraceful -> stop(Actor);
        {_, {actor, Actor}} -> beamtalk_actor_class:kill(Actor);
        {Pid, dead} -> not_alive(Pid);
        {Pid, {supervisor, _}} -> invalid_actor(beamtalk_plain:pid(Pid))
    end,
    #{value => true}.

%% An actor that does not stop in time is killed.
-spec stop(tuple()) -> ok.
stop(Actor) ->
    try beamtalk_actor_class:stop(Actor)
    catch error:#{error := {beamtalk_error, timeout, _, _, _, _, _}} -> beamtalk_actor_class:kill(Actor)
    end.
