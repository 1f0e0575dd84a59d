%% A program packed into one executable file: runtime, library image and the program's modules in an archive. It has no
%% compiler, listens on nothing and needs only `erl'.
-module(beamtalk_escript).

-export([main/1, create/4]).

-define(IMAGE, "image").
-define(JOB, "job").

%% Where the file starts.
-spec main([string()]) -> no_return().
main(Words) ->
    _ = logger:remove_handler(default),
    beamtalk_boot:prepare_streams(),
    {ok, Sections} = escript:extract(escript:script_name(), []),
    {archive, Archive} = lists:keyfind(archive, 1, Sections),
    {ok, Files} = zip:extract(Archive, [memory, {file_filter, fun is_content/1}]),
    beamtalk_boot:start([]),
    ok = beamtalk_image:boot_binary(content(?IMAGE, Files)),
    #{modules := Modules, applications := Applications} = Job = binary_to_term(content(?JOB, Files)),
    _ = [application:ensure_all_started(App) || App <- Applications],
    ok = beamtalk_class:load_all(Modules),
    application:set_env(beamtalk, program, unicode:characters_to_binary(filename:basename(escript:script_name()))),
    application:set_env(beamtalk, owns_node, true),
    halt(beamtalk_script:program(arguments(Job, Words))).

is_content(File) ->
    lists:member(element(2, File), [?IMAGE, ?JOB]).

content(Name, Files) ->
    {Name, Binary} = lists:keyfind(Name, 1, Files),
    Binary.

%% A keyword receives the words of the command line.
arguments(#{selector := Selector} = Job, Words) ->
    case lists:last(atom_to_list(Selector)) of
        $: -> Job#{arguments => [[unicode:characters_to_binary(Word) || Word <- Words]]};
        _ -> Job#{arguments => []}
    end.

%% Write the file. `Code' is what the VM loads by itself, by file name; `Job' names the entry and holds the program's
%% modules. Equal input gives equal bytes; `Time' is the Unix time that all files carry.
-spec create(file:filename_all(), [{string(), binary()}], map(), integer()) -> ok | {error, binary()}.
create(Path, Code, #{image := Image} = Job, Time) ->
    Contents = [{?IMAGE, Image}, {?JOB, term_to_binary(maps:remove(image, Job), [deterministic])}]
        ++ [{"beamtalk/ebin/" ++ Name, Binary} || {Name, Binary} <- lists:sort(Code)],
    Files = [{Name, Binary, info(Binary, Time)} || {Name, Binary} <- Contents],
    Sections = [shebang, {emu_args, "+Bd +sbwt none -escript main beamtalk_escript"}, {archive, Files, []}],
    {ok, Binary} = escript:create(binary, Sections),
    case beamtalk_forms:write(Path, Binary) of
        ok -> mode(file:change_mode(Path, 8#755));
        {error, _} = Error -> Error
    end.

mode(ok) -> ok;
mode({error, Reason}) -> {error, unicode:characters_to_binary(file:format_error(Reason))}.

%% A file_info record; its header belongs to the Erlang development package. An archive knows no time before 1980.
info(Binary, Seconds) ->
    Time = max({{1980, 1, 1}, {0, 0, 0}}, calendar:system_time_to_universal_time(Seconds, second)),
    {file_info, byte_size(Binary), regular, read_write, Time, Time, Time, 8#644, 1, 0, 0, 0, 0, 0}.
