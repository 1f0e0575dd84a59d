%% Distribution of a workspace's node: started on request of the daemon, over TLS, with a secret that came over
%% the pipe. The node was booted with the protocol and the file of TLS options, and without a cookie.
-module(beamtalk_cluster).

-export([start/1]).
-export([is_host/2, address/1]).

-spec start(map()) -> {ok, map()} | {error, map()}.
start(#{<<"name">> := Name, <<"domain">> := Domain, <<"cookie">> := Cookie, <<"address">> := Text,
        <<"first_port">> := First, <<"last_port">> := Last}) ->
    {ok, Address} = inet:parse_address(binary_to_list(Text)),
    [application:set_env(kernel, Key, Value) || {Key, Value} <- [{inet_dist_use_interface, Address},
                                                                 {inet_dist_listen_min, First},
                                                                 {inet_dist_listen_max, Last}]],
    {ok, _} = application:ensure_all_started(ssl),
    ok = beamtalk_hot_code:prepare(),
    case net_kernel:start(binary_to_atom(Name), #{name_domain => domain(Domain)}) of
        {ok, _} ->
            %% Until this line peers are kept out by their certificates alone.
            true = erlang:set_cookie(binary_to_atom(Cookie)),
            {ok, #{<<"port">> => beamtalk_epmd:own_port()}};
        {error, Reason} ->
            logger:error("distribution does not start: ~0tp", [Reason]),
            Message = io_lib:format("no port from ~b to ~b can be opened on ~ts", [First, Last, Text]),
            {error, #{<<"kind">> => <<"cluster_failed">>, <<"message">> => iolist_to_binary(Message)}}
    end.

domain(<<"long">>) -> longnames;
domain(<<"short">>) -> shortnames.

%% Whether a name in a certificate is that of the peer. TLS knows the host of a node's name as text, also
%% when it is an address.
-spec is_host(term(), term()) -> boolean() | default.
is_host({dns_id, Host}, {iPAddress, Bytes}) ->
    case inet:parse_strict_address(Host) of
        {ok, Address} -> address(Address) =:= iolist_to_binary(Bytes);
        {error, _} -> false
    end;
is_host(_, _) -> default.

%% The bytes of an address.
-spec address(inet:ip_address()) -> binary().
address({A, B, C, D}) -> <<A, B, C, D>>;
address(Parts) -> << <<Part:16>> || Part <- tuple_to_list(Parts) >>.
