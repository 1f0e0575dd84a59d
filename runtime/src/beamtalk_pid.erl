%% Primitives of Pid.
-module(beamtalk_pid).

-export([isAlive/1, kill/1, 'exit:'/2]).

-spec isAlive(pid()) -> boolean().
isAlive(Self) when node(Self) =:= node() -> is_process_alive(Self);
isAlive(Self) -> erpc:call(node(Self), erlang, is_process_alive, [Self]).

-spec kill(pid()) -> true.
kill(Self) -> exit(Self, kill).

-spec 'exit:'(pid(), term()) -> true.
'exit:'(Self, Reason) -> exit(Self, beamtalk_cell:freeze(Reason)).
