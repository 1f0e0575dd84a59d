-module(beamtalk_tls_dist_tests).

-include("assertions.hrl").

%% What a name server would say.
lookup("lamp.example", inet) -> [{10, 0, 0, 7}, {10, 0, 0, 8}];
lookup(_, _) -> [].

hosts(Names, Address) -> beamtalk_tls_dist:hosts_at(Names, Address, fun lookup/2).

only_names_that_lead_to_the_peer_count_test() ->
    Names = [{iPAddress, <<10, 0, 0, 7>>}, {dNSName, "lamp.example"}, {dNSName, "other.example"},
             {directoryName, ignored}],
    ?assertEqual(["10.0.0.7", "lamp.example"], hosts(Names, {10, 0, 0, 7})),
    ?assertEqual(["lamp.example"], hosts(Names, {10, 0, 0, 8})),
    ?assertEqual([], hosts(Names, {10, 0, 0, 9})),
    ?assertEqual([], hosts([], {10, 0, 0, 7})).

addresses_are_compared_as_such_test() ->
    ?assertEqual(["::1"], hosts([{iPAddress, <<1:128>>}], {0, 0, 0, 0, 0, 0, 0, 1})),
    ?assertEqual(["10.0.0.7"], hosts([{iPAddress, <<10, 0, 0, 7>>}], {0, 0, 0, 0, 0, 16#ffff, 16#0a00, 7})),
    ?assertEqual([], hosts([{iPAddress, <<1:128>>}], {127, 0, 0, 1})).

what_was_allowed_narrows_test() ->
    Hosts = ["10.0.0.7", "lamp.example"],
    ?assertEqual(Hosts, beamtalk_tls_dist:common(Hosts, [])),
    ?assertEqual(["lamp.example"], beamtalk_tls_dist:common(Hosts, ['a@lamp.example', 'b@10.0.0.9'])),
    ?assertEqual([], beamtalk_tls_dist:common(Hosts, ["other.example"])).
