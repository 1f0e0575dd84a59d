-module(beamtalk_cluster_tests).

-include("assertions.hrl").

an_address_is_found_among_the_addresses_of_a_certificate_test() ->
    ?assert(beamtalk_cluster:is_host({dns_id, "127.0.0.1"}, {iPAddress, [127, 0, 0, 1]})),
    ?assert(beamtalk_cluster:is_host({dns_id, "127.0.0.1"}, {iPAddress, <<127, 0, 0, 1>>})),
    ?assert(beamtalk_cluster:is_host({dns_id, "::1"}, {iPAddress, <<1:128>>})),
    ?assertNot(beamtalk_cluster:is_host({dns_id, "127.0.0.2"}, {iPAddress, [127, 0, 0, 1]})),
    ?assertNot(beamtalk_cluster:is_host({dns_id, "localhost"}, {iPAddress, [127, 0, 0, 1]})).

names_are_compared_as_always_test() ->
    ?assertEqual(default, beamtalk_cluster:is_host({dns_id, "localhost"}, {dNSName, "localhost"})).
