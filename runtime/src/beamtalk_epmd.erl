%% Where the nodes of a cluster listen, without a port mapper: the daemons know.
%%
%% Each daemon writes the port of its node into a file of its user's state directory, under the node's name; nodes of
%% other machines are named with their ports when the node is started, or listen on the first port of the range.
%% The node is booted with `-beamtalk_ports DIRECTORY FIRST' and `-beamtalk_peers NAME@HOST:PORT ...'.
-module(beamtalk_epmd).

-export([start_link/0, listen_port_please/2, register_node/2, register_node/3]).
-export([address_please/3, port_please/2, port_please/3, names/1]).
-export([own_port/0, port_of/4]).

%% The version of the distribution protocol that every release we run on speaks.
-define(VERSION, 6).

-spec start_link() -> ignore.
start_link() -> ignore.

%% Any of the range.
-spec listen_port_please(term(), term()) -> {ok, 0}.
listen_port_please(_, _) -> {ok, 0}.

-spec register_node(term(), inet:port_number()) -> {ok, pos_integer()}.
register_node(Name, Port) -> register_node(Name, Port, inet_tcp).

%% The answer tells this life of the node from an earlier one of the same name.
-spec register_node(term(), inet:port_number(), term()) -> {ok, pos_integer()}.
register_node(_, Port, _) ->
    persistent_term:put(?MODULE, Port),
    {ok, 4 + rand:uniform(16#fffffff0)}.

%% Where this node listens.
-spec own_port() -> inet:port_number() | nil.
own_port() -> persistent_term:get(?MODULE, nil).

-spec address_please(string(), string(), inet | inet6) ->
    {ok, inet:ip_address(), inet:port_number(), pos_integer()} | {error, term()}.
address_please(Name, Host, Family) ->
    case inet:getaddr(Host, Family) of
        {ok, Address} ->
            [[Directory, First]] = argument(beamtalk_ports, [["", "0"]]),
            Peers = lists:append(argument(beamtalk_peers, [])),
            {ok, Address, port_of(Name ++ "@" ++ Host, Peers, Directory, list_to_integer(First)), ?VERSION};
        {error, _} = Error -> Error
    end.

argument(Name, Default) ->
    case init:get_argument(Name) of
        {ok, Values} -> Values;
        error -> Default
    end.

%% The port of a node: as it was named, as its daemon says, or the first there is.
-spec port_of(string(), [string()], file:filename(), inet:port_number()) -> inet:port_number().
port_of(Node, Peers, Directory, First) ->
    case [Port || Peer <- Peers, {Name, Port} <- [split(Peer)], Name =:= Node] of
        [Port | _] -> list_to_integer(Port);
        [] -> recorded(filename:join(Directory, Node), First)
    end.

%% The host of a name may have colons itself.
split(Peer) ->
    [Name, Port] = string:split(Peer, ":", trailing),
    {Name, Port}.

recorded(File, First) ->
    case file:read_file(File) of
        {ok, Text} ->
            case string:to_integer(string:trim(Text)) of
                {Port, <<>>} when is_integer(Port) -> Port;
                _ -> First
            end;
        {error, _} -> First
    end.

%% Asked only where an address came without a port, which it never does.
-spec port_please(term(), term()) -> noport.
port_please(_, _) -> noport.

-spec port_please(term(), term(), term()) -> noport.
port_please(_, _, _) -> noport.

-spec names(term()) -> {error, address}.
names(_) -> {error, address}.
