%% Requests about actors and the processes around them.
-module(beamtalk_image_ops_actors).

-export([actors/1, inspect/2, pid_stats/1, top_actors/1, supervision_tree/1, kill/1]).
-export([stop/1, process/1]).

-import(beamtalk_image_ops_fields, [fail/2]).

-type fields() :: beamtalk_image_ops_fields:fields().

-define(WINDOW, 50).
-define(LARGEST, 500).
%% Rows and classes in one answer.
-define(MOST, 200).
%% So many processes are asked for an order.
-define(SAMPLE, 50000).

-spec actors(fields()) -> map().
actors(Fields) ->
    Wanted = beamtalk_image_ops_fields:optional_class(Fields, <<"class">>),
    HasStats = beamtalk_image_ops_fields:boolean(Fields, <<"stats">>, false),
    Find = beamtalk_image_ops_fields:text(Fields, <<"find">>, <<>>),
    All = [Actor || {_, Class, _, Pid} = Actor <- beamtalk_actor_class:all(), is_pid(Pid),
                    Wanted =:= none orelse beamtalk_class:inherits(Class, Wanted), is_meant(Find, Class, Pid)],
    IsWindow = lists:any(fun(Key) -> beamtalk_image_ops_fields:is_given(Fields, Key) end,
                         [<<"offset">>, <<"limit">>, <<"sort">>, <<"find">>, <<"stats">>]),
    Row = fun({_, Class, Module, Pid}) -> with_stats(HasStats, Pid, actor(Pid, Class, Module)) end,
    case IsWindow of
        false -> #{actors => [Row(Actor) || Actor <- All]};
        true ->
            Offset = beamtalk_image_ops_fields:integer(Fields, <<"offset">>, 0, 0),
            Limit = min(beamtalk_image_ops_fields:integer(Fields, <<"limit">>, 0, ?WINDOW), ?LARGEST),
            {Ordered, Sampled} = ordered(Fields, All),
            Window = lists:sublist(lists:nthtail(min(Offset, length(Ordered)), Ordered), Limit),
            Answer = #{actors => [Row(Actor) || Actor <- Window], total => length(All)},
            case Sampled of
                none -> Answer;
                _ -> Answer#{sampled => Sampled}
            end
    end.

is_meant(<<>>, _, _) -> true;
is_meant(Find, Class, Pid) ->
    Texts = [atom_to_binary(Class), beamtalk_plain:pid(Pid) | [atom_to_binary(Name) || Name <- [registered_name(Pid)], is_atom(Name), Name =/= nil]],
    lists:any(fun(Text) -> string:find(string:casefold(Text), string:casefold(Find)) =/= nomatch end, Texts).

%% The order wanted. Where every process would have to be asked and there are too many, an even sample of them is
%% put in order and stands before the others.
ordered(Fields, All) ->
    Order = beamtalk_image_ops_fields:choice(Fields, <<"sort">>, [class, name, queue, memory, reductions, age], none),
    IsDescending = beamtalk_image_ops_fields:boolean(Fields, <<"descending">>, false),
    IsAsking = lists:member(Order, [queue, memory, reductions]),
    {Looked, Rest} = case IsAsking andalso length(All) > ?SAMPLE of
        true -> sample(All, length(All) div ?SAMPLE + 1);
        false -> {All, []}
    end,
    Sorted = case Order of
        none -> Looked;
        _ -> [Actor || {_, Actor} <- lists:sort([{order(Order, Actor), Actor} || Actor <- Looked])]
    end,
    Turned = case IsDescending of
        true -> lists:reverse(Sorted);
        false -> Sorted
    end,
    {Turned ++ Rest, case Rest of [] -> none; _ -> length(Looked) end}.

sample(All, Every) ->
    {Looked, Rest, _} = lists:foldl(fun(One, {In, Out, 1}) -> {[One | In], Out, Every};
                                       (One, {In, Out, Left}) -> {In, [One | Out], Left - 1}
                                    end, {[], [], 1}, All),
    {lists:reverse(Looked), lists:reverse(Rest)}.

order(class, {_, Class, _, _}) -> atom_to_binary(Class);
order(name, {_, _, _, Pid}) ->
    case registered_name(Pid) of
        Name when Name =:= nil; Name =:= [] -> {1, nil};
        Name -> {0, atom_to_binary(Name)}
    end;
order(age, {_, _, _, Pid}) ->
    case spawned_at(Pid) of
        Started when is_integer(Started) -> -Started;
        nil -> 0
    end;
order(queue, {_, _, _, Pid}) -> -largest(Pid, message_queue_len);
order(Order, {_, _, _, Pid}) -> -largest(Pid, Order).

with_stats(false, _, Row) -> Row;
with_stats(true, Pid, Row) ->
    case process_info(Pid, [message_queue_len, memory, reductions, current_stacktrace]) of
        undefined -> Row;
        [{_, Length}, {_, Memory}, {_, Reductions}, {_, Stack}] ->
            Figures = Row#{queue_len => Length, memory => Memory, reductions => Reductions},
            case message(Stack) of
                nil -> Figures;
                Message -> Figures#{message => Message}
            end
    end.

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

seconds(Started) ->
    Ago = erlang:convert_time_unit(os:perf_counter() - Started, perf_counter, millisecond),
    (erlang:system_time(millisecond) - Ago) div 1000.

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
inspect(Fields, Session) -> beamtalk_image_ops_target:look(Fields, Session, looking(Fields)).

%% What is answered about a value. It runs in the process that has the value, and copies only what is shown.
looking(Fields) ->
    Page = beamtalk_image_ops_fields:integer(Fields, <<"page">>, 1, 1),
    Offset = beamtalk_image_ops_fields:integer(Fields, <<"offset">>, 0, (Page - 1) * ?WINDOW),
    Limit = min(beamtalk_image_ops_fields:integer(Fields, <<"limit">>, 1, ?WINDOW), ?LARGEST),
    Understands = beamtalk_image_ops_fields:boolean(Fields, <<"understands">>, false),
    Find = beamtalk_image_ops_fields:text(Fields, <<"find">>, none),
    fun(Found) ->
        Seen = seen(Found, fun() -> window(Found, Find, Offset, Limit) end),
        case Understands of
            true -> Seen#{understands => understood(Found)};
            false -> Seen
        end
    end.

seen({beamtalk_object, _, _, Process} = Actor, Look) when not is_atom(Process) ->
    beamtalk_image_ops_target:with_state(Actor, Look);
seen(_, Look) -> Look().

window(Found, Find, Offset, Limit) ->
    At = beamtalk_window:find(Found, Find),
    From = case At of none -> Offset; _ -> At end,
    {Kind, EntryKind, Order, Total, Entries} = beamtalk_window:look(Found, From, Limit),
    Seen = #{kind => Kind, class => beamtalk_plain:class(Found), total => Total, order => Order,
             text => beamtalk_plain:text(Found),
             fields => [field(EntryKind, Name, Value) || {Name, Value} <- Entries]},
    case At of
        none -> Seen;
        _ -> Seen#{at => At}
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

field(EntryKind, Name, Value) ->
    #{name => beamtalk_image_ops_target:step(EntryKind, Name), label => beamtalk_plain:label(Name), text => beamtalk_plain:text(Value),
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
    Node = #{pid => pid_text(Pid), parent => parent(Parent, Rows), name => Name, kind => Kind, class => Class,
             child_count => Count},
    case strategy(Pid) of
        nil -> Node;
        Strategy -> Node#{strategy => Strategy}
    end.

%% As the supervisor itself has it: asking its class would run code of users.
-define(STRATEGIES, [one_for_one, one_for_all, rest_for_one, simple_one_for_one]).
strategy(Pid) when is_pid(Pid) ->
    case is_supervisor(Pid) of
        true ->
            try sys:get_state(Pid, 200) of
                State when is_tuple(State), element(1, State) =:= state, tuple_size(State) > 2 ->
                    case lists:member(element(3, State), ?STRATEGIES) of
                        true -> element(3, State);
                        false -> nil
                    end;
                _ -> nil
            catch exit:_ -> nil
            end;
        false -> nil
    end;
strategy(_) -> nil.

is_supervisor(Pid) ->
    case proc_lib:translate_initial_call(Pid) of
        {supervisor, _, _} -> true;
        _ -> false
    end.

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
