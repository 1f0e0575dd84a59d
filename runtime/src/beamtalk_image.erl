%% The boot image: records and tables of the whole standard library in one file.
%%
%% Booting from it costs one read and one `binary_to_term'; the library's
%% modules are loaded by the VM when they are first called.
-module(beamtalk_image).

-export([boot/1, boot_binary/1, write/2]).

-define(FORMAT, 2).

-spec boot(file:filename_all()) -> ok | {error, term()}.
boot(File) ->
    case file:read_file(File) of
        {ok, Binary} -> boot_binary(Binary);
        {error, Reason} -> {error, {File, Reason}}
    end.

%% The same from the content of the file.
-spec boot_binary(binary()) -> ok | {error, term()}.
boot_binary(Binary) -> install(binary_to_term(Binary)).

install(#{format := ?FORMAT, records := Records, extensions := Extensions,
          protocols := Protocols, tables := Tables, shared := Shared}) ->
    erlang:system_flag(backtrace_depth, 64),
    beamtalk_class:locked(fun() ->
        beamtalk_class:reconstitute(Records),
        ets:insert(beamtalk_extensions, Extensions),
        ets:insert(beamtalk_protocols, Protocols),
        [beamtalk_table:put(Key, Table, Own) || {Key, Table, Own} <- Tables],
        [persistent_term:put(Key, Term) || {Key, Term} <- Shared],
        beamtalk_class_state:initialize([Name || #{class_slots := [_ | _], name := Name} <- Records])
    end);
install(_) -> {error, unknown_image_format}.

%% Register every Beamtalk module of a directory and write the image of the
%% registry.
-spec write(file:filename_all(), file:filename_all()) -> ok | {error, term()}.
write(Ebin, File) ->
    Beams = filelib:wildcard(filename:join(Ebin, "bt@*.beam")),
    Modules = [list_to_atom(filename:basename(Beam, ".beam")) || Beam <- Beams],
    true = code:add_patha(Ebin),
    case beamtalk_class:register_all(Modules) of
        ok ->
            Temporary = [File, ".new"],
            ok = file:write_file(Temporary, term_to_binary(image())),
            file:rename(Temporary, File);
        {error, _} = Error -> Error
    end.

image() ->
    Records = [R || {_, R} <- lists:sort(ets:tab2list(beamtalk_classes))],
    Names = [Name || #{name := Name} <- Records],
    Tags = [element(2, beamtalk_class:named(Name)) || Name <- Names],
    Shared = [{Key, T} || Key <- ['$bt_text', '$bt_plain', '$bt_joined'], T <- [persistent_term:get(Key, none)], T =/= none],
    %% Nothing in the image depends on when it was made.
    #{format => ?FORMAT,
      records => [maps:remove(loaded_at, Record) || Record <- Records],
      extensions => lists:sort(ets:tab2list(beamtalk_extensions)),
      protocols => lists:sort(ets:tab2list(beamtalk_protocols)),
      tables => [{Key, unversioned(beamtalk_dispatch:table(Key)), beamtalk_table:own_selectors(Key)} || Key <- Names ++ Tags],
      shared => Shared}.

%% Versions count up from 1 in each run, so 0 is older than any later change.
unversioned(#{'$info' := Info} = Table) -> Table#{'$info' := Info#{version := 0}};
unversioned(Table) -> Table.
