%% One HTTP/1.1 exchange, on a connection of its own or on one a keeper has left
%% from an earlier exchange with the same server.
%%
%% A keeper is a process that answers the call `{take, Server}' and accepts the
%% cast `{keep, Server, Connection}'. Only requests that may be repeated use what it
%% has: when the server has closed such a connection, a new one is made.
%%
%% Certificates are always verified against the system's authorities, with the
%% host name checked by the rules of HTTPS.
-module(beamtalk_http).

-export([request/5, request/6, hand_over/2, close/1]).
-export_type([server/0, connection/0]).

-type reason() :: invalid_url | connection_failed | tls_verification_failed | timeout
                | protocol_error.
-type response() :: {Status :: pos_integer(), Headers :: [[binary()]], Body :: binary()}.

-record(connection, {module :: gen_tcp | ssl, socket :: term(), plain :: gen_tcp:socket(),
                     deadline :: integer()}).

-type server() :: {gen_tcp | ssl, Host :: binary(), inet:port_number()}.
-opaque connection() :: #connection{}.

%% The longest line of a head, and how much of a body is read at once: the
%% operating system's sockets refuse to read more than 64 MB in one piece.
-define(LONGEST_LINE, 65536).
-define(PIECE, 1048576).

-spec request(binary(), binary(), [{binary(), binary()}], binary(), non_neg_integer()) ->
          {ok, response()} | {error, reason()}.
request(Method, Url, Headers, Body, Timeout) ->
    request(Method, Url, Headers, Body, Timeout, none).

-spec request(binary(), binary(), [{binary(), binary()}], binary(), non_neg_integer(), pid() | none) ->
          {ok, response()} | {error, reason()}.
request(Method, Url, Headers, Body, Timeout, Keeper) ->
    Deadline = erlang:monotonic_time(millisecond) + Timeout,
    try
        Target = parse(Url),
        Request = [head(Method, Target, Headers, Body, Keeper), Body],
        case take(Method, Target, Deadline, Keeper) of
            none ->
                exchange(connect(Target, Deadline), Method, Request, Target, Keeper);
            Kept ->
                case exchange(Kept, Method, Request, Target, Keeper) of
                    {error, Reason} when Reason =/= timeout ->
                        exchange(connect(Target, Deadline), Method, Request, Target, Keeper);
                    Answer ->
                        Answer
                end
        end
    catch
        throw:{?MODULE, Failure} -> {error, Failure}
    end.

exchange(Connection, Method, Request, Target, Keeper) ->
    try answer(send(Connection, Request), Connection, Method) of
        {Reusable, Response} ->
            keep(Reusable, Connection, Target, Keeper),
            {ok, Response}
    catch
        throw:{?MODULE, Reason} ->
            abandon(Connection),
            close(Connection),
            {error, Reason};
        Class:Reason:Stack ->
            close(Connection),
            erlang:raise(Class, Reason, Stack)
    end.

%%% Connections kept for later

take(_, _, _, none) ->
    none;
take(Method, Target, Deadline, Keeper) ->
    Repeatable = lists:member(Method, [<<"GET">>, <<"HEAD">>, <<"PUT">>, <<"DELETE">>, <<"OPTIONS">>]),
    try Repeatable andalso gen_server:call(Keeper, {take, server(Target)}, infinity) of
        #connection{} = Connection -> usable(Connection#connection{deadline = Deadline});
        _ -> none
    catch
        exit:_ -> none
    end.

%% Still open, and without bytes nobody has asked for.
usable(#connection{module = Module, socket = Socket} = Connection) ->
    set_packet(Connection, raw),
    case Module:recv(Socket, 0, 0) of
        {error, timeout} ->
            Connection;
        _ ->
            close(Connection),
            none
    end.

keep(true, Connection, Target, Keeper) when is_pid(Keeper) ->
    case hand_over(Connection, Keeper) of
        ok -> gen_server:cast(Keeper, {keep, server(Target), Connection});
        {error, _} -> close(Connection)
    end;
keep(_, Connection, _, _) ->
    close(Connection).

server(#{module := Module, host := Host, port := Port}) ->
    {Module, Host, Port}.

%% Makes the process the owner; the connection ends with it.
-spec hand_over(connection(), pid()) -> ok | {error, term()}.
hand_over(#connection{module = Module, socket = Socket}, Process) ->
    Module:controlling_process(Socket, Process).

%%% The URL

parse(Url) ->
    case uri_string:parse(Url) of
        #{scheme := Scheme, host := Host} = Parts when Host =/= <<>> ->
            Module = case string:lowercase(Scheme) of
                         <<"http">> -> gen_tcp;
                         <<"https">> -> ssl;
                         _ -> fail(invalid_url)
                     end,
            Default = case Module of gen_tcp -> 80; ssl -> 443 end,
            Port = case maps:get(port, Parts, undefined) of
                       undefined -> Default;
                       Given -> Given
                   end,
            Port >= 1 andalso Port =< 65535 orelse fail(invalid_url),
            check_characters(Url),
            #{module => Module, host => Host, port => Port, default_port => Default,
              path => path(Parts)};
        _ ->
            fail(invalid_url)
    end.

check_characters(Url) ->
    case re:run(Url, <<"[\\x00-\\x20\\x7f]">>, [{capture, none}]) of
        nomatch -> ok;
        match -> fail(invalid_url)
    end.

path(Parts) ->
    Path = case maps:get(path, Parts, <<>>) of
               <<>> -> <<"/">>;
               Given -> Given
           end,
    case Parts of
        #{query := Query} -> <<Path/binary, "?", Query/binary>>;
        _ -> Path
    end.

%%% The connection

connect(#{module := Module, host := Host, port := Port}, Deadline) ->
    Name = unicode:characters_to_list(Host),
    {Address, Family} = address(Name),
    Options = [binary, {active, false}, {packet, raw}, {nodelay, true}, {buffer, ?LONGEST_LINE} | Family],
    Timeout = remaining(Deadline),
    Socket = case gen_tcp:connect(Address, Port, Options, Timeout) of
                 {ok, Plain} -> Plain;
                 {error, timeout} -> fail(timeout);
                 {error, _} -> fail(connection_failed)
             end,
    case Module of
        gen_tcp -> #connection{module = gen_tcp, socket = Socket, plain = Socket, deadline = Deadline};
        ssl -> upgrade(Socket, Name, Deadline)
    end.

address(Name) ->
    case inet:parse_address(Name) of
        {ok, Address} when tuple_size(Address) =:= 8 -> {Address, [inet6]};
        {ok, Address} -> {Address, []};
        {error, _} -> {Name, []}
    end.

upgrade(Socket, Name, Deadline) ->
    {ok, _} = application:ensure_all_started(ssl),
    Match = public_key:pkix_verify_hostname_match_fun(https),
    Options = [{verify, verify_peer}, {cacerts, authorities()}, {depth, 10},
               {customize_hostname_check, [{match_fun, Match}]}, {log_level, none} | indication(Name)],
    case ssl:connect(Socket, Options, remaining(Deadline)) of
        {ok, Secure} ->
            #connection{module = ssl, socket = Secure, plain = Socket, deadline = Deadline};
        {error, Reason} ->
            gen_tcp:close(Socket),
            fail(tls_reason(Reason))
    end.

%% The name to check the certificate against and to tell the server. An address
%% is never told, and is checked as the address the socket is connected to.
indication(Name) ->
    case inet:parse_address(Name) of
        {ok, _} -> [];
        {error, _} -> [{server_name_indication, Name}]
    end.

%% The authorities of the operating system, as the node has loaded them.
authorities() ->
    try
        public_key:cacerts_get()
    catch
        _:_ -> fail(tls_verification_failed)
    end.

tls_reason(timeout) ->
    timeout;
tls_reason({tls_alert, {Alert, _}})
  when Alert =:= unknown_ca; Alert =:= bad_certificate; Alert =:= certificate_expired;
       Alert =:= certificate_revoked; Alert =:= certificate_unknown; Alert =:= handshake_failure;
       Alert =:= unsupported_certificate; Alert =:= bad_certificate_status_response ->
    tls_verification_failed;
tls_reason({options, _}) ->
    tls_verification_failed;
tls_reason(_) ->
    connection_failed.

-spec close(connection()) -> ok | {error, term()}.
close(#connection{module = Module, socket = Socket}) ->
    Module:close(Socket).

%% What is still to be sent is dropped: nothing waits for a server that does not read.
abandon(#connection{plain = Plain}) ->
    inet:setopts(Plain, [{linger, {true, 0}}]),
    gen_tcp:close(Plain).

send(#connection{module = Module, socket = Socket, plain = Plain, deadline = Deadline}, Bytes) ->
    inet:setopts(Plain, [{send_timeout, remaining(Deadline)}]),
    case Module:send(Socket, Bytes) of
        ok -> all;
        {error, timeout} -> fail(timeout);
        {error, _} -> some
    end.

receive_bytes(#connection{module = Module, socket = Socket, deadline = Deadline}, Length) ->
    case Module:recv(Socket, Length, remaining(Deadline)) of
        {ok, Data} -> {ok, Data};
        {error, timeout} -> fail(timeout);
        {error, closed} -> closed;
        {error, _} -> fail(connection_failed)
    end.

set_packet(#connection{module = gen_tcp, socket = Socket}, Packet) ->
    inet:setopts(Socket, [{packet, Packet}]);
set_packet(#connection{module = ssl, socket = Socket}, Packet) ->
    ssl:setopts(Socket, [{packet, Packet}]).

remaining(Deadline) ->
    case Deadline - erlang:monotonic_time(millisecond) of
        Left when Left > 0 -> Left;
        _ -> fail(timeout)
    end.

%%% The request

head(Method, Target, Headers, Body, Keeper) ->
    #{host := Host, port := Port, default_port := Default, path := Path} = Target,
    HostValue = case Port of
                    Default -> bracketed(Host);
                    _ -> <<(bracketed(Host))/binary, ":", (integer_to_binary(Port))/binary>>
                end,
    Size = case Body =/= <<>> orelse lists:member(Method, [<<"POST">>, <<"PUT">>, <<"PATCH">>]) of
               true -> [{<<"Content-Length">>, integer_to_binary(byte_size(Body))}];
               false -> []
           end,
    Own = [{<<"Host">>, HostValue}, {<<"User-Agent">>, <<"beamtalk">>}, {<<"Accept">>, <<"*/*">>}],
    Persistence = case Keeper of none -> <<"close">>; _ -> <<"keep-alive">> end,
    Fixed = [{<<"Connection">>, Persistence} | Size],
    Given = without(Fixed, Headers),
    [Method, " ", Path, " HTTP/1.1\r\n",
     [[Name, ": ", Value, "\r\n"] || {Name, Value} <- without(Given, Own) ++ Given ++ Fixed],
     "\r\n"].

%% The headers whose names are not among the others.
without(Others, Headers) ->
    Names = [string:lowercase(Name) || {Name, _} <- Others],
    [Header || {Name, _} = Header <- Headers, not lists:member(string:lowercase(Name), Names)].

bracketed(Host) ->
    case binary:match(Host, <<":">>) of
        nomatch -> Host;
        _ -> <<"[", Host/binary, "]">>
    end.

%%% The response

%% A server may answer and close before it has read everything.
answer(all, Connection, Method) ->
    response(Connection, Method);
answer(some, Connection, Method) ->
    try
        response(Connection, Method)
    catch
        throw:{?MODULE, protocol_error} -> fail(connection_failed)
    end.

response(Connection, Method) ->
    set_packet(Connection, http_bin),
    case receive_bytes(Connection, 0) of
        {ok, {http_response, Version, Status, _}} ->
            Headers = headers(Connection, []),
            case Status of
                Information when Information >= 100, Information < 200 ->
                    response(Connection, Method);
                _ ->
                    {Framed, Body} = body(Connection, Method, Status, Headers),
                    {Framed andalso persists(Version, Headers), {Status, Headers, Body}}
            end;
        _ ->
            fail(protocol_error)
    end.

headers(Connection, Headers) ->
    case receive_bytes(Connection, 0) of
        {ok, {http_header, _, _, Name, Value}} -> headers(Connection, [[Name, Value] | Headers]);
        {ok, http_eoh} -> lists:reverse(Headers);
        _ -> fail(protocol_error)
    end.

persists({1, 1}, Headers) ->
    case field(<<"connection">>, Headers) of
        none -> true;
        Value -> string:lowercase(Value) =:= <<"keep-alive">>
    end;
persists(_, _) ->
    false.

%% The body, and whether its end is known without the end of the connection.
body(_, <<"HEAD">>, _, _) -> {true, <<>>};
body(_, _, 204, _) -> {true, <<>>};
body(_, _, 304, _) -> {true, <<>>};
body(Connection, _, _, Headers) ->
    set_packet(Connection, raw),
    case {field(<<"transfer-encoding">>, Headers), field(<<"content-length">>, Headers)} of
        {none, none} -> {false, until_closed(Connection, [])};
        {none, Length} -> {true, exactly(Connection, number(Length, 10))};
        {Encoding, _} ->
            case string:find(string:lowercase(Encoding), <<"chunked">>) of
                nomatch -> {false, until_closed(Connection, [])};
                _ -> {true, chunks(Connection, [])}
            end
    end.

field(Wanted, Headers) ->
    case [Value || [Name, Value] <- Headers, string:lowercase(Name) =:= Wanted] of
        [Value | _] -> string:trim(Value);
        [] -> none
    end.

exactly(Connection, Length) ->
    exactly(Connection, Length, []).

exactly(_, 0, Read) ->
    iolist_to_binary(lists:reverse(Read));
exactly(Connection, Length, Read) ->
    Piece = min(Length, ?PIECE),
    case receive_bytes(Connection, Piece) of
        {ok, Bytes} -> exactly(Connection, Length - Piece, [Bytes | Read]);
        closed -> fail(protocol_error)
    end.

until_closed(Connection, Read) ->
    case receive_bytes(Connection, 0) of
        {ok, Bytes} -> until_closed(Connection, [Bytes | Read]);
        closed -> iolist_to_binary(lists:reverse(Read))
    end.

chunks(Connection, Read) ->
    set_packet(Connection, line),
    case receive_bytes(Connection, 0) of
        {ok, Line} ->
            [Size | _] = binary:split(string:trim(Line), <<";">>),
            case number(string:trim(Size), 16) of
                0 ->
                    trailers(Connection),
                    iolist_to_binary(lists:reverse(Read));
                Length ->
                    set_packet(Connection, raw),
                    Chunk = exactly(Connection, Length),
                    exactly(Connection, 2),
                    chunks(Connection, [Chunk | Read])
            end;
        closed ->
            fail(protocol_error)
    end.

trailers(Connection) ->
    case receive_bytes(Connection, 0) of
        {ok, Line} when Line =:= <<"\r\n">>; Line =:= <<"\n">> -> ok;
        {ok, _} -> trailers(Connection);
        closed -> ok
    end.

number(Text, Base) ->
    try binary_to_integer(Text, Base) of
        Number when Number >= 0 -> Number;
        _ -> fail(protocol_error)
    catch
        error:badarg -> fail(protocol_error)
    end.

-spec fail(reason()) -> no_return().
fail(Reason) ->
    throw({?MODULE, Reason}).
