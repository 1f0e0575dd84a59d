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
                                        (Bytes) -> gen_tcp:send(Socket, Bytes), timer:sleep(5)
                                     end, Pieces),
                       gen_tcp:close(Socket)
               end),
    <<"http://127.0.0.1:", (integer_to_binary(Port))/binary>>.

read_request(Socket, Read) ->
    case binary:match(Read, <<"\r\n\r\n">>) of
        nomatch ->
            {ok, More} = gen_tcp:recv(Socket, 0, 4000),
            read_request(Socket, <<Read/binary, More/binary>>);
        _ ->
            Read
    end.

request() ->
    receive {request, Request} -> Request after 4000 -> none end.

fetch(Pieces) ->
    beamtalk_http:request(<<"GET">>, <<(serve(Pieces))/binary, "/a?b=1#c">>, [], <<>>, 4000).

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
    {ok, _} = beamtalk_http:request(<<"POST">>, Url, Headers, <<"abc">>, 4000),
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
    {timeout, 60, fun refuse_certificate/0}.

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

%%% The promises of HTTPClient

client(Url, Options) ->
    beamtalk_http_client:'class request:url:options:'('HTTPClient', get, Url, Options).

reason(#{isOk := false, errReason := #{error := {beamtalk_error, http_error, 'HTTPClient', _, _, _, Details}}}) ->
    maps:get(reason, Details).

%% A redirect is an answer like any other: nobody asks at the place it names.
a_redirect_is_answered_and_not_followed_test() ->
    {ok, Elsewhere} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Elsewhere),
    Location = <<"http://127.0.0.1:", (integer_to_binary(Port))/binary, "/x">>,
    [begin
         Answer = [<<"HTTP/1.1 ">>, integer_to_binary(Status), <<" Moved\r\nLocation: ">>, Location,
                   <<"\r\nContent-Length: 0\r\n\r\n">>],
         ?assertMatch(#{isOk := true, okValue := #{status := Status, headers := [[<<"Location">>, Location] | _]}},
                      client(serve([iolist_to_binary(Answer)]), #{}))
     end || Status <- [301, 302, 303, 307, 308]],
    ?assertEqual({error, timeout}, gen_tcp:accept(Elsewhere, 50)),
    gen_tcp:close(Elsewhere).

every_status_is_a_success_test() ->
    Answer = fun(Status) ->
                     <<"HTTP/1.1 ", (integer_to_binary(Status))/binary, " S\r\nContent-Length: 0\r\n\r\n">>
             end,
    [?assertMatch(#{isOk := true, okValue := #{status := Status}}, client(serve([Answer(Status)]), #{}))
     || Status <- [200, 400, 404, 500, 503]].

%% Each piece comes in time, all of them together do not.
the_timeout_covers_everything_together_test() ->
    Drops = lists:duplicate(400, <<"x">>),
    ends_in_time(fun() -> client(serve([<<"HTTP/1.1 200 OK\r\n\r\n">> | Drops]), #{timeout => 200}) end),
    ends_in_time(fun() -> client(serve([<<"HTTP/1.1 200 OK\r\nX: ">> | Drops]), #{timeout => 200}) end),
    Part = <<"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx">>,
    ends_in_time(fun() -> client(serve([Part, hang]), #{timeout => 200}) end),
    ?assertEqual(timeout, reason(client(serve([]), #{timeout => 0}))).

a_server_that_does_not_read_is_left_in_time_test() ->
    Body = binary:copy(<<"x">>, 32 * 1024 * 1024),
    ends_in_time(fun() -> client(serve([hang]), #{timeout => 300, body => Body}) end).

ends_in_time(Request) ->
    {Microseconds, Result} = timer:tc(Request),
    ?assertEqual(timeout, reason(Result)),
    ?assert(Microseconds < 3000000).

%% More than a socket hands over in one piece.
large_bodies_arrive_whole_test_() ->
    {timeout, 30, fun large_bodies/0}.

large_bodies() ->
    Size = 65 * 1024 * 1024,
    Large = binary:copy(<<"0123456789abcdef">>, Size div 16),
    Length = integer_to_binary(Size),
    ?assertMatch({200, Large}, large([<<"HTTP/1.1 200 OK\r\nContent-Length: ", Length/binary, "\r\n\r\n">>, Large])),
    Hexadecimal = integer_to_binary(Size, 16),
    ?assertMatch({200, Large},
                 large([<<"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Hexadecimal/binary, "\r\n">>,
                        Large, <<"\r\n0\r\n\r\n">>])).

large(Pieces) ->
    {ok, {Status, _, Body}} = beamtalk_http:request(<<"GET">>, serve(Pieces), [], <<>>, 10000),
    {Status, Body}.

long_headers_are_read_test() ->
    Value = binary:copy(<<"v">>, 30000),
    ?assertEqual({ok, {200, [[<<"X-Long">>, Value], [<<"Content-Length">>, <<"2">>]], <<"hi">>}},
                 fetch([<<"HTTP/1.1 200 OK\r\nX-Long: ", Value/binary, "\r\nContent-Length: 2\r\n\r\nhi">>])).

json_goes_out_and_comes_back_test() ->
    Value = #{<<"name">> => <<"Zoë"/utf8>>, <<"list">> => [1, 2.5, true, nil], <<"big">> => 1 bsl 80},
    Text = beamtalk_json:'class generate:'('Json', Value),
    Size = integer_to_binary(byte_size(Text)),
    Url = serve([<<"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ", Size/binary, "\r\n\r\n",
                   Text/binary>>]),
    Options = #{body => Text, headers => [{<<"Content-Type">>, <<"application/json">>}]},
    #{isOk := true, okValue := #{body := Body}} =
        beamtalk_http_client:'class request:url:options:'('HTTPClient', <<"post">>, Url, Options),
    Request = request(),
    ?assertMatch(<<"POST / HTTP/1.1\r\n", _/binary>>, Request),
    ?assert(binary:match(Request, <<"Content-Type: application/json\r\n">>) =/= nomatch),
    ?assert(binary:match(Request, <<"Content-Length: ", Size/binary, "\r\n">>) =/= nomatch),
    ?assertMatch(#{isOk := true, okValue := Value}, beamtalk_json:'class parse:'('Json', Body)).

the_switch_turns_requests_off_test() ->
    application:set_env(beamtalk, disabled_capabilities, [http]),
    try
        ?assertMatch(#{isOk := false, errReason := #{error := {beamtalk_error, capability_disabled, _, _, _, _, _}}},
                     client(<<"http://127.0.0.1:1/">>, #{}))
    after
        application:unset_env(beamtalk, disabled_capabilities)
    end.

%%% Connections an actor keeps

-define(KEEP, <<"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi">>).

%% A server that accepts any number of connections and answers each request on them with the next
%% of the answers; `{Bytes, close}' closes the connection afterwards. The test is told the number of
%% the connection and the request.
serve_many(Answers) ->
    Test = self(),
    {ok, Listener} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Listener),
    spawn_link(fun() -> accept_many(Listener, 1, Answers, Test) end),
    {ok, Pid} = beamtalk_http_client:start_link(#{baseUrl => <<"http://127.0.0.1:", (integer_to_binary(Port))/binary>>,
                                                  timeout => 2000}),
    {beamtalk_object, 'HTTPClient', beamtalk_http_client, Pid}.

accept_many(_, _, [], _) ->
    ok;
accept_many(Listener, Number, Answers, Test) ->
    {ok, Socket} = gen_tcp:accept(Listener),
    accept_many(Listener, Number + 1, answer_many(Socket, Number, Answers, Test), Test).

answer_many(_, _, [], _) ->
    [];
answer_many(Socket, Number, [Answer | Others], Test) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, Request} ->
            Test ! {served, Number, Request},
            case Answer of
                {Bytes, close} ->
                    gen_tcp:send(Socket, Bytes),
                    gen_tcp:close(Socket),
                    Others;
                Bytes ->
                    gen_tcp:send(Socket, Bytes),
                    answer_many(Socket, Number, Others, Test)
            end;
        {error, closed} ->
            [Answer | Others]
    end.

served() ->
    receive {served, Number, _} -> Number after 2000 -> none end.

%% The number of the connection each of the requests came on.
connections(Count, Answers) ->
    Client = serve_many(Answers),
    [begin
         #{isOk := true, okValue := #{status := 200, body := <<"hi">>}} = beamtalk_http_client:'get:'(Client, <<"/">>),
         timer:sleep(20),
         served()
     end || _ <- lists:seq(1, Count)].

an_actor_uses_its_connection_again_test() ->
    ?assertEqual([1, 1, 1, 1], connections(4, [?KEEP, ?KEEP, ?KEEP, ?KEEP])),
    Chunked = <<"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX: y\r\n\r\n">>,
    ?assertEqual([1, 1, 1], connections(3, [Chunked, ?KEEP, Chunked])).

a_connection_the_server_ends_is_not_used_again_test() ->
    Close = <<"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi">>,
    Old = <<"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi">>,
    ?assertEqual([1, 2], connections(2, [Close, ?KEEP])),
    ?assertEqual([1, 2], connections(2, [Old, ?KEEP])),
    ?assertEqual([1, 2, 2], connections(3, [{?KEEP, close}, ?KEEP, ?KEEP])),
    ?assertEqual([1, 2], connections(2, [{<<"HTTP/1.1 200 OK\r\n\r\nhi">>, close}, ?KEEP])).

%% Bytes nobody asked for are never taken for the answer to the next request.
what_follows_an_answer_is_not_an_answer_test() ->
    Twice = <<?KEEP/binary, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil">>,
    ?assertEqual([1, 2], connections(2, [Twice, ?KEEP])).

%% The server closes just when the second request arrives: it is repeated, unless it is a POST, which
%% has a connection of its own.
only_what_may_be_repeated_is_repeated_test() ->
    ?assertEqual(<<"hi">>, begin
                               Client = serve_many([?KEEP, {<<>>, close}, ?KEEP]),
                               beamtalk_http_client:'get:'(Client, <<"/">>),
                               #{okValue := #{body := Body}} = beamtalk_http_client:'get:'(Client, <<"/">>),
                               Body
                           end),
    ?assertEqual([1, 1, 2], [served(), served(), served()]),
    Poster = serve_many([?KEEP, {<<>>, close}, ?KEEP]),
    #{isOk := true} = beamtalk_http_client:'get:'(Poster, <<"/">>),
    ?assertMatch(#{isOk := false},
                 beamtalk_http_client:'request:path:options:'(Poster, post, <<"/">>, #{timeout => 200})),
    ?assertEqual(1, served()),
    ?assertEqual(none, receive {served, 2, _} = Second -> Second after 50 -> none end).

requests_at_once_have_connections_of_their_own_test() ->
    Test = self(),
    {ok, Listener} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Listener),
    Base = <<"http://127.0.0.1:", (integer_to_binary(Port))/binary>>,
    {ok, Pid} = beamtalk_http_client:start_link(#{baseUrl => Base}),
    Client = {beamtalk_object, 'HTTPClient', beamtalk_http_client, Pid},
    spawn_link(fun() ->
                       Sockets = [begin {ok, Socket} = gen_tcp:accept(Listener), Socket end || _ <- lists:seq(1, 12)],
                       [begin
                            {ok, _} = gen_tcp:recv(Socket, 0),
                            gen_tcp:send(Socket, ?KEEP)
                        end || Socket <- Sockets],
                       timer:sleep(1000)
               end),
    [spawn_link(fun() -> Test ! {got, beamtalk_http_client:'get:'(Client, <<"/">>)} end) || _ <- lists:seq(1, 12)],
    [?assertMatch(#{isOk := true, okValue := #{body := <<"hi">>}},
                  receive {got, Result} -> Result after 3000 -> none end)
     || _ <- lists:seq(1, 12)].

kept_connections_end_with_the_actor_test() ->
    {_, _, _, Pid} = Client = serve_many([?KEEP, ?KEEP]),
    #{baseUrl := Base} = sys:get_state(Pid),
    #{isOk := true} = beamtalk_http_client:'get:'(Client, <<"/">>),
    ?assertEqual(1, connections_to(Base)),
    ?assertEqual([baseUrl, headers, timeout], lists:sort(maps:keys(sys:get_state(Pid)))),
    gen_server:stop(Pid),
    ?assertEqual(0, settled(fun() -> connections_to(Base) end, 0, 100)).

%% Only those to this server: others of the node come and go with the tests before.
connections_to(Base) ->
    #{port := Port} = uri_string:parse(Base),
    length([Socket || Socket <- erlang:ports(), {ok, {_, To}} <- [catch inet:peername(Socket)], To =:= Port]).

settled(Look, Wanted, Tries) ->
    case Look() of
        Found when Found =:= Wanted; Tries =:= 0 -> Found;
        _ ->
            timer:sleep(20),
            settled(Look, Wanted, Tries - 1)
    end.

%%% Redirects, streams, addresses, connections used again

%% Answers requests on one port, several on one connection, by path: `Answer(Method, Path, Head)' gives the bytes.
%% The test is told `{connected, N}' for each connection.
serve_paths(Answer) ->
    serve_paths(Answer, {127, 0, 0, 1}).

serve_paths(Answer, Address) ->
    Test = self(),
    Family = case tuple_size(Address) of 8 -> [inet6]; 4 -> [] end,
    {ok, Listener} = gen_tcp:listen(0, [binary, {active, false}, {ip, Address} | Family]),
    {ok, Port} = inet:port(Listener),
    spawn_link(fun() -> accept_all(Listener, Answer, Test) end),
    integer_to_binary(Port).

accept_all(Listener, Answer, Test) ->
    {ok, Socket} = gen_tcp:accept(Listener),
    Test ! connected,
    Server = spawn_link(fun() -> receive go -> serve_all(Socket, Answer) end end),
    ok = gen_tcp:controlling_process(Socket, Server),
    Server ! go,
    accept_all(Listener, Answer, Test).

serve_all(Socket, Answer) ->
    try read_request(Socket, <<>>) of
        Head ->
            [Method, Path | _] = binary:split(Head, <<" ">>, [global]),
            gen_tcp:send(Socket, Answer(Method, Path, Head)),
            serve_all(Socket, Answer)
    catch
        error:_ -> gen_tcp:close(Socket)
    end.

reply(Status, Headers, Body) ->
    [<<"HTTP/1.1 ">>, integer_to_binary(Status), <<" X\r\nContent-Length: ">>, integer_to_binary(iolist_size(Body)),
     <<"\r\n">>, [[Header, <<"\r\n">>] || Header <- Headers], <<"\r\n">>, Body].

follow(Method, Url, Headers, Body, Most) ->
    beamtalk_http:request(Method, Url, Headers, Body, 2000, none, #{redirects => Most}).

redirects_are_followed_as_often_as_allowed_test() ->
    Port = serve_paths(fun(_, <<"/end">>, _) -> reply(200, [], <<"here">>);
                          (_, <<"/loop">>, _) -> reply(302, [<<"Location: /loop">>], <<"away">>);
                          (_, <<"/", N>>, _) when N > $0 -> reply(301, [[<<"Location: /">>, N - 1]], <<"away">>);
                          (_, <<"/0">>, _) -> reply(307, [<<"Location: end">>], <<"away">>)
                       end),
    Base = <<"http://127.0.0.1:", Port/binary>>,
    Get = fun(Path, Most) -> follow(<<"GET">>, <<Base/binary, Path/binary>>, [], <<>>, Most) end,
    ?assertMatch({ok, {301, _, <<"away">>}}, Get(<<"/3">>, 0)),
    ?assertMatch({ok, {200, _, <<"here">>}}, Get(<<"/3">>, 5)),
    ?assertMatch({ok, {200, _, <<"here">>}}, Get(<<"/3">>, 4)),
    ?assertEqual({error, too_many_redirects}, Get(<<"/3">>, 3)),
    ?assertEqual({error, too_many_redirects}, Get(<<"/loop">>, 20)).

what_was_sent_is_repeated_only_where_the_status_says_so_test() ->
    Test = self(),
    Port = serve_paths(fun(_, <<"/see">>, _) -> reply(303, [<<"Location: /end">>], <<>>);
                          (_, <<"/again">>, _) -> reply(308, [<<"Location: /end">>], <<>>);
                          (Method, <<"/end">>, Head) -> Test ! {method, Method, Head}, reply(200, [], <<>>)
                       end),
    Base = <<"http://127.0.0.1:", Port/binary>>,
    Reached = fun(Path) ->
                      {ok, _} = follow(<<"POST">>, <<Base/binary, Path/binary>>,
                                       [{<<"Content-Type">>, <<"x/y">>}], <<>>, 1),
                      receive {method, Method, Head} -> {Method, binary:match(Head, <<"Content-Type">>) =/= nomatch} end
              end,
    ?assertEqual({<<"GET">>, false}, Reached(<<"/see">>)),
    ?assertEqual({<<"POST">>, true}, Reached(<<"/again">>)).

secrets_stay_with_the_server_that_was_asked_test() ->
    Test = self(),
    Other = serve_paths(fun(_, _, Head) -> Test ! {head, Head}, reply(200, [], <<>>) end),
    First = serve_paths(fun(_, <<"/out">>, _) -> reply(302, [[<<"Location: http://127.0.0.1:">>, Other, <<"/">>]], <<>>);
                           (_, <<"/in">>, _) -> reply(302, [<<"Location: /end">>], <<>>);
                           (_, _, Head) -> Test ! {head, Head}, reply(200, [], <<>>)
                        end),
    Told = fun(Path) ->
                   Url = <<"http://127.0.0.1:", First/binary, Path/binary>>,
                   {ok, _} = follow(<<"GET">>, Url, [{<<"Authorization">>, <<"secret">>}, {<<"X-A">>, <<"b">>}], <<>>, 1),
                   receive
                       {head, Head} ->
                           {binary:match(Head, <<"secret">>) =/= nomatch, binary:match(Head, <<"X-A: b">>) =/= nomatch}
                   end
           end,
    ?assertEqual({true, true}, Told(<<"/in">>)),
    ?assertEqual({false, true}, Told(<<"/out">>)).

a_body_can_be_passed_on_in_pieces_test() ->
    Body = binary:copy(<<"0123456789abcdef">>, 20000),
    Chunked = [<<"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n">>,
               [[integer_to_binary(byte_size(Body), 16), <<"\r\n">>, Body, <<"\r\n">>] || _ <- [1, 2]], <<"0\r\n\r\n">>],
    Port = serve_paths(fun(_, <<"/plain">>, _) -> reply(200, [], Body);
                          (_, <<"/chunked">>, _) -> Chunked;
                          (_, <<"/cut">>, _) -> [binary:part(iolist_to_binary(reply(200, [], Body)), 0, 100000)];
                          (_, <<"/bad">>, _) -> reply(500, [], <<"sorry">>)
                       end),
    Get = fun(Path) ->
                  Test = self(),
                  Url = <<"http://127.0.0.1:", Port/binary, Path/binary>>,
                  Sink = fun(200) -> fun(Piece) -> Test ! {piece, Piece} end; (_) -> collect end,
                  beamtalk_http:request(<<"GET">>, Url, [], <<>>, 500, none, #{sink => Sink})
          end,
    ?assertMatch({ok, {200, _, <<>>}}, Get(<<"/plain">>)),
    Plain = pieces(),
    ?assertEqual(Body, iolist_to_binary(Plain)),
    ?assert(length(Plain) > 1),
    ?assertMatch({ok, {200, _, <<>>}}, Get(<<"/chunked">>)),
    ?assertEqual(<<Body/binary, Body/binary>>, iolist_to_binary(pieces())),
    ?assertEqual({error, timeout}, Get(<<"/cut">>)),
    _ = pieces(),
    ?assertMatch({ok, {500, _, <<"sorry">>}}, Get(<<"/bad">>)),
    ?assertEqual([], pieces()).

pieces() ->
    receive {piece, Piece} -> [Piece | pieces()] after 0 -> [] end.

requests_to_the_class_share_connections_test() ->
    Port = serve_paths(fun(_, _, _) -> reply(200, [], <<"x">>) end),
    Url = <<"http://127.0.0.1:", Port/binary, "/">>,
    _ = connections(0),
    [?assertMatch(#{isOk := true}, beamtalk_http_client:'class get:'(nil, Url)) || _ <- lists:seq(1, 5)],
    ?assertEqual(1, connections(0)).

connections(Count) ->
    receive connected -> connections(Count + 1) after 50 -> Count end.

a_download_is_there_whole_or_not_at_all_test() ->
    Body = binary:copy(<<"line\n">>, 200000),
    Port = serve_paths(fun(_, <<"/file">>, _) -> reply(200, [], Body);
                          (_, <<"/moved">>, _) -> reply(302, [<<"Location: /file">>], <<"x">>);
                          (_, <<"/none">>, _) -> reply(404, [], <<"no such thing">>);
                          (_, <<"/cut">>, _) -> [binary:part(iolist_to_binary(reply(200, [], Body)), 0, 100000)]
                       end),
    Directory = filename:join("/tmp", "beamtalk-download-" ++ os:getpid()),
    Path = unicode:characters_to_binary(filename:join([Directory, "deep", "file"])),
    Get = fun(Name, Options) ->
                  beamtalk_http_client:'class download:to:options:'(nil, <<"http://127.0.0.1:", Port/binary, Name/binary>>,
                                                                    Path, Options)
          end,
    ?assertMatch(#{isOk := true, okValue := #{status := 404, body := <<"no such thing">>}}, Get(<<"/none">>, #{})),
    ?assertMatch(#{isOk := false}, Get(<<"/cut">>, #{timeout => 300})),
    ?assertEqual({ok, []}, file:list_dir(filename:dirname(Path))),
    ?assertMatch(#{isOk := true, okValue := #{status := 200, body := <<>>}}, Get(<<"/moved">>, #{followRedirects => 1})),
    ?assertEqual({ok, Body}, file:read_file(Path)),
    ?assertEqual({ok, ["file"]}, file:list_dir(filename:dirname(Path))),
    ok = file:del_dir_r(Directory).

options_that_do_not_exist_are_named_test() ->
    try beamtalk_http_client:'class request:url:options:'(nil, get, <<"http://127.0.0.1:1/">>, #{folow => 1}) of
        _ -> error(accepted)
    catch
        error:#{error := {beamtalk_error, Kind, _, _, Message, _, _}} ->
            ?assertEqual(argument_error, Kind),
            ?assert(binary:match(Message, <<"#folow">>) =/= nomatch)
    end.

%% `localhost' has an address of both kinds on most machines; a server on the newer one alone must be reached.
a_host_of_the_newer_protocol_is_reached_test() ->
    case inet:getaddrs("localhost", inet6) of
        {ok, _} ->
            try serve_paths(fun(_, _, _) -> reply(200, [], <<"six">>) end, {0, 0, 0, 0, 0, 0, 0, 1}) of
                Port ->
                    Get = fun(Host) ->
                                  beamtalk_http:request(<<"GET">>, <<"http://", Host/binary, ":", Port/binary, "/">>, [],
                                                        <<>>, 2000)
                          end,
                    ?assertMatch({ok, {200, _, <<"six">>}}, Get(<<"[::1]">>)),
                    ?assertMatch({ok, {200, _, <<"six">>}}, Get(<<"localhost">>))
            catch
                error:{badmatch, {error, _}} -> ok
            end;
        {error, _} ->
            ok
    end.
