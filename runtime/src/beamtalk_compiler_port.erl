%% The hook through which the running image asks for a compiler.
%%
%% A workspace attaches a function; without one, messages that need source to be
%% compiled raise `unsupported'. Requests:
%%   {reload, Class, File}
%%   {compile, durable | ephemeral | precheck, Class, instance | class, Selector, Source}
%%   {evaluate, Class, instance | class, Selector, Source}  (the forms of a module with that one method)
%% Notices, to which nobody has to listen:
%%   {removed, Class, Side, Selector}, {class_removed, Class}
-module(beamtalk_compiler_port).

-export([attach/1, detach/0, is_attached/0, request/3, notify/1]).

-type handler() :: fun((tuple()) -> {ok, term()} | {error, map()} | ok).

-spec attach(handler()) -> ok.
attach(Handler) -> persistent_term:put('$bt_compiler', Handler).

-spec detach() -> ok.
detach() ->
    persistent_term:erase('$bt_compiler'),
    ok.

-spec is_attached() -> boolean().
is_attached() -> persistent_term:get('$bt_compiler', none) =/= none.

%% Answer of the compiler; its exception is raised here.
-spec request(atom(), atom(), tuple()) -> term().
request(Class, Selector, Request) ->
    case persistent_term:get('$bt_compiler', none) of
        none ->
            beamtalk_error:raise(unsupported, Class, Selector,
                <<"No compiler is attached to this node">>);
        Handler ->
            case Handler(Request) of
                {ok, Answer} -> Answer;
                {error, Exception} -> erlang:error(Exception)
            end
    end.

-spec notify(tuple()) -> ok.
notify(Notice) ->
    case persistent_term:get('$bt_compiler', none) of
        none -> ok;
        Handler ->
            Handler(Notice),
            ok
    end.
