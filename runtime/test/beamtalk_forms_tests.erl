-module(beamtalk_forms_tests).
-include("assertions.hrl").

forms(Source) ->
    {ok, Tokens, _} = erl_scan:string(Source),
    {Groups, []} = lists:foldl(fun
        ({dot, _} = Dot, {Done, Current}) -> {[lists:reverse([Dot | Current]) | Done], []};
        (Token, {Done, Current}) -> {Done, [Token | Current]}
    end, {[], []}, Tokens),
    term_to_binary([begin {ok, Form} = erl_parse:parse_form(Group), Form end || Group <- lists:reverse(Groups)]).

compiles_forms_test() ->
    Source = "-module(bt_forms_sample). -export([answer/0]). answer() -> 42.",
    {ok, bt_forms_sample, Beam} = beamtalk_forms:compile(forms(Source)),
    {module, _} = code:load_binary(bt_forms_sample, "sample", Beam),
    ?assertEqual(42, bt_forms_sample:answer()).

terms_as_they_are_become_literals_test() ->
    Term = #{name => <<"Zoë"/utf8>>, list => [1, {2.5, #{}}], deep => lists:seq(1, 1000)},
    Function = {function, 1, meta, 0, [{clause, 1, [], [], [{value, 1, Term}]}]},
    Other = {function, 1, none, 0, [{clause, 1, [], [], [{nil, 1}]}]},
    Forms = [{attribute, 1, module, bt_forms_literal}, {attribute, 1, export, [{meta, 0}, {none, 0}]}, Function, Other],
    [begin
         {ok, bt_forms_literal, Beam} = beamtalk_forms:compile_read(Forms, Options),
         {module, _} = code:load_binary(bt_forms_literal, "literal", Beam),
         ?assertEqual(Term, bt_forms_literal:meta()),
         ?assertEqual(Term, beamtalk_code:literal(meta, Forms, none)),
         ?assertEqual([], bt_forms_literal:none()),
         %% It is in the module once.
         {ok, {_, [{"Dbgi", Debug}]}} = beam_lib:chunks(Beam, ["Dbgi"]),
         ?assert(byte_size(Debug) < 500),
         true = code:delete(bt_forms_literal),
         code:purge(bt_forms_literal)
     end || Options <- [[], [no_fold, no_alias, no_ssa_opt, no_postopt]]],
    ?assertEqual(undefined, get(beamtalk_forms)).

faults_are_lines_of_text_test() ->
    {error, Text} = beamtalk_forms:compile(forms("-module(bt_forms_bad). f() -> X.")),
    ?assertNot(binary:match(Text, <<"variable 'X' is unbound">>) =:= nomatch).

damaged_forms_are_refused_test() ->
    ?assertMatch({error, _}, beamtalk_forms:compile(<<1, 2, 3>>)).

parallel_reports_every_item_once_test() ->
    Items = lists:seq(1, 50),
    Self = self(),
    ok = beamtalk_forms:parallel(Items, {4, fun(N) -> N * N end}, fun(N, R) -> Self ! {done, N, R} end),
    Results = [receive {done, N, R} -> R after 0 -> missing end || N <- Items],
    ?assertEqual([N * N || N <- Items], Results).

a_crash_is_the_result_of_its_item_test() ->
    Self = self(),
    ok = beamtalk_forms:parallel([1, 2], {2, fun(1) -> exit(kaputt); (N) -> N end},
                                 fun(N, R) -> Self ! {done, N, R} end),
    receive {done, 1, Result} -> ?assertMatch({error, _}, Result) after 0 -> error(missing) end,
    receive {done, 2, 2} -> ok after 0 -> error(missing) end.

writes_whole_files_test() ->
    Path = filename:join(os:getenv("TMPDIR", "/tmp"), "beamtalk_forms_" ++ os:getpid()),
    ok = beamtalk_forms:write(Path, <<"content">>),
    ?assertEqual({ok, <<"content">>}, file:read_file(Path)),
    ok = file:delete(Path),
    ?assertMatch({error, _}, beamtalk_forms:write("/nonexistent/directory/file", <<>>)).
