%% Primitives of FileHandle: an open regular file with a current byte position.
%%
%% The descriptor is raw, so it belongs to the process that opened it and closes
%% with it. Nothing is buffered.
-module(beamtalk_file_handle).

-export(['class open:do:'/3, 'class open:mode:'/3, 'class open:mode:do:'/4]).
-export(['read:'/2, readAll/1, lines/1, 'write:'/2, 'writeLine:'/2, position/1, 'seek:'/2, flush/1,
         sync/1, close/1, isOpen/1]).

-include_lib("kernel/include/file.hrl").

-define(CLASS, 'FileHandle').
-define(CHUNK, 8192).

-type handle() :: #{'$beamtalk_class' := 'FileHandle', file := file:fd(), id := reference(),
                    mode := read | write | append | readWrite, path := binary()}.

%%% Class side of File

-spec 'class open:do:'(term(), term(), term()) -> map().
'class open:do:'(_Class, Path, Block) ->
    with_handle(Path, read, Block, 'open:do:').

-spec 'class open:mode:do:'(term(), term(), term(), term()) -> map().
'class open:mode:do:'(_Class, Path, Mode, Block) ->
    with_handle(Path, Mode, Block, 'open:mode:do:').

with_handle(Path, Mode, Block, Selector) ->
    beamtalk_argument:block(Block, 1, 'File', Selector),
    case open(Path, Mode, Selector) of
        {ok, Handle} ->
            try
                beamtalk_result:ok(Block(Handle))
            after
                close(Handle)
            end;
        {failed, Result} ->
            Result
    end.

-spec 'class open:mode:'(term(), term(), term()) -> map().
'class open:mode:'(_Class, Path, Mode) ->
    case open(Path, Mode, 'open:mode:') of
        {ok, Handle} -> beamtalk_result:ok(Handle);
        {failed, Result} -> Result
    end.

open(Path, Mode, Selector) ->
    Checked = beamtalk_file:path(Path, Selector),
    case modes(Mode) of
        none ->
            {failed, beamtalk_result:failure(type_error, 'File', Selector,
                                             <<"Mode must be #read, #write, #append or #readWrite">>,
                                             #{path => Checked})};
        Modes ->
            case Mode =:= read orelse beamtalk_capability:is_enabled(fs) of
                true -> open_file(Checked, Mode, Modes, Selector);
                false -> {failed, beamtalk_capability:failure(fs, 'File', Selector)}
            end
    end.

open_file(Path, Mode, Modes, Selector) ->
    case prepare(Path, Mode) of
        ok ->
            case file:open(Path, [raw, binary | Modes]) of
                {ok, File} ->
                    Id = make_ref(),
                    beamtalk_resource:add_handle(Id, Path, Mode),
                    {ok, #{'$beamtalk_class' => ?CLASS, file => File, id => Id, mode => Mode,
                           path => Path}};
                {error, Reason} ->
                    {failed, beamtalk_file:failure(Reason, Selector, Path)}
            end;
        {error, Reason} ->
            {failed, beamtalk_file:failure(Reason, Selector, Path)}
    end.

%% Opening a FIFO would wait for its other end, so anything special is refused first.
prepare(Path, Mode) ->
    case file:read_file_info(Path, [raw]) of
        {ok, #file_info{type = regular}} -> ok;
        {ok, #file_info{type = directory}} -> {error, eisdir};
        {ok, _} -> {error, not_a_regular_file};
        {error, enoent} when Mode =/= read -> beamtalk_file:ensure_parents(Path);
        {error, Reason} -> {error, Reason}
    end.

modes(read) -> [read];
modes(write) -> [write];
modes(append) -> [append];
modes(readWrite) -> [read, write];
modes(_) -> none.

%%% Instance side

-spec 'read:'(handle(), term()) -> map().
'read:'(Self, Count) ->
    beamtalk_argument:non_negative(Count, ?CLASS, 'read:'),
    using(Self, reading, 'read:', fun(File) -> read(File, Count) end).

read(_, 0) -> {ok, <<>>};
read(File, Count) ->
    case file:read(File, Count) of
        eof -> {ok, <<>>};
        Result -> Result
    end.

-spec readAll(handle()) -> map().
readAll(Self) ->
    using(Self, reading, readAll, fun(File) -> read_rest(File, []) end).

read_rest(File, Read) ->
    case file:read(File, 65536) of
        {ok, Bytes} -> read_rest(File, [Bytes | Read]);
        eof -> {ok, iolist_to_binary(lists:reverse(Read))};
        Error -> Error
    end.

-spec lines(handle()) -> map().
lines(#{path := Path} = Self) ->
    Check = fun(Operation) ->
                    case using(Self, reading, lines, Operation) of
                        #{isOk := true, okValue := Value} -> Value;
                        #{errReason := Exception} -> erlang:error(Exception)
                    end
            end,
    Check(fun(_) -> {ok, nil} end),
    beamtalk_stream:pulling(fun() -> Check(fun next_line/1) end, fun() -> ok end,
                            <<"lines: ", (beamtalk_display:native(Path))/binary>>).

%% Reads ahead to find the end of the line, then goes back behind it, so the
%% position is always that of the next line.
next_line(File) ->
    case file:position(File, cur) of
        {ok, Start} -> next_line(File, Start, line(File, <<>>));
        Error -> Error
    end.

next_line(_, _, {ok, <<>>}) ->
    {ok, done};
next_line(File, Start, {ok, Line}) ->
    case file:position(File, {bof, Start + byte_size(Line)}) of
        {ok, _} -> {ok, {value, beamtalk_file:strip_line_end(Line)}};
        Error -> Error
    end;
next_line(_, _, Error) ->
    Error.

line(File, Read) ->
    case file:read(File, ?CHUNK) of
        {ok, Bytes} ->
            case binary:match(Bytes, <<"\n">>) of
                {Position, 1} -> {ok, <<Read/binary, (binary:part(Bytes, 0, Position + 1))/binary>>};
                nomatch -> line(File, <<Read/binary, Bytes/binary>>)
            end;
        eof ->
            {ok, Read};
        Error ->
            Error
    end.

-spec 'write:'(handle(), term()) -> map().
'write:'(Self, Bytes) ->
    beamtalk_argument:binary(Bytes, ?CLASS, 'write:'),
    write(Self, Bytes, 'write:').

-spec 'writeLine:'(handle(), term()) -> map().
'writeLine:'(Self, Bytes) ->
    beamtalk_argument:binary(Bytes, ?CLASS, 'writeLine:'),
    write(Self, [Bytes, $\n], 'writeLine:').

write(Self, Bytes, Selector) ->
    beamtalk_capability:guard(fs, ?CLASS, Selector,
                              fun() ->
                                      using(Self, writing, Selector,
                                            fun(File) -> file:write(File, Bytes) end)
                              end).

-spec position(handle()) -> map().
position(Self) ->
    using(Self, either, position, fun(File) -> file:position(File, cur) end).

-spec 'seek:'(handle(), term()) -> map().
'seek:'(Self, Offset) ->
    beamtalk_argument:non_negative(Offset, ?CLASS, 'seek:'),
    using(Self, either, 'seek:', fun(File) -> file:position(File, {bof, Offset}) end).

-spec flush(handle()) -> map().
flush(Self) ->
    using(Self, either, flush, fun(_) -> ok end).

-spec sync(handle()) -> map().
sync(Self) ->
    using(Self, either, sync, fun file:sync/1).

-spec close(handle()) -> map().
close(#{file := File, id := Id, path := Path}) ->
    case beamtalk_resource:remove_handle(Id) andalso file:close(File) of
        {error, Reason} -> beamtalk_file:failure(Reason, ?CLASS, close, Path);
        _ -> beamtalk_result:ok(nil)
    end.

-spec isOpen(handle()) -> boolean().
isOpen(#{id := Id}) ->
    beamtalk_resource:is_open(Id).

%% Runs an operation on an open file in a direction it allows.
using(#{file := File, id := Id, mode := Mode, path := Path}, Direction, Selector, Operation) ->
    case beamtalk_resource:is_open(Id) andalso allows(Mode, Direction) of
        true ->
            try Operation(File) of
                ok -> beamtalk_result:ok(nil);
                {ok, Value} -> beamtalk_result:ok(Value);
                {error, Reason} -> beamtalk_file:failure(Reason, ?CLASS, Selector, Path)
            catch
                error:not_on_controlling_process ->
                    unusable(<<"FileHandle belongs to another process">>, Selector, Path)
            end;
        false ->
            Message = case beamtalk_resource:is_open(Id) of
                          false -> <<"FileHandle is closed">>;
                          true when Direction =:= reading -> <<"FileHandle was not opened for reading">>;
                          true -> <<"FileHandle was not opened for writing">>
                      end,
            unusable(Message, Selector, Path)
    end.

unusable(Message, Selector, Path) ->
    beamtalk_result:failure(io_error, ?CLASS, Selector, Message, nil, #{path => Path}).

allows(_, either) -> true;
allows(readWrite, _) -> true;
allows(read, Direction) -> Direction =:= reading;
allows(_, Direction) -> Direction =:= writing.
