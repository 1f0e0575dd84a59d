-module(beamtalk_io_tests).
-include("assertions.hrl").

writes_become_text_test() ->
    ?assertEqual({write, <<"grün"/utf8>>}, beamtalk_io:decode({put_chars, unicode, "grün"})),
    ?assertEqual({write, <<"a1b">>}, beamtalk_io:decode({put_chars, unicode, io_lib, format, ["a~bb", [1]]})),
    ?assertEqual({write, <<"ab">>},
                 beamtalk_io:decode({requests, [{put_chars, unicode, "a"}, {put_chars, unicode, "b"}]})),
    ?assertEqual({reply, {error, put_chars}}, beamtalk_io:decode({put_chars, unicode, [bad]})),
    ?assertEqual({reply, {error, put_chars}}, beamtalk_io:decode({put_chars, unicode, erlang, error, [x]})),
    ?assertEqual({reply, {error, request}}, beamtalk_io:decode(nonsense)).

lines_test() ->
    {read, <<"? ">>, Read} = beamtalk_io:decode({get_line, unicode, "? "}),
    ?assertEqual({done, <<"a\n">>, <<"b">>}, beamtalk_io:read(Read, <<"a\nb">>, false)),
    ?assertMatch({more, Read, <<"b">>}, beamtalk_io:read(Read, <<"b">>, false)),
    ?assertEqual({done, <<"b">>, <<>>}, beamtalk_io:read(Read, <<"b">>, true)),
    ?assertEqual({done, eof, <<>>}, beamtalk_io:read(Read, <<>>, true)).

characters_test() ->
    {read, <<>>, Read} = beamtalk_io:decode({get_chars, unicode, '', 2}),
    ?assertEqual({done, <<"gr">>, <<"ün"/utf8>>}, beamtalk_io:read(Read, <<"grün"/utf8>>, false)),
    ?assertMatch({more, _, _}, beamtalk_io:read(Read, <<"g">>, false)),
    ?assertEqual({done, <<"g">>, <<>>}, beamtalk_io:read(Read, <<"g">>, true)).

terms_test() ->
    {read, _, Read} = beamtalk_io:decode({get_until, unicode, <<"t> ">>, erl_scan, tokens, [1]}),
    {more, Rest, <<>>} = beamtalk_io:read(Read, <<"{a,">>, false),
    ?assertMatch({done, {ok, [_ | _], _}, _}, beamtalk_io:read(Rest, <<"1}.\n">>, false)).

prefix_ends_between_characters_test() ->
    ?assertEqual(<<"gr">>, beamtalk_io:prefix(<<"grün"/utf8>>, 3)),
    ?assertEqual(<<"grü"/utf8>>, beamtalk_io:prefix(<<"grün"/utf8>>, 4)),
    ?assertEqual(<<>>, beamtalk_io:prefix(<<"a">>, 0)).
