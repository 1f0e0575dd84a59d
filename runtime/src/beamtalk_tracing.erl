%% What actors do and how long it takes: aggregates always, single events while
%% capture is on.
%%
%% Senders record into public tables that this server owns; it only makes the
%% tables and forgets actors that have ended when there are too many rows. Keys of
%% the answers are Strings.
-module(beamtalk_tracing).
-behaviour(gen_server).

-export(['class setContext:'/2, 'class context'/1, 'class clearContext'/1, 'class enable'/1,
         'class disable'/1, 'class isEnabled'/1, 'class clear'/1, 'class traces'/1,
         'class tracesFor:'/2, 'class tracesFor:selector:'/3, 'class stats'/1, 'class statsFor:'/2,
         'class slowMethods:'/2, 'class hotMethods:'/2, 'class errorMethods:'/2,
         'class bottlenecks:'/2, 'class healthFor:'/2, 'class systemHealth'/1, 'class maxEvents'/1,
         'class maxEvents:'/2]).
-export([record/6, ensure_started/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(CLASS, 'Tracing').
-define(EVENTS, beamtalk_trace_events).
-define(SETTINGS, {?MODULE, settings}).
-define(MAX_EVENTS, 100000).
-define(MAX_ROWS, 50000).

%% `calls' to `max' are positions the counters are updated at.
-record(row, {key :: {pid(), atom(), atom()} | '_', calls = 0, ok = 0, errors = 0, timeouts = 0,
              total = 0, min = infinity, max = 0}).

-type mode() :: sync | async | cast | lifecycle.
-type outcome() :: ok | error | timeout | cast.

%%% Recording

%% One message to an actor: when it began (native monotonic time), how it went.
-spec record(pid(), atom(), atom(), mode(), integer(), outcome()) -> ok.
record(Pid, Class, Selector, Mode, Started, Outcome) ->
    case ets:whereis(?MODULE) of
        undefined ->
            ok;
        _ ->
            Duration = erlang:convert_time_unit(erlang:monotonic_time() - Started, native, nanosecond),
            aggregate({Pid, Class, Selector}, Duration, Outcome),
            case persistent_term:get(?SETTINGS, {false, ?MAX_EVENTS}) of
                {true, Max} -> add_event(Pid, Class, Selector, Mode, Duration, Outcome, Max);
                _ -> ok
            end
    end.

aggregate(Key, Duration, Outcome) ->
    Position = case Outcome of
                   error -> #row.errors;
                   timeout -> #row.timeouts;
                   _ -> #row.ok
               end,
    Changes = [{#row.calls, 1}, {Position, 1}, {#row.total, Duration}],
    [Calls | _] = ets:update_counter(?MODULE, Key, Changes, #row{key = Key}),
    Duration < ets:lookup_element(?MODULE, Key, #row.min)
        andalso ets:update_element(?MODULE, Key, {#row.min, Duration}),
    Duration > ets:lookup_element(?MODULE, Key, #row.max)
        andalso ets:update_element(?MODULE, Key, {#row.max, Duration}),
    Calls =:= 1 andalso ets:info(?MODULE, size) > ?MAX_ROWS andalso gen_server:cast(?MODULE, prune),
    ok.

add_event(Pid, Class, Selector, Mode, Duration, Outcome, Max) ->
    Id = erlang:unique_integer([monotonic]),
    ets:insert(?EVENTS, {Id, erlang:system_time(nanosecond), Pid, Class, Selector, Mode, Duration, Outcome}),
    case ets:info(?EVENTS, size) > Max of
        true -> ets:delete(?EVENTS, ets:first(?EVENTS)), ok;
        false -> ok
    end.

%%% Context

-spec 'class setContext:'(term(), term()) -> nil.
'class setContext:'(Class, Context) ->
    beamtalk_argument:dictionary(Context, ?CLASS, 'setContext:'),
    put('$bt_trace_context', maps:merge('class context'(Class), Context)),
    nil.

-spec 'class context'(term()) -> map().
'class context'(_Class) ->
    case get('$bt_trace_context') of
        undefined -> #{};
        Context -> Context
    end.

-spec 'class clearContext'(term()) -> nil.
'class clearContext'(_Class) ->
    erase('$bt_trace_context'),
    nil.

%%% Capture

-spec 'class enable'(term()) -> nil.
'class enable'(_Class) -> set_enabled(true).

-spec 'class disable'(term()) -> nil.
'class disable'(_Class) -> set_enabled(false).

set_enabled(Enabled) ->
    ensure_started(),
    {_, Max} = settings(),
    persistent_term:put(?SETTINGS, {Enabled, Max}),
    nil.

-spec 'class isEnabled'(term()) -> boolean().
'class isEnabled'(_Class) ->
    element(1, settings()).

-spec 'class maxEvents'(term()) -> pos_integer().
'class maxEvents'(_Class) ->
    element(2, settings()).

-spec 'class maxEvents:'(term(), term()) -> nil.
'class maxEvents:'(_Class, Max) ->
    beamtalk_argument:positive(Max, ?CLASS, 'maxEvents:'),
    ensure_started(),
    {Enabled, _} = settings(),
    persistent_term:put(?SETTINGS, {Enabled, Max}),
    drop_oldest(ets:info(?EVENTS, size) - Max),
    nil.

drop_oldest(Count) when Count > 0 ->
    ets:delete(?EVENTS, ets:first(?EVENTS)),
    drop_oldest(Count - 1);
drop_oldest(_) ->
    ok.

settings() ->
    persistent_term:get(?SETTINGS, {false, ?MAX_EVENTS}).

-spec 'class clear'(term()) -> nil.
'class clear'(_Class) ->
    ensure_started(),
    ets:delete_all_objects(?MODULE),
    ets:delete_all_objects(?EVENTS),
    nil.

%%% Events

-spec 'class traces'(term()) -> [map()].
'class traces'(_Class) ->
    ensure_started(),
    [event(Row) || Row <- lists:reverse(ets:tab2list(?EVENTS))].

-spec 'class tracesFor:'(term(), term()) -> [map()].
'class tracesFor:'(_Class, Actor) ->
    Pid = pid(Actor, 'tracesFor:'),
    ensure_started(),
    [event(Row) || Row <- lists:reverse(ets:tab2list(?EVENTS)), element(3, Row) =:= Pid].

-spec 'class tracesFor:selector:'(term(), term(), term()) -> [map()].
'class tracesFor:selector:'(_Class, Actor, Selector) ->
    Pid = pid(Actor, 'tracesFor:selector:'),
    beamtalk_argument:symbol(Selector, ?CLASS, 'tracesFor:selector:'),
    ensure_started(),
    [event(Row) || Row <- lists:reverse(ets:tab2list(?EVENTS)),
                   element(3, Row) =:= Pid, element(5, Row) =:= Selector].

event({_, Time, Pid, Class, Selector, Mode, Duration, Outcome}) ->
    #{<<"timestamp_ns">> => Time, <<"actor">> => Pid, <<"class">> => Class,
      <<"selector">> => atom_to_binary(Selector), <<"mode">> => atom_to_binary(Mode),
      <<"duration_ns">> => Duration, <<"outcome">> => atom_to_binary(Outcome)}.

%%% Aggregates

-spec 'class stats'(term()) -> map().
'class stats'(_Class) ->
    lists:foldl(fun(#row{key = {Pid, _, Selector}} = Row, Acc) ->
                        Actor = beamtalk_display:native(Pid),
                        Methods = maps:get(Actor, Acc, #{}),
                        Acc#{Actor => Methods#{atom_to_binary(Selector) => numbers(Row)}}
                end, #{}, rows()).

-spec 'class statsFor:'(term(), term()) -> map().
'class statsFor:'(_Class, Actor) ->
    Pid = pid(Actor, 'statsFor:'),
    maps:from_list([{atom_to_binary(Selector), numbers(Row)}
                    || #row{key = {P, _, Selector}} = Row <- rows(), P =:= Pid]).

numbers(#row{calls = Calls, ok = Ok, errors = Errors, timeouts = Timeouts, total = Total, min = Min,
             max = Max}) ->
    #{<<"calls">> => Calls, <<"ok">> => Ok, <<"errors">> => Errors, <<"timeouts">> => Timeouts,
      <<"total_duration_ns">> => Total, <<"avg_duration_ns">> => Total div max(1, Calls),
      <<"min_duration_ns">> => Min, <<"max_duration_ns">> => Max}.

-spec 'class slowMethods:'(term(), term()) -> [map()].
'class slowMethods:'(_Class, Count) ->
    top(Count, 'slowMethods:', fun(#row{total = Total, calls = Calls}) -> Total / max(1, Calls) end).

-spec 'class hotMethods:'(term(), term()) -> [map()].
'class hotMethods:'(_Class, Count) ->
    top(Count, 'hotMethods:', fun(#row{calls = Calls}) -> Calls end).

-spec 'class errorMethods:'(term(), term()) -> [map()].
'class errorMethods:'(_Class, Count) ->
    Rate = fun(#row{errors = Errors, timeouts = Timeouts, calls = Calls}) ->
                   (Errors + Timeouts) / max(1, Calls)
           end,
    [Method || #{<<"errors">> := Errors, <<"timeouts">> := Timeouts} = Method <- top(Count, 'errorMethods:', Rate),
               Errors + Timeouts > 0].

top(Count, Selector, Weight) ->
    beamtalk_argument:positive(Count, ?CLASS, Selector),
    Sorted = lists:reverse(lists:keysort(1, [{Weight(Row), Row} || Row <- rows()])),
    [(numbers(Row))#{<<"actor">> => Pid, <<"class">> => Class, <<"selector">> => atom_to_binary(Method)}
     || {_, #row{key = {Pid, Class, Method}} = Row} <- lists:sublist(Sorted, Count)].

rows() ->
    ensure_started(),
    ets:tab2list(?MODULE).

%%% Health

-spec 'class bottlenecks:'(term(), term()) -> [map()].
'class bottlenecks:'(_Class, Count) ->
    beamtalk_argument:positive(Count, ?CLASS, 'bottlenecks:'),
    Actors = lists:usort([{Pid, Class} || #row{key = {Pid, Class, _}} <- rows()]),
    Live = [{Length, Pid, Class, Memory}
            || {Pid, Class} <- Actors,
               [{message_queue_len, Length}, {memory, Memory}]
                   <- [process_info(Pid, [message_queue_len, memory])]],
    [#{<<"actor">> => Pid, <<"class">> => Class, <<"queue_depth">> => Length,
       <<"memory_kb">> => Memory div 1024}
     || {Length, Pid, Class, Memory} <- lists:sublist(lists:reverse(lists:keysort(1, Live)), Count)].

-spec 'class healthFor:'(term(), term()) -> map().
'class healthFor:'(_Class, Actor) ->
    Pid = pid(Actor, 'healthFor:'),
    Known = #{<<"pid">> => Pid, <<"class">> => actor_class(Actor)},
    case process_info(Pid, [status, message_queue_len, memory, reductions]) of
        undefined ->
            Known#{<<"status">> => dead, <<"error">> => <<"process not alive">>};
        [{status, Status}, {_, Length}, {_, Memory}, {_, Reductions}] ->
            Known#{<<"status">> => Status, <<"queue_depth">> => Length,
                   <<"memory_kb">> => Memory div 1024, <<"reductions">> => Reductions}
    end.

actor_class({beamtalk_object, Class, _, _}) -> Class;
actor_class(_) -> nil.

-spec 'class systemHealth'(term()) -> map().
'class systemHealth'(_Class) ->
    Megabytes = fun(Kind) -> erlang:memory(Kind) div 1048576 end,
    #{<<"scheduler_count">> => erlang:system_info(schedulers_online),
      <<"process_count">> => erlang:system_info(process_count),
      <<"process_limit">> => erlang:system_info(process_limit),
      <<"run_queue">> => erlang:statistics(run_queue),
      <<"memory">> => #{<<"total_mb">> => Megabytes(total), <<"processes_mb">> => Megabytes(processes),
                        <<"system_mb">> => Megabytes(system)}}.

%% The process of an actor or a Pid; a name that is gone has none.
pid({beamtalk_object, _, _, Target}, Selector) when not is_atom(Target) ->
    case beamtalk_actor:resolve(Target) of
        undefined -> beamtalk_argument:fail(?CLASS, Selector, <<"No process has this name">>);
        Pid -> Pid
    end;
pid(Pid, _) when is_pid(Pid) ->
    Pid;
pid(_, Selector) ->
    beamtalk_argument:fail(?CLASS, Selector, <<"Expected an Actor or a Pid">>).

%%% The server

-spec ensure_started() -> ok.
ensure_started() ->
    case whereis(?MODULE) of
        undefined ->
            case gen_server:start({local, ?MODULE}, ?MODULE, [], []) of
                {ok, _} -> ok;
                {error, {already_started, _}} -> ok
            end;
        _ ->
            ok
    end.

-spec init([]) -> {ok, none}.
init([]) ->
    %% Whoever starts the server first, it does not belong to that one's output.
    group_leader(whereis(init), self()),
    Options = [named_table, public, {write_concurrency, true}],
    ets:new(?EVENTS, [ordered_set | Options]),
    ets:new(?MODULE, [set, {keypos, #row.key} | Options]),
    {ok, none}.

-spec handle_call(term(), gen_server:from(), none) -> {reply, ok, none}.
handle_call(_, _From, State) ->
    {reply, ok, State}.

-spec handle_cast(term(), none) -> {noreply, none}.
handle_cast(prune, State) ->
    Dead = lists:usort([Pid || #row{key = {Pid, _, _}} <- ets:tab2list(?MODULE),
                               not is_process_alive(Pid)]),
    lists:foreach(fun(Pid) -> ets:match_delete(?MODULE, #row{key = {Pid, '_', '_'}, calls = '_', ok = '_',
                                                             errors = '_', timeouts = '_', total = '_',
                                                             min = '_', max = '_'})
                  end, Dead),
    {noreply, State}.

-spec handle_info(term(), none) -> {noreply, none}.
handle_info(_, State) ->
    {noreply, State}.
