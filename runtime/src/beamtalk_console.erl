%% Console: the standard streams of the program. Output goes to the group leader, so that a test run sees what
%% its tests write.
-module(beamtalk_console).

-export([print/2, print_line/2, error/2, error_line/2, read_line/1, read_line/2]).

-spec print(term(), term()) -> nil.
print(_Self, Value) -> write(leader(group_leader()), beamtalk_display:display(Value)).

-spec print_line(term(), term()) -> nil.
print_line(_Self, Value) -> write(leader(group_leader()), [beamtalk_display:display(Value), $\n]).

-spec error(term(), term()) -> nil.
error(_Self, Value) -> write(leader(standard_error), beamtalk_display:display(Value)).

-spec error_line(term(), term()) -> nil.
error_line(_Self, Value) -> write(leader(standard_error), [beamtalk_display:display(Value), $\n]).

%% In a workspace both streams, and the input, belong to the evaluation that the caller works for.
leader(Otherwise) ->
    case beamtalk_workspace:keeper_of_caller() of
        none -> Otherwise;
        Keeper -> Keeper
    end.

%% A stream that is gone is silent.
write(Device, Text) ->
    try io:put_chars(Device, Text) of
        ok -> nil
    catch
        error:Reason when Reason =:= terminated; Reason =:= badarg; Reason =:= epipe -> nil
    end.

-spec read_line(term()) -> binary() | nil.
read_line(Self) -> read_line(Self, <<>>).

-spec read_line(term(), binary()) -> binary() | nil.
read_line(_Self, Prompt) when is_binary(Prompt) ->
    try io:get_line(leader(group_leader()), Prompt) of
        eof -> nil;
        {error, _} -> nil;
        Line -> without_end(unicode:characters_to_binary(Line))
    catch
        error:Reason when Reason =:= terminated; Reason =:= badarg -> nil
    end;
read_line(_Self, _) ->
    beamtalk_error:raise(type_error, 'Console', 'readLine:', <<"Expected a String">>).

without_end(Line) ->
    Size = byte_size(Line) - 1,
    case Line of
        <<Text:Size/binary, "\n">> -> Text;
        _ -> Line
    end.
