%% Distribution over TLS as OTP does it, with one thing more: a node that connects must show a certificate that names
%% its host. The certificate's names that lead to the address it comes from are the only hosts its own name may have,
%% so that a certificate carried to another machine opens nothing there.
-module(beamtalk_tls_dist).

-export([childspecs/0, select/1, address/0, is_node_name/1]).
-export([listen/1, listen/2, accept/1, accept_connection/5, setup/5, close/1]).
-export([hosts_at/3]).

%% How long a name of a certificate may take to be looked up.
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

childspecs() -> inet_tls_dist:childspecs().
select(Node) -> (base()):select(Node).
address() -> (base()):address().
is_node_name(Node) -> inet_tls_dist:is_node_name(Node).
listen(Name, Host) -> (base()):listen(Name, Host).
accept(Listen) -> (base()):accept(Listen).
setup(Node, Type, MyNode, Names, SetupTime) -> (base()):setup(Node, Type, MyNode, Names, SetupTime).
close(Socket) -> (base()):close(Socket).

listen(Name) ->
    {ok, Host} = inet:gethostname(),
    listen(Name, Host).

accept_connection(AcceptPid, Controller, MyNode, _Allowed, SetupTime) ->
    (base()):accept_connection(AcceptPid, Controller, MyNode, allowed(Controller), SetupTime).

%% The hosts a node behind this connection may be on.
allowed(Controller) ->
    try
        {ok, Socket} = tls_sender:dist_tls_socket(Controller),
        {ok, {Address, _}} = ssl:peername(Socket),
        {ok, Certificate} = ssl:peercert(Socket),
        case hosts_at(names(Certificate), Address, fun addresses/2) of
            [] ->
                logger:error("a node at ~ts shows a certificate that does not name its host", [inet:ntoa(Address)]),
                ?NOBODY;
            Hosts -> Hosts
        end
    catch
        error:Reason ->
            logger:error("the certificate of a node cannot be judged: ~0tp", [Reason]),
            ?NOBODY
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
