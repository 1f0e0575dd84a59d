%% Files that cannot be used, and large ones.
-module(beamtalk_file_tests).
-include("assertions.hrl").

-define(F, beamtalk_file).
-define(H, beamtalk_file_handle).
-define(MEGABYTE, 1048576).

%% What the message must name, and the kind, of a failed Result.
failed(Kind, Class, Selector, #{isOk := false, errReason := Exception}) ->
    ?assertEqual(Kind, beamtalk_error:field(Exception, kind)),
    ?assertEqual(Class, beamtalk_error:field(Exception, errorClass)),
    ?assertEqual(Selector, beamtalk_error:field(Exception, selector)),
    Exception.

place(Name) ->
    unicode:characters_to_binary(["/tmp/beamtalk_file_tests_", os:getpid(), "_", Name]).

with_file(Name, Content, Test) ->
    Path = place(Name),
    ok = file:write_file(Path, Content),
    try Test(Path) after file:delete(Path) end.

a_full_disk_test() ->
    Write = 'writeAll:contents:',
    E = failed(no_space, 'File', Write, ?F:'class writeAll:contents:'(nil, <<"/dev/full">>, <<"x">>)),
    ?assertEqual(<<"no_space error in 'writeAll:contents:' on File">>, beamtalk_error:field(E, message)),
    ?assertEqual(#{path => <<"/dev/full">>}, beamtalk_error:field(E, details)),
    failed(no_space, 'File', 'writeBinary:contents:',
           ?F:'class writeBinary:contents:'(nil, <<"/dev/full">>, <<255>>)),
    failed(no_space, 'File', 'appendBinary:contents:',
           ?F:'class appendBinary:contents:'(nil, <<"/dev/full">>, <<"x">>)).

devices_have_no_handle_test() ->
    [failed(io_error, 'File', 'open:mode:', opened(<<"/dev/full">>, Mode)) || Mode <- [read, write, append, readWrite]].

%% The kernel's own settings cannot be written or made by anybody, not even by root.
permission_test() ->
    Fixed = <<"/proc/sys/kernel/ostype">>,
    failed(permission_denied, 'File', 'writeAll:contents:', ?F:'class writeAll:contents:'(nil, Fixed, <<"x">>)),
    failed(permission_denied, 'File', 'appendBinary:contents:',
           ?F:'class appendBinary:contents:'(nil, Fixed, <<"x">>)),
    failed(permission_denied, 'File', 'open:mode:', opened(Fixed, write)),
    failed(permission_denied, 'File', 'delete:', ?F:'class delete:'(nil, Fixed)).

not_found_test() ->
    Path = <<"/no/such/place">>,
    [failed(not_found, 'File', Selector, ?F:(class_side(Selector))(nil, Path))
     || Selector <- ['readAll:', 'readBinary:', 'lines:', 'lastModified:', 'listDirectory:', 'delete:',
                     'deleteAll:', 'mkdir:']],
    failed(not_found, 'File', 'rename:to:', ?F:'class rename:to:'(nil, Path, <<"/tmp/x">>)),
    failed(not_found, 'File', 'open:mode:', opened(Path, read)),
    failed(not_found, 'File', 'open:do:', ?H:'class open:do:'(nil, Path, fun(_) -> nil end)).

a_directory_is_no_file_test() ->
    Path = <<"/tmp">>,
    [failed(is_directory, 'File', Selector, ?F:(class_side(Selector))(nil, Path))
     || Selector <- ['readAll:', 'readBinary:', 'lines:']],
    [failed(is_directory, 'File', Selector, ?F:(class_side(Selector))(nil, Path, <<"x">>))
     || Selector <- ['writeAll:contents:', 'writeBinary:contents:', 'appendBinary:contents:']],
    [failed(is_directory, 'File', 'open:mode:', opened(Path, Mode)) || Mode <- [read, write, append, readWrite]].

a_file_is_no_directory_test() ->
    with_file("plain", <<"x">>, fun(Path) ->
        Below = <<Path/binary, "/below">>,
        failed(not_a_directory, 'File', 'listDirectory:', ?F:'class listDirectory:'(nil, Path)),
        failed(not_a_directory, 'File', 'writeAll:contents:', ?F:'class writeAll:contents:'(nil, Below, <<"x">>)),
        failed(not_a_directory, 'File', 'open:mode:', opened(Below, write)),
        failed(not_a_directory, 'File', 'mkdir:', ?F:'class mkdir:'(nil, Below)),
        failed(already_exists, 'File', 'mkdir:', ?F:'class mkdir:'(nil, Path)),
        failed(already_exists, 'File', 'mkdirAll:', ?F:'class mkdirAll:'(nil, Path))
    end).

bad_arguments_raise_test() ->
    [begin
         ?assertRaises(type_error, ?F:'class readAll:'(nil, Bad)),
         ?assertRaises(type_error, ?F:'class exists:'(nil, Bad)),
         ?assertRaises(type_error, ?F:'class writeAll:contents:'(nil, Bad, <<>>)),
         ?assertRaises(type_error, ?H:'class open:mode:'(nil, Bad, read))
     end || Bad <- [5, nil, foo, "list", <<"a", 0, "b">>]],
    ?assertRaises(type_error, ?F:'class writeAll:contents:'(nil, place("never"), 5)),
    ?assertNot(?F:'class exists:'(nil, place("never"))).

closed_handle_test() ->
    with_file("closed", <<"a\nb\n">>, fun(Path) ->
        #{okValue := Handle} = opened(Path, readWrite),
        #{isOk := true} = ?H:close(Handle),
        #{isOk := true} = ?H:close(Handle),
        [begin
             E = failed(io_error, 'FileHandle', Selector, Result),
             ?assertEqual(<<"FileHandle is closed">>, beamtalk_error:field(E, message))
         end || {Selector, Result} <- [{'read:', ?H:'read:'(Handle, 1)}, {readAll, ?H:readAll(Handle)},
                                       {'write:', ?H:'write:'(Handle, <<"x">>)},
                                       {'writeLine:', ?H:'writeLine:'(Handle, <<"x">>)},
                                       {position, ?H:position(Handle)}, {'seek:', ?H:'seek:'(Handle, 0)},
                                       {flush, ?H:flush(Handle)}, {sync, ?H:sync(Handle)}]],
        ?assertRaises(io_error, ?H:lines(Handle)),
        #{okValue := Open} = opened(Path, read),
        Lines = ?H:lines(Open),
        ?H:close(Open),
        ?assertRaises(io_error, beamtalk_stream:asList(Lines)),
        ?assertRaises(type_error, ?H:'read:'(Open, -1)),
        ?assertRaises(type_error, ?H:'seek:'(Open, -1))
    end).

%% A page of memory that is not there: opening succeeds, reading does not.
unreadable_content_test() ->
    Path = <<"/proc/self/mem">>,
    failed(io_error, 'File', 'readAll:', ?F:'class readAll:'(nil, Path)),
    #{okValue := Lines} = ?F:'class lines:'(nil, Path),
    ?assertRaises(io_error, beamtalk_stream:asList(Lines)),
    #{okValue := Handle} = opened(Path, read),
    failed(io_error, 'FileHandle', 'read:', ?H:'read:'(Handle, 10)),
    failed(io_error, 'FileHandle', readAll, ?H:readAll(Handle)),
    ?assertRaises(io_error, beamtalk_stream:asList(?H:lines(Handle))),
    ?H:close(Handle).

%% The file belongs to the process that opened it.
lines_in_another_process_test() ->
    with_file("foreign", <<"a\nb\n">>, fun(Path) ->
        #{okValue := Lines} = ?F:'class lines:'(nil, Path),
        #{okValue := Handle} = opened(Path, read),
        Pull = fun(Stream) -> beamtalk_support:catch_error(fun() -> beamtalk_stream:asList(Stream) end) end,
        [begin
             {Pid, Monitor} = spawn_monitor(fun() -> exit({raised, Pull(Stream)}) end),
             receive
                 {'DOWN', Monitor, process, Pid, {raised, E}} ->
                     ?assertEqual(io_error, beamtalk_error:field(E, kind));
                 {'DOWN', Monitor, process, Pid, Other} -> error(Other)
             end
         end || Stream <- [Lines, ?H:lines(Handle)]],
        ?assertEqual([<<"a">>, <<"b">>], beamtalk_stream:asList(Lines)),
        ?H:close(Handle)
    end).

%% 1 GB in pieces; the file is sparse, so nothing has to be written.
a_large_file_in_pieces_test_() ->
    {timeout, 60, fun() ->
        with_file("sparse", <<>>, fun(Path) ->
            {ok, File} = file:open(Path, [write, raw]),
            {ok, _} = file:position(File, 1024 * ?MEGABYTE),
            ok = file:truncate(File),
            ok = file:close(File),
            #{okValue := Handle} = opened(Path, read),
            Size = in_constant_memory(fun(Look) -> pieces(Handle, 0, Look) end),
            ?assertEqual(1024 * ?MEGABYTE, Size),
            ?H:close(Handle)
        end)
    end}.

pieces(Handle, Total, Look) ->
    #{okValue := Bytes} = ?H:'read:'(Handle, ?MEGABYTE),
    Look(Total div ?MEGABYTE),
    case byte_size(Bytes) of
        0 -> Total;
        Size -> pieces(Handle, Total + Size, Look)
    end.

%% 300 MB of lines, which are counted without being kept, both ways of reading them.
large_files_by_lines_test_() ->
    {timeout, 120, fun() ->
        Line = <<(binary:copy(<<"x">>, 8191))/binary, "\n">>,
        with_file("lines", <<>>, fun(Path) ->
            {ok, File} = file:open(Path, [write, raw]),
            Block = binary:copy(Line, 128),
            [ok = file:write(File, Block) || _ <- lists:seq(1, 300)],
            ok = file:close(File),
            Count = fun(Stream) ->
                            in_constant_memory(fun(Look) ->
                                Add = fun(Sum, Text) when byte_size(Text) =:= 8191 -> Look(Sum), Sum + 1 end,
                                beamtalk_stream:'inject:into:'(Stream, 0, Add)
                            end)
                    end,
            #{okValue := Lines} = ?F:'class lines:'(nil, Path),
            ?assertEqual(300 * 128, Count(Lines)),
            #{okValue := Handle} = opened(Path, read),
            ?assertEqual(300 * 128, Count(?H:lines(Handle))),
            ?H:close(Handle)
        end)
    end}.

%% Runs with a fun to be called now and then, which finds the most memory the node used.
in_constant_memory(Work) ->
    erlang:garbage_collect(),
    Before = erlang:memory(total),
    Look = fun(Step) when Step rem 128 =:= 0 ->
                   Used = erlang:memory(total) - Before,
                   Used < 64 * ?MEGABYTE orelse error({memory, Step, Used});
              (_) -> true
           end,
    Work(Look).

class_side(Selector) -> list_to_atom("class " ++ atom_to_list(Selector)).

opened(Path, Mode) -> ?H:'class open:mode:'(nil, Path, Mode).
