%% Building the library: the compiler's forms become modules, and the modules become the boot image.
%% Runs once, when the binary is built.
-module(beamtalk_library).

-export([build/3]).

%% Every file of `Forms' holds the forms of one module. Ends the node: 0, or 1 with the faults on
%% standard error.
-spec build(file:filename(), file:filename(), file:filename()) -> no_return().
build(Forms, Ebin, Image) ->
    Files = lists:sort(filelib:wildcard(filename:join(Forms, "*.etf"))),
    Jobs = erlang:system_info(schedulers_online),
    beamtalk_forms:parallel(Files, {Jobs, fun(File) -> compile(File, Ebin) end}, fun report/2),
    case get(failed) of
        undefined -> finish(beamtalk_class:write_image(Ebin, Image));
        _ -> halt(1)
    end.

compile(File, Ebin) ->
    {ok, Forms} = file:read_file(File),
    case beamtalk_forms:compile(Forms) of
        {ok, Module, Beam} ->
            beamtalk_forms:write(filename:join(Ebin, atom_to_list(Module) ++ ".beam"), Beam);
        {error, Text} ->
            {error, Text}
    end.

report(_File, ok) -> ok;
report(File, {error, Text}) ->
    put(failed, true),
    io:put_chars(standard_error, [filename:basename(File, ".etf"), ": ", Text, $\n]).

-spec finish(ok | {error, term()}) -> no_return().
finish(ok) -> halt(0);
finish({error, Reason}) ->
    io:format(standard_error, "cannot make the library image: ~0tp~n", [Reason]),
    halt(1).
