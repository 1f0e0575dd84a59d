%% Primitives of StackFrame.
-module(beamtalk_stack_frame).

-export([sourceLocation/1, printString/1]).

%% `file:line', with the file's base name.
-spec sourceLocation(map()) -> binary() | nil.
sourceLocation(#{file := nil}) -> nil;
sourceLocation(#{file := File, line := nil}) -> filename:basename(File);
sourceLocation(#{file := File, line := Line}) ->
    <<(filename:basename(File))/binary, ":", (integer_to_binary(Line))/binary>>.

-spec printString(map()) -> binary().
printString(#{receiverClass := Class, method := Method, arguments := Arguments, moduleName := Module} = Self) ->
    Head = case {Class, Module} of
        {nil, nil} -> <<"?">>;
        {nil, _} -> Module;
        _ -> atom_to_binary(Class)
    end,
    Separator = case {Class, Module} of
        {nil, M} when M =/= nil -> <<":">>;
        _ -> <<">>">>
    end,
    Place = case sourceLocation(Self) of
        nil -> <<>>;
        Location -> <<" (", Location/binary, ")">>
    end,
    iolist_to_binary([Head, Separator, atom_to_binary(Method), "/", integer_to_binary(Arguments), Place]).
