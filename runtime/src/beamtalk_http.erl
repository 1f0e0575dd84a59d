%% One HTTP/1.1 exchange, on a connection of its own or on one a keeper has left
%% from an earlier exchange with the same server.
%%
%% A keeper is a process that answers the call `{take, Server}' and accepts the
%% cast `{keep, Server, Connection}'. Only requests that may be repeated use what it
%% has: when the server has closed such a connection, a new one is made.
%%
%% Certificates are always verified against the system's authorities, with the
%% host name checked by the rules of HTTPS.
%%
%% A body is kept for the answer, or passed on in pieces as it comes.
-module(beamtalk_http).

-export([request/5, request/6, request/7, hand_over/2, close/1]).
-export_type([server/0, connection/0, sink/0]).

-type reason() :: invalid_url | connection_failed | tls_verification_failed | timeout
                | protocol_error | too_many_redirects.
%% Where a body goes, decided when the head of the answer is there: into the answer, or in pieces to a function.
-type sink() :: fun((Status :: pos_integer()) -> collect | fun((binary()) -> term())).
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
    request(Method, Url, Headers, Body, Timeout, Keeper, #{}).

%% The same with options: where the body goes (`sink'), and how many redirects are followed (`redirects').
-spec request(binary(), binary(), [{binary(), binary()}], binary(), non_neg_integer(), pid() | none,
              #{sink => sink(), redirects => non_neg_integer()}) -> {ok, response()} | {error, reason()}.
request(Method, Url, Headers, Body, Timeout, Keeper, Options) ->
    Deadline = erlang:monotonic_time(millisecond) + Timeout,
    Sink = maps:get(sink, Options, fun(_) -> collect end),
    Redirects = case maps:get(redirects, Options, 0) of
                    0 -> none;
                    Most -> Most
                end,
    try
        follow({Method, Url, Headers, Body}, Deadline, Keeper, Sink, Redirects)
    catch
        throw:{?MODULE, Failure} -> {error, Failure}
    end.

%%% Redirects

follow(Request, Deadline, Keeper, Sink, none) ->
    exchange(Request, Deadline, Keeper, Sink);
follow({_, Url, _, _} = Request, Deadline, Keeper, Sink, Left) ->
    %% The body of an answer that leads elsewhere is nobody's.
    Final = fun(Status) ->
                    case is_redirect(Status) of
                        true -> collect;
                        false -> Sink(Status)
                    end
            end,
    case exchange(Request, Deadline, Keeper, Final) of
        {ok, {Status, Headers, _}} = Answer ->
            case is_redirect(Status) andalso field(<<"location">>, Headers) of
                Location when is_binary(Location), Left =:= 0 ->
                    fail(too_many_redirects);
                Location when is_binary(Location) ->
                    Next = redirected(Request, Status, resolved(Location, Url)),
                    follow(Next, Deadline, Keeper, Sink, Left - 1);
                _ ->
                    Answer
            end;
        Error ->
            Error
    end.

is_redirect(Status) -> lists:member(Status, [301, 302, 303, 307, 308]).

resolved(Location, Url) ->
    case uri_string:resolve(Location, Url) of
        Absolute when is_binary(Absolute) -> Absolute;
        _ -> fail(protocol_error)
    end.

%% The method is kept where the status says so or where nothing was sent. What proves who asks is for the server
%% that was asked, and no other.
redirected({Method, Url, Headers, Body}, Status, Next) ->
    Allowed = case server(parse(Next)) =:= server(parse(Url)) of
                  true -> Headers;
                  false -> without([{<<"authorization">>, <<>>}, {<<"cookie">>, <<>>}], Headers)
              end,
    Keeps = lists:member(Status, [307, 308]) orelse Method =:= <<"GET">> orelse Method =:= <<"HEAD">>,
    case Keeps of
        true -> {Method, Next, Allowed, Body};
        false -> {<<"GET">>, Next, without([{<<"content-type">>, <<>>}], Allowed), <<>>}
    end.

%%% One exchange

exchange({Method, Url, Headers, Body}, Deadline, Keeper, Sink) ->
    Target = parse(Url),
    Request = [head(Method, Target, Headers, Body, Keeper), Body],
    New = fun() -> exchange_on(connect(Target, Deadline), Method, Request, Target, Keeper, Sink) end,
    case take(Method, Target, Deadline, Keeper) of
        none ->
            result(New());
        Kept ->
            case exchange_on(Kept, Method, Request, Target, Keeper, Sink) of
                {error, Reason, unanswered} when Reason =/= timeout -> result(New());
                Answer -> result(Answer)
            end
    end.

result({error, Reason, _}) -> {error, Reason};
result(Answer) -> Answer.

%% An error says whether the answer had begun: then nothing may be sent a second time.
exchange_on(Connection, Method, Request, Target, Keeper, Sink) ->
    try answer(send(Connection, Request), Connection, Method, Sink) of
        {Reusable, Response} ->
            keep(Reusable, Connection, Target, Keeper),
            {ok, Response}
    catch
        throw:{?MODULE, Reason} ->
            abandon(Connection),
            close(Connection),
            {error, Reason, unanswered};
        throw:{?MODULE, Reason, begun} ->
            abandon(Connection),
            close(Connection),
            {error, Reason, begun};
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
    Socket = connect_any(addresses(Name, Deadline), Port, Deadline, connection_failed),
    case Module of
        gen_tcp -> #connection{module = gen_tcp, socket = Socket, plain = Socket, deadline = Deadline};
        ssl -> upgrade(Socket, Name, Deadline)
    end.

%% One address after the other; none but the last may use up all the time that is left.
connect_any([], _, _, Failure) ->
    fail(Failure);
connect_any([{Family, Address} | Others], Port, Deadline, _) ->
    Options = [Family, binary, {active, false}, {packet, raw}, {nodelay, true}, {buffer, ?LONGEST_LINE}],
    Timeout = max(1, remaining(Deadline) div (length(Others) + 1)),
    case gen_tcp:connect(Address, Port, Options, Timeout) of
        {ok, Socket} -> Socket;
        {error, timeout} -> connect_any(Others, Port, Deadline, timeout);
        {error, _} -> connect_any(Others, Port, Deadline, connection_failed)
    end.

%% All addresses of a host, those of the older protocol first.
addresses(Name, Deadline) ->
    case inet:parse_address(Name) of
        {ok, Address} when tuple_size(Address) =:= 8 -> [{inet6, Address}];
        {ok, Address} -> [{inet, Address}];
        {error, _} ->
            [{Family, Address} || Family <- [inet, inet6],
                                  {ok, Addresses} <- [inet:getaddrs(Name, Family, remaining(Deadline))],
                                  Address <- lists:sublist(Addresses, 4)]
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
answer(all, Connection, Method, Sink) ->
    response(Connection, Method, Sink);
answer(some, Connection, Method, Sink) ->
    try
        response(Connection, Method, Sink)
    catch
        throw:{?MODULE, protocol_error} -> fail(connection_failed)
    end.

response(Connection, Method, Sink) ->
    set_packet(Connection, http_bin),
    case receive_bytes(Connection, 0) of
        {ok, {http_response, Version, Status, _}} ->
            Headers = headers(Connection, []),
            case Status of
                Information when Information >= 100, Information < 200 ->
                    response(Connection, Method, Sink);
                _ ->
                    {Framed, Body} = delivered(Connection, Method, Status, Headers, Sink),
                    {Framed andalso persists(Version, Headers), {Status, Headers, Body}}
            end;
        _ ->
            fail(protocol_error)
    end.

delivered(Connection, Method, Status, Headers, Sink) ->
    case Sink(Status) of
        collect ->
            {Framed, Pieces} = body(Connection, Method, Status, Headers, {collect, []}),
            {Framed, iolist_to_binary(lists:reverse(Pieces))};
        Consume ->
            try body(Connection, Method, Status, Headers, {pass, Consume}) of
                {Framed, _} -> {Framed, <<>>}
            catch
                throw:{?MODULE, Reason} -> throw({?MODULE, Reason, begun})
            end
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

%% Whether the end of the body is known without the end of the connection, and its pieces, last one first. `Into' is
%% `{collect, Pieces}', or `{pass, Function}' for a body that is passed on and not kept.
body(_, <<"HEAD">>, _, _, _) -> {true, []};
body(_, _, 204, _, _) -> {true, []};
body(_, _, 304, _, _) -> {true, []};
body(Connection, _, _, Headers, Into) ->
    set_packet(Connection, raw),
    case {field(<<"transfer-encoding">>, Headers), field(<<"content-length">>, Headers)} of
        {none, none} -> {false, until_closed(Connection, Into)};
        {none, Length} -> {true, pieces(exactly(Connection, number(Length, 10), Into))};
        {Encoding, _} ->
            case string:find(string:lowercase(Encoding), <<"chunked">>) of
                nomatch -> {false, until_closed(Connection, Into)};
                _ -> {true, chunks(Connection, Into)}
            end
    end.

add(Bytes, {collect, Pieces}) ->
    {collect, [Bytes | Pieces]};
add(Bytes, {pass, Consume} = Into) ->
    Consume(Bytes),
    Into.

pieces({collect, Pieces}) -> Pieces;
pieces({pass, _}) -> [].

piece({collect, _}) -> ?PIECE;
piece({pass, _}) -> ?LONGEST_LINE.

field(Wanted, Headers) ->
    case [Value || [Name, Value] <- Headers, string:lowercase(Name) =:= Wanted] of
        [Value | _] -> string:trim(Value);
        [] -> none
    end.

exactly(_, 0, Into) ->
    Into;
exactly(Connection, Length, Into) ->
    Piece = min(Length, piece(Into)),
    case receive_bytes(Connection, Piece) of
        {ok, Bytes} -> exactly(Connection, Length - Piece, add(Bytes, Into));
        closed -> fail(protocol_error)
    end.

until_closed(Connection, Into) ->
    case receive_bytes(Connection, 0) of
        {ok, Bytes} -> until_closed(Connection, add(Bytes, Into));
        closed -> pieces(Into)
    end.

chunks(Connection, Into) ->
    set_packet(Connection, line),
    case receive_bytes(Connection, 0) of
        {ok, Line} ->
            [Size | _] = binary:split(string:trim(Line), <<";">>),
            case number(string:trim(Size), 16) of
                0 ->
                    trailers(Connection),
                    pieces(Into);
                Length ->
                    set_packet(Connection, raw),
                    After = exactly(Connection, Length, Into),
                    exactly(Connection, 2, {collect, []}),
                    chunks(Connection, After)
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
