%% Announcements: buses, their subscriptions, and delivery.
%%
%% Subscriptions are rows of one table; this server removes those of a process
%% that has ended. Delivering reads the table in the announcing
%% process and starts a process for every handler, so no handler can hold up or
%% damage another one.
-module(beamtalk_announcer).
-behaviour(gen_server).

-export(['class new'/1, 'class current'/1]).
-export(['when:do:'/3, 'when:send:to:'/4, 'when:doOnce:'/3, 'announce:'/2, 'announceAndWait:'/2,
         'announceAndWait:timeout:'/3, 'unsubscribe:'/2, subscriptions/1, 'subscribersOf:'/2,
         subscriptionCount/1]).
-export([unsubscribe/1, isActive/1, navigation_default/1, navigation_of/2, announced_classes/1]).
-export([system_event/2, watch_actors/0, actor_started/2, native_started/2, actor_ends/1, state_changed/3, child_failed/3, binding_changed/2, is_watched/0,
         flush_completed/1, subscribed/1, hand/2]).
-export([start_link/0, tables/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-include_lib("kernel/include/logger.hrl").

-define(LIMIT, 5000).
%% Set for good once somebody has subscribed to the system's events.
%% An atom alone, which is found twice as fast as a tuple: it is asked at every assignment of a session.
-define(WATCHED, beamtalk_announcer_watched).
%% Set while somebody may have subscribed to changes of state.
-define(STATES, '$bt_announcer_states').

%% `kind' is `do', `send' or `doOnce'; `handler' a block, or `{Selector, Receiver}'.
-record(subscription, {id :: reference() | '_', bus :: term(), class :: atom(),
                       kind :: do | send | doOnce | '_', handler :: term(),
                       owner :: pid() | '_'}).

%%% Announcer

-spec 'class new'(tuple()) -> map().
'class new'(_Class) ->
    #{'$beamtalk_class' => 'Announcer', bus => make_ref()}.

-spec 'class current'(term()) -> map().
'class current'(_Class) ->
    #{'$beamtalk_class' => 'SystemAnnouncer', bus => system}.

-spec 'when:do:'(map(), term(), term()) -> map().
'when:do:'(Self, Class, Block) ->
    subscribe(Self, Class, do, handler(Block, 'when:do:'), 'when:do:').

-spec 'when:doOnce:'(map(), term(), term()) -> map().
'when:doOnce:'(Self, Class, Block) ->
    subscribe(Self, Class, doOnce, handler(Block, 'when:doOnce:'), 'when:doOnce:').

-spec 'when:send:to:'(map(), term(), term(), term()) -> map().
'when:send:to:'(Self, Class, Selector, Receiver) ->
    beamtalk_argument:symbol(Selector, 'Announcer', 'when:send:to:'),
    subscribe(Self, Class, send, {Selector, Receiver}, 'when:send:to:').

handler(Block, _) when is_function(Block, 1); is_function(Block, 0) -> Block;
handler(_, Selector) -> beamtalk_argument:fail('Announcer', Selector, <<"Expected a block">>).

subscribe(#{bus := Bus}, Class, Kind, Handler, Selector) ->
    Name = announcement_class(Class, Selector),
    Id = make_ref(),
    ok = gen_server:call(?MODULE, {subscribe, #subscription{id = Id, bus = Bus, class = Name,
                                                            kind = Kind, owner = self(),
                                                            handler = beamtalk_cell:freeze(Handler)}}),
    #{'$beamtalk_class' => 'Subscription', id => Id}.

announcement_class({beamtalk_object, _, _, Name}, Selector) when is_atom(Name) ->
    case beamtalk_class:inherits(Name, 'Announcement') of
        true -> Name;
        false -> beamtalk_argument:fail('Announcer', Selector, <<"Expected a class of announcements">>)
    end;
announcement_class(_, Selector) ->
    beamtalk_argument:fail('Announcer', Selector, <<"Expected a class of announcements">>).

-spec 'announce:'(map(), term()) -> nil.
'announce:'(Self, Event) ->
    deliver(Self, Event, 'announce:', []),
    nil.

-spec 'announceAndWait:'(map(), term()) -> nil.
'announceAndWait:'(Self, Event) ->
    await_all(Self, Event, ?LIMIT, 'announceAndWait:').

-spec 'announceAndWait:timeout:'(map(), term(), term()) -> nil.
'announceAndWait:timeout:'(Self, Event, Timeout) ->
    Limit = beamtalk_argument:milliseconds(Timeout, 'Announcer', 'announceAndWait:timeout:'),
    await_all(Self, Event, Limit, 'announceAndWait:timeout:').

await_all(#{bus := system}, _, _, Selector) ->
    beamtalk_error:raise(unsupported_operation, 'SystemAnnouncer', Selector,
                         <<"Use announce: on the system's bus">>);
await_all(Self, Event, Limit, Selector) ->
    %% As with Parallel, what the handlers do is part of what this process does.
    Wait = make_ref(),
    put('$bt_wait', Wait),
    Workers = deliver(Self, Event, Selector, beamtalk_actor:chain(Wait)),
    Deadline = erlang:monotonic_time(millisecond) + Limit,
    beamtalk_actor_waits:enter({all, [Pid || {Pid, _} <- Workers]}, Wait),
    lists:foreach(fun({Pid, Monitor}) ->
                          Left = max(0, Deadline - erlang:monotonic_time(millisecond)),
                          receive
                              {'DOWN', Monitor, process, Pid, _} -> ok
                          after Left ->
                                  demonitor(Monitor, [flush]),
                                  exit(Pid, kill),
                                  ?LOG_WARNING("An announcement handler took longer than ~b ms", [Limit])
                          end
                  end, Workers),
    beamtalk_actor_waits:leave(),
    erase('$bt_wait'),
    nil.

deliver(#{bus := Bus}, #{'$beamtalk_class' := Class} = Event, Selector, Chain) ->
    beamtalk_class:inherits(Class, 'Announcement') orelse no_announcement(Selector),
    Frozen = beamtalk_cell:freeze(Event),
    [start(Subscription, Frozen, Chain) || Subscription <- matching(Bus, Class), claim(Subscription)];
deliver(_, _, Selector, _) ->
    no_announcement(Selector).

-spec no_announcement(atom()) -> no_return().
no_announcement(Selector) ->
    beamtalk_argument:fail('Announcer', Selector, <<"Expected an Announcement">>).

matching(Bus, Class) ->
    case ets:whereis(?MODULE) of
        undefined ->
            [];
        _ ->
            [Subscription || #subscription{class = Wanted} = Subscription <- of_bus(Bus),
                             beamtalk_class:inherits(Class, Wanted)]
    end.

%% Only one announcement gets a subscription that is for one only.
claim(#subscription{kind = doOnce, id = Id}) -> ets:take(?MODULE, Id) =/= [];
claim(_) -> true.

start(#subscription{handler = Handler}, Event, Chain) ->
    spawn_monitor(fun() ->
                          put('$bt_chain', Chain),
                          try handle(Handler, Event)
                          catch
                              Class:Reason:Stack ->
                                  Exception = beamtalk_error:from_caught(Class, Reason, Stack),
                                  ?LOG_ERROR("An announcement handler failed: ~ts",
                                             [beamtalk_display:print(Exception)])
                          end,
                          beamtalk_tracing:flush()
                  end).

handle({Selector, Receiver}, Event) -> beamtalk_dispatch:send_list(Receiver, Selector, [Event]);
handle(Block, _) when is_function(Block, 0) -> Block();
handle(Block, Event) -> Block(Event).

-spec 'unsubscribe:'(map(), term()) -> nil.
'unsubscribe:'(#{bus := Bus}, Receiver) ->
    lists:foreach(fun(#subscription{id = Id} = Subscription) ->
                          belongs_to(Subscription, Receiver) andalso remove(Id)
                  end, of_bus(Bus)),
    nil.

belongs_to(#subscription{handler = {_, Receiver}}, Receiver) -> true;
belongs_to(#subscription{owner = Owner, kind = Kind}, {beamtalk_object, _, _, Owner}) -> Kind =/= send;
belongs_to(#subscription{owner = Owner, kind = Kind}, Owner) -> Kind =/= send;
belongs_to(_, _) -> false.

-spec subscriptions(map()) -> [map()].
subscriptions(#{bus := Bus} = Self) ->
    [node(Subscription, Self) || Subscription <- of_bus(Bus)].

-spec 'subscribersOf:'(map(), term()) -> [map()].
'subscribersOf:'(#{bus := Bus} = Self, Class) ->
    Name = announcement_class(Class, 'subscribersOf:'),
    [node(Subscription, Self) || #subscription{class = C} = Subscription <- of_bus(Bus), C =:= Name].

-spec subscriptionCount(map()) -> non_neg_integer().
subscriptionCount(#{bus := Bus}) ->
    length(of_bus(Bus)).

of_bus(Bus) ->
    ets:match_object(?MODULE, #subscription{id = '_', bus = Bus, class = '_', kind = '_',
                                            handler = '_', owner = '_'}).

node(#subscription{class = Class, kind = Kind, handler = Handler, owner = Owner}, Announcer) ->
    Subscriber = case Handler of
                     {_, {beamtalk_object, _, _, Pid}} when is_pid(Pid) -> Pid;
                     _ -> Owner
                 end,
    #{'$beamtalk_class' => 'SubscriptionNode', announcementClass => beamtalk_class:named(Class),
      announcer => announcer(Announcer), subscriber => Subscriber, handlerKind => Kind,
      once => Kind =:= doOnce}.

%%% Subscription

-spec unsubscribe(map()) -> nil.
unsubscribe(#{id := Id}) ->
    remove(Id),
    nil.

-spec isActive(map()) -> boolean().
isActive(#{id := Id}) ->
    ets:member(?MODULE, Id).

remove(Id) ->
    ets:delete(?MODULE, Id).

%%% AnnouncementNavigation

-spec navigation_default(term()) -> map().
navigation_default(Class) ->
    navigation_of(Class, 'class current'(Class)).

-spec navigation_of(term(), term()) -> map().
navigation_of(_Class, #{'$beamtalk_class' := Kind, bus := Bus})
  when Kind =:= 'Announcer'; Kind =:= 'SystemAnnouncer' ->
    #{'$beamtalk_class' => 'AnnouncementNavigation', bus => Bus};
navigation_of(_, _) ->
    beamtalk_argument:fail('AnnouncementNavigation', 'of:', <<"Expected an Announcer">>).

-spec announced_classes(map()) -> [tuple()].
announced_classes(#{bus := Bus}) ->
    Names = lists:usort([Class || #subscription{class = Class} <- of_bus(Bus)]),
    [beamtalk_class:named(Name) || Name <- Names].

announcer(#{bus := system}) -> 'class current'(nil);
announcer(#{bus := Bus}) -> #{'$beamtalk_class' => 'Announcer', bus => Bus}.

%%% Events of the system

%% Announces an event of the given class; cheap when nobody has subscribed.
-spec system_event(atom(), map()) -> ok.
system_event(Class, Fields) ->
    beamtalk_bridge_events:announced(Class, Fields),
    case ets:whereis(?MODULE) =/= undefined andalso matching(system, Class) of
        [_ | _] = Subscriptions ->
            Event = beamtalk_cell:freeze(Fields#{'$beamtalk_class' => Class}),
            [start(Subscription, Event, []) || Subscription <- Subscriptions, claim(Subscription)],
            ok;
        _ ->
            ok
    end.

%% The subscriptions to what the system announces of a class.
-spec subscribed(atom()) -> [reference()].
subscribed(Class) -> [Id || #subscription{id = Id} <- matching(system, Class)].

%% Start the handler of one subscription; none when it has ended meanwhile.
-spec hand(reference(), map()) -> {ok, reference()} | none.
hand(Id, Event) ->
    case ets:lookup(?MODULE, Id) of
        [Subscription] ->
            case claim(Subscription) of
                true ->
                    {_, Monitor} = start(Subscription, beamtalk_cell:freeze(Event), []),
                    {ok, Monitor};
                false -> none
            end;
        [] -> none
    end.

%% A live actor: announced now, and its end when it comes, however it comes. While nobody has ever subscribed to the
%% system's events an actor only counts itself; the first subscription makes this server watch all that are there.
-spec actor_started(atom(), pid()) -> ok.
actor_started(Class, Pid) ->
    put('$bt_started', {Class, beamtalk_tracing:started(Pid, Class)}),
    announce_start(Class, Pid, get('$ancestors')).

%% The same for a process that is no actor by itself; told by whoever started it.
-spec native_started(atom(), pid()) -> ok.
native_started(Class, Pid) -> announce_start(Class, Pid, ancestors(Pid)).

announce_start(Class, Pid, Ancestors) ->
    case persistent_term:get(?WATCHED, false) of
        false -> ok;
        true ->
            system_event('ActorSpawned', #{actorClass => Class, pid => Pid}),
            gen_server:cast(?MODULE, {actor, {Class, supervisor_of(Ancestors)}, Pid})
    end.

ancestors(Pid) ->
    case process_info(Pid, dictionary) of
        {dictionary, Dictionary} -> proplists:get_value('$ancestors', Dictionary);
        undefined -> undefined
    end.

%% The class of the supervisor that started a process with these ancestors, if one did.
supervisor_of([Parent | _]) when is_atom(Parent) ->
    case atom_to_binary(Parent) of
        <<"beamtalk_supervisor_", Class/binary>> -> binary_to_atom(Class);
        _ -> none
    end;
supervisor_of(_) ->
    none.

%% An actor has ended a message with another state than before. Costs a look-up while nobody listens.
-spec state_changed(atom(), map(), map()) -> ok.
state_changed(Class, Before, After) ->
    case persistent_term:get(?STATES, false) andalso Before =/= After of
        true ->
            case matching(system, 'ObjectStateChanged') of
                [] ->
                    persistent_term:put(?STATES, false);
                _ ->
                    Changed = [Slot || Slot <- lists:sort(maps:keys(maps:merge(Before, After))),
                                       maps:find(Slot, Before) =/= maps:find(Slot, After)],
                    system_event('ObjectStateChanged',
                                 #{pid => self(), actorClass => Class, changedSlots => Changed})
            end;
        false ->
            ok
    end.

%% A supervisor could not start a child; called by the supervisor.
-spec child_failed(atom(), atom(), term()) -> ok.
child_failed(Supervisor, Class, Reason) ->
    system_event('SupervisionChildCrashed', #{supervisor => Supervisor, childClass => Class, childPid => nil,
                                              reason => reason_symbol(Reason)}).

%% A session has assigned one of its variables; called by its evaluator.
-spec binding_changed(atom(), term()) -> ok.
binding_changed(Name, Value) ->
    case is_watched() of
        false -> ok;
        true ->
            Session = case get('$bt_session') of
                Id when is_binary(Id) -> Id;
                _ -> nil
            end,
            system_event('BindingChanged', #{name => Name, value => Value, sessionId => Session})
    end.

-spec is_watched() -> boolean().
is_watched() -> persistent_term:get(?WATCHED, false).

%% A workspace has written changed classes to these files.
-spec flush_completed([binary()]) -> ok.
flush_completed(Files) ->
    system_event('FlushCompleted', #{files => Files}).

%% From now on announce every actor.
-spec watch_actors() -> ok.
watch_actors() ->
    gen_server:cast(?MODULE, watch_actors).

%% Called by an actor that ends in an orderly way. If that is a crash it leaves its reason: it may be gone before this server
%% comes to watch it.
-spec actor_ends(term()) -> ok.
actor_ends(Reason) ->
    case get('$bt_started') of
        undefined -> ok;
        {Class, Started} ->
            beamtalk_tracing:stopped(self(), Class, Started),
            case is_watched() andalso not is_no_crash(reason_symbol(Reason)) of
                true -> gen_server:cast(?MODULE, {crashed, self(), reason_symbol(Reason)});
                false -> ok
            end
    end.

is_no_crash(Symbol) -> Symbol =:= normal orelse Symbol =:= shutdown.

actor_stopped({Class, Supervisor}, Pid, Reason) ->
    IsOrderly = beamtalk_tracing:is_stopped(Pid, Class),
    IsOrderly orelse beamtalk_tracing:record(Pid, Class, stop, lifecycle, os:perf_counter(), ok),
    beamtalk_tracing:flush(),
    %% One that was gone before this server came to watch it has left no other reason.
    Symbol = case reason_symbol(Reason) of
        noproc when IsOrderly -> normal;
        Known -> Known
    end,
    system_event('ActorStopped', #{actorClass => Class, pid => Pid, reason => Symbol}),
    case Supervisor =:= none orelse is_no_crash(Symbol) of
        true -> ok;
        false -> system_event('SupervisionChildCrashed', #{supervisor => Supervisor, childClass => Class,
                                                           childPid => Pid, reason => Symbol})
    end.

reason_symbol(Reason) when is_atom(Reason) -> Reason;
reason_symbol(#{error := {beamtalk_error, Kind, _, _, _, _, _}}) -> Kind;
reason_symbol(Reason) when is_tuple(Reason), is_atom(element(1, Reason)) -> element(1, Reason);
reason_symbol(_) -> error.

%%% The server

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% Made by the supervisor, so that subscriptions outlive this process.
-spec tables() -> [{atom(), [term()]}].
tables() -> [{?MODULE, [set, {keypos, #subscription.id}, {read_concurrency, true}]}].

-spec init([]) -> {ok, map()}.
init([]) ->
    Owners = lists:usort([Owner || #subscription{owner = Owner} <- ets:tab2list(?MODULE)]),
    Subscribers = maps:from_list([{Owner, monitor(process, Owner)} || Owner <- Owners]),
    {ok, case persistent_term:get(?WATCHED, false) of
             true -> watch_all(Subscribers);
             false -> Subscribers
         end}.

-spec handle_call(term(), gen_server:from(), map()) -> {reply, ok, map()}.
handle_call({subscribe, #subscription{owner = Owner, bus = Bus, class = Class} = Subscription}, _From, Monitors) ->
    ets:insert(?MODULE, Subscription),
    Bus =:= system andalso beamtalk_class:inherits('ObjectStateChanged', Class)
        andalso persistent_term:put(?STATES, true),
    Watching = case Bus =:= system andalso not persistent_term:get(?WATCHED, false) of
        true -> watch_all(Monitors);
        false -> Monitors
    end,
    case is_map_key(Owner, Watching) of
        true -> {reply, ok, Watching};
        false -> {reply, ok, Watching#{Owner => monitor(process, Owner)}}
    end.

%% Monitor the actors that started while nobody listened.
watch_all(Monitors) ->
    persistent_term:put(?WATCHED, true),
    Actors = [{Pid, {Class, supervisor_of(proplists:get_value('$ancestors', Dictionary))}}
              || Pid <- processes(), {dictionary, Dictionary} <- [process_info(Pid, dictionary)],
                 {'$bt_started', {Class, _}} <- Dictionary]
        ++ [{Pid, {Class, supervisor_of(ancestors(Pid))}} || {Pid, Class} <- beamtalk_native_actor:all()],
    lists:foldl(fun({Pid, Actor}, All) -> All#{monitor(process, Pid) => Actor} end, Monitors, Actors).

%% Monitors of actors are kept by reference, those of subscribers by process.
-spec handle_cast(term(), map()) -> {noreply, map()}.
handle_cast(watch_actors, Monitors) ->
    {noreply, case persistent_term:get(?WATCHED, false) of
                  true -> Monitors;
                  false -> watch_all(Monitors)
              end};
handle_cast({actor, Actor, Pid}, Monitors) ->
    {noreply, Monitors#{monitor(process, Pid) => Actor}};
%% It comes after the actor's start and before its end, which are told to this server in that order.
handle_cast({crashed, Pid, Reason}, Monitors) ->
    {noreply, Monitors#{{crashed, Pid} => Reason}};
handle_cast(_, Monitors) ->
    {noreply, Monitors}.

-spec handle_info(term(), map()) -> {noreply, map()}.
handle_info({'DOWN', Monitor, process, Pid, Reason}, Monitors) when is_map_key(Monitor, Monitors) ->
    {Actor, Left} = maps:take(Monitor, Monitors),
    actor_stopped(Actor, Pid, maps:get({crashed, Pid}, Left, Reason)),
    {noreply, maps:remove({crashed, Pid}, Left)};
handle_info({'DOWN', _, process, Owner, _}, Monitors) ->
    ets:match_delete(?MODULE, #subscription{id = '_', bus = '_', class = '_', kind = '_',
                                            handler = '_', owner = Owner}),
    {noreply, maps:remove(Owner, Monitors)};
handle_info(_, Monitors) ->
    {noreply, Monitors}.
