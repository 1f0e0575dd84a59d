%% Distribution over TLS as OTP does it, with one thing more: a node that connects must show a certificate that names
%% its host. The certificate's names that lead to the address it comes from are the only hosts its own name may have,
%% so that a certificate carried to another machine opens nothing there.
-module(beamtalk_tls_dist).

-export([childspecs/0, select/1, address/0, is_node_name/1]).
-export([listen/1, listen/2, accept/1, accept_connection/5, setup/5, close/1]).
-export([hosts_at/3, common/2]).

%% How long a name of a certificate may take to be looked up: `net_kernel' waits for it.
-define(LOOKUP, 2000).
%% The alternative names in a certificate.
-define(ALTERNATIVE_NAMES, {2, 5, 29, 17}).
%% A list without any host would mean that all are allowed.
-define(NOBODY, ["nobody.invalid"]).

%% Which of OTP's two does the work.
base() ->
    case init:get_argument(beamtalk_family) of
        {ok, [["inet6"]]} -> inet6_tls_dist;
        _ -> inet_tls_dist
    end.

%%% What the kernel asks of a way of distribution

-spec childspecs() -> {ok, [supervisor:child_spec()]}.
childspecs() -> inet_tls_dist:childspecs().

-spec select(node()) -> boolean().
select(Node) -> (base()):select(Node).

-spec address() -> tuple().
address() -> (base()):address().

-spec is_node_name(node()) -> boolean().
is_node_name(Node) -> inet_tls_dist:is_node_name(Node).

-spec listen(term()) -> {ok, tuple()} | {error, term()}.
listen(Name) ->
    {ok, Host} = inet:gethostname(),
    listen(Name, Host).

-spec listen(term(), string()) -> {ok, tuple()} | {error, term()}.
listen(Name, Host) -> (base()):listen(Name, Host).

-spec accept(term()) -> pid().
accept(Listen) -> (base()):accept(Listen).

-spec setup(node(), term(), node(), longnames | shortnames, timeout()) -> pid().
setup(Node, Type, MyNode, Names, SetupTime) -> (base()):setup(Node, Type, MyNode, Names, SetupTime).

-spec close(term()) -> ok.
close(Socket) -> (base()):close(Socket).

-spec accept_connection(pid(), term(), node(), [atom() | string()], timeout()) -> pid().
accept_connection(AcceptPid, Controller, MyNode, Allowed, SetupTime) ->
    (base()):accept_connection(AcceptPid, Controller, MyNode, allowed(Controller, Allowed), SetupTime).

%% The hosts a node behind this connection may be on: those of its certificate, and of them those that `net_kernel:allow/1'
%% was told, if any.
allowed(Controller, Allowed) ->
    case common(hosts(Controller), Allowed) of
        [] -> ?NOBODY;
        Hosts -> Hosts
    end.

-spec common([string()], [atom() | string()]) -> [string()].
common(Hosts, []) -> Hosts;
common(Hosts, Allowed) ->
    Told = [lists:last(string:split(lists:flatten(io_lib:format("~ts", [Node])), "@")) || Node <- Allowed],
    [Host || Host <- Hosts, lists:member(Host, Told)].

hosts(Controller) ->
    try
        {ok, Socket} = tls_sender:dist_tls_socket(Controller),
        {ok, {Address, _}} = ssl:peername(Socket),
        {ok, Certificate} = ssl:peercert(Socket),
        case hosts_at(names(Certificate), Address, fun addresses/2) of
            [] ->
                logger:error("a node at ~ts shows a certificate that does not name its host", [inet:ntoa(Address)]),
                [];
            Hosts -> Hosts
        end
    catch
        %% A connection that ends meanwhile must not take the caller, `net_kernel', with it.
        Class:Reason when Class =:= error; Class =:= exit ->
            logger:error("the certificate of a node cannot be judged: ~0tp", [Reason]),
            []
    end.

%% The records of `public_key' as tuples: their header is not part of every installation.
names(Certificate) ->
    {'OTPCertificate', Signed, _, _} = public_key:pkix_decode_cert(Certificate, otp),
    {'OTPTBSCertificate', _, _, _, _, _, _, _, _, _, Extensions} = Signed,
    lists:append([Names || {'Extension', ?ALTERNATIVE_NAMES, _, Names} <- Extensions]).

%% Those names that lead to an address, as hosts.
-spec hosts_at([{atom(), term()}], inet:ip_address(), fun((string(), inet | inet6) -> [inet:ip_address()])) ->
    [string()].
hosts_at(Names, Address, Lookup) ->
    Own = plain(Address),
    Family = case tuple_size(Own) of 4 -> inet; 8 -> inet6 end,
    lists:append([host(Name, Own, Family, Lookup) || Name <- Names]).

host({iPAddress, Bytes}, Address, _, _) ->
    case iolist_to_binary(Bytes) =:= beamtalk_cluster:address(Address) of
        true -> [inet:ntoa(Address)];
        false -> []
    end;
host({dNSName, Name}, Address, Family, Lookup) ->
    case lists:member(Address, Lookup(Name, Family)) of
        true -> [Name];
        false -> []
    end;
host(_, _, _, _) -> [].

%% An IPv4 address in the clothes of IPv6 is one of IPv4.
plain({0, 0, 0, 0, 0, 16#ffff, High, Low}) ->
    {High bsr 8, High band 255, Low bsr 8, Low band 255};
plain(Address) -> Address.

addresses(Name, Family) ->
    case inet:gethostbyname(Name, Family, ?LOOKUP) of
        {ok, {hostent, _, _, _, _, Addresses}} -> Addresses;
        {error, _} -> []
    end.
