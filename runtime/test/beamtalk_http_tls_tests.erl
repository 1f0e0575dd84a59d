%% HTTPClient over TLS, against servers on the loopback interface with good and bad certificates.
%%
%% The client trusts the authorities of the operating system as `public_key' has loaded them, and
%% has no setting of its own. The tests put an authority of theirs in that place, from a file, with
%% `public_key:cacerts_load/1'; each module of tests runs in a node of its own.
-module(beamtalk_http_tls_tests).
-include("assertions.hrl").

-define(ANSWER, <<"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi">>).
-define(SUBJECT_ALTERNATIVE_NAME, {2, 5, 29, 17}).

all_test_() ->
    {setup, fun start/0, fun stop/1,
     fun(Authority) ->
             [{Title, {timeout, 20, fun() -> Test(Authority) end}} || {Title, Test} <- tests()]
     end}.

tests() ->
    [{"a good certificate is accepted", fun good/1},
     {"an address is checked as an address", fun addresses/1},
     {"a wildcard stands for one label", fun wildcards/1},
     {"the name of the host is indicated to the server", fun indication/1},
     {"an expired certificate is refused", fun expired/1},
     {"a certificate of tomorrow is refused", fun not_yet_valid/1},
     {"a certificate for another host is refused", fun wrong_host_refused/1},
     {"a certificate of an unknown authority is refused", fun unknown_authority/1},
     {"a self-signed certificate is refused", fun self_signed_refused/1},
     {"what is trusted is the store of the system", fun system_store/1},
     {"no option turns the checks off", fun no_way_out/1},
     {"the actor checks as the class does", fun actor/1},
     {"the actor uses its connection again", fun reuse/1},
     {"the timeout bounds handshake, request and response", fun timeouts/1},
     {"bodies of any length and form are read", fun bodies/1}].

start() ->
    {ok, _} = application:ensure_all_started(ssl),
    Authority = authority(),
    trust(Authority),
    Authority.

stop(_) ->
    public_key:cacerts_clear().

%%% Certificates

key() ->
    [{digest, sha256}, {key, {namedCurve, secp256r1}}].

authority() ->
    public_key:pkix_test_root_cert("Authority of the tests", key()).

%% Makes it the only authority in the store.
trust(#{cert := Certificate}) ->
    File = filename:join(temporary_directory(), "beamtalk_http_tls_tests." ++ os:getpid() ++ ".pem"),
    Pem = public_key:pem_encode([{'Certificate', Certificate, not_encrypted}]),
    ok = file:write_file(File, Pem),
    try ok = public_key:cacerts_load(File) after file:delete(File) end.

temporary_directory() ->
    os:getenv("TMPDIR", "/tmp").

%% The options of a server whose certificate is signed by the authority.
signed(Authority, Names) ->
    signed(Authority, Names, []).

signed(Authority, Names, Options) ->
    Extension = {'Extension', ?SUBJECT_ALTERNATIVE_NAME, false, Names},
    Chain = #{root => Authority, intermediates => [], peer => [{extensions, [Extension]} | key() ++ Options]},
    Other = #{root => key(), intermediates => [], peer => key()},
    #{server_config := Config} =
        public_key:pkix_test_data(#{server_chain => Chain, client_chain => Other}),
    [Option || {Name, _} = Option <- Config, Name =:= cert orelse Name =:= key].

localhost() -> [{dNSName, "localhost"}].

days(From, To) ->
    Today = calendar:date_to_gregorian_days(date()),
    {validity, {calendar:gregorian_days_to_date(Today + From), calendar:gregorian_days_to_date(Today + To)}}.

%%% Servers

%% A server for one connection. It tells the test the name indicated to it, and the request once
%% there is one; `Handler' goes on with the connection.
serve(Certificate) ->
    serve(Certificate, fun(Socket) -> ssl:send(Socket, ?ANSWER) end).

serve(Certificate, Handler) ->
    Test = self(),
    forget(),
    Indicated = fun(Name) -> Test ! {indicated, Name}, [] end,
    {ok, Listener} = ssl:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}, {log_level, none},
                                    {sni_fun, Indicated} | Certificate]),
    {ok, {_, Port}} = ssl:sockname(Listener),
    spawn_link(fun() ->
                       {ok, Accepted} = ssl:transport_accept(Listener, 10000),
                       case ssl:handshake(Accepted, 10000) of
                           {ok, Socket} -> answer(Socket, Test, Handler);
                           {error, Reason} -> Test ! {refused, Reason}
                       end
               end),
    Port.

answer(Socket, Test, Handler) ->
    case ssl:recv(Socket, 0, 10000) of
        {ok, Request} ->
            Test ! {request, Request},
            Handler(Socket),
            ssl:close(Socket);
        {error, Reason} ->
            Test ! {refused, Reason}
    end.

forget() ->
    receive
        {Kind, _} when Kind =:= indicated; Kind =:= request; Kind =:= refused -> forget()
    after 0 ->
        ok
    end.

url(Host, Port) ->
    iolist_to_binary(["https://", Host, ":", integer_to_list(Port), "/"]).

fetch(Url) ->
    beamtalk_http_client:'class get:'('HTTPClient', Url).

request(Url, Options) ->
    beamtalk_http_client:'class request:url:options:'('HTTPClient', get, Url, Options).

%% The server had the request and its answer came back.
accepted(Result) ->
    ?assertMatch(#{isOk := true, okValue := #{status := 200, body := <<"hi">>}}, Result),
    ?assertMatch(<<"GET / HTTP/1.1\r\n", _/binary>>, receive {request, Request} -> Request after 2000 -> none end).

%% The Result is a failure, and the server saw the connection end without a request.
refused(Result) ->
    ?assertMatch({beamtalk_error, http_error, 'HTTPClient', _, _, _, #{reason := tls_verification_failed}},
                 failure(Result)),
    ?assertMatch({refused, _}, receive {request, _} = Seen -> Seen; {refused, _} = Seen -> Seen
                               after 5000 -> none end).

failure(#{'$beamtalk_class' := 'Result', isOk := false, errReason := #{error := Error}}) -> Error.

reason(Result) ->
    {beamtalk_error, http_error, 'HTTPClient', _, _, _, #{reason := Reason}} = failure(Result),
    Reason.

%%% Good certificates

good(Authority) ->
    accepted(fetch(url("localhost", serve(signed(Authority, localhost()))))),
    accepted(fetch(url("LocalHost", serve(signed(Authority, localhost()))))),
    accepted(fetch(url("localhost", serve([{versions, ['tlsv1.2']} | signed(Authority, localhost())])))).

addresses(Authority) ->
    accepted(fetch(url("127.0.0.1", serve(signed(Authority, [{iPAddress, <<127, 0, 0, 1>>}]))))),
    ?assertEqual(none, receive {indicated, Name} -> Name after 0 -> none end),
    refused(fetch(url("127.0.0.1", serve(signed(Authority, [{iPAddress, <<127, 0, 0, 2>>}]))))),
    refused(fetch(url("127.0.0.1", serve(signed(Authority, [{dNSName, "127.0.0.1"}]))))),
    refused(fetch(url("127.0.0.1", serve(signed(Authority, localhost()))))).

%% Names below `localhost' need not resolve everywhere: the rule is looked at from the other side.
wildcards(Authority) ->
    [refused(fetch(url("localhost", serve(signed(Authority, [{dNSName, Name}])))))
     || Name <- ["*.localhost", "*.example", "local*.example"]].

indication(Authority) ->
    accepted(fetch(url("localhost", serve(signed(Authority, localhost()))))),
    ?assertEqual("localhost", receive {indicated, Name} -> Name after 0 -> none end).

%%% Bad certificates

expired(Authority) ->
    refused(fetch(url("localhost", serve(signed(Authority, localhost(), [days(-30, -2)]))))).

not_yet_valid(Authority) ->
    refused(fetch(url("localhost", serve(signed(Authority, localhost(), [days(2, 30)]))))).

wrong_host_refused(Authority) ->
    refused(fetch(url("localhost", serve(signed(Authority, [{dNSName, "other.example"}]))))),
    %% Another Host header does not choose another name to check.
    Url = url("localhost", serve(signed(Authority, [{dNSName, "other.example"}]))),
    refused(request(Url, #{headers => [[<<"Host">>, <<"other.example">>]]})).

unknown_authority(_) ->
    refused(fetch(url("localhost", serve(signed(authority(), localhost()))))).

self_signed_refused(_) ->
    Extension = {'Extension', ?SUBJECT_ALTERNATIVE_NAME, false, localhost()},
    #{cert := Certificate, key := Key} =
        public_key:pkix_test_root_cert("localhost", [{extensions, [Extension]} | key()]),
    Der = {element(1, Key), public_key:der_encode(element(1, Key), Key)},
    refused(fetch(url("localhost", serve([{cert, Certificate}, {key, Der}])))).

%%% The store

system_store(Authority) ->
    Certificate = signed(Authority, localhost()),
    public_key:cacerts_clear(),
    try
        refused(fetch(url("localhost", serve(Certificate)))),
        debian_store()
    after
        trust(Authority)
    end,
    accepted(fetch(url("localhost", serve(Certificate)))).

debian_store() ->
    case file:read_file("/etc/ssl/certs/ca-certificates.crt") of
        {ok, Pem} ->
            Expected = [Der || {'Certificate', Der, not_encrypted} <- public_key:pem_decode(Pem)],
            Loaded = [Der || {cert, Der, _} <- public_key:cacerts_get()],
            ?assertEqual(lists:usort(Expected), lists:usort(Loaded));
        {error, _} ->
            ok
    end.

%%% Ways around

no_way_out(_) ->
    Certificate = signed(authority(), localhost()),
    Off = [#{verify => verify_none}, #{verify => false}, #{verify => nil}, #{insecure => true},
           #{verifyPeer => false}, #{tls => #{verify => verify_none}}, #{tls => false},
           #{ssl => [{verify, verify_none}]}, #{ssl_options => [{verify, verify_none}]},
           #{cacerts => []}, #{server_name_indication => disable}, #{<<"verify">> => <<"none">>}],
    [?assertRaises(argument_error, request(url("localhost", serve(Certificate)), Options)) || Options <- Off],
    [?assertMatch({error, #{error := {beamtalk_error, unknown_field, _, _, _, _, _}}},
                  beamtalk_http_client:start_link(Options)) || Options <- Off],
    %% Nor does the rest of a URL.
    Url = fun(Before, After) ->
                  Port = integer_to_list(serve(Certificate)),
                  iolist_to_binary([Before, "localhost:", Port, "/", After])
          end,
    refused(fetch(Url("HTTPS://", ""))),
    refused(fetch(Url("https://user:secret@", "?verify=none#insecure"))).

client(Port) ->
    Base = string:trim(url("localhost", Port), trailing, "/"),
    {ok, Pid} = beamtalk_http_client:start_link(#{baseUrl => Base, timeout => 5000}),
    {beamtalk_object, 'HTTPClient', beamtalk_http_client, Pid}.

%% The server accepts one connection only: more requests than one can be answered on that alone.
reuse(Authority) ->
    Test = self(),
    Answer = fun(Socket) ->
                     ssl:send(Socket, ?ANSWER),
                     {ok, Request} = ssl:recv(Socket, 0, 5000),
                     Test ! {request, Request},
                     ssl:send(Socket, ?ANSWER)
             end,
    Client = client(serve(signed(Authority, localhost()), Answer)),
    accepted(beamtalk_http_client:'get:'(Client, <<"/">>)),
    accepted(beamtalk_http_client:'get:'(Client, <<"/">>)).

actor(Authority) ->
    Client = fun(Certificate) -> client(serve(Certificate)) end,
    accepted(beamtalk_http_client:'get:'(Client(signed(Authority, localhost())), <<"/">>)),
    refused(beamtalk_http_client:'get:'(Client(signed(authority(), localhost())), <<"/">>)),
    refused(beamtalk_http_client:'request:path:options:'(Client(signed(authority(), localhost())), get, <<"/">>,
                                                         #{timeout => 4000})),
    ?assertRaises(argument_error,
                  beamtalk_http_client:'request:path:options:'(Client(signed(authority(), localhost())), get, <<"/">>,
                                                               #{verify => verify_none})).

%%% The rest of the exchange

timeouts(Authority) ->
    Certificate = signed(Authority, localhost()),
    %% A server that accepts and says nothing: the connection waits in the queue.
    {ok, Silent} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, SilentPort} = inet:port(Silent),
    ends_in_time(fun() -> request(url("localhost", SilentPort), #{timeout => 300}) end),
    gen_tcp:close(Silent),
    Wait = fun(_) -> timer:sleep(4000) end,
    Unanswered = url("localhost", serve(Certificate, Wait)),
    ends_in_time(fun() -> request(Unanswered, #{timeout => 300}) end),
    Unread = url("localhost", serve(Certificate, Wait)),
    Body = binary:copy(<<"x">>, 32 * 1024 * 1024),
    ends_in_time(fun() -> request(Unread, #{timeout => 300, body => Body}) end).

ends_in_time(Request) ->
    {Microseconds, Result} = timer:tc(Request),
    ?assertEqual(timeout, reason(Result)),
    ?assert(Microseconds < 3000000).

bodies(Authority) ->
    Certificate = signed(Authority, localhost()),
    Large = binary:copy(<<"0123456789">>, 300000),
    Fetch = fun(Pieces) ->
                    Port = serve(Certificate, fun(Socket) -> [ssl:send(Socket, Piece) || Piece <- Pieces] end),
                    #{isOk := true, okValue := #{body := Body}} = fetch(url("localhost", Port)),
                    Body
            end,
    ?assertEqual(Large, Fetch([<<"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n">>, Large])),
    ?assertEqual(Large, Fetch([<<"HTTP/1.1 200 OK\r\n\r\n">>, Large])),
    ?assertEqual(<<"hello world">>,
                 Fetch([<<"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel">>,
                        <<"lo\r\n6\r\n world\r\n0\r\n\r\n">>])).
