%% Code for what turned out hot in sessions, under a fixed number of module names that are used again.
%%
%% A statement is compiled beside the evaluation that wants it. Its number, which its text decides, says under which name its
%% blocks look for code first; where that is taken they are told another. The module is kept for the next time the very
%% same statement is evaluated. New code is loaded over other code, and the VM keeps the old version beside the new one. A
%% name is used again only when its old version has nobody left: no process runs it and no block made in it lives
%% anywhere (beamtalk_fun_count). With no such name the statement is walked on.
-module(beamtalk_hot_code).
-behaviour(gen_server).

-export([want/1, await/1, prepare/0, run_method/2, id/1, slot/1, module/1, call/6]).
-export_type([id/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(SLOTS, 32).
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

%% Milliseconds in which code is not replaced while others can be: two statements that are hot at a time would take turns.
-define(FRESH, 100).

%% In the heat of a unit, as in beamtalk_walk.
-define(COUNT, 1).
-define(SLOT, 2).

%% What a statement is known by; small enough to be compared at once.
-type id() :: 0..16#7FFFFFFFFFFFFFF.
-type source() :: {sites, Input :: binary(), beamtalk_walk:place()} | {method, Forms :: [tuple()]}.
%% Who waits for code: the heat of a unit, or a process.
-type waiting() :: {unit, atomics:atomics_ref()} | {process, gen_server:from()}.

%% The probes are of the version that is called and of the one before it.
-record(slot, {id = none :: id() | none,
               probes = unknown :: [binary()] | unknown,
               old_probes = [] :: [binary()] | unknown,
               used = 0 :: integer()}).
-record(job, {id :: id(), slot :: pos_integer(), waiting :: [waiting()]}).
-record(state, {slots :: #{pos_integer() => #slot{}},
                %% Which slot has the code of a statement.
                loaded = #{} :: #{id() => pos_integer()},
                jobs = #{} :: #{reference() => #job{}},
                %% Has every name code, so that it can be called?
                is_complete = false :: boolean()}).

%% The unit gets code as soon as there is some.
-spec want(beamtalk_walk:unit()) -> ok.
want({_, _, Heat, Input, Place}) ->
    gen_server:cast(server(), {want, {unit, Heat}, {sites, Input, Place}}).

%% The same, waiting for it. The unit may get none.
-spec await(beamtalk_walk:unit()) -> ok.
await({_, _, Heat, Input, Place}) ->
    case gen_server:call(server(), {want, {sites, Input, Place}}, infinity) of
        {ok, _} = Answer -> tell({unit, Heat}, Answer);
        {error, _} -> ok
    end.

%% Every slot can be called from now on, as blocks do that come from other nodes.
-spec prepare() -> ok.
prepare() -> gen_server:call(server(), prepare, infinity).

%% The value of the one unary method of a module, given as forms.
-spec run_method([tuple()], term()) -> term().
run_method(Forms, Self) ->
    Source = {method, Forms},
    case gen_server:call(server(), {want, Source}, infinity) of
        {ok, Slot} -> call(Slot, id(Source), 0, {}, {Self}, Source);
        {error, {limit, What}} ->
            Text = <<"compiling was stopped: limit of ", (atom_to_binary(What))/binary, " reached">>,
            beamtalk_error:raise(compiler_limit, nil, nil, Text, nil, #{limit => What});
        {error, full} ->
            beamtalk_error:raise(resource_error, nil, nil, <<"there is no room for more compiled code">>,
                                 <<"let go of blocks that earlier evaluations have made">>, #{});
        {error, {crashed, Reason}} -> erlang:error(Reason)
    end.

-spec id(source()) -> id().
id({sites, Input, {Statement, Outermost}}) -> id(erlang:md5([<<Statement:32, Outermost:32>>, Input]));
id({method, Forms}) -> id(erlang:md5(term_to_binary(Forms)));
id(<<_:5, Id:59, _/binary>>) -> Id.

%% The slot a statement looks for its code in first, from 1.
-spec slot(id()) -> pos_integer().
slot(Id) -> Id rem ?SLOTS + 1.

-spec module(pos_integer()) -> module().
module(Slot) -> element(Slot, names()).

names() ->
    {'bt@eval@1', 'bt@eval@2', 'bt@eval@3', 'bt@eval@4', 'bt@eval@5', 'bt@eval@6', 'bt@eval@7', 'bt@eval@8',
     'bt@eval@9', 'bt@eval@10', 'bt@eval@11', 'bt@eval@12', 'bt@eval@13', 'bt@eval@14', 'bt@eval@15', 'bt@eval@16',
     'bt@eval@17', 'bt@eval@18', 'bt@eval@19', 'bt@eval@20', 'bt@eval@21', 'bt@eval@22', 'bt@eval@23', 'bt@eval@24',
     'bt@eval@25', 'bt@eval@26', 'bt@eval@27', 'bt@eval@28', 'bt@eval@29', 'bt@eval@30', 'bt@eval@31', 'bt@eval@32'}.

%% Go on at a site in the code of a slot. Written out, since the VM finds a function fastest whose name stands in the code.
-spec call(non_neg_integer(), id(), non_neg_integer(), tuple(), tuple(), term()) -> term().
call(0, I, X, V, A, C) -> beamtalk_walk:call(I, X, V, A, C);
call(1, I, X, V, A, C) -> 'bt@eval@1':call(I, X, V, A, C);
call(2, I, X, V, A, C) -> 'bt@eval@2':call(I, X, V, A, C);
call(3, I, X, V, A, C) -> 'bt@eval@3':call(I, X, V, A, C);
call(4, I, X, V, A, C) -> 'bt@eval@4':call(I, X, V, A, C);
call(5, I, X, V, A, C) -> 'bt@eval@5':call(I, X, V, A, C);
call(6, I, X, V, A, C) -> 'bt@eval@6':call(I, X, V, A, C);
call(7, I, X, V, A, C) -> 'bt@eval@7':call(I, X, V, A, C);
call(8, I, X, V, A, C) -> 'bt@eval@8':call(I, X, V, A, C);
call(9, I, X, V, A, C) -> 'bt@eval@9':call(I, X, V, A, C);
call(10, I, X, V, A, C) -> 'bt@eval@10':call(I, X, V, A, C);
call(11, I, X, V, A, C) -> 'bt@eval@11':call(I, X, V, A, C);
call(12, I, X, V, A, C) -> 'bt@eval@12':call(I, X, V, A, C);
call(13, I, X, V, A, C) -> 'bt@eval@13':call(I, X, V, A, C);
call(14, I, X, V, A, C) -> 'bt@eval@14':call(I, X, V, A, C);
call(15, I, X, V, A, C) -> 'bt@eval@15':call(I, X, V, A, C);
call(16, I, X, V, A, C) -> 'bt@eval@16':call(I, X, V, A, C);
call(17, I, X, V, A, C) -> 'bt@eval@17':call(I, X, V, A, C);
call(18, I, X, V, A, C) -> 'bt@eval@18':call(I, X, V, A, C);
call(19, I, X, V, A, C) -> 'bt@eval@19':call(I, X, V, A, C);
call(20, I, X, V, A, C) -> 'bt@eval@20':call(I, X, V, A, C);
call(21, I, X, V, A, C) -> 'bt@eval@21':call(I, X, V, A, C);
call(22, I, X, V, A, C) -> 'bt@eval@22':call(I, X, V, A, C);
call(23, I, X, V, A, C) -> 'bt@eval@23':call(I, X, V, A, C);
call(24, I, X, V, A, C) -> 'bt@eval@24':call(I, X, V, A, C);
call(25, I, X, V, A, C) -> 'bt@eval@25':call(I, X, V, A, C);
call(26, I, X, V, A, C) -> 'bt@eval@26':call(I, X, V, A, C);
call(27, I, X, V, A, C) -> 'bt@eval@27':call(I, X, V, A, C);
call(28, I, X, V, A, C) -> 'bt@eval@28':call(I, X, V, A, C);
call(29, I, X, V, A, C) -> 'bt@eval@29':call(I, X, V, A, C);
call(30, I, X, V, A, C) -> 'bt@eval@30':call(I, X, V, A, C);
call(31, I, X, V, A, C) -> 'bt@eval@31':call(I, X, V, A, C);
call(32, I, X, V, A, C) -> 'bt@eval@32':call(I, X, V, A, C).

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
    Known = [{Slot, #slot{old_probes = unknown}} || Slot <- lists:seq(1, ?SLOTS), erlang:module_loaded(module(Slot))],
    {ok, #state{slots = maps:from_list(Known)}}.

-spec handle_call(term(), gen_server:from(), #state{}) -> {noreply, #state{}} | {reply, ok, #state{}}.
handle_call(prepare, _From, State) ->
    fill(empty_modules()),
    {reply, ok, State#state{is_complete = true}};
handle_call({want, Source}, From, State) ->
    {noreply, provide(Source, {process, From}, State)}.

-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast({want, Waiting, Source}, #state{jobs = Jobs} = State) when map_size(Jobs) < ?COMPILERS ->
    {noreply, provide(Source, Waiting, State)};
handle_cast({want, Waiting, _}, State) ->
    tell(Waiting, {error, busy}),
    {noreply, State}.

-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({'DOWN', Monitor, process, _, Reason}, #state{jobs = Jobs} = State) when is_map_key(Monitor, Jobs) ->
    {Job, Left} = maps:take(Monitor, Jobs),
    {noreply, finish(Job, Reason, State#state{jobs = Left})};
handle_info({'DOWN', _, process, _, {empty, Modules}}, State) ->
    fill(Modules),
    {noreply, State};
handle_info(_, State) -> {noreply, State}.

-spec provide(source(), waiting(), #state{}) -> #state{}.
provide(Source, Waiting, #state{slots = Slots, loaded = Loaded, jobs = Jobs} = State) ->
    Id = id(Source),
    case {Loaded, [Found || {_, #job{id = Known}} = Found <- maps:to_list(Jobs), Known =:= Id]} of
        {#{Id := Number}, _} ->
            #{Number := Slot} = Slots,
            tell(Waiting, {ok, Number}),
            State#state{slots = Slots#{Number := Slot#slot{used = now_used()}}};
        {_, [{Monitor, #job{waiting = Others} = Job}]} ->
            State#state{jobs = Jobs#{Monitor := Job#job{waiting = [Waiting | Others]}}};
        {_, []} ->
            case free_slot(Id, State) of
                {none, Tried} ->
                    tell(Waiting, {error, full}),
                    Tried;
                {Number, Chosen} -> start(#job{id = Id, slot = Number, waiting = [Waiting]}, Source, Chosen)
            end
    end.

now_used() -> erlang:monotonic_time(millisecond).

tell({process, From}, Answer) -> gen_server:reply(From, Answer);
tell({unit, Heat}, {ok, Number}) -> atomics:put(Heat, ?SLOT, Number);
tell({unit, Heat}, {error, busy}) -> atomics:put(Heat, ?COUNT, -?SOON);
tell({unit, Heat}, {error, full}) -> atomics:put(Heat, ?COUNT, -?LATER);
tell({unit, Heat}, {error, _}) -> atomics:put(Heat, ?COUNT, -?NEVER).

%%% Compiling

start(#job{id = Id, slot = Number} = Job, Source, #state{jobs = Jobs} = State) ->
    Work = fun() -> compile(Source, module(Number), Id) end,
    {_, Monitor} = spawn_monitor(fun() -> exit({compiled, beamtalk_limited:run(Work, ?ROOM)}) end),
    State#state{jobs = Jobs#{Monitor => Job}}.

compile(Source, Module, Id) ->
    try forms(Source, Module, Id) of
        Forms -> beamtalk_forms:forms(Forms, options(Source))
    catch throw:too_large -> error
    end.

forms({sites, Input, {Statement, Outermost}}, Module, Id) ->
    beamtalk_sites:compiled(lists:nth(Statement, binary_to_term(Input)), Outermost, Module, Id);
forms({method, Forms}, Module, Id) ->
    beamtalk_sites:entered(Forms, Module, Id).

options(Source) -> [binary, no_spawn_compiler_process, nowarn_unused_vars | haste(Source)].

%% The optimiser of types takes a quarter of the time, and arithmetic in loops is four times as fast with it.
haste({sites, Input, _}) when byte_size(Input) > ?LARGE -> [no_type_opt, no_ssa_opt, no_copt];
haste(_) -> [].

finish(#job{waiting = Waiting} = Job, Reason, State) ->
    {Answer, Done} = case Reason of
        {compiled, {ok, {ok, _, Beam}}} -> install(Job, Beam, State);
        {compiled, {ok, _}} -> {{error, {crashed, compile_failed}}, State};
        {compiled, {limit, _} = Limit} -> {{error, Limit}, State};
        _ -> {{error, {crashed, Reason}}, State}
    end,
    [tell(One, Answer) || One <- Waiting],
    complete(Done).

%% From the first time on slots that have no code yet get some to be called, which leads back to walking.
complete(#state{is_complete = true} = State) -> State;
complete(State) ->
    spawn_monitor(fun() -> exit({empty, empty_modules()}) end),
    State#state{is_complete = true}.

empty_modules() ->
    [compile:noenv_forms(beamtalk_sites:empty(Module), [binary])
     || Module <- tuple_to_list(names()), not erlang:module_loaded(Module)].

fill(Modules) ->
    [{module, Module} = code:load_binary(Module, "session", Beam)
     || {ok, Module, Beam} <- Modules, not erlang:module_loaded(Module)],
    ok.

%%% Slots

install(#job{id = Id, slot = Number}, Beam, #state{slots = Slots, loaded = Loaded} = State) ->
    Module = module(Number),
    #slot{id = Former, probes = Before} = maps:get(Number, Slots, #slot{probes = []}),
    case code:load_binary(Module, "session", Beam) of
        {module, Module} ->
            Probes = beamtalk_fun_count:probes(Module, Beam),
            Slot = #slot{id = Id, probes = Probes, old_probes = Before, used = now_used()},
            {{ok, Number}, State#state{slots = Slots#{Number => Slot},
                                       loaded = (maps:remove(Former, Loaded))#{Id => Number}}};
        {error, Why} -> {{error, {crashed, Why}}, State}
    end.

%% A slot whose module may be loaded over: the one the statement looks for first, or else another.
free_slot(Id, #state{slots = Slots, jobs = Jobs} = State) ->
    Taken = [Number || #job{slot = Number} <- maps:values(Jobs)],
    First = slot(Id),
    Fresh = now_used() - ?FRESH,
    Rest = lists:seq(1, ?SLOTS) -- [First | Taken],
    Order = [{case Slots of
                  #{Number := #slot{used = Used}} -> Used;
                  _ -> never
              end, Number} || Number <- Rest],
    {Unused, Older} = lists:partition(fun({Used, _}) -> Used =:= never end, Order),
    Sorted = [Number || {_, Number} <- lists:sublist(Unused, 1) ++ lists:sublist(lists:sort(Older), ?TRIED)],
    case Slots of
        #{First := #slot{used = Used}} when Used > Fresh -> replace(Sorted, State);
        _ -> replace([First || not lists:member(First, Taken)] ++ Sorted, State)
    end.

%% One that is still in use is not looked at again before all others.
replace([Number | Rest], #state{slots = Slots} = State) ->
    case Slots of
        #{Number := #slot{old_probes = Probes} = Slot} ->
            case is_over(module(Number), Probes) of
                true -> {Number, State#state{slots = Slots#{Number := Slot#slot{old_probes = []}}}};
                false -> replace(Rest, State#state{slots = Slots#{Number := Slot#slot{used = now_used()}}})
            end;
        _ -> {Number, State}
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
