%% Primitives of File: whole files, directories and paths.
%%
%% The operating system alone decides which paths are good; its answer becomes
%% the kind of the error.
-module(beamtalk_file).

-export(['class exists:'/2, 'class isFile:'/2, 'class isDirectory:'/2, 'class readAll:'/2,
         'class writeAll:contents:'/3, 'class readBinary:'/2, 'class writeBinary:contents:'/3,
         'class appendBinary:contents:'/3, 'class lines:'/2, 'class lastModified:'/2,
         'class mkdir:'/2, 'class mkdirAll:'/2, 'class listDirectory:'/2, 'class delete:'/2,
         'class deleteAll:'/2, 'class rename:to:'/3, 'class absolutePath:'/2, 'class cwd'/1,
         'class tempDirectory'/1, 'class openHandles'/1]).
-export([path/2, failure/4, failure/3, strip_line_end/1, ensure_parents/1]).

-include_lib("kernel/include/file.hrl").

-define(CLASS, 'File').
-define(CHUNK, 65536).

%%% Questions

-spec 'class exists:'(term(), term()) -> boolean().
'class exists:'(_Class, Path) ->
    file_type(path(Path, 'exists:')) =/= none.

-spec 'class isFile:'(term(), term()) -> boolean().
'class isFile:'(_Class, Path) ->
    file_type(path(Path, 'isFile:')) =:= regular.

-spec 'class isDirectory:'(term(), term()) -> boolean().
'class isDirectory:'(_Class, Path) ->
    file_type(path(Path, 'isDirectory:')) =:= directory.

file_type(Path) ->
    case file:read_file_info(Path, [raw]) of
        {ok, #file_info{type = Type}} -> Type;
        {error, _} -> none
    end.

-spec 'class lastModified:'(term(), term()) -> map().
'class lastModified:'(_Class, Path) ->
    Checked = path(Path, 'lastModified:'),
    case file:read_file_info(Checked, [raw, {time, posix}]) of
        {ok, #file_info{mtime = Seconds}} ->
            beamtalk_result:ok(beamtalk_date_time:from_timestamp(Seconds));
        {error, Reason} ->
            failure(Reason, 'lastModified:', Checked)
    end.

-spec 'class listDirectory:'(term(), term()) -> map().
'class listDirectory:'(_Class, Path) ->
    Checked = path(Path, 'listDirectory:'),
    case file:list_dir_all(Checked) of
        {ok, Names} ->
            beamtalk_result:ok(lists:sort([unicode:characters_to_binary(Name) || Name <- Names]));
        {error, Reason} ->
            failure(Reason, 'listDirectory:', Checked)
    end.

-spec 'class absolutePath:'(term(), term()) -> map().
'class absolutePath:'(Class, Path) ->
    case path(Path, 'absolutePath:') of
        <<"/", _/binary>> = Absolute -> beamtalk_result:ok(Absolute);
        Relative -> beamtalk_result:ok(<<('class cwd'(Class))/binary, "/", Relative/binary>>)
    end.

-spec 'class cwd'(term()) -> binary().
'class cwd'(_Class) ->
    case file:get_cwd() of
        {ok, Directory} -> unicode:characters_to_binary(Directory);
        {error, Reason} -> beamtalk_error:raise(io_error, ?CLASS, cwd, undefined, nil, #{reason => Reason})
    end.

-spec 'class tempDirectory'(term()) -> binary().
'class tempDirectory'(_Class) ->
    Set = [Value || Name <- ["TMPDIR", "TMP", "TEMP"], Value <- [os:getenv(Name, "")], Value =/= ""],
    case string:trim(unicode:characters_to_binary(hd(Set ++ ["/tmp"])), trailing, "/") of
        <<>> -> <<"/">>;
        Directory -> Directory
    end.

-spec 'class openHandles'(term()) -> map().
'class openHandles'(_Class) ->
    beamtalk_array:from_list([beamtalk_array:from_list([Path, Mode, Owner])
                              || {Path, Mode, Owner} <- beamtalk_resource:handles()]).

%%% Whole files

-spec 'class readAll:'(term(), term()) -> map().
'class readAll:'(_Class, Path) ->
    read(Path, 'readAll:').

-spec 'class readBinary:'(term(), term()) -> map().
'class readBinary:'(_Class, Path) ->
    read(Path, 'readBinary:').

read(Path, Selector) ->
    Checked = path(Path, Selector),
    case file:read_file(Checked) of
        {ok, Content} -> beamtalk_result:ok(Content);
        {error, Reason} -> failure(Reason, Selector, Checked)
    end.

-spec 'class writeAll:contents:'(term(), term(), term()) -> map().
'class writeAll:contents:'(_Class, Path, Content) ->
    write(Path, Content, [], 'writeAll:contents:').

-spec 'class writeBinary:contents:'(term(), term(), term()) -> map().
'class writeBinary:contents:'(_Class, Path, Content) ->
    write(Path, Content, [], 'writeBinary:contents:').

-spec 'class appendBinary:contents:'(term(), term(), term()) -> map().
'class appendBinary:contents:'(_Class, Path, Content) ->
    write(Path, Content, [append], 'appendBinary:contents:').

write(Path, Content, Modes, Selector) ->
    Checked = path(Path, Selector),
    beamtalk_argument:binary(Content, ?CLASS, Selector),
    changing(Selector, Checked, fun() ->
                                        case ensure_parents(Checked) of
                                            ok -> file:write_file(Checked, Content, Modes);
                                            Error -> Error
                                        end
                                end).

%% Lines are read a chunk at a time, so the memory needed does not depend on the file. Each is a copy: one that is
%% kept keeps no chunk with it.
-spec 'class lines:'(term(), term()) -> map().
'class lines:'(_Class, Path) ->
    Checked = path(Path, 'lines:'),
    case file:open(Checked, [read, raw, binary]) of
        {ok, File} ->
            Text = <<"lines: ", (beamtalk_display:native(Checked))/binary>>,
            Stream = beamtalk_stream:batches(fun(State) -> next_lines(File, Checked, State) end, [],
                                             fun() -> close_lines(File) end, Text),
            beamtalk_result:ok(Stream);
        {error, Reason} ->
            failure(Reason, 'lines:', Checked)
    end.

%% The state is what follows the last line end so far, in pieces, last one first.
next_lines(_, _, eof) ->
    done;
next_lines(File, Path, Pieces) ->
    try file:read(File, ?CHUNK) of
        {ok, Chunk} ->
            case binary:split(Chunk, <<"\n">>, [global]) of
                [_] -> next_lines(File, Path, [Chunk | Pieces]);
                [First | Others] -> whole_lines(without_return(joined([First | Pieces])), Others, Chunk)
            end;
        eof ->
            case joined(Pieces) of
                <<>> -> done;
                Last -> {[Last], eof}
            end;
        {error, Reason} ->
            erlang:error(exception(Reason, ?CLASS, 'lines:', Path))
    catch
        error:not_on_controlling_process ->
            beamtalk_error:raise(io_error, ?CLASS, 'lines:', <<"The lines belong to another process">>, nil,
                                 #{path => Path, reason => not_on_controlling_process})
    end.

whole_lines(First, Others, Chunk) ->
    case binary:match(Chunk, <<"\r">>) of
        nomatch -> copies(Others, [First]);
        _ -> copies_without_returns(Others, [First])
    end.

copies([Rest], Lines) -> {lists:reverse(Lines), rest(Rest)};
copies([Line | Others], Lines) -> copies(Others, [binary:copy(Line) | Lines]).

copies_without_returns([Rest], Lines) -> {lists:reverse(Lines), rest(Rest)};
copies_without_returns([Line | Others], Lines) ->
    copies_without_returns(Others, [binary:copy(without_return(Line)) | Lines]).

rest(<<>>) -> [];
rest(Rest) -> [Rest].

joined([Piece]) -> binary:copy(Piece);
joined(Pieces) -> iolist_to_binary(lists:reverse(Pieces)).

without_return(Line) ->
    Size = byte_size(Line) - 1,
    case Line of
        <<Text:Size/binary, "\r">> -> Text;
        _ -> Line
    end.

%% Only its owner can close the file.
close_lines(File) ->
    try file:close(File)
    catch error:not_on_controlling_process -> ok
    end.

-spec strip_line_end(binary()) -> binary().
strip_line_end(Line) ->
    Size = byte_size(Line),
    case Line of
        <<Text:(Size - 2)/binary, "\r\n">> -> Text;
        <<Text:(Size - 1)/binary, "\n">> -> Text;
        _ -> Line
    end.

%%% Directories and names

-spec 'class mkdir:'(term(), term()) -> map().
'class mkdir:'(_Class, Path) ->
    Checked = path(Path, 'mkdir:'),
    changing('mkdir:', Checked, fun() -> file:make_dir(Checked) end).

-spec 'class mkdirAll:'(term(), term()) -> map().
'class mkdirAll:'(_Class, Path) ->
    Checked = path(Path, 'mkdirAll:'),
    changing('mkdirAll:', Checked, fun() -> make_path(Checked) end).

%% `filelib:ensure_path/1' reports a parent that may not be made as one that does not exist.
make_path(Path) ->
    Parent = filename:dirname(Path),
    case file:make_dir(Path) of
        {error, enoent} when Parent =/= Path ->
            case make_path(Parent) of
                ok -> made(file:make_dir(Path), Path);
                Error -> Error
            end;
        Result ->
            made(Result, Path)
    end.

%% A directory that is there already will do, whoever made it.
made(ok, _) -> ok;
made({error, _} = Error, Path) ->
    case file_type(Path) of
        directory -> ok;
        _ -> Error
    end.

-spec 'class delete:'(term(), term()) -> map().
'class delete:'(_Class, Path) ->
    Checked = path(Path, 'delete:'),
    changing('delete:', Checked, fun() -> delete(Checked, fun(_) -> ok end) end).

-spec 'class deleteAll:'(term(), term()) -> map().
'class deleteAll:'(_Class, Path) ->
    Checked = path(Path, 'deleteAll:'),
    changing('deleteAll:', Checked, fun() -> delete_tree(Checked) end).

delete_tree(Path) ->
    delete(Path, fun delete_entries/1).

%% Deletes a file, a link itself, or a directory that `Empty' has emptied.
delete(Path, Empty) ->
    case file:read_link_info(Path, [raw]) of
        {ok, #file_info{type = directory}} ->
            Emptied = Empty(Path),
            case {file:del_dir(Path), Emptied} of
                {ok, _} -> ok;
                {{error, eexist}, ok} -> {error, enotempty};
                {{error, eexist}, Refused} -> Refused;
                {Error, _} -> Error
            end;
        {ok, _} -> file:delete(Path, [raw]);
        Error -> Error
    end.

%% All that can be deleted; the first refusal is told.
delete_entries(Directory) ->
    case file:list_dir_all(Directory) of
        {ok, Names} ->
            Outcomes = [delete_tree(filename:join(Directory, Name)) || Name <- Names],
            case [Error || {error, _} = Error <- Outcomes] of
                [First | _] -> First;
                [] -> ok
            end;
        Error -> Error
    end.

-spec 'class rename:to:'(term(), term(), term()) -> map().
'class rename:to:'(_Class, From, To) ->
    Source = path(From, 'rename:to:'),
    Target = path(To, 'rename:to:'),
    changing('rename:to:', Source, fun() -> non_empty(file:rename(Source, Target)) end).

%% The engine reports a directory that is not empty as one that exists.
non_empty({error, eexist}) -> {error, enotempty};
non_empty(Result) -> Result.

changing(Selector, Path, Operation) ->
    beamtalk_capability:guard(fs, ?CLASS, Selector,
                              fun() ->
                                      case Operation() of
                                          ok -> beamtalk_result:ok(true);
                                          {error, Reason} -> failure(Reason, Selector, Path)
                                      end
                              end).

%% Makes the directories above a file that is to be written.
-spec ensure_parents(binary()) -> ok | {error, atom()}.
ensure_parents(Path) ->
    case filelib:ensure_dir(Path) of
        {error, eexist} -> {error, enotdir};
        Result -> Result
    end.

%%% Used by FileHandle

-spec path(term(), atom()) -> binary().
path(Path, Selector) ->
    beamtalk_argument:is_string(Path) orelse
        beamtalk_argument:fail(?CLASS, Selector, <<"Expected a path as a String">>),
    case binary:match(Path, <<0>>) of
        nomatch -> Path;
        _ -> beamtalk_argument:fail(?CLASS, Selector, <<"A path has no NUL characters">>)
    end.

-spec failure(atom(), atom(), binary()) -> map().
failure(Reason, Selector, Path) ->
    failure(Reason, ?CLASS, Selector, Path).

-spec failure(term(), atom(), atom(), binary()) -> map().
failure(Reason, Class, Selector, Path) ->
    beamtalk_result:error(exception(Reason, Class, Selector, Path)).

exception(Reason, Class, Selector, Path) ->
    Kind = kind(Reason),
    Details = case Kind of
                  io_error -> #{path => Path, reason => Reason};
                  _ -> #{path => Path}
              end,
    beamtalk_error:new(Kind, Class, Selector, message(Kind, Class, Selector), hint(Kind, Path), Details).

kind(enoent) -> not_found;
kind(eacces) -> permission_denied;
kind(eperm) -> permission_denied;
kind(erofs) -> permission_denied;
kind(eisdir) -> is_directory;
kind(enotdir) -> not_a_directory;
kind(eexist) -> already_exists;
kind(enotempty) -> not_empty;
kind(enospc) -> no_space;
kind(edquot) -> no_space;
kind(_) -> io_error.

%% The other kinds have the text that every kind has.
message(not_found, Class, Selector) -> located(Class, Selector, "file not found");
message(permission_denied, Class, Selector) -> located(Class, Selector, "permission denied");
message(io_error, Class, Selector) -> located(Class, Selector, "I/O error");
message(_, _, _) -> undefined.

located(Class, Selector, Text) ->
    iolist_to_binary([atom_to_binary(Class), " '", atom_to_binary(Selector), "': ", Text]).

hint(_, Path) ->
    <<"Path: ", Path/binary>>.
