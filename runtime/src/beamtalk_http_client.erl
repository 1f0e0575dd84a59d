%% HTTPClient: HTTP/1.1 requests over TCP or TLS.
%%
%% A request runs in the sender's process with one deadline for everything. The actor
%% keeps the base URL, headers and timeout, and for a while the connections its
%% requests have left open; a request to the class has a connection of its own.
-module(beamtalk_http_client).
-behaviour(gen_server).

-export(['class get:'/2, 'class post:body:'/3, 'class put:body:'/3, 'class delete:'/2,
         'class request:url:options:'/4]).
-export(['get:'/2, 'post:body:'/3, 'put:body:'/3, 'delete:'/2, 'request:path:options:'/4]).
-export([start_link/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(CLASS, 'HTTPClient').
-define(TIMEOUT, 30000).
-define(KEPT_FOR, 15000).
-define(MOST_KEPT, 8).

%%% Class side

-spec 'class get:'(term(), term()) -> map().
'class get:'(_Class, Url) ->
    request(get, Url, #{}, 'get:', none).

-spec 'class post:body:'(term(), term(), term()) -> map().
'class post:body:'(_Class, Url, Body) ->
    request(post, Url, #{body => Body}, 'post:body:', none).

-spec 'class put:body:'(term(), term(), term()) -> map().
'class put:body:'(_Class, Url, Body) ->
    request(put, Url, #{body => Body}, 'put:body:', none).

-spec 'class delete:'(term(), term()) -> map().
'class delete:'(_Class, Url) ->
    request(delete, Url, #{}, 'delete:', none).

-spec 'class request:url:options:'(term(), term(), term(), term()) -> map().
'class request:url:options:'(_Class, Method, Url, Options) ->
    request(Method, Url, Options, 'request:url:options:', none).

%%% Instance side

-spec 'get:'(tuple(), term()) -> map().
'get:'(Self, Path) ->
    request_path(Self, get, Path, #{}, 'get:').

-spec 'post:body:'(tuple(), term(), term()) -> map().
'post:body:'(Self, Path, Body) ->
    request_path(Self, post, Path, #{body => Body}, 'post:body:').

-spec 'put:body:'(tuple(), term(), term()) -> map().
'put:body:'(Self, Path, Body) ->
    request_path(Self, put, Path, #{body => Body}, 'put:body:').

-spec 'delete:'(tuple(), term()) -> map().
'delete:'(Self, Path) ->
    request_path(Self, delete, Path, #{}, 'delete:').

-spec 'request:path:options:'(tuple(), term(), term(), term()) -> map().
'request:path:options:'(Self, Method, Path, Options) ->
    request_path(Self, Method, Path, Options, 'request:path:options:').

request_path(Self, Method, Path, Options, Selector) ->
    beamtalk_argument:string(Path, ?CLASS, Selector),
    beamtalk_argument:dictionary(Options, ?CLASS, Selector),
    {Keeper, #{baseUrl := Base} = Config} = beamtalk_subprocess:ask(Self, Selector, config),
    Merged = maps:merge(maps:remove(baseUrl, Config), Options),
    request(Method, <<Base/binary, Path/binary>>, Merged, Selector, Keeper).

%%% Requests

request(Method, Url, Options, Selector, Keeper) ->
    Name = method(Method, Selector),
    beamtalk_argument:string(Url, ?CLASS, Selector),
    #{headers := Headers, body := Body, timeout := Timeout} = check_options(Options, Selector),
    Send = fun() ->
                   case beamtalk_http:request(Name, Url, Headers, Body, Timeout, Keeper) of
                       {ok, {Status, ResponseHeaders, ResponseBody}} ->
                           beamtalk_result:ok(#{'$beamtalk_class' => 'HTTPResponse', status => Status,
                                                headers => ResponseHeaders, body => ResponseBody});
                       {error, Reason} ->
                           beamtalk_result:failure(http_error, ?CLASS, Selector, hint(Reason),
                                                   #{url => Url, reason => Reason})
                   end
           end,
    beamtalk_capability:guard(http, ?CLASS, Selector, Send).

hint(invalid_url) -> <<"Expected a URL that starts with http:// or https://">>;
hint(connection_failed) -> <<"The server could not be reached">>;
hint(tls_verification_failed) -> <<"The certificate of the server could not be verified">>;
hint(timeout) -> <<"The server did not answer in time">>;
hint(protocol_error) -> <<"The answer of the server is not HTTP">>.

method(Method, _) when is_atom(Method), Method =/= nil, Method =/= true, Method =/= false ->
    string:uppercase(atom_to_binary(Method));
method(Method, Selector) when is_binary(Method), Method =/= <<>> ->
    case re:run(Method, <<"\\A[A-Za-z]+\\z">>, [{capture, none}]) of
        match -> string:uppercase(Method);
        nomatch -> beamtalk_argument:fail(?CLASS, Selector, <<"Expected the name of a method">>)
    end;
method(_, Selector) ->
    beamtalk_argument:fail(?CLASS, Selector, <<"Expected a method as a Symbol or String">>).

check_options(Options, Selector) ->
    beamtalk_argument:dictionary(Options, ?CLASS, Selector),
    Timeout = beamtalk_argument:milliseconds(maps:get(timeout, Options, ?TIMEOUT), ?CLASS, Selector),
    Body = beamtalk_argument:string(maps:get(body, Options, <<>>), ?CLASS, Selector),
    Headers = beamtalk_argument:list(maps:get(headers, Options, []), ?CLASS, Selector),
    #{timeout => Timeout, body => Body, headers => [header(Header, Selector) || Header <- Headers]}.

header([Name, Value], Selector) ->
    header({Name, Value}, Selector);
header({Name, Value}, Selector) when is_binary(Name), is_binary(Value) ->
    case binary:match(<<Name/binary, Value/binary>>, [<<"\r">>, <<"\n">>, <<0>>]) of
        nomatch -> {Name, Value};
        _ -> beamtalk_argument:fail(?CLASS, Selector, <<"A header is one line">>)
    end;
header(_, Selector) ->
    beamtalk_argument:fail(?CLASS, Selector, <<"A header is a pair of Strings">>).

%%% The process

-spec start_link(map()) -> {ok, pid()} | {error, term()}.
start_link(Config) ->
    Defaults = #{baseUrl => <<>>, headers => [], timeout => ?TIMEOUT},
    case maps:keys(maps:without(maps:keys(Defaults), Config)) of
        [] ->
            gen_server:start_link(?MODULE, maps:merge(Defaults, Config), []);
        [Field | _] ->
            Message = iolist_to_binary(["Unknown field '", beamtalk_display:display(Field),
                                        "' for HTTPClient"]),
            {error, beamtalk_error:new(unknown_field, ?CLASS, 'spawnWith:', Message,
                                       <<"Declared fields: baseUrl, headers, timeout">>, #{})}
    end.

%% The state is the declared fields, for whoever inspects the actor; the connections
%% are in the process dictionary.
-spec init(map()) -> {ok, map()}.
init(Config) ->
    put(kept, []),
    {ok, Config}.

-spec handle_call(term(), gen_server:from(), map()) -> {reply, term(), map()}.
handle_call(config, _From, Config) ->
    {reply, {self(), Config}, Config};
handle_call({take, Server}, {Process, _}, Config) ->
    {reply, take(Server, Process), Config};
handle_call(_, _From, Config) ->
    {reply, {error, does_not_understand}, Config}.

-spec handle_cast(term(), map()) -> {noreply, map()}.
handle_cast({keep, Server, Connection}, Config) ->
    keep(Server, Connection, get(kept)),
    {noreply, Config};
handle_cast(_, Config) ->
    {noreply, Config}.

-spec handle_info(term(), map()) -> {noreply, map()}.
handle_info({forget, Reference}, Config) ->
    case lists:keytake(Reference, 1, get(kept)) of
        {value, {_, _, Connection}, Others} ->
            put(kept, Others),
            beamtalk_http:close(Connection);
        false ->
            ok
    end,
    {noreply, Config};
handle_info(_, Config) ->
    {noreply, Config}.

take(Server, Process) ->
    case lists:keytake(Server, 2, get(kept)) of
        {value, {_, _, Connection}, Others} ->
            put(kept, Others),
            case beamtalk_http:hand_over(Connection, Process) of
                ok ->
                    Connection;
                {error, _} ->
                    beamtalk_http:close(Connection),
                    none
            end;
        false ->
            none
    end.

keep(_, Connection, Kept) when length(Kept) >= ?MOST_KEPT ->
    beamtalk_http:close(Connection);
keep(Server, Connection, Kept) ->
    Reference = make_ref(),
    erlang:send_after(?KEPT_FOR, self(), {forget, Reference}),
    put(kept, [{Reference, Server, Connection} | Kept]).
