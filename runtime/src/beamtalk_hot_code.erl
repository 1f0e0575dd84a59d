%% Code for what turned out hot in sessions, under a fixed number of module names that are used again.
%%
%% A statement is compiled beside the evaluation that wants it. Its module is kept for the next time the very same
%% statement becomes hot. Where every name has a module, the one asked for least recently goes: the new code is loaded
%% over it, and the VM keeps the old version beside the new one. A name is used again only when its old version has nobody
%% left: no process runs it and no block made in it lives anywhere (beamtalk_fun_count). With no such name the statement
%% is walked on.
%%
%% Whoever enters a module shows a ticket, a number that no other code ever had, so it cannot come to code of others.
-module(beamtalk_hot_code).
-behaviour(gen_server).

-export([want/1, await/1, run_method/2, module/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% The slot is the low bits of a ticket.
-define(NAMES,
        {'bt@eval@1', 'bt@eval@2', 'bt@eval@3', 'bt@eval@4', 'bt@eval@5', 'bt@eval@6', 'bt@eval@7', 'bt@eval@8',
         'bt@eval@9', 'bt@eval@10', 'bt@eval@11', 'bt@eval@12', 'bt@eval@13', 'bt@eval@14', 'bt@eval@15', 'bt@eval@16',
         'bt@eval@17', 'bt@eval@18', 'bt@eval@19', 'bt@eval@20', 'bt@eval@21', 'bt@eval@22', 'bt@eval@23', 'bt@eval@24',
         'bt@eval@25', 'bt@eval@26', 'bt@eval@27', 'bt@eval@28', 'bt@eval@29', 'bt@eval@30', 'bt@eval@31', 'bt@eval@32'}).
-define(BITS, 5).
-define(SLOTS, (1 bsl ?BITS)).
%% How many of the oldest are looked at to replace one.
-define(TRIED, 8).
%% How many are compiled at a time: evaluations shall have the processors.
-define(COMPILERS, 2).
%% Calls and turns until what got no code asks again: because others were compiled, and because no slot was free.
-define(SOON, 1000).
-define(LATER, 1000000).
-define(NEVER, (1 bsl 60)).
%% Forms of more bytes are compiled without the Erlang compiler's optimiser, which takes the larger part of the time.
-define(LARGE, 8192).
%% Words of heap the Erlang compiler starts with.
-define(ROOM, 100000).

%% The cells of a unit's atomics, as in beamtalk_walk.
-define(COUNT, 1).
-define(TICKET, 2).

-type source() :: {statement, Input :: binary(), Statement :: pos_integer()} | {method, Forms :: [tuple()]}.
-type key() :: {binary(), term()} | unknown.
%% Who waits for code: a unit's atomics, or a process.
-type waiting() :: {unit, atomics:atomics_ref()} | {process, gen_server:from()}.

%% The probes are of the version that is called and of the one before it.
-record(slot, {key = unknown :: key(),
               ticket = 0 :: non_neg_integer(),
               probes = unknown :: [binary()] | unknown,
               old_probes = [] :: [binary()] | unknown,
               used = 0 :: integer()}).
-record(job, {key :: key(), slot :: non_neg_integer(), ticket :: pos_integer(), waiting :: [waiting()]}).
-record(state, {slots :: #{non_neg_integer() => #slot{}},
                %% Which slot has the code of a key.
                loaded = #{} :: #{key() => non_neg_integer()},
                jobs = #{} :: #{reference() => #job{}}}).

%% The unit gets code as soon as there is some.
-spec want(beamtalk_walk:unit()) -> ok.
want({Heat, Input, Statement}) ->
    gen_server:cast(server(), {want, {unit, Heat}, {statement, Input, Statement}}).

%% The same, waiting for it. The unit may get none.
-spec await(beamtalk_walk:unit()) -> ok.
await({Heat, Input, Statement}) ->
    case gen_server:call(server(), {want, {statement, Input, Statement}}, infinity) of
        {ok, Ticket} -> atomics:put(Heat, ?TICKET, Ticket);
        {error, _} -> ok
    end.

%% The value of the one unary method of a module, given as forms.
-spec run_method([tuple()], term()) -> term().
run_method(Forms, Self) ->
    case gen_server:call(server(), {want, {method, Forms}}, infinity) of
        {ok, Ticket} -> (module(Ticket)):call(Ticket, 0, {}, {Self}, {method, Forms});
        {error, {limit, What}} ->
            Text = <<"compiling was stopped: limit of ", (atom_to_binary(What))/binary, " reached">>,
            beamtalk_error:raise(compiler_limit, nil, nil, Text, nil, #{limit => What});
        {error, full} ->
            beamtalk_error:raise(resource_error, nil, nil, <<"there is no room for more compiled code">>,
                                 <<"let go of blocks that earlier evaluations have made">>, #{});
        {error, {crashed, Reason}} -> erlang:error(Reason)
    end.

%% The module a ticket is for.
-spec module(non_neg_integer()) -> module().
module(Ticket) -> element((Ticket band (?SLOTS - 1)) + 1, ?NAMES).

server() ->
    case whereis(?MODULE) of
        undefined ->
            _ = gen_server:start({local, ?MODULE}, ?MODULE, [], []),
            ?MODULE;
        Server -> Server
    end.

%%% The server

%% What a server before this one has loaded can be loaded over once: nobody knows how many blocks it has made.
-spec init([]) -> {ok, #state{}}.
init([]) ->
    %% Whoever starts the server first, it does not belong to that one's output.
    group_leader(whereis(init), self()),
    Known = [{Slot, #slot{old_probes = unknown}} || Slot <- lists:seq(0, ?SLOTS - 1), erlang:module_loaded(module(Slot))],
    {ok, #state{slots = maps:from_list(Known)}}.

-spec handle_call(term(), gen_server:from(), #state{}) -> {noreply, #state{}}.
handle_call({want, Source}, From, State) ->
    {noreply, provide(Source, {process, From}, State)}.

-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast({want, Waiting, Source}, #state{jobs = Jobs} = State) ->
    case map_size(Jobs) < ?COMPILERS of
        true -> {noreply, provide(Source, Waiting, State)};
        false ->
            tell(Waiting, {error, busy}),
            {noreply, State}
    end.

-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({'DOWN', Monitor, process, _, Reason}, #state{jobs = Jobs} = State) when is_map_key(Monitor, Jobs) ->
    {Job, Left} = maps:take(Monitor, Jobs),
    {noreply, finish(Job, Reason, State#state{jobs = Left})};
handle_info(_, State) -> {noreply, State}.

-spec provide(source(), waiting(), #state{}) -> #state{}.
provide(Source, Waiting, #state{slots = Slots, loaded = Loaded, jobs = Jobs} = State) ->
    Key = key(Source),
    case {Loaded, [Found || {_, #job{key = Known}} = Found <- maps:to_list(Jobs), Known =:= Key]} of
        {#{Key := Number}, _} ->
            #{Number := #slot{ticket = Ticket} = Slot} = Slots,
            tell(Waiting, {ok, Ticket}),
            State#state{slots = Slots#{Number := Slot#slot{used = now_used()}}};
        {_, [{Monitor, #job{waiting = Others} = Job}]} ->
            State#state{jobs = Jobs#{Monitor := Job#job{waiting = [Waiting | Others]}}};
        {_, []} ->
            case free_slot(State) of
                {none, Tried} ->
                    tell(Waiting, {error, full}),
                    Tried;
                {Number, Chosen} -> start(Key, Source, Number, Waiting, Chosen)
            end
    end.

key({statement, Input, Statement}) -> {erlang:md5(Input), Statement};
key({method, Forms}) -> {erlang:md5(term_to_binary(Forms)), method}.

now_used() -> erlang:unique_integer([monotonic]).

tell({process, From}, Answer) -> gen_server:reply(From, Answer);
tell({unit, Heat}, {ok, Ticket}) -> atomics:put(Heat, ?TICKET, Ticket);
tell({unit, Heat}, {error, busy}) -> atomics:put(Heat, ?COUNT, -?SOON);
tell({unit, Heat}, {error, full}) -> atomics:put(Heat, ?COUNT, -?LATER);
tell({unit, Heat}, {error, _}) -> atomics:put(Heat, ?COUNT, -?NEVER).

%%% Compiling

start(Key, Source, Number, Waiting, #state{jobs = Jobs} = State) ->
    Ticket = (erlang:unique_integer([positive, monotonic]) bsl ?BITS) bor Number,
    Work = fun() -> compile(Source, module(Number), Ticket) end,
    {_, Monitor} = spawn_monitor(fun() -> exit({compiled, beamtalk_limited:run(Work, ?ROOM)}) end),
    Job = #job{key = Key, slot = Number, ticket = Ticket, waiting = [Waiting]},
    State#state{jobs = Jobs#{Monitor => Job}}.

compile(Source, Module, Ticket) ->
    try forms(Source, Module, Ticket) of
        Forms -> compile:noenv_forms(Forms, [binary, no_spawn_compiler_process, nowarn_unused_vars | haste(Source)])
    catch throw:too_large -> error
    end.

forms({statement, Input, Statement}, Module, Ticket) ->
    beamtalk_sites:compiled(lists:nth(Statement, binary_to_term(Input)), Module, Ticket);
forms({method, Forms}, Module, Ticket) ->
    beamtalk_sites:entered(Forms, Module, Ticket).

haste({statement, Input, _}) when byte_size(Input) > ?LARGE -> [no_ssa_opt, no_copt];
haste(_) -> [].

finish(#job{waiting = Waiting} = Job, Reason, State) ->
    {Answer, Done} = case Reason of
        {compiled, {ok, {ok, _, Beam}}} -> install(Job, Beam, State);
        {compiled, {ok, _}} -> {{error, {crashed, compile_failed}}, State};
        {compiled, {limit, _} = Limit} -> {{error, Limit}, State};
        _ -> {{error, {crashed, Reason}}, State}
    end,
    [tell(One, Answer) || One <- Waiting],
    Done.

%%% Slots

install(#job{key = Key, slot = Number, ticket = Ticket}, Beam, #state{slots = Slots, loaded = Loaded} = State) ->
    Module = module(Number),
    #slot{key = Former, probes = Before} = maps:get(Number, Slots, #slot{probes = []}),
    case code:load_binary(Module, "session", Beam) of
        {module, Module} ->
            Slot = #slot{key = Key, ticket = Ticket, probes = beamtalk_fun_count:probes(Module, Beam), old_probes = Before,
                         used = now_used()},
            {{ok, Ticket}, State#state{slots = Slots#{Number => Slot},
                                       loaded = (maps:remove(Former, Loaded))#{Key => Number}}};
        {error, Why} -> {{error, {crashed, Why}}, State}
    end.

%% A slot whose module may be loaded over.
free_slot(#state{slots = Slots, jobs = Jobs} = State) ->
    Taken = [Number || #job{slot = Number} <- maps:values(Jobs)],
    case [Number || Number <- lists:seq(0, ?SLOTS - 1), not is_map_key(Number, Slots)] -- Taken of
        [Number | _] -> {Number, State};
        [] ->
            Idle = lists:sort([{Used, Number} || {Number, #slot{used = Used}} <- maps:to_list(Slots),
                                                 not lists:member(Number, Taken)]),
            replace(lists:sublist(Idle, ?TRIED), State)
    end.

%% One that is still in use is not looked at again before all others.
replace([{_, Number} | Rest], #state{slots = Slots} = State) ->
    #{Number := #slot{old_probes = Probes} = Slot} = Slots,
    case is_over(module(Number), Probes) of
        true -> {Number, State#state{slots = Slots#{Number := Slot#slot{old_probes = []}}}};
        false -> replace(Rest, State#state{slots = Slots#{Number := Slot#slot{used = now_used()}}})
    end;
replace([], State) -> {none, State}.

%% Is the old version of a module gone? While a process runs it, it can make blocks of it; so who runs it is asked first, and
%% then the blocks are counted. Garbage holds blocks too; it goes with the next collection of whoever made it.
is_over(Module, Probes) ->
    not erlang:check_old_code(Module)
        orelse (is_list(Probes)
                andalso not lists:any(fun(Pid) -> erlang:check_process_code(Pid, Module) end, processes())
                andalso beamtalk_fun_count:is_unreferenced(Probes)
                andalso code:soft_purge(Module)).
