%% Rebuilds a local fun over another environment.
%%
%% The VM offers no way to do that directly, but the external term format of a
%% fun lists its free variables one after another at the end, so new ones can be
%% put in their place.
-module(beamtalk_fun).

-export([with_environment/2]).

-define(VERSION, 131).
-define(NEW_FUN_EXT, 112).

-spec with_environment(fun(), [term()]) -> fun().
with_environment(Fun, Environment) ->
    <<?VERSION, ?NEW_FUN_EXT, _Size:32, Fixed:25/binary, Rest/binary>> = term_to_binary(Fun),
    AfterModule = skip(Rest),
    AfterIndex = skip(AfterModule),
    AfterUniq = skip(AfterIndex),
    AfterPid = skip(AfterUniq),
    Head = binary:part(Rest, 0, byte_size(Rest) - byte_size(AfterPid)),
    Variables = [binary:part(External, 1, byte_size(External) - 1)
                 || Variable <- Environment, External <- [term_to_binary(Variable)]],
    Body = iolist_to_binary([Fixed, Head | Variables]),
    binary_to_term(<<?VERSION, ?NEW_FUN_EXT, (byte_size(Body) + 4):32, Body/binary>>).

%% What follows one external term: an atom, an integer or a pid.
skip(<<119, Length, _:Length/binary, Rest/binary>>) -> Rest;
skip(<<118, Length:16, _:Length/binary, Rest/binary>>) -> Rest;
skip(<<115, Length, _:Length/binary, Rest/binary>>) -> Rest;
skip(<<100, Length:16, _:Length/binary, Rest/binary>>) -> Rest;
skip(<<97, _, Rest/binary>>) -> Rest;
skip(<<98, _:32, Rest/binary>>) -> Rest;
skip(<<110, Length, _, _:Length/binary, Rest/binary>>) -> Rest;
skip(<<88, Rest/binary>>) ->
    <<_:12/binary, After/binary>> = skip(Rest),
    After;
skip(<<103, Rest/binary>>) ->
    <<_:9/binary, After/binary>> = skip(Rest),
    After.
