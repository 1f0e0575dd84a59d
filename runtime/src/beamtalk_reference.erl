%% Primitives of Reference.
-module(beamtalk_reference).

-export([demonitor/1]).

%% Cancel a monitor; a notice that is already in the mailbox is removed.
-spec demonitor(reference()) -> true.
demonitor(Self) -> erlang:demonitor(Self, [flush]).
