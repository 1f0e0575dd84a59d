-module(beamtalk_http_tests).
-include("assertions.hrl").

%% Answers one request on a free port with the given bytes, in pieces, and
%% passes the request on to the test.
serve(Pieces) ->
    Test = self(),
    receive {request, _} -> ok after 0 -> ok end,
    {ok, Listener} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Listener),
    spawn_link(fun() ->
                       {ok, Socket} = gen_tcp:accept(Listener),
                       Test ! {request, read_request(Socket, <<>>)},
                       lists:foreach(fun(hang) -> timer:sleep(5000);
                                        (Bytes) -> ok = gen_tcp:send(Socket, Bytes), timer:sleep(5)
                                     end, Pieces),
                       gen_tcp:close(Socket)
               end),
    <<"http://127.0.0.1:", (integer_to_binary(Port))/binary>>.

read_request(Socket, Read) ->
    case binary:match(Read, <<"\r\n\r\n">>) of
        nomatch ->
            {ok, More} = gen_tcp:recv(Socket, 0, 1000),
            read_request(Socket, <<Read/binary, More/binary>>);
        _ ->
            Read
    end.

request() ->
    receive {request, Request} -> Request after 1000 -> none end.

fetch(Pieces) ->
    beamtalk_http:request(<<"GET">>, <<(serve(Pieces))/binary, "/a?b=1#c">>, [], <<>>, 1000).

a_length_bounds_the_body_test() ->
    ?assertEqual({ok, {200, [[<<"content-LENGTH">>, <<"2">>]], <<"hi">>}},
                 fetch([<<"HTTP/1.1 200 OK\r\ncontent-LENGTH: 2\r\n\r\nhi and more">>])),
    ?assertMatch(<<"GET /a?b=1 HTTP/1.1\r\n", _/binary>>, request()).

chunks_are_joined_and_trailers_skipped_test() ->
    {ok, {200, _, Body}} =
        fetch([<<"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n">>, <<"5;x=y\r\nhello\r\n">>,
             <<"6\r\n world\r\n">>, <<"0\r\nX-Trailer: 1\r\n\r\n">>]),
    ?assertEqual(<<"hello world">>, Body).

without_a_length_the_end_is_the_end_test() ->
    ?assertMatch({ok, {404, [], <<"gone">>}}, fetch([<<"HTTP/1.0 404 Not Found\r\n\r\n">>, <<"go">>, <<"ne">>])).

information_is_skipped_test() ->
    ?assertMatch({ok, {201, _, <<>>}},
                 fetch([<<"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n">>])).

no_content_has_no_body_test() ->
    ?assertMatch({ok, {204, _, <<>>}}, fetch([<<"HTTP/1.1 204 No Content\r\n\r\n">>, hang])).

a_request_carries_its_headers_and_body_test() ->
    Url = serve([<<"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n">>]),
    Headers = [{<<"X-One">>, <<"1">>}, {<<"accept">>, <<"text/plain">>}, {<<"Content-Length">>, <<"99">>}],
    {ok, _} = beamtalk_http:request(<<"POST">>, Url, Headers, <<"abc">>, 1000),
    Request = request(),
    ?assert(binary:match(Request, <<"X-One: 1\r\n">>) =/= nomatch),
    ?assert(binary:match(Request, <<"accept: text/plain\r\n">>) =/= nomatch),
    ?assert(binary:match(Request, <<"Accept: */*">>) =:= nomatch),
    ?assert(binary:match(Request, <<"Content-Length: 3\r\n">>) =/= nomatch),
    ?assert(binary:match(Request, <<"99">>) =:= nomatch).

failures_have_reasons_test() ->
    {ok, Listener} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Listener),
    gen_tcp:close(Listener),
    Closed = <<"http://127.0.0.1:", (integer_to_binary(Port))/binary, "/">>,
    Fails = fun(Url) -> beamtalk_http:request(<<"GET">>, Url, [], <<>>, 300) end,
    ?assertEqual({error, connection_failed}, Fails(Closed)),
    [?assertEqual({error, invalid_url}, Fails(Url))
     || Url <- [<<"ftp://example.org/">>, <<"nonsense">>, <<"http://">>, <<>>, <<"http://a b/">>,
                <<"http://a/\r\nX: y">>]],
    ?assertEqual({error, protocol_error}, fetch([<<"SSH-2.0-x\r\n">>])),
    ?assertEqual({error, protocol_error}, fetch([<<"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi">>])),
    ?assertEqual({error, timeout}, Fails(serve([hang]))).

a_certificate_nobody_vouches_for_is_refused_test_() ->
    {timeout, 30, fun refuse_certificate/0}.

refuse_certificate() ->
    {ok, _} = application:ensure_all_started(ssl),
    Options = [{digest, sha256}, {key, {namedCurve, secp256r1}}],
    #{server_config := Config} =
        public_key:pkix_test_data(#{server_chain => #{root => Options, intermediates => [], peer => Options},
                                    client_chain => #{root => Options, intermediates => [], peer => Options}}),
    {ok, Listener} = ssl:listen(0, [{ip, {127, 0, 0, 1}}, {log_level, none} | Config]),
    {ok, {_, Port}} = ssl:sockname(Listener),
    spawn_link(fun() ->
                       {ok, Socket} = ssl:transport_accept(Listener),
                       ssl:handshake(Socket, 2000),
                       timer:sleep(1000)
               end),
    Url = <<"https://127.0.0.1:", (integer_to_binary(Port))/binary, "/">>,
    ?assertEqual({error, tls_verification_failed},
                 beamtalk_http:request(<<"GET">>, Url, [], <<>>, 3000)).
