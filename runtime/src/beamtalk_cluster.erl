%% Distribution of a workspace's node: started on request of the daemon, over TLS, with a secret that came over
%% the pipe. The node was booted with the protocol and the file of TLS options, and without a cookie.
-module(beamtalk_cluster).

-export([start/1]).
-export([is_host/2]).

%% How long an address is tried when looking for a port mapper that listens there.
-define(PROBE, 200).

-spec start(map()) -> {ok, map()} | {error, map()}.
start(#{<<"name">> := Name, <<"domain">> := Domain, <<"cookie">> := Cookie, <<"address">> := Text,
        <<"first_port">> := First, <<"last_port">> := Last, <<"epmd_port">> := EpmdPort}) ->
    {ok, Address} = inet:parse_address(binary_to_list(Text)),
    [application:set_env(kernel, Key, Value) || {Key, Value} <- [{inet_dist_use_interface, Address},
                                                                 {inet_dist_listen_min, First},
                                                                 {inet_dist_listen_max, Last}]],
    {ok, _} = application:ensure_all_started(ssl),
    case net_kernel:start(binary_to_atom(Name), #{name_domain => domain(Domain)}) of
        {ok, _} ->
            %% Until this line peers are kept out by their certificates alone.
            true = erlang:set_cookie(binary_to_atom(Cookie)),
            {ok, #{<<"port">> => port(), <<"other_addresses">> => listening(EpmdPort, Address)}};
        {error, Reason} ->
            logger:error("distribution does not start: ~0tp", [Reason]),
            {error, #{<<"kind">> => <<"cluster_failed">>, <<"message">> => reason(Name, Text, First, Last)}}
    end.

domain(<<"long">>) -> longnames;
domain(<<"short">>) -> shortnames.

%% Distribution that does not start says so and not why.
reason(Name, Address, First, Last) ->
    case registered(Name) of
        {port, _, _} -> <<"a node of this name is registered already">>;
        _ -> iolist_to_binary(io_lib:format("no port from ~b to ~b can be opened on ~ts", [First, Last, Address]))
    end.

%% The port that was chosen from the range.
port() ->
    case registered(atom_to_binary(node())) of
        {port, Port, _} -> Port;
        _ -> nil
    end.

registered(Node) ->
    [Name, Host] = string:split(binary_to_list(Node), "@"),
    erl_epmd:port_please(Name, Host, 2000).

%% Addresses of this machine, other than the chosen one, where a port mapper can be reached.
listening(_, {0, 0, 0, 0}) -> [];
listening(_, {0, 0, 0, 0, 0, 0, 0, 0}) -> [];
listening(Port, Chosen) ->
    {ok, Interfaces} = inet:getifaddrs(),
    Addresses = [Address || {_, Options} <- Interfaces, {addr, Address} <- Options,
                            Address =/= Chosen, not is_local(Address)],
    [list_to_binary(inet:ntoa(Address)) || Address <- lists:usort(Addresses), answers(Address, Port)].

%% Only this machine reaches these: a port mapper always listens on loopback, and link-local needs a zone.
is_local({127, _, _, _}) -> true;
is_local({0, 0, 0, 0, 0, 0, 0, 1}) -> true;
is_local({First, _, _, _, _, _, _, _}) -> First band 16#ffc0 =:= 16#fe80;
is_local(_) -> false.

answers(Address, Port) ->
    Family = case tuple_size(Address) of 4 -> inet; 8 -> inet6 end,
    case gen_tcp:connect(Address, Port, [Family], ?PROBE) of
        {ok, Socket} ->
            gen_tcp:close(Socket),
            true;
        {error, _} -> false
    end.

%% Whether a name in a certificate is that of the peer. TLS knows the host of a node's name as text, also
%% when it is an address.
-spec is_host(term(), term()) -> boolean() | default.
is_host({dns_id, Host}, {iPAddress, Bytes}) ->
    case inet:parse_strict_address(Host) of
        {ok, Address} -> address(Address) =:= iolist_to_binary(Bytes);
        {error, _} -> false
    end;
is_host(_, _) -> default.

address({A, B, C, D}) -> <<A, B, C, D>>;
address(Parts) -> << <<Part:16>> || Part <- tuple_to_list(Parts) >>.
