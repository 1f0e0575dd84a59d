%% Compiled expressions of sessions, under a few module names that are used again.
%%
%% An expression with a loop is compiled, since interpreting it would be slow. Its module is kept for the
%% next time the very same expression comes. When a name is needed again the least recently used
%% module is taken out, but only if nobody runs it and no block made in it lives anywhere
%% (beamtalk_fun_count).
-module(beamtalk_eval_code).
-behaviour(gen_server).

-export([run/1, run_method/2, compile/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% Modules kept while nothing presses, and how many of the oldest are looked at to replace one.
-define(KEPT, 32).
-define(TRIED, 8).

-record(slot, {key :: binary() | none,
               probes = [] :: [binary()],
               users = #{} :: #{pid() => reference()},
               used = 0 :: integer()}).

%% The value of a list of abstract expressions.
-spec run([term()]) -> term().
run(Forms) ->
    call_in_slot(Forms, fun(Name) -> abstract(Name, Forms) end, run, []).

%% The value of the one unary method of a module, given as forms.
-spec run_method([term()], term()) -> term().
run_method(Forms, Self) ->
    [Function | _] = [Function || {attribute, _, export, Exports} <- Forms, {Function, 1} <- Exports],
    call_in_slot(Forms, fun(Name) -> renamed(Name, Forms) end, Function, [Self]).

renamed(Name, Forms) ->
    [case Form of
         {attribute, Line, module, _} -> {attribute, Line, module, Name};
         _ -> Form
     end || Form <- Forms].

call_in_slot(Forms, Abstract, Function, Args) ->
    Key = crypto_hash(term_to_binary(Forms)),
    Module = case call({claim, Key}) of
        {ready, Ready} -> Ready;
        {compile, Name} -> compiled(Name, Key, Abstract(Name))
    end,
    try apply(Module, Function, Args)
    after gen_server:cast(?MODULE, {release, Module, self()})
    end.

%% The runtime works where OTP's crypto application is missing.
crypto_hash(Binary) -> erlang:md5(Binary).

compiled(Name, Key, Abstract) ->
    case beamtalk_limited:run(fun() -> compile(Abstract) end) of
        {ok, Beam} ->
            ok = call({install, Name, Key, Beam}),
            Name;
        {limit, What} ->
            gen_server:cast(?MODULE, {release, Name, self()}),
            Text = <<"compiling was stopped: limit of ", (atom_to_binary(What))/binary, " reached">>,
            beamtalk_error:raise(compiler_limit, nil, nil, Text, nil, #{limit => What});
        {crashed, Reason} ->
            gen_server:cast(?MODULE, {release, Name, self()}),
            erlang:error(Reason)
    end.

abstract(Name, Forms) ->
    [{attribute, 1, module, Name},
     {attribute, 1, export, [{run, 0}]},
     {function, 1, run, 0, [{clause, 1, [], [], Forms}]}].

-spec compile([term()]) -> binary().
compile(Abstract) ->
    {ok, _, Beam} = compile:noenv_forms(Abstract, [binary, nowarn_unused_vars, no_spawn_compiler_process]),
    Beam.

call(Request) ->
    case whereis(?MODULE) of
        undefined ->
            _ = gen_server:start({local, ?MODULE}, ?MODULE, [], []),
            gen_server:call(?MODULE, Request, infinity);
        Server -> gen_server:call(Server, Request, infinity)
    end.

%%% The server

-spec init([]) -> {ok, map()}.
init([]) ->
    %% Whoever starts the server first, it does not belong to that one's output.
    group_leader(whereis(init), self()),
    {ok, #{slots => #{}, keys => #{}}}.

-spec handle_call(term(), gen_server:from(), map()) -> {reply, term(), map()}.
handle_call({claim, Key}, {Pid, _}, #{keys := Keys} = State) ->
    case Keys of
        #{Key := Module} -> {reply, {ready, Module}, use(Module, Pid, State)};
        _ ->
            {Module, Free} = free_slot(State),
            {reply, {compile, Module}, use(Module, Pid, Free)}
    end;
handle_call({install, Module, Key, Beam}, _From, #{slots := Slots, keys := Keys} = State) ->
    {module, Module} = code:load_binary(Module, "session", Beam),
    #{Module := Slot} = Slots,
    {reply, ok, State#{slots := Slots#{Module := Slot#slot{key = Key, probes = beamtalk_fun_count:probes(Module, Beam)}},
                       keys := Keys#{Key => Module}}}.

-spec handle_cast(term(), map()) -> {noreply, map()}.
handle_cast({release, Module, Pid}, State) -> {noreply, release(Module, Pid, State)}.

-spec handle_info(term(), map()) -> {noreply, map()}.
handle_info({'DOWN', Monitor, process, Pid, _}, #{slots := Slots} = State) ->
    Used = [Module || {Module, #slot{users = #{Pid := M}}} <- maps:to_list(Slots), M =:= Monitor],
    {noreply, lists:foldl(fun(Module, Acc) -> release(Module, Pid, Acc) end, State, Used)};
handle_info(_, State) -> {noreply, State}.

use(Module, Pid, #{slots := Slots} = State) ->
    #slot{users = Users} = Slot = maps:get(Module, Slots, #slot{key = none}),
    Monitor = case Users of
        #{Pid := Known} -> Known;
        _ -> monitor(process, Pid)
    end,
    State#{slots := Slots#{Module => Slot#slot{users = Users#{Pid => Monitor},
                                               used = erlang:unique_integer([monotonic])}}}.

release(Module, Pid, #{slots := Slots} = State) ->
    case Slots of
        #{Module := #slot{users = #{Pid := Monitor} = Users} = Slot} ->
            demonitor(Monitor, [flush]),
            State#{slots := Slots#{Module := Slot#slot{users = maps:remove(Pid, Users)}}};
        _ -> State
    end.

%% A name to load a module under.
free_slot(#{slots := Slots} = State) ->
    case map_size(Slots) < ?KEPT of
        true -> {new_name(Slots), State};
        false ->
            Idle = lists:keysort(1, [{Slot#slot.used, Module, Slot}
                                     || {Module, #slot{users = Users} = Slot} <- maps:to_list(Slots),
                                        map_size(Users) =:= 0]),
            reclaim(lists:sublist(Idle, ?TRIED), State)
    end.

%% Garbage holds blocks too; it goes with the next collection of whoever made it. A module that is still
%% in use is not looked at again before all others.
reclaim([{_, Module, #slot{key = Key, probes = Probes} = Slot} | Rest], #{slots := Slots, keys := Keys} = State) ->
    Later = Slot#slot{used = erlang:unique_integer([monotonic])},
    case beamtalk_fun_count:is_unreferenced(Probes) andalso take_out(Module) of
        true -> {Module, State#{slots := maps:remove(Module, Slots), keys := maps:remove(Key, Keys)}};
        false -> reclaim(Rest, State#{slots := Slots#{Module := Later}});
        %% A process still runs it: the name waits for that one's end.
        running -> reclaim(Rest, State#{slots := Slots#{Module := Later#slot{key = none}},
                                        keys := maps:remove(Key, Keys)})
    end;
reclaim([], #{slots := Slots} = State) -> {new_name(Slots), State}.

%% Names are numbered without gaps, so that they are used again.
new_name(Slots) -> new_name(1, Slots).

new_name(Number, Slots) ->
    Name = list_to_atom("bt@eval@" ++ integer_to_list(Number)),
    case is_map_key(Name, Slots) of
        true -> new_name(Number + 1, Slots);
        false -> Name
    end.

take_out(Module) ->
    code:delete(Module),
    case code:soft_purge(Module) of
        true -> true;
        false -> running
    end.
