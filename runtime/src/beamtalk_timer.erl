%% Timers: a process per timer, linked to the process that made it.
%%
%% The timer process never runs the block itself; it starts a process for every
%% run, so `cancel' and `isActive' are answered at once, also from the block.
-module(beamtalk_timer).

-export(['class after:do:'/3, 'class every:do:'/3, 'class sleep:'/2, cancel/1, isActive/1]).

-include_lib("kernel/include/logger.hrl").

-type timer() :: #{'$beamtalk_class' := 'Timer', pid := pid()}.

-spec 'class after:do:'(term(), term(), term()) -> timer().
'class after:do:'(_Class, Delay, Block) ->
    Ms = beamtalk_argument:milliseconds(Delay, 'Timer', 'after:do:'),
    beamtalk_argument:block(Block, 0, 'Timer', 'after:do:'),
    start(once, Ms, Block).

-spec 'class every:do:'(term(), term(), term()) -> timer().
'class every:do:'(_Class, Interval, Block) ->
    Ms = beamtalk_argument:milliseconds(Interval, 'Timer', 'every:do:'),
    Ms > 0 orelse beamtalk_argument:fail('Timer', 'every:do:', <<"The interval must be positive">>),
    beamtalk_argument:block(Block, 0, 'Timer', 'every:do:'),
    start(repeat, Ms, Block).

-spec 'class sleep:'(term(), term()) -> nil.
'class sleep:'(_Class, Span) ->
    sleep(beamtalk_argument:milliseconds(Span, 'Timer', 'sleep:')),
    nil.

%% The engine waits at most 2^32 - 1 milliseconds at once.
sleep(Ms) when Ms > 16#FFFFFFFF ->
    timer:sleep(16#FFFFFFFF),
    sleep(Ms - 16#FFFFFFFF);
sleep(Ms) ->
    timer:sleep(Ms).

-spec cancel(timer()) -> boolean().
cancel(Self) ->
    ask(Self, cancel).

-spec isActive(timer()) -> boolean().
isActive(Self) ->
    ask(Self, is_active).

ask(#{pid := Pid}, Question) ->
    Monitor = monitor(process, Pid),
    Pid ! {Question, self(), Monitor},
    receive
        {Monitor, Answer} ->
            demonitor(Monitor, [flush]),
            Answer;
        {'DOWN', Monitor, process, Pid, _} ->
            false
    end.

start(Mode, Ms, Block) ->
    Owner = self(),
    beamtalk_guard:check_process('Timer', case Mode of repeat -> 'every:do:'; _ -> 'after:do:' end),
    Frozen = beamtalk_cell:freeze(Block),
    Pid = spawn_link(fun() ->
                             process_flag(trap_exit, true),
                             waiting(Mode, Ms, Frozen, Owner, due(Ms))
                     end),
    #{'$beamtalk_class' => 'Timer', pid => Pid}.

due(Ms) ->
    erlang:monotonic_time(millisecond) + Ms.

waiting(Mode, Ms, Block, Owner, Due) ->
    Left = max(0, Due - erlang:monotonic_time(millisecond)),
    receive
        {is_active, From, Tag} ->
            From ! {Tag, true},
            waiting(Mode, Ms, Block, Owner, Due);
        {cancel, From, Tag} ->
            unlink(Owner),
            From ! {Tag, true};
        {'EXIT', Owner, _} ->
            ok;
        _ ->
            waiting(Mode, Ms, Block, Owner, Due)
    after min(Left, 16#FFFFFFFF) ->
            case Left > 16#FFFFFFFF of
                true ->
                    waiting(Mode, Ms, Block, Owner, Due);
                false ->
                    {Runner, Monitor} = spawn_monitor(fun() -> run(Block) end),
                    running(Mode, Ms, Block, Owner, Runner, Monitor)
            end
    end.

%% A one-shot timer has fired; a repeating one is cancelled for its future runs.
running(Mode, Ms, Block, Owner, Runner, Monitor) ->
    receive
        {'DOWN', Monitor, process, Runner, _} when Mode =:= repeat ->
            waiting(repeat, Ms, Block, Owner, due(Ms));
        {'DOWN', Monitor, process, Runner, _} ->
            unlink(Owner);
        {is_active, From, Tag} ->
            From ! {Tag, Mode =:= repeat},
            running(Mode, Ms, Block, Owner, Runner, Monitor);
        {cancel, From, Tag} ->
            From ! {Tag, Mode =:= repeat},
            running(once, Ms, Block, Owner, Runner, Monitor);
        {'EXIT', Owner, _} ->
            exit(Runner, kill);
        _ ->
            running(Mode, Ms, Block, Owner, Runner, Monitor)
    end.

run(Block) ->
    try
        Block()
    catch
        Class:Reason:Stack ->
            Exception = beamtalk_error:from_caught(Class, Reason, Stack),
            ?LOG_ERROR("Timer block failed: ~ts", [beamtalk_display:print(Exception)])
    end,
    beamtalk_tracing:flush().
