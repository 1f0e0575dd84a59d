-module(beamtalk_epmd_tests).

-include("assertions.hrl").

a_port_is_named_recorded_or_the_first_test() ->
    Directory = filename:join("/tmp", "beamtalk-epmd-" ++ os:getpid()),
    ok = filelib:ensure_dir(filename:join(Directory, "x")),
    try
        ok = file:write_file(filename:join(Directory, "a@127.0.0.1"), "9107\n"),
        ok = file:write_file(filename:join(Directory, "torn@127.0.0.1"), ""),
        Port = fun(Node, Peers) -> beamtalk_epmd:port_of(Node, Peers, Directory, 9100) end,
        ?assertEqual(9107, Port("a@127.0.0.1", [])),
        ?assertEqual(9100, Port("b@127.0.0.1", [])),
        ?assertEqual(9100, Port("torn@127.0.0.1", [])),
        ?assertEqual(7000, Port("b@far.example", ["a@far.example:1", "b@far.example:7000"])),
        ?assertEqual(7001, Port("b@::1", ["b@::1:7001"]))
    after
        ok = file:del_dir_r(Directory)
    end.

a_node_registers_with_itself_test() ->
    {ok, Creation} = beamtalk_epmd:register_node(lamp, 9123, inet_tcp),
    ?assert(Creation > 3 andalso Creation < 1 bsl 32),
    ?assertEqual(9123, beamtalk_epmd:own_port()).
