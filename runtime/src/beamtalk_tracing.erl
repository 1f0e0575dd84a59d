%% What actors do and how long it takes: aggregates always, single events while
%% capture is on.
%%
%% Senders record into public tables; this server only forgets actors that have
%% ended when there are too many rows. Keys of
%% the answers are Strings.
-module(beamtalk_tracing).
-behaviour(gen_server).

-export(['class setContext:'/2, 'class context'/1, 'class clearContext'/1, 'class enable'/1,
         'class disable'/1, 'class isEnabled'/1, 'class clear'/1, 'class traces'/1,
         'class tracesFor:'/2, 'class tracesFor:selector:'/3, 'class stats'/1, 'class statsFor:'/2,
         'class slowMethods:'/2, 'class hotMethods:'/2, 'class errorMethods:'/2,
         'class bottlenecks:'/2, 'class healthFor:'/2, 'class systemHealth'/1, 'class maxEvents'/1,
         'class maxEvents:'/2]).
-export([record/6, started/2, stopped/3, killed/2, is_stopped/2, flush/0]).
-export([start_link/0, tables/0, pause/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(CLASS, 'Tracing').
-define(EVENTS, beamtalk_trace_events).
%% A name, not a tuple: it is looked up with every message.
-define(SETTINGS, '$bt_tracing_settings').
-define(MAX_EVENTS, 100000).
-define(MAX_ROWS, 50000).
%% Aggregates a process keeps before it adds them to the table.
-define(KEPT, '$bt_trace_rows').
-define(MAX_KEPT, 256).
%% And for how long at most while it goes on sending, nearly everywhere in nanoseconds: others see it soon.
-define(KEPT_TIME, 100000000).
-define(PRUNE_PAUSE, 2000).
%% How much longer than a pass over the rows that is at least where it finds next to nothing, as nearly all actors live.
-define(RARITY, 20).
%% When the aggregates were dropped.
-define(CLEARED, {?MODULE, cleared}).
%% In the place of a selector: the actor was there when the aggregates were dropped, and its start with them.
-define(EARLIER, '$bt_earlier').

%% `calls' to `max' are positions the counters are updated at.
-record(row, {key :: {pid(), atom(), atom()} | pruning | '_' | '$1', calls = 0, ok = 0, errors = 0, timeouts = 0,
              total = 0, min = 0, max = 0}).

-type mode() :: sync | async | cast | lifecycle.
-type outcome() :: ok | error | timeout | cast.

%%% Recording

%% One message to an actor: when it began (`os:perf_counter/0', which is read in a third of the time that the VM's own clock
%% takes), how it went. The sender keeps its aggregates and
%% adds them to the table now and then: when it asks for them, when its own message ends, and after a number of them.
-spec record(pid(), atom(), atom(), mode(), integer(), outcome()) -> ok.
record(Pid, Class, Selector, Mode, Started, Outcome) ->
    Now = os:perf_counter(),
    Duration = max(0, Now - Started),
    case persistent_term:get(?SETTINGS, none) of
        {true, Max} -> add_event(Pid, Class, Selector, Mode, nanoseconds(Duration), Outcome, Max);
        _ -> ok
    end,
    case get(?KEPT) of
        %% Like the one before it, which is the usual case: only the counts change, in as few words as can be.
        {{Pid, Selector, Class, Began, _, _} = Last, Count, Total, [Least | Most] = Range}
          when Outcome =:= ok, Count < ?MAX_KEPT, Now - Began < ?KEPT_TIME ->
            put(?KEPT, {Last, Count + 1, Total + Duration,
                        if
                            Duration < Least -> [Duration | Most];
                            Duration > Most -> [Least | Duration];
                            true -> Range
                        end}),
            ok;
        Kept ->
            keep(Kept, {Pid, Class, Selector}, Duration, Outcome, Now)
    end.

nanoseconds(Duration) -> erlang:convert_time_unit(Duration, perf_counter, nanosecond).

%% `{Last, Count, Total, [Least | Most]}': how many messages are kept in all, and of those like the last one their time
%% together and the shortest and longest; `Last' says which they are, when the first of all was sent, what was kept before
%% them, and how many that was.
%% What was kept is put together when it is added to the table: who asks thousands of actors once each has no two alike.
keep(undefined, {Pid, Class, Selector}, Duration, ok, Now) when Duration < ?KEPT_TIME ->
    put(?KEPT, {{Pid, Selector, Class, Now - Duration, [], 0}, 1, Duration, [Duration | Duration]}),
    ok;
keep({{_, _, _, Began, _, _}, Count, _, _} = Kept, {Pid, Class, Selector}, Duration, ok, Now)
  when Count < ?MAX_KEPT, Now - Began < ?KEPT_TIME ->
    put(?KEPT, {{Pid, Selector, Class, Began, entries(Kept), Count}, Count + 1, Duration, [Duration | Duration]}),
    ok;
keep(_, Key, Duration, Outcome, _) ->
    flush(),
    insert([add(#row{key = Key, min = nanoseconds(Duration)}, nanoseconds(Duration), Outcome)]).

%% All that is kept, the last first: messages that followed each other and were alike, with their number and times.
entries({{Pid, Selector, Class, _, Earlier, Before}, Count, Total, [Least | Most]}) ->
    [{{Pid, Class, Selector}, Count - Before, Total, Least, Most} | Earlier].

add(#row{calls = Calls, total = Total, min = Min, max = Max} = Row, Duration, Outcome) ->
    Timed = Row#row{calls = Calls + 1, total = Total + Duration, min = min(Min, Duration), max = max(Max, Duration)},
    case Outcome of
        error -> Timed#row{errors = Row#row.errors + 1};
        timeout -> Timed#row{timeouts = Row#row.timeouts + 1};
        _ -> Timed#row{ok = Row#row.ok + 1}
    end.

%% Add what the calling process has kept to the table.
-spec flush() -> ok.
flush() ->
    case get(?KEPT) of
        undefined -> ok;
        Kept ->
            erase(?KEPT),
            insert(rows(entries(Kept)))
    end.

%% Entries as rows, one for each key. That no actor is there twice is found out faster than that no key is.
rows(Entries) ->
    Second = erlang:convert_time_unit(1, second, perf_counter),
    Actors = maps:from_keys([Pid || {{Pid, _, _}, _, _, _, _} <- Entries], []),
    Rows = [row(Entry, Second) || Entry <- Entries],
    case map_size(Actors) =:= length(Rows) of
        true -> Rows;
        false -> maps:values(lists:foldl(fun together/2, #{}, Rows))
    end.

row({Key, Calls, Total, Least, Most}, Second) ->
    #row{key = Key, calls = Calls, ok = Calls, total = in_nanoseconds(Total, Second),
         min = in_nanoseconds(Least, Second), max = in_nanoseconds(Most, Second)}.

%% Nearly everywhere they are counted as such.
in_nanoseconds(Time, 1000000000) -> Time;
in_nanoseconds(Time, Second) -> Time * 1000000000 div Second.

together(#row{key = Key} = Row, Rows) ->
    case Rows of
        #{Key := #row{calls = Calls, ok = Ok, total = Total, min = Min, max = Max}} ->
            Rows#{Key := Row#row{calls = Calls + Row#row.calls, ok = Ok + Row#row.ok, total = Total + Row#row.total,
                                 min = min(Min, Row#row.min), max = max(Max, Row#row.max)}};
        _ -> Rows#{Key => Row}
    end.

%% All at once where none of them is there yet.
insert(Rows) ->
    case ets:insert_new(?MODULE, Rows) of
        true -> limit_rows();
        false -> lists:foreach(fun merge/1, Rows)
    end.

merge(#row{key = Key, calls = Calls, ok = Ok, errors = Errors, timeouts = Timeouts, total = Total, min = Min,
           max = Max} = Row) ->
    case ets:insert_new(?MODULE, Row) of
        true -> limit_rows();
        false ->
            Changes = [{#row.calls, Calls}, {#row.ok, Ok}, {#row.errors, Errors}, {#row.timeouts, Timeouts},
                       {#row.total, Total}, {#row.min, 0}, {#row.max, 0}],
            [_, _, _, _, _, OldMin, OldMax] = ets:update_counter(?MODULE, Key, Changes, Row),
            Min < OldMin andalso ets:update_element(?MODULE, Key, {#row.min, Min}),
            Max > OldMax andalso ets:update_element(?MODULE, Key, {#row.max, Max}),
            ok
    end.

%% The start of an actor, told by the actor itself. Nothing is written for it unless events are captured: the row of a
%% live actor is made when somebody asks (`with_starts/1'), the row of one that ends when it ends. One that was killed has
%% told nothing: it has started if there are rows of it.
%% When that was, by `os:perf_counter/0'.
-spec started(pid(), atom()) -> integer().
started(Pid, Class) ->
    case persistent_term:get(?SETTINGS, none) of
        {true, Max} -> add_event(Pid, Class, start, lifecycle, 0, ok, Max);
        _ -> ok
    end,
    os:perf_counter().

%% The end of an actor that started at the given time.
-spec stopped(pid(), atom(), integer()) -> ok.
stopped(Pid, Class, Started) ->
    record(Pid, Class, stop, lifecycle, os:perf_counter(), ok),
    flush(),
    case Started > cleared_at() of
        true -> ets:insert_new(?MODULE, start_row(Pid, Class));
        false -> ok
    end,
    limit_rows().

%% The actor is about to be killed.
-spec killed(pid(), atom()) -> ok.
killed(Pid, Class) ->
    case has_start(Pid, Class) andalso is_process_alive(Pid) andalso not ets:member(?MODULE, {Pid, Class, ?EARLIER})
         andalso ets:insert_new(?MODULE, start_row(Pid, Class)) of
        true -> limit_rows();
        false -> ok
    end.

%% Native processes tell no start.
has_start(Pid, Class) ->
    node(Pid) =:= node() andalso case beamtalk_dispatch:info(Class) of
        #{native := Native} -> Native =:= nil;
        none -> true
    end.

start_row(Pid, Class) -> #row{key = {Pid, Class, start}, calls = 1, ok = 1}.

cleared_at() -> persistent_term:get(?CLEARED, beginning()).

%% Before every start.
beginning() -> -(1 bsl 63).

with_starts(All) ->
    Known = maps:from_list([{{Pid, Class}, true} || #row{key = {Pid, Class, Selector}} <- All,
                                                    Selector =:= start orelse Selector =:= ?EARLIER]),
    Rows = [Row || #row{key = {_, _, Selector}} = Row <- All, Selector =/= ?EARLIER],
    Cleared = cleared_at(),
    Live = [{Pid, Class} || {Pid, Class, Started} <- live(), Started > Cleared],
    Killed = [Actor || {Pid, Class} = Actor <- lists:usort([{Pid, Class} || #row{key = {Pid, Class, _}} <- Rows]),
                       not is_map_key(Actor, Known), has_start(Pid, Class), not is_process_alive(Pid)],
    [start_row(Pid, Class) || {Pid, Class} = Actor <- lists:usort(Live ++ Killed), not is_map_key(Actor, Known)] ++ Rows.

%% The live actors that tell their start.
live() ->
    [{Pid, Class, Started} || Pid <- processes(), {dictionary, Dictionary} <- [process_info(Pid, dictionary)],
                              {'$bt_started', {Class, Started}} <- Dictionary].

%% Too many rows: the server forgets actors that have ended, at most once in a while.
limit_rows() ->
    case ets:info(?MODULE, size) > ?MAX_ROWS andalso ets:insert_new(?MODULE, #row{key = pruning}) of
        true -> gen_server:cast(?MODULE, prune);
        false -> ok
    end.

-spec is_stopped(pid(), atom()) -> boolean().
is_stopped(Pid, Class) ->
    ets:member(?MODULE, {Pid, Class, stop}).

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
    erase(?KEPT),
    Now = os:perf_counter(),
    persistent_term:put(?CLEARED, Now),
    ets:delete_all_objects(?MODULE),
    ets:delete_all_objects(?EVENTS),
    ets:insert(?MODULE, [#row{key = {Pid, Class, ?EARLIER}} || {Pid, Class, Started} <- live(), Started =< Now]),
    limit_rows(),
    nil.

%%% Events

-spec 'class traces'(term()) -> [map()].
'class traces'(_Class) ->
    [event(Row) || Row <- lists:reverse(ets:tab2list(?EVENTS))].

-spec 'class tracesFor:'(term(), term()) -> [map()].
'class tracesFor:'(_Class, Actor) ->
    Pid = pid(Actor, 'tracesFor:'),
    [event(Row) || Row <- lists:reverse(ets:tab2list(?EVENTS)), element(3, Row) =:= Pid].

-spec 'class tracesFor:selector:'(term(), term(), term()) -> [map()].
'class tracesFor:selector:'(_Class, Actor, Selector) ->
    Pid = pid(Actor, 'tracesFor:selector:'),
    beamtalk_argument:symbol(Selector, ?CLASS, 'tracesFor:selector:'),
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
    %% Equal ones by their names, not as the table has them.
    Sorted = lists:keysort(1, [{{-Weight(Row), Class, Method, Pid}, Row} || #row{key = {Pid, Class, Method}} = Row <- rows()]),
    [(numbers(Row))#{<<"actor">> => Pid, <<"class">> => Class, <<"selector">> => atom_to_binary(Method)}
     || {_, #row{key = {Pid, Class, Method}} = Row} <- lists:sublist(Sorted, Count)].

rows() ->
    flush(),
    with_starts([Row || #row{key = {_, _, _}} = Row <- ets:tab2list(?MODULE)]).

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

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% Made by the supervisor, so that what was recorded outlives this process.
-spec tables() -> [{atom(), [term()]}].
tables() ->
    [{?EVENTS, [ordered_set, {write_concurrency, true}]},
     {?MODULE, [set, {keypos, #row.key}, {write_concurrency, true}]}].

-spec init([]) -> {ok, none}.
init([]) ->
    %% Whoever was here before may have died while pruning.
    ets:delete(?MODULE, pruning),
    {ok, none}.

-spec handle_call(term(), gen_server:from(), none) -> {reply, ok, none}.
handle_call(_, _From, State) ->
    {reply, ok, State}.

-spec handle_cast(term(), none) -> {noreply, none}.
handle_cast(prune, State) ->
    {Microseconds, {Seen, Ended}} = timer:tc(fun prune/0),
    erlang:send_after(pause(Seen, Ended, Microseconds), self(), may_prune),
    {noreply, State}.

%% How long until the rows are looked through again. It may be long only where nearly all actors live: otherwise rows of those that
%% have ended would become the more, the more there are.
-spec pause(non_neg_integer(), non_neg_integer(), non_neg_integer()) -> pos_integer().
pause(Seen, Ended, _) when 10 * Ended >= Seen -> ?PRUNE_PAUSE;
pause(_, _, Microseconds) -> max(?PRUNE_PAUSE, ?RARITY * Microseconds div 1000).

prune() ->
    ets:safe_fixtable(?MODULE, true),
    Rows = ets:select(?MODULE, [{#row{key = '$1', _ = '_'}, [{is_tuple, '$1'}], ['$1']}], 1000),
    Counts = prune(Rows, 0, 0),
    ets:safe_fixtable(?MODULE, false),
    Counts.

%% One pass over the table, a key at a time: a pattern with an open part would walk it once for every dead actor.
prune('$end_of_table', Seen, Ended) -> {Seen, Ended};
prune({Keys, Continuation}, Seen, Ended) ->
    Dead = [Key || {Pid, _, _} = Key <- Keys, not is_process_alive(Pid)],
    [ets:delete(?MODULE, Key) || Key <- Dead],
    prune(ets:select(Continuation), Seen + length(Keys), Ended + length(Dead)).

-spec handle_info(term(), none) -> {noreply, none}.
handle_info(may_prune, State) ->
    ets:delete(?MODULE, pruning),
    {noreply, State};
handle_info(_, State) ->
    {noreply, State}.
