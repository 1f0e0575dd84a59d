-module(beamtalk_specs_tests).
-include("assertions.hrl").

%% A type as Erlang writes it, in Beamtalk's words.
type(Text) ->
    {ok, Tokens, _} = erl_scan:string("-type t() :: " ++ Text ++ "."),
    {ok, {attribute, _, type, {t, Type, []}}} = erl_parse:parse_form(Tokens),
    beamtalk_specs:type(Type).

types_test() ->
    [?assertEqual(Expected, type(Text)) || {Text, Expected} <-
        [{"integer()", <<"Integer">>},
         {"0..255", <<"Integer">>},
         {"binary()", <<"String | Binary">>},
         {"[integer()]", <<"List(Integer)">>},
         {"string()", <<"List(Integer)">>},
         {"{atom(), binary()}", <<"Tuple(Symbol, String | Binary)">>},
         {"#{a => integer()}", <<"Dictionary">>},
         {"fun((integer(), atom()) -> float())", <<"Block(Integer, Symbol, Float)">>},
         {"true | false", <<"Boolean">>},
         {"up | down", <<"#up | #down">>},
         {"'Up'", <<"Symbol">>},
         {"integer() | non_neg_integer()", <<"Integer">>},
         {"integer() | term()", <<"Dynamic">>},
         {"timeout()", <<"Integer | #infinity">>},
         {"no_return()", <<"Never">>},
         {"other:t()", <<"Dynamic">>}]].

%% What a call answers is a Result where Erlang answers `ok' and `error'.
results_test() ->
    {ok, Rows} = beamtalk_specs:functions(<<"file">>, []),
    ?assertMatch({_, [{<<"Filename">>, _}], <<"Result(String | Binary, Dynamic)">>},
                 lists:keyfind(<<"read_file">>, 1, Rows)),
    ?assertMatch({_, _, <<"Result(Nil, Dynamic)">>}, lists:keyfind(<<"delete">>, 1, Rows)).

unknown_module_test() ->
    ?assertMatch({error, _}, beamtalk_specs:functions(<<"no_such_module">>, [])).
