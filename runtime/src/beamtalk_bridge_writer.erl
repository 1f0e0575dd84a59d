%% Writes what the bridge has to say itself. The bridge goes on reading while the pipe is full, and needs no new process
%% for it.
-module(beamtalk_bridge_writer).

-export([start_link/0, init/1, send/1]).

-spec start_link() -> {ok, pid()}.
start_link() -> proc_lib:start_link(?MODULE, init, [self()]).

-spec init(pid()) -> no_return().
init(Parent) ->
    register(?MODULE, self()),
    process_flag(priority, high),
    proc_lib:init_ack(Parent, {ok, self()}),
    loop().

loop() ->
    receive
        {send, Term} -> beamtalk_bridge:send(Term);
        _ -> ok
    end,
    loop().

%% A frame of the daemon's, in the order of the calls.
-spec send(term()) -> ok.
send(Term) ->
    try ?MODULE ! {send, Term} of
        _ -> ok
    catch error:badarg -> ok
    end.
