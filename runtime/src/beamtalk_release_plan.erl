%% What a release takes from the installed Erlang: the applications that its code calls, and where they are.
-module(beamtalk_release_plan).

-export([plan/2]).

-type application() :: {atom(), string(), file:filename()}.

%% Root directory and version of the emulator, and the applications with their directories: those whose modules the
%% given files call, the named ones, and everything these need.
-spec plan([file:filename()], [atom()]) ->
    {ok, {file:filename(), string(), [application()]}} | {error, binary()}.
plan(Beams, Named) ->
    Called = lists:usort([Module || Beam <- Beams, Module <- imports(Beam)]),
    Owners = lists:usort([Owner || Module <- Called, {ok, Owner} <- [owner(Module)]]),
    try closure([kernel, stdlib] ++ Owners ++ Named, []) of
        Applications -> {ok, {code:root_dir(), erlang:system_info(version), Applications}}
    catch
        throw:{missing, Name} ->
            {error, unicode:characters_to_binary(io_lib:format("the OTP application '~ts' is not installed", [Name]))}
    end.

imports(Beam) ->
    {ok, {_, [{imports, Imports}]}} = beam_lib:chunks(Beam, [imports]),
    [Module || {Module, _, _} <- Imports].

%% The application below OTP's own directory that a module belongs to.
owner(Module) ->
    case code:which(Module) of
        Path when is_list(Path), Path =/= [] ->
            Directory = filename:dirname(filename:dirname(Path)),
            case filename:dirname(Directory) =:= code:lib_dir() of
                true -> {ok, list_to_atom(hd(string:split(filename:basename(Directory), "-")))};
                false -> none
            end;
        _ -> none
    end.

closure([], Found) -> lists:sort(Found);
closure([Name | Rest], Found) ->
    case lists:keymember(Name, 1, Found) orelse Name =:= erts of
        true -> closure(Rest, Found);
        false ->
            Application = {_, _, _} = found(Name),
            closure(needs(Name) ++ Rest, [Application | Found])
    end.

found(Name) ->
    _ = application:load(Name),
    case {application:get_key(Name, vsn), code:lib_dir(Name)} of
        {{ok, Version}, Directory} when is_list(Directory) -> {Name, Version, Directory};
        _ -> throw({missing, Name})
    end.

needs(Name) ->
    {ok, Needed} = application:get_key(Name, applications),
    {ok, Included} = application:get_key(Name, included_applications),
    Optional = case application:get_key(Name, optional_applications) of
        {ok, Names} -> [Each || Each <- Names, code:lib_dir(Each) =:= {error, bad_name}];
        undefined -> []
    end,
    (Needed ++ Included) -- Optional.
