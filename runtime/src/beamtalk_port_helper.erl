%% The helper program that runs operating-system processes.
%%
%% A port of the engine has one output pipe and ends nobody, so programs
%% are started by a helper on the other end of one port: `beamtalk port-helper',
%% whose path is in the application variable `port_helper' or the environment
%% variable `BEAMTALK_PORT_HELPER'. Messages both ways are external terms with a
%% 4-byte length.
%%
%% A child belongs to the process that started it, which receives
%% `{child, Id, Event}' with an event of `{stdout, Bytes}', `{stderr, Bytes}' and
%% finally `{exit, Code}'. When that process ends, the child is ended with everything
%% it started.
-module(beamtalk_port_helper).
-behaviour(gen_server).

-export([start_link/0, tables/0]).
-export([start_child/1, write/2, close_stdin/1, kill/1, split_lines/2]).
-export([start_program/1, answer/3, stop/1, ended/2]).
-export([find_program/1, check_arguments/4, check_directory/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-type child() :: pos_integer().
-type spec() :: #{executable := binary(), args := [binary()], env => #{binary() => binary()},
                  dir => binary() | nil}.

-type program() :: #{child := child(), owner := reference() | none, stdin := open | closed,
                     exit := running | integer() | nil, closers := [gen_server:from()]}.

-define(STOP_LIMIT, 4000).

-record(child, {receiver :: pid(), monitor :: reference(), from :: gen_server:from() | started}).

%% Answers when the program runs, or why it cannot.
-spec start_child(spec()) -> {ok, child()} | {error, atom()}.
start_child(Spec) ->
    try gen_server:call(?MODULE, {spawn, Spec, self()}, infinity)
    catch exit:_ -> {error, port_closed}
    end.

-spec write(child(), iodata()) -> ok.
write(Child, Bytes) ->
    gen_server:cast(?MODULE, {command, #{command => write_stdin, child_id => Child,
                                         data => iolist_to_binary(Bytes)}}).

-spec close_stdin(child()) -> ok.
close_stdin(Child) ->
    gen_server:cast(?MODULE, {command, #{command => close_stdin, child_id => Child}}).

%% Ends the program and everything it started: gently, then by force. `{exit, Code}' follows.
-spec kill(child()) -> ok.
kill(Child) ->
    gen_server:cast(?MODULE, {command, #{command => kill, child_id => Child}}).

%% Whole lines without their end, and what follows the last one.
-spec split_lines(binary(), binary()) -> {[binary()], binary()}.
split_lines(Buffer, Bytes) ->
    Parts = binary:split(<<Buffer/binary, Bytes/binary>>, <<"\n">>, [global]),
    {Lines, [Rest]} = lists:split(length(Parts) - 1, Parts),
    {[beamtalk_file:strip_line_end(<<Line/binary, "\n">>) || Line <- Lines], Rest}.

%%% The program of one server

%% With it, the process that made the server is watched; a session does not stay linked to it.
-spec start_program(spec()) -> {ok, program()} | {error, atom()}.
start_program(Spec) ->
    case start_child(Spec) of
        {ok, Child} ->
            {ok, #{child => Child, owner => watch_owner(), stdin => open, exit => running, closers => []}};
        {error, Reason} ->
            {error, Reason}
    end.

watch_owner() ->
    case get('$ancestors') of
        [Owner | _] when is_pid(Owner) -> monitor(process, Owner);
        _ -> none
    end.

%% Answers a call of the server about its program, or does so once the program has ended.
-spec answer(term(), gen_server:from(), program()) -> program().
answer(close, From, #{child := Child, exit := running, closers := Closers} = Program) ->
    kill(Child),
    Program#{closers := [From | Closers], stdin := closed};
answer(close_stdin, From, #{child := Child} = Program) ->
    close_stdin(Child),
    gen_server:reply(From, ok),
    Program#{stdin := closed};
answer(Request, From, Program) ->
    gen_server:reply(From, told(Request, Program)),
    Program.

told(close, _) -> ok;
told(exit_code, #{exit := running}) -> nil;
told(exit_code, #{exit := Code}) -> Code;
told({write, Bytes}, #{child := Child, stdin := open, exit := running}) -> write(Child, Bytes);
told({write, _}, _) -> closed.

%% Ends the program of a server that ends itself; `ended/2' is for that server to call.
-spec stop(program()) -> integer() | nil.
stop(#{child := Child}) ->
    kill(Child),
    receive {child, Child, {exit, Code}} -> Code after ?STOP_LIMIT -> nil end.

%% Who asked for the end is told of it.
-spec ended(integer() | nil, program()) -> program().
ended(Code, #{closers := Closers} = Program) ->
    lists:foreach(fun(From) -> gen_server:reply(From, ok) end, Closers),
    Program#{exit := Code, closers := []}.

%%% Arguments

%% The file of a program: on `PATH', or as given when it contains a slash.
-spec find_program(binary()) -> {ok, binary()} | {error, command_not_found | permission_denied}.
find_program(Command) ->
    Name = unicode:characters_to_list(Command),
    case os:find_executable(Name) of
        false ->
            case lists:member($/, Name) andalso filelib:is_regular(Name) of
                true -> {error, permission_denied};
                false -> {error, command_not_found}
            end;
        Path ->
            {ok, unicode:characters_to_binary(filename:absname(Path))}
    end.

-spec check_arguments(term(), term(), atom(), atom()) -> ok.
check_arguments(Command, Arguments, Class, Selector) ->
    IsText = fun(Text) -> beamtalk_argument:is_string(Text) andalso binary:match(Text, <<0>>) =:= nomatch end,
    IsText(Command) orelse beamtalk_argument:fail(Class, Selector, <<"Expected a program as a String">>),
    beamtalk_argument:list_of(Arguments, IsText, Class, Selector),
    ok.

-spec check_directory(binary() | nil) -> ok | {error, not_found}.
check_directory(nil) ->
    ok;
check_directory(Directory) ->
    case filelib:is_dir(Directory) of
        true -> ok;
        false -> {error, not_found}
    end.

%%% The server

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% Who waits for which child; made by the supervisor, so that they hear of the end of a helper whose server died first.
-spec tables() -> [{atom(), [term()]}].
tables() -> [{?MODULE, []}].

helper() ->
    case application:get_env(beamtalk, port_helper) of
        {ok, Path} -> unicode:characters_to_list(Path);
        undefined -> os:getenv("BEAMTALK_PORT_HELPER", "")
    end.

%% The helper starts with the first program. Programs of a server that died are gone with its helper.
-spec init([]) -> {ok, map()}.
init([]) ->
    process_flag(trap_exit, true),
    [Receiver ! {child, Id, {exit, 137}} || {Id, Receiver} <- ets:tab2list(?MODULE)],
    ets:delete_all_objects(?MODULE),
    {ok, #{port => none, children => #{}}}.

with_port(#{port := none} = State) ->
    case helper() of
        "" -> {error, helper_missing};
        Helper ->
            Options = [{args, ["port-helper"]}, {packet, 4}, binary, exit_status, use_stdio, hide],
            try open_port({spawn_executable, Helper}, Options) of
                Port -> {ok, State#{port := Port}}
            catch
                error:_ -> {error, helper_missing}
            end
    end;
with_port(State) -> {ok, State}.

-spec handle_call(term(), gen_server:from(), map()) -> {noreply, map()} | {reply, term(), map()}.
handle_call({spawn, Spec, Receiver}, From, State) ->
    case with_port(State) of
        {ok, #{children := Children} = Ready} ->
            Id = erlang:unique_integer([positive]),
            send(Ready, #{command => spawn, child_id => Id,
                          executable => maps:get(executable, Spec), args => maps:get(args, Spec),
                          env => maps:get(env, Spec, #{}), dir => maps:get(dir, Spec, nil)}),
            Child = #child{receiver = Receiver, monitor = monitor(process, Receiver), from = From},
            {noreply, Ready#{children := Children#{Id => Child}}};
        {error, Reason} -> {reply, {error, Reason}, State}
    end.

-spec handle_cast(term(), map()) -> {noreply, map()}.
handle_cast({command, #{child_id := Id} = Command}, #{children := Children} = State) ->
    is_map_key(Id, Children) andalso send(State, Command),
    {noreply, State}.

-spec handle_info(term(), map()) -> {noreply, map()}.
handle_info({Port, {data, Data}}, #{port := Port} = State) ->
    {noreply, event(binary_to_term(Data), State)};
handle_info({Port, {exit_status, _}}, #{port := Port} = State) ->
    {noreply, lose_children(State)};
handle_info({'EXIT', Port, _}, #{port := Port} = State) ->
    {noreply, lose_children(State)};
handle_info({'DOWN', Monitor, process, _, _}, #{children := Children} = State) ->
    [send(State, #{command => kill, child_id => Id})
     || {Id, #child{monitor = M}} <- maps:to_list(Children), M =:= Monitor],
    {noreply, State};
handle_info(_, State) ->
    {noreply, State}.

-spec terminate(term(), map()) -> ok.
terminate(_Reason, #{port := none}) -> ok;
terminate(_Reason, #{port := Port}) ->
    catch port_close(Port),
    ok.

event({spawned, Id}, #{children := Children} = State) ->
    case Children of
        #{Id := #child{from = From} = Child} when From =/= started ->
            ets:insert(?MODULE, {Id, Child#child.receiver}),
            gen_server:reply(From, {ok, Id}),
            State#{children := Children#{Id := Child#child{from = started}}};
        _ ->
            State
    end;
event({spawn_failed, Id, Reason}, #{children := Children} = State) ->
    case maps:take(Id, Children) of
        {#child{from = From, monitor = Monitor}, Left} ->
            demonitor(Monitor, [flush]),
            gen_server:reply(From, {error, failure_kind(Reason)}),
            State#{children := Left};
        error ->
            State
    end;
event({exit, Id, Code}, #{children := Children} = State) ->
    case maps:take(Id, Children) of
        {#child{receiver = Receiver, monitor = Monitor}, Left} ->
            demonitor(Monitor, [flush]),
            ets:delete(?MODULE, Id),
            Receiver ! {child, Id, {exit, Code}},
            State#{children := Left};
        error ->
            State
    end;
event({Stream, Id, Bytes}, #{children := Children} = State)
  when Stream =:= stdout; Stream =:= stderr ->
    case Children of
        #{Id := #child{receiver = Receiver}} -> Receiver ! {child, Id, {Stream, Bytes}};
        _ -> ok
    end,
    State.

failure_kind(enoent) -> command_not_found;
failure_kind(eacces) -> permission_denied;
failure_kind(eperm) -> permission_denied;
failure_kind(Reason) -> Reason.

%% The helper is gone, and with it every child.
lose_children(#{children := Children} = State) ->
    maps:foreach(fun(Id, #child{receiver = Receiver, from = From}) ->
                         case From of
                             started -> Receiver ! {child, Id, {exit, 137}};
                             _ -> gen_server:reply(From, {error, port_closed})
                         end
                 end, Children),
    ets:delete_all_objects(?MODULE),
    State#{port := none, children := #{}}.

send(#{port := Port}, Command) ->
    catch port_command(Port, term_to_binary(Command)).
