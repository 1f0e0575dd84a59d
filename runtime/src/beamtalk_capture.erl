%% A group leader that keeps what is written instead of showing it. Reading from it is at the end at
%% once.
-module(beamtalk_capture).

-export([start/0, take/1]).

%% More output than this is cut.
-define(LIMIT, 1048576).

%% Start a capture that lives as long as the calling process.
-spec start() -> pid().
start() ->
    Owner = self(),
    spawn(fun() ->
        Monitor = monitor(process, Owner),
        loop(Monitor, [], 0)
    end).

%% All text so far; the capture starts again from nothing.
-spec take(pid()) -> binary().
take(Capture) ->
    Monitor = monitor(process, Capture),
    Capture ! {take, self(), Monitor},
    receive
        {Monitor, Text} ->
            erlang:demonitor(Monitor, [flush]),
            Text;
        {'DOWN', Monitor, process, _, _} -> <<>>
    end.

loop(Owner, Text, Size) ->
    receive
        {io_request, From, Reply, Request} ->
            {Answer, Added} = request(Request),
            From ! {io_reply, Reply, Answer},
            case Size < ?LIMIT of
                true -> loop(Owner, [Text | Added], Size + iolist_size(Added));
                false -> loop(Owner, Text, Size)
            end;
        {take, From, Reply} ->
            From ! {Reply, iolist_to_binary(Text)},
            loop(Owner, [], 0);
        {'DOWN', Owner, process, _, _} ->
            ok;
        _ ->
            loop(Owner, Text, Size)
    end.

request({put_chars, Encoding, Chars}) -> characters(Encoding, Chars);
request({put_chars, Encoding, Module, Function, Arguments}) ->
    try apply(Module, Function, Arguments) of
        Chars -> characters(Encoding, Chars)
    catch _:_ -> {{error, put_chars}, <<>>}
    end;
request({put_chars, Chars}) -> characters(latin1, Chars);
request({requests, Requests}) -> requests(Requests, ok, []);
request({setopts, _}) -> {ok, <<>>};
request(getopts) -> {[{binary, true}, {encoding, unicode}], <<>>};
request({get_geometry, _}) -> {{error, enotsup}, <<>>};
request(_) -> {eof, <<>>}.

requests([Request | Rest], ok, Text) ->
    {Answer, Added} = request(Request),
    requests(Rest, Answer, [Text | Added]);
requests(_, Answer, Text) -> {Answer, iolist_to_binary(Text)}.

characters(Encoding, Chars) ->
    case unicode:characters_to_binary(Chars, Encoding, unicode) of
        Text when is_binary(Text) -> {ok, Text};
        _ -> {{error, no_translation}, <<>>}
    end.
