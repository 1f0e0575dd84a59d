%% Runs the tests of a module. EUnit ends a test after five seconds, which a busy machine takes to load a compiler; here
%% a limit of time only ends what hangs. A test with a limit of its own keeps it.
-module(beamtalk_eunit).

-export([main/1]).

-define(SECONDS, 60).

-spec main(module()) -> no_return().
main(Module) ->
    logger:set_primary_config(level, none),
    ok = application:start(beamtalk),
    Exports = [Name || {Name, 0} <- Module:module_info(exports)],
    Ends = fun(Name, End) -> lists:suffix(End, atom_to_list(Name)) end,
    Simple = [{timeout, ?SECONDS, {Module, Name}} || Name <- Exports, Ends(Name, "_test")],
    Generated = [{generator, fun() -> patient(Module:Name()) end} || Name <- Exports, Ends(Name, "_test_")],
    io:format("~s~n", [Module]),
    halt(case eunit:test({atom_to_list(Module), Simple ++ Generated}) of ok -> 0; error -> 1 end).

patient(Tests) when is_list(Tests) -> [patient(Test) || Test <- Tests];
patient({timeout, _, _} = Test) -> Test;
patient({Line, Test}) when is_integer(Line), is_function(Test) -> {timeout, ?SECONDS, {Line, Test}};
patient({Module, Name} = Test) when is_atom(Module), is_atom(Name) -> {timeout, ?SECONDS, Test};
patient({foreach, Setup, Cleanup, Tests}) -> {foreach, Setup, Cleanup, [given(Test) || Test <- Tests]};
patient({setup, _, _, _} = Test) -> last(Test, fun given/1);
patient({setup, _, _} = Test) -> last(Test, fun given/1);
patient(Test) when is_tuple(Test) -> last(Test, fun patient/1);
patient(Test) when is_function(Test, 0) -> {timeout, ?SECONDS, Test}.

given(Test) when is_function(Test, 1) -> fun(Value) -> patient(Test(Value)) end;
given(Test) -> patient(Test).

last(Test, Change) -> setelement(tuple_size(Test), Test, Change(element(tuple_size(Test), Test))).
