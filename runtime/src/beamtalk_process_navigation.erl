%% Snapshots of the running process tree: ProcessNavigation and SupervisionNode.
%%
%% A snapshot is a map of numbers to rows, in pre-order. Every node carries it
%% under `__snapshot' with its own number under `__number', so parents and children
%% are found without asking the processes again.
-module(beamtalk_process_navigation).

-export(['class default'/1, 'class system'/1, 'class from:'/2, 'class from:limit:'/3, nodes/1]).
-export([children/1, parent/1, parent_pid/1, strategy/1, restart_intensity/1, truncated/1, status/1]).

-define(LIMIT, 200).
-define(PATIENCE, 500).

-type node_map() :: map().

%%% ProcessNavigation

-spec 'class default'(term()) -> map().
'class default'(_Class) ->
    navigation(own_roots(), ?LIMIT).

-spec 'class system'(term()) -> map().
'class system'(_Class) ->
    Applications = [Pid || {Name, _, _} <- application:which_applications(),
                           Pid <- top_supervisor(Name)],
    navigation(Applications ++ own_roots(), ?LIMIT).

-spec 'class from:'(term(), term()) -> map().
'class from:'(_Class, Root) ->
    from(Root, ?LIMIT, 'from:').

-spec 'class from:limit:'(term(), term(), term()) -> map().
'class from:limit:'(_Class, Root, Limit) ->
    beamtalk_argument:non_negative(Limit, 'ProcessNavigation', 'from:limit:'),
    from(Root, Limit, 'from:limit:').

from({beamtalk_supervisor, _, _, Pid}, Limit, Selector) ->
    from(Pid, Limit, Selector);
from(Pid, Limit, Selector) when is_pid(Pid) ->
    case is_process_alive(Pid) of
        true -> beamtalk_result:ok(navigation([Pid], Limit));
        false -> beamtalk_result:failure(stale_handle, 'ProcessNavigation', Selector,
                                         <<"The process has ended">>, #{})
    end;
from(_, _, Selector) ->
    beamtalk_result:failure(type_error, 'ProcessNavigation', Selector,
                            <<"Expected a Supervisor or a Pid">>, #{}).

navigation(Roots, Limit) ->
    {Rows, _} = lists:foldl(fun(Root, {Rows, Seen}) -> add(Root, none, Limit, Rows, Seen) end,
                            {#{}, #{}}, Roots),
    #{'$beamtalk_class' => 'ProcessNavigation', '__snapshot' => Rows}.

-spec nodes(map()) -> [node_map()].
nodes(#{'__snapshot' := Rows}) ->
    [to_node(Number, Rows) || Number <- lists:sort(maps:keys(Rows))].

%% Supervisors and actors of Beamtalk that no other supervisor of the list starts.
own_roots() ->
    Described = [{Pid, describe(Pid)} || Pid <- processes()],
    Supervisors = [Pid || {Pid, {beamtalkSupervisor, _}} <- Described],
    Actors = [Pid || {Pid, {beamtalkActor, _}} <- Described],
    [Pid || Pid <- Supervisors ++ Actors, not lists:member(starter(Pid), Supervisors)].

starter(Pid) ->
    case from_dictionary(Pid, '$ancestors') of
        [Starter | _] when is_pid(Starter) -> Starter;
        [Name | _] when is_atom(Name) -> whereis(Name);
        _ -> none
    end.

top_supervisor(Application) ->
    try
        case application_master:get_child(application_controller:get_master(Application)) of
            {Pid, _} when is_pid(Pid) -> [Pid];
            _ -> []
        end
    catch
        _:_ -> []
    end.

%%% Building a snapshot

add(Pid, Parent, Limit, Rows, Seen) when is_pid(Pid) ->
    case Seen of
        #{Pid := _} ->
            {Rows, Seen};
        _ ->
            {Kind, Class} = describe(Pid),
            Number = map_size(Rows) + 1,
            All = started_children(Pid, Kind),
            Row = #{pid => Pid, name => registered(Pid), kind => Kind, class => Class,
                    count => length(All), truncated => length(All) > Limit, parent => Parent},
            lists:foldl(fun(Child, {Acc, Known}) -> add(Child, Number, Limit, Acc, Known) end,
                        {Rows#{Number => Row}, Seen#{Pid => Number}}, lists:sublist(All, Limit))
    end;
add(restarting, Parent, _Limit, Rows, Seen) ->
    Row = #{pid => nil, name => nil, kind => restarting, class => nil, count => 0,
            truncated => false, parent => Parent},
    {Rows#{map_size(Rows) + 1 => Row}, Seen}.

started_children(Pid, Kind) when Kind =:= beamtalkSupervisor; Kind =:= otpSupervisor ->
    try gen_server:call(Pid, which_children, ?PATIENCE) of
        Children -> [Child || {_, Child, _, _} <- lists:reverse(Children), Child =/= undefined]
    catch
        exit:_ -> []
    end;
started_children(_, _) ->
    [].

describe(Pid) ->
    case {from_dictionary(Pid, '$bt_supervisor'), beamtalk_actor_class:reference_of(Pid),
          from_dictionary(Pid, '$initial_call')} of
        {{beamtalk_supervisor, Class, _, _}, _, _} -> {beamtalkSupervisor, Class};
        {_, {ok, {beamtalk_object, Class, _, _}}, _} -> {beamtalkActor, Class};
        {_, _, {supervisor, _, _}} -> {otpSupervisor, nil};
        _ -> {otpProcess, nil}
    end.

from_dictionary(Pid, Key) ->
    case process_info(Pid, dictionary) of
        {dictionary, Dictionary} -> proplists:get_value(Key, Dictionary, none);
        undefined -> none
    end.

registered(Pid) ->
    case process_info(Pid, registered_name) of
        {registered_name, Name} -> Name;
        _ -> nil
    end.

to_node(Number, Rows) ->
    #{pid := Pid, name := Name, kind := Kind, class := Class, count := Count} = map_get(Number, Rows),
    ClassObject = case Class of
                      nil -> nil;
                      _ ->
                          %% The class may be gone while the last of its processes ends.
                          case beamtalk_class:find(Class) of
                              {ok, Object} -> Object;
                              none -> nil
                          end
                  end,
    #{'$beamtalk_class' => 'SupervisionNode', pid => Pid, registeredName => Name, kind => Kind,
      behaviourClass => ClassObject, childCount => Count, '__snapshot' => Rows, '__number' => Number}.

%%% SupervisionNode

-spec children(node_map()) -> [node_map()].
children(#{'__snapshot' := Rows, '__number' := Number}) ->
    [to_node(Child, Rows) || {Child, #{parent := Parent}} <- lists:sort(maps:to_list(Rows)),
                             Parent =:= Number];
children(_) ->
    [].

-spec parent(node_map()) -> node_map() | nil.
parent(#{'__snapshot' := Rows, '__number' := Number}) ->
    case map_get(Number, Rows) of
        #{parent := none} -> nil;
        #{parent := Parent} -> to_node(Parent, Rows)
    end;
parent(_) ->
    nil.

-spec parent_pid(node_map()) -> pid() | nil.
parent_pid(Self) ->
    case parent(Self) of
        nil -> nil;
        #{pid := Pid} -> Pid
    end.

-spec strategy(node_map()) -> atom().
strategy(#{kind := beamtalkSupervisor, behaviourClass := {_, _, _, Name} = Class}) ->
    case beamtalk_class:inherits(Name, 'DynamicSupervisor') of
        true -> nil;
        false -> beamtalk_dispatch:send(Class, strategy)
    end;
strategy(_) ->
    nil.

-spec restart_intensity(node_map()) -> map() | nil.
restart_intensity(#{kind := beamtalkSupervisor, behaviourClass := Class}) when is_tuple(Class) ->
    #{maxRestarts => beamtalk_dispatch:send(Class, maxRestarts),
      window => beamtalk_dispatch:send(Class, restartWindow)};
restart_intensity(_) ->
    nil.

-spec truncated(node_map()) -> boolean().
truncated(#{'__snapshot' := Rows, '__number' := Number}) ->
    map_get(truncated, map_get(Number, Rows));
truncated(_) ->
    false.

-spec status(node_map()) -> map() | nil.
status(#{pid := Pid}) when is_pid(Pid) ->
    try sys:get_state(Pid, ?PATIENCE) of
        State when is_map(State) -> maps:remove('$beamtalk_class', State);
        State -> #{state => State}
    catch
        _:_ -> nil
    end;
status(_) ->
    nil.
