%% Primitives of ReactiveSubprocess: one operating-system process whose lines are
%% cast to a delegate actor as they come.
-module(beamtalk_reactive_subprocess).
-behaviour(gen_server).

-export(['class open:args:notify:'/4, 'class open:args:env:dir:notify:'/6]).
-export(['writeLine:'/2, closeStdin/1, exitCode/1, close/1]).
-export([start_link/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-record(state, {program :: map(),
                delegate :: tuple(),
                partial = #{stdout => <<>>, stderr => <<>>} :: map()}).

%%% Class side

-spec 'class open:args:notify:'(tuple(), term(), term(), term()) -> map().
'class open:args:notify:'(Class, Command, Arguments, Delegate) ->
    open(Class, Command, Arguments, #{}, Delegate, 'open:args:notify:').

-spec 'class open:args:env:dir:notify:'(tuple(), term(), term(), term(), term(), term()) -> map().
'class open:args:env:dir:notify:'(Class, Command, Arguments, Environment, Directory, Delegate) ->
    open(Class, Command, Arguments, #{env => Environment, dir => Directory}, Delegate,
         'open:args:env:dir:notify:').

open({_, _, _, Name} = Class, Command, Arguments, Options, Delegate, Selector) ->
    case beamtalk_dispatch:is_kind_of(Delegate, 'Actor') of
        true ->
            beamtalk_subprocess:open(Class, Command, Arguments, Options#{notify => Delegate}, Selector);
        false ->
            beamtalk_argument:fail(Name, Selector, <<"The delegate must be an Actor">>)
    end.

%%% Instance side

-spec 'writeLine:'(tuple(), term()) -> nil.
'writeLine:'(Self, Text) ->
    beamtalk_subprocess:'writeLine:'(Self, Text).

-spec closeStdin(tuple()) -> nil.
closeStdin(Self) ->
    beamtalk_subprocess:closeStdin(Self).

-spec exitCode(tuple()) -> integer() | nil.
exitCode(Self) ->
    beamtalk_subprocess:exitCode(Self).

-spec close(tuple()) -> nil.
close(Self) ->
    beamtalk_subprocess:close(Self).

%%% The server

-spec start_link(map()) -> {ok, pid()} | {error, term()}.
start_link(Config) ->
    gen_server:start_link(?MODULE, Config, []).

-spec init(map()) -> {ok, #state{}} | {stop, term()}.
init(#{notify := Delegate} = Config) ->
    process_flag(trap_exit, true),
    case beamtalk_port_helper:start_program(maps:remove(notify, Config)) of
        {ok, Program} -> {ok, #state{program = Program, delegate = Delegate}};
        {error, Reason} -> {stop, Reason}
    end;
init(_) ->
    {stop, missing_delegate}.

-spec handle_call(term(), gen_server:from(), #state{}) -> {noreply, #state{}}.
handle_call(Request, From, #state{program = Program} = State) ->
    {noreply, State#state{program = beamtalk_port_helper:answer(Request, From, Program)}}.

-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_, State) ->
    {noreply, State}.

-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {stop, term(), #state{}}.
handle_info({child, Child, {exit, Code}}, #state{program = #{child := Child} = Program} = State) ->
    maps:foreach(fun(_, <<>>) -> ok;
                    (Name, Rest) -> notify(Name, Rest, State)
                 end, State#state.partial),
    cast(State, 'subprocessExit:from:', Code),
    {noreply, State#state{program = beamtalk_port_helper:ended(Code, Program),
                          partial = #{stdout => <<>>, stderr => <<>>}}};
handle_info({child, Child, {Name, Bytes}}, #state{program = #{child := Child}, partial = Partial} = State) ->
    {Lines, Rest} = beamtalk_port_helper:split_lines(maps:get(Name, Partial), Bytes),
    lists:foreach(fun(Line) -> notify(Name, Line, State) end, Lines),
    {noreply, State#state{partial = Partial#{Name := Rest}}};
handle_info({'DOWN', Owner, process, _, _}, #state{program = #{owner := Owner}} = State) ->
    {stop, normal, State};
handle_info(_, State) ->
    {noreply, State}.

-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, #state{program = #{exit := running} = Program} = State) ->
    Code = beamtalk_port_helper:stop(Program),
    cast(State, 'subprocessExit:from:', Code),
    beamtalk_port_helper:ended(Code, Program),
    ok;
terminate(_, _) ->
    ok.

notify(stdout, Line, State) -> cast(State, 'subprocessLine:from:', Line);
notify(stderr, Line, State) -> cast(State, 'subprocessStderrLine:from:', Line).

cast(#state{delegate = Delegate}, Selector, Value) ->
    Self = beamtalk_actor:reference('ReactiveSubprocess', self()),
    beamtalk_dispatch:cast(Delegate, Selector, [Value, Self]).
