%% Program: the running program. It owns its node when it was started by `beamtalk run'; otherwise only
%% the evaluation ends.
-module(beamtalk_program).

-export([command_name/1, exit/2]).

-spec command_name(term()) -> binary().
command_name(_Self) -> application:get_env(beamtalk, program, <<"beamtalk">>).

-spec exit(term(), term()) -> no_return().
exit(_Self, Code) when is_integer(Code), Code >= 0, Code =< 255 ->
    case application:get_env(beamtalk, owns_node, false) of
        true -> halt(Code);
        false -> throw({'$bt_exit', Code})
    end;
exit(_Self, Code) when is_integer(Code) ->
    beamtalk_error:raise(invalid_argument, 'Program', 'exit:', <<"Expected an Integer from 0 to 255">>);
exit(_Self, _) ->
    beamtalk_error:raise(type_error, 'Program', 'exit:', <<"Expected an Integer">>).
