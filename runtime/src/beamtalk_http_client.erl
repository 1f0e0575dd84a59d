%% HTTPClient: HTTP/1.1 requests over TCP or TLS.
%%
%% A request runs in the sender's process with one deadline for everything. The actor
%% keeps the base URL, headers and timeout, and for a while the connections its
%% requests have left open; requests to the class share one process that does so.
-module(beamtalk_http_client).
-behaviour(gen_server).

-export(['class get:'/2, 'class post:body:'/3, 'class put:body:'/3, 'class delete:'/2,
         'class request:url:options:'/4, 'class request:url:options:chunksDo:'/5, 'class download:to:'/3,
         'class download:to:options:'/4]).
-export(['get:'/2, 'post:body:'/3, 'put:body:'/3, 'delete:'/2, 'request:path:options:'/4,
         'request:path:options:chunksDo:'/5, 'download:to:'/3, 'download:to:options:'/4]).
-export([start_link/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(CLASS, 'HTTPClient').
-define(TIMEOUT, 30000).
-define(KEPT_FOR, 15000).
-define(MOST_KEPT, 8).
-define(POOL, beamtalk_http_pool).
-define(OPTIONS, [headers, body, timeout, followRedirects]).

%%% Class side

-spec 'class get:'(term(), term()) -> map().
'class get:'(_Class, Url) ->
    request(get, Url, #{}, 'get:', pool()).

-spec 'class post:body:'(term(), term(), term()) -> map().
'class post:body:'(_Class, Url, Body) ->
    request(post, Url, #{body => Body}, 'post:body:', pool()).

-spec 'class put:body:'(term(), term(), term()) -> map().
'class put:body:'(_Class, Url, Body) ->
    request(put, Url, #{body => Body}, 'put:body:', pool()).

-spec 'class delete:'(term(), term()) -> map().
'class delete:'(_Class, Url) ->
    request(delete, Url, #{}, 'delete:', pool()).

-spec 'class request:url:options:'(term(), term(), term(), term()) -> map().
'class request:url:options:'(_Class, Method, Url, Options) ->
    request(Method, Url, Options, 'request:url:options:', pool()).

-spec 'class request:url:options:chunksDo:'(term(), term(), term(), term(), term()) -> map().
'class request:url:options:chunksDo:'(_Class, Method, Url, Options, Block) ->
    Selector = 'request:url:options:chunksDo:',
    beamtalk_argument:block(Block, 1, ?CLASS, Selector),
    request(Method, Url, Options, Selector, pool(), fun(_) -> Block end).

-spec 'class download:to:'(term(), term(), term()) -> map().
'class download:to:'(_Class, Url, Path) ->
    download(Url, Path, #{}, 'download:to:', pool()).

-spec 'class download:to:options:'(term(), term(), term(), term()) -> map().
'class download:to:options:'(_Class, Url, Path, Options) ->
    download(Url, Path, Options, 'download:to:options:', pool()).

%% The keeper of the connections that requests to the class leave open.
pool() ->
    case whereis(?POOL) of
        undefined ->
            case gen_server:start({local, ?POOL}, ?MODULE, pool, []) of
                {ok, Pid} -> Pid;
                {error, {already_started, Pid}} -> Pid
            end;
        Pid ->
            Pid
    end.

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

-spec 'request:path:options:chunksDo:'(tuple(), term(), term(), term(), term()) -> map().
'request:path:options:chunksDo:'(Self, Method, Path, Options, Block) ->
    Selector = 'request:path:options:chunksDo:',
    beamtalk_argument:block(Block, 1, ?CLASS, Selector),
    {Keeper, Url, Merged} = target(Self, Path, Options, Selector),
    request(Method, Url, Merged, Selector, Keeper, fun(_) -> Block end).

-spec 'download:to:'(tuple(), term(), term()) -> map().
'download:to:'(Self, Path, File) ->
    {Keeper, Url, Options} = target(Self, Path, #{}, 'download:to:'),
    download(Url, File, Options, 'download:to:', Keeper).

-spec 'download:to:options:'(tuple(), term(), term(), term()) -> map().
'download:to:options:'(Self, Path, File, Options) ->
    {Keeper, Url, Merged} = target(Self, Path, Options, 'download:to:options:'),
    download(Url, File, Merged, 'download:to:options:', Keeper).

request_path(Self, Method, Path, Options, Selector) ->
    {Keeper, Url, Merged} = target(Self, Path, Options, Selector),
    request(Method, Url, Merged, Selector, Keeper).

%% The actor's process, the whole URL, and the options with what the actor keeps.
target(Self, Path, Options, Selector) ->
    beamtalk_argument:string(Path, ?CLASS, Selector),
    beamtalk_argument:dictionary(Options, ?CLASS, Selector),
    {Keeper, #{baseUrl := Base} = Config} = beamtalk_subprocess:ask(Self, Selector, config),
    {Keeper, <<Base/binary, Path/binary>>, maps:merge(maps:remove(baseUrl, Config), Options)}.

%%% Requests

request(Method, Url, Options, Selector, Keeper) ->
    request(Method, Url, Options, Selector, Keeper, fun(_) -> collect end).

request(Method, Url, Options, Selector, Keeper, Sink) ->
    Name = method(Method, Selector),
    beamtalk_argument:string(Url, ?CLASS, Selector),
    Checked = check_options(Options, Selector),
    beamtalk_capability:guard(http, ?CLASS, Selector, fun() -> send(Name, Url, Checked, Selector, Keeper, Sink) end).

send(Method, Url, Options, Selector, Keeper, Sink) ->
    #{headers := Headers, body := Body, timeout := Timeout, redirects := Redirects} = Options,
    case beamtalk_http:request(Method, Url, Headers, Body, Timeout, Keeper,
                               #{sink => Sink, redirects => Redirects}) of
        {ok, {Status, ResponseHeaders, ResponseBody}} ->
            beamtalk_result:ok(#{'$beamtalk_class' => 'HTTPResponse', status => Status,
                                 headers => ResponseHeaders, body => ResponseBody});
        {error, Reason} ->
            beamtalk_result:failure(http_error, ?CLASS, Selector, hint(Reason),
                                    #{url => Url, reason => Reason})
    end.

%% Into a file beside the one that is wanted, which takes its name when all of it is there. Only an answer that is a
%% success is written; the body of any other one is in the response.
download(Url, Path, Options, Selector, Keeper) ->
    beamtalk_argument:string(Url, ?CLASS, Selector),
    Checked = beamtalk_file:path(beamtalk_argument:string(Path, ?CLASS, Selector), Selector),
    Request = check_options(Options, Selector),
    Download = fun() -> download(Url, Checked, Request, Selector, Keeper, part_of(Checked)) end,
    beamtalk_capability:guard(http, ?CLASS, Selector,
                              fun() -> beamtalk_capability:guard(fs, ?CLASS, Selector, Download) end).

download(Url, Path, Request, Selector, Keeper, Part) ->
    Opened = case beamtalk_file:ensure_parents(Path) of
                 ok -> file:open(Part, [write, raw, binary, exclusive]);
                 Error -> Error
             end,
    case Opened of
        {ok, File} ->
            Write = fun(Bytes) ->
                            case file:write(File, Bytes) of
                                ok -> ok;
                                Failed -> throw({?MODULE, Failed})
                            end
                    end,
            Sink = fun(Status) when Status >= 200, Status < 300 -> Write;
                      (_) -> collect
                   end,
            try send(<<"GET">>, Url, Request, Selector, Keeper, Sink) of
                #{isOk := true, okValue := #{status := Status}} = Answer when Status >= 200, Status < 300 ->
                    finished(file:close(File), Part, Path, Answer, Selector);
                Answer ->
                    discard(File, Part),
                    Answer
            catch
                throw:{?MODULE, {error, Reason}} ->
                    discard(File, Part),
                    beamtalk_file:failure(Reason, ?CLASS, Selector, Path);
                Class:Reason:Stack ->
                    discard(File, Part),
                    erlang:raise(Class, Reason, Stack)
            end;
        {error, Reason} ->
            beamtalk_file:failure(Reason, ?CLASS, Selector, Path)
    end.

finished(ok, Part, Path, Answer, Selector) ->
    case file:rename(Part, Path) of
        ok ->
            Answer;
        {error, Reason} ->
            _ = file:delete(Part),
            beamtalk_file:failure(Reason, ?CLASS, Selector, Path)
    end;
finished({error, Reason}, Part, Path, _, Selector) ->
    _ = file:delete(Part),
    beamtalk_file:failure(Reason, ?CLASS, Selector, Path).

discard(File, Part) ->
    _ = file:close(File),
    file:delete(Part).

part_of(Path) ->
    Unique = integer_to_binary(erlang:unique_integer([positive])),
    <<Path/binary, ".", (list_to_binary(os:getpid()))/binary, "-", Unique/binary, ".part">>.

hint(invalid_url) -> <<"Expected a URL that starts with http:// or https://">>;
hint(connection_failed) -> <<"The server could not be reached">>;
hint(tls_verification_failed) -> <<"The certificate of the server could not be verified">>;
hint(timeout) -> <<"The server did not answer in time">>;
hint(protocol_error) -> <<"The answer of the server is not HTTP">>;
hint(too_many_redirects) -> <<"The server redirects more often than allowed">>.

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
    case maps:keys(maps:without(?OPTIONS, Options)) of
        [] -> ok;
        [Option | _] -> unknown_option(Option, Selector)
    end,
    Timeout = beamtalk_argument:milliseconds(maps:get(timeout, Options, ?TIMEOUT), ?CLASS, Selector),
    Body = beamtalk_argument:binary(maps:get(body, Options, <<>>), ?CLASS, Selector),
    Headers = beamtalk_argument:list(maps:get(headers, Options, []), ?CLASS, Selector),
    Redirects = beamtalk_argument:non_negative(maps:get(followRedirects, Options, 0), ?CLASS, Selector),
    #{timeout => Timeout, body => Body, headers => [header(Header, Selector) || Header <- Headers],
      redirects => Redirects}.

-spec unknown_option(term(), atom()) -> no_return().
unknown_option(Option, Selector) ->
    Message = iolist_to_binary(["HTTPClient '", atom_to_binary(Selector), "': unknown option ",
                                beamtalk_display:print(Option)]),
    beamtalk_error:raise(argument_error, ?CLASS, Selector, Message,
                         <<"Options are #headers, #body, #timeout, #followRedirects">>, #{option => Option}).

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
-spec init(map() | pool) -> {ok, map()}.
init(pool) ->
    %% Whoever starts it first, it does not belong to that one's output.
    group_leader(whereis(init), self()),
    init(#{});
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

%% The newest are the ones most likely to be used again.
keep(Server, Connection, Kept) ->
    Reference = make_ref(),
    erlang:send_after(?KEPT_FOR, self(), {forget, Reference}),
    {Newest, Others} = lists:split(min(?MOST_KEPT - 1, length(Kept)), Kept),
    [beamtalk_http:close(Old) || {_, _, Old} <- Others],
    put(kept, [{Reference, Server, Connection} | Newest]).
