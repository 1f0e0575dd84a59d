%% Running a program to its end and collecting what it writes.
%%
%% A collector process receives the output, so the caller's mailbox stays its own
%% and nothing is left behind when the caller is killed.
-module(beamtalk_command).

-export([run/2]).

-type options() :: #{input => binary(), timeout => timeout(), max_output => non_neg_integer(),
                     env => #{binary() => binary()}, dir => binary() | nil}.
-type outcome() :: {ok, #{stdout := binary(), stderr := binary(), exit := integer()}}
                 | {error, command_not_found | permission_denied | not_found | timeout
                           | output_too_large | atom()}.

-define(TIMEOUT, 30000).
-define(MAX_OUTPUT, 10485760).

-spec run({binary(), [binary()]}, options()) -> outcome().
run({Command, Arguments}, Options) ->
    Directory = maps:get(dir, Options, nil),
    case {beamtalk_port_helper:find_program(Command), beamtalk_port_helper:check_directory(Directory)} of
        {{ok, Executable}, ok} ->
            Spec = #{executable => Executable, args => Arguments, dir => Directory,
                     env => maps:get(env, Options, #{})},
            collect_apart(Spec, Options);
        {{error, Reason}, _} ->
            {error, Reason};
        {_, {error, Reason}} ->
            {error, Reason}
    end.

collect_apart(Spec, Options) ->
    Caller = self(),
    Collector = fun() ->
                        CallerMonitor = monitor(process, Caller),
                        exit({?MODULE, collect(Spec, Options, CallerMonitor)})
                end,
    {Pid, Monitor} = spawn_monitor(Collector),
    receive
        {'DOWN', Monitor, process, Pid, {?MODULE, Outcome}} -> Outcome;
        {'DOWN', Monitor, process, Pid, _} -> {error, port_closed}
    end.

collect(Spec, Options, CallerMonitor) ->
    case beamtalk_port_helper:start_child(Spec) of
        {ok, Child} ->
            case maps:get(input, Options, <<>>) of
                <<>> -> ok;
                Input -> beamtalk_port_helper:write(Child, Input)
            end,
            beamtalk_port_helper:close_stdin(Child),
            Timer = start_timer(maps:get(timeout, Options, ?TIMEOUT)),
            Limit = maps:get(max_output, Options, ?MAX_OUTPUT),
            loop(Child, Limit, Timer, CallerMonitor, #{stdout => {0, []}, stderr => {0, []}});
        {error, Reason} ->
            {error, Reason}
    end.

start_timer(infinity) -> none;
start_timer(Ms) -> erlang:start_timer(min(Ms, 16#FFFFFFFF), self(), limit).

loop(Child, Limit, Timer, CallerMonitor, Streams) ->
    receive
        {child, Child, {exit, Code}} ->
            #{stdout := {_, Out}, stderr := {_, Err}} = Streams,
            {ok, #{stdout => text(Out), stderr => text(Err), exit => Code}};
        {child, Child, {Stream, Bytes}} ->
            {Size, Parts} = maps:get(Stream, Streams),
            case Size + byte_size(Bytes) of
                Total when Total > Limit ->
                    abandon(Child, output_too_large);
                Total ->
                    loop(Child, Limit, Timer, CallerMonitor,
                         Streams#{Stream := {Total, [Bytes | Parts]}})
            end;
        {timeout, Timer, limit} ->
            abandon(Child, timeout);
        {'DOWN', CallerMonitor, process, _, _} ->
            abandon(Child, timeout)
    end.

abandon(Child, Reason) ->
    beamtalk_port_helper:kill(Child),
    receive {child, Child, {exit, _}} -> {error, Reason} end.

text(Reversed) ->
    iolist_to_binary(lists:reverse(Reversed)).
