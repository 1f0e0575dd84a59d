%% Primitives of Subprocess: one operating-system process, read line by line.
%%
%% The methods run in the sender's process and ask this server without a time
%% limit; it keeps the lines nobody has read yet and at most one waiting reader
%% for each stream.
-module(beamtalk_subprocess).
-behaviour(gen_server).

-export(['class open:'/2, 'class open:args:'/3, 'class open:args:dir:'/4, 'class open:args:env:dir:'/5,
         'class spawnWith:'/2]).
-export(['writeLine:'/2, closeStdin/1, readLine/1, 'readLine:'/2, readStderrLine/1,
         'readStderrLine:'/2, lines/1, stderrLines/1, exitCode/1, close/1]).
-export([start_link/1, open/5, ask/3, config/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-define(CLASS, 'Subprocess').

-record(stream, {partial = <<>> :: binary(),
                 lines = queue:new() :: queue:queue(binary()),
                 reader = none :: none | {gen_server:from(), reference(), reference() | none}}).

-record(state, {program :: map(),
                streams = #{stdout => #stream{}, stderr => #stream{}} :: map()}).

%%% Class side

-spec 'class open:'(term(), term()) -> map().
'class open:'(Class, Command) ->
    open(Class, Command, [], #{}, 'open:').

-spec 'class open:args:'(term(), term(), term()) -> map().
'class open:args:'(Class, Command, Arguments) ->
    open(Class, Command, Arguments, #{}, 'open:args:').

-spec 'class open:args:dir:'(term(), term(), term(), term()) -> map().
'class open:args:dir:'(Class, Command, Arguments, Directory) ->
    open(Class, Command, Arguments, #{dir => Directory}, 'open:args:dir:').

-spec 'class open:args:env:dir:'(term(), term(), term(), term(), term()) -> map().
'class open:args:env:dir:'(Class, Command, Arguments, Environment, Directory) ->
    open(Class, Command, Arguments, #{env => Environment, dir => Directory}, 'open:args:env:dir:').

%% The raising form of `open:args:env:dir:'.
-spec 'class spawnWith:'(term(), term()) -> tuple().
'class spawnWith:'(Class, Config) ->
    {_, _, _, Name} = Class,
    beamtalk_argument:dictionary(Config, Name, 'spawnWith:'),
    Options = maps:without([executable, args], Config),
    Arguments = maps:get(args, Config, []),
    case open(Class, maps:get(executable, Config, nil), Arguments, Options, 'spawnWith:') of
        #{isOk := true, okValue := Actor} -> Actor;
        #{errReason := Exception} -> erlang:error(Exception)
    end.

%% Checks what can be checked, then starts the actor of the given class.
-spec open(tuple(), term(), term(), map(), atom()) -> map().
open({_, _, _, Class} = ClassObject, Command, Arguments, Options, Selector) ->
    beamtalk_port_helper:check_arguments(Command, Arguments, Class, Selector),
    Checked = config(Options, {Class, Selector}),
    beamtalk_capability:guard(subprocess, Class, Selector,
                              fun() -> start(ClassObject, Command, Arguments, Checked, Selector) end).

%% The options of a child, checked: its environment and directory.
-spec config(map(), {atom(), atom()}) -> map().
config(Options, {Class, Selector}) ->
    Environment = beamtalk_argument:dictionary(maps:get(env, Options, #{}), Class, Selector),
    lists:all(fun beamtalk_argument:is_string/1, maps:keys(Environment) ++ maps:values(Environment))
        orelse beamtalk_argument:fail(Class, Selector, <<"The environment maps Strings to Strings">>),
    case maps:get(dir, Options, nil) of
        nil -> ok;
        Directory -> beamtalk_argument:string(Directory, Class, Selector)
    end,
    Options#{env => Environment}.

start({_, _, _, Class} = ClassObject, Command, Arguments, Options, Selector) ->
    Directory = maps:get(dir, Options, nil),
    case {beamtalk_port_helper:find_program(Command), beamtalk_port_helper:check_directory(Directory)} of
        {{ok, Executable}, ok} ->
            Config = Options#{executable => Executable, args => Arguments},
            try
                beamtalk_result:ok(beamtalk_actor_class:spawn_with(ClassObject, Config))
            catch
                error:#{error := {beamtalk_error, _, _, _, _, _, #{reason := Reason}}} when is_atom(Reason) ->
                    failure(Reason, Class, Selector, Command)
            end;
        {{error, Reason}, _} ->
            failure(Reason, Class, Selector, Command);
        {_, {error, Reason}} ->
            failure(Reason, Class, Selector, Directory)
    end.

failure(Reason, Class, Selector, What) ->
    beamtalk_result:failure(Reason, Class, Selector, <<"Could not use ", What/binary>>,
                            #{reason => Reason}).

%%% Instance side

-spec 'writeLine:'(tuple(), term()) -> nil.
'writeLine:'({_, Class, _, _} = Self, Text) ->
    beamtalk_argument:string(Text, Class, 'writeLine:'),
    case ask(Self, 'writeLine:', {write, [Text, $\n]}) of
        ok -> nil;
        closed -> beamtalk_error:raise(port_closed, Class, 'writeLine:', <<"The input is closed">>)
    end.

-spec closeStdin(tuple()) -> nil.
closeStdin(Self) ->
    ask(Self, closeStdin, close_stdin),
    nil.

-spec readLine(tuple()) -> binary() | nil.
readLine(Self) ->
    read(Self, stdout, infinity, readLine).

-spec 'readLine:'(tuple(), term()) -> binary() | nil.
'readLine:'(Self, Ms) ->
    read(Self, stdout, beamtalk_argument:positive(Ms, ?CLASS, 'readLine:'), 'readLine:').

-spec readStderrLine(tuple()) -> binary() | nil.
readStderrLine(Self) ->
    read(Self, stderr, infinity, readStderrLine).

-spec 'readStderrLine:'(tuple(), term()) -> binary() | nil.
'readStderrLine:'(Self, Ms) ->
    read(Self, stderr, beamtalk_argument:positive(Ms, ?CLASS, 'readStderrLine:'), 'readStderrLine:').

read(Self, Stream, Timeout, Selector) ->
    case ask(Self, Selector, {read, Stream, Timeout}) of
        {line, Line} -> Line;
        none -> nil;
        busy -> beamtalk_error:raise(read_in_progress, ?CLASS, Selector,
                                     <<"Another process is waiting for a line">>)
    end.

-spec lines(tuple()) -> map().
lines(Self) ->
    line_stream(Self, stdout, lines).

-spec stderrLines(tuple()) -> map().
stderrLines(Self) ->
    line_stream(Self, stderr, stderrLines).

line_stream(Self, Stream, Selector) ->
    Pull = fun() ->
                   case read(Self, Stream, infinity, Selector) of
                       nil -> done;
                       Line -> {value, Line}
                   end
           end,
    beamtalk_stream:pulling(Pull, fun() -> ok end, atom_to_binary(Selector)).

-spec exitCode(tuple()) -> integer() | nil.
exitCode(Self) ->
    ask(Self, exitCode, exit_code).

-spec close(tuple()) -> nil.
close(Self) ->
    ask(Self, close, close),
    nil.

%% A request to the server behind an actor reference.
-spec ask(tuple(), atom(), term()) -> term().
ask({beamtalk_object, Class, _, Target}, Selector, Request) ->
    try
        gen_server:call(beamtalk_actor:resolve(Target), Request, infinity)
    catch
        exit:_ -> beamtalk_error:raise(actor_dead, Class, Selector)
    end.

%%% The server

-spec start_link(map()) -> {ok, pid()} | {error, term()}.
start_link(Config) ->
    gen_server:start_link(?MODULE, Config, []).

-spec init(map()) -> {ok, #state{}} | {stop, term()}.
init(Config) ->
    process_flag(trap_exit, true),
    case beamtalk_port_helper:start_program(Config) of
        {ok, Program} -> {ok, #state{program = Program}};
        {error, Reason} -> {stop, Reason}
    end.

-spec handle_call(term(), gen_server:from(), #state{}) -> tuple().
handle_call({read, Name, Timeout}, From, #state{streams = Streams, program = #{exit := Exit}} = State) ->
    #stream{lines = Lines, reader = Reader} = Stream = maps:get(Name, Streams),
    case {queue:out(Lines), Reader, Exit} of
        {_, {_, _, _}, _} ->
            {reply, busy, State};
        {{{value, Line}, Rest}, none, _} ->
            {reply, {line, Line}, set_stream(Name, Stream#stream{lines = Rest}, State)};
        {_, none, running} ->
            {noreply, set_stream(Name, Stream#stream{reader = reader(From, Name, Timeout)}, State)};
        _ ->
            {reply, none, State}
    end;
handle_call(Request, From, #state{program = Program} = State) ->
    {noreply, State#state{program = beamtalk_port_helper:answer(Request, From, Program)}}.

-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_, State) ->
    {noreply, State}.

-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {stop, term(), #state{}}.
handle_info({child, Child, {exit, Code}}, #state{program = #{child := Child} = Program} = State) ->
    Ended = lists:foldl(fun end_stream/2, State, [stdout, stderr]),
    {noreply, Ended#state{program = beamtalk_port_helper:ended(Code, Program)}};
handle_info({child, Child, {Name, Bytes}}, #state{program = #{child := Child}, streams = Streams} = State) ->
    #stream{partial = Partial} = Stream = maps:get(Name, Streams),
    {Lines, Rest} = beamtalk_port_helper:split_lines(Partial, Bytes),
    {noreply, set_stream(Name, deliver(Lines, Stream#stream{partial = Rest}), State)};
handle_info({timeout, Timer, {reader, Name}}, #state{streams = Streams} = State) ->
    case maps:get(Name, Streams) of
        #stream{reader = {From, Monitor, Timer}} = Stream ->
            demonitor(Monitor, [flush]),
            gen_server:reply(From, none),
            {noreply, set_stream(Name, Stream#stream{reader = none}, State)};
        _ ->
            {noreply, State}
    end;
handle_info({'DOWN', Owner, process, _, _}, #state{program = #{owner := Owner}} = State) ->
    {stop, normal, State};
handle_info({'DOWN', Monitor, process, _, _}, #state{streams = Streams} = State) ->
    {noreply, State#state{streams = maps:map(fun(_, Stream) -> forget(Monitor, Stream) end, Streams)}};
handle_info(_, State) ->
    {noreply, State}.

-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, #state{program = #{exit := running} = Program}) ->
    beamtalk_port_helper:ended(beamtalk_port_helper:stop(Program), Program),
    ok;
terminate(_, _) ->
    ok.

set_stream(Name, Stream, #state{streams = Streams} = State) ->
    State#state{streams = Streams#{Name := Stream}}.

reader({Pid, _} = From, Name, Timeout) ->
    Timer = case Timeout of
                infinity -> none;
                Ms -> erlang:start_timer(min(Ms, 16#FFFFFFFF), self(), {reader, Name})
            end,
    {From, monitor(process, Pid), Timer}.

forget(Monitor, #stream{reader = {_, Monitor, _}} = Stream) -> Stream#stream{reader = none};
forget(_, Stream) -> Stream.

deliver([Line | Lines], #stream{reader = {_, _, _} = Reader} = Stream) ->
    answer(Reader, {line, Line}),
    deliver(Lines, Stream#stream{reader = none});
deliver(Lines, #stream{lines = Queue} = Stream) ->
    Stream#stream{lines = lists:foldl(fun queue:in/2, Queue, Lines)}.

%% A last line without an end counts; a reader that still waits finds the end.
end_stream(Name, #state{streams = Streams} = State) ->
    Stream = case maps:get(Name, Streams) of
                 #stream{partial = <<>>} = Empty -> Empty;
                 #stream{partial = Partial} = Rest ->
                     Line = beamtalk_file:strip_line_end(<<Partial/binary, "\n">>),
                     deliver([Line], Rest#stream{partial = <<>>})
             end,
    case Stream of
        #stream{reader = none} ->
            set_stream(Name, Stream, State);
        #stream{reader = Reader} ->
            answer(Reader, none),
            set_stream(Name, Stream#stream{reader = none}, State)
    end.

answer({From, Monitor, Timer}, Reply) ->
    demonitor(Monitor, [flush]),
    Timer =:= none orelse erlang:cancel_timer(Timer),
    gen_server:reply(From, Reply).
