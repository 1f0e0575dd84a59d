%% Which versions of a module still have closures. The VM purges old code without asking for them: a block made in it
%% would fail when it is called. It counts them, though, for every fun of a module, in whatever process or table.
-module(beamtalk_fun_count).

-export([probes/2, is_unreferenced/1]).

%% For every fun of the module the external form of a closure over nothing of interest: reading it
%% makes one closure more, and the count tells of the others.
-spec probes(module(), binary()) -> [binary()].
probes(Module, Beam) ->
    Uniq = code:module_md5(Beam),
    case beam_lib:chunks(Beam, ["FunT"], [allow_missing_chunks]) of
        {ok, {_, [{_, <<_:32, Lambdas/binary>>}]}} ->
            [probe(Module, Uniq, Lambda) || <<Lambda:24/binary>> <= Lambdas];
        {ok, {_, [{_, missing_chunk}]}} -> []
    end.

probe(Module, Uniq, <<_Name:32, Arity:32, _Label:32, Index:32, Free:32, OldUniq:32>>) ->
    External = fun(Term) ->
                       <<131, Bare/binary>> = term_to_binary(Term),
                       Bare
               end,
    Body = [<<(Arity - Free), Uniq/binary, Index:32, Free:32>>,
            External(Module), External(Index), External(OldUniq), External(self()),
            [External([]) || _ <- lists:seq(1, Free)]],
    iolist_to_binary([<<131, 112, (iolist_size(Body) + 4):32>>, Body]).

%% Counted in a process of its own, whose end takes the counted closures with it.
-spec is_unreferenced([binary()]) -> boolean().
is_unreferenced([]) -> true;
is_unreferenced(Probes) ->
    {_, Monitor} = spawn_monitor(fun() -> exit({counted, lists:all(fun is_single/1, Probes)}) end),
    receive
        {'DOWN', Monitor, process, _, {counted, IsSingle}} -> IsSingle;
        {'DOWN', Monitor, process, _, _} -> false
    end.

%% One for the module, one for the probe.
is_single(Probe) ->
    {refc, Count} = erlang:fun_info(binary_to_term(Probe), refc),
    Count =< 2.
