%% A group leader that keeps what the processes of one test write.
%%
%% It answers the Erlang I/O protocol: writes are collected, reads find the end
%% of the input.
-module(beamtalk_test_output).

-export([start/0, stop/1]).

-spec start() -> pid().
start() ->
    spawn(fun() -> loop([]) end).

%% Ends the leader and answers all text written to it.
-spec stop(pid()) -> binary().
stop(Pid) ->
    Monitor = monitor(process, Pid),
    Pid ! {?MODULE, stop, self(), Monitor},
    receive
        {Monitor, Text} ->
            demonitor(Monitor, [flush]),
            Text;
        {'DOWN', Monitor, process, Pid, _} ->
            <<>>
    end.

loop(Written) ->
    receive
        {io_request, From, ReplyAs, Request} ->
            {Reply, Text} = answer(Request),
            From ! {io_reply, ReplyAs, Reply},
            loop([Text | Written]);
        {?MODULE, stop, From, Tag} ->
            From ! {Tag, unicode:characters_to_binary(lists:reverse(Written))};
        _ ->
            loop(Written)
    end.

answer({put_chars, Characters}) ->
    answer({put_chars, latin1, Characters});
answer({put_chars, Module, Function, Args}) ->
    answer({put_chars, latin1, Module, Function, Args});
answer({put_chars, Encoding, Module, Function, Args}) ->
    answer({put_chars, Encoding, apply(Module, Function, Args)});
answer({put_chars, Encoding, Characters}) ->
    case unicode:characters_to_binary(Characters, Encoding) of
        Text when is_binary(Text) -> {ok, Text};
        _ -> {{error, put_chars}, []}
    end;
answer({requests, Requests}) ->
    lists:foldl(fun(Request, {_, Before}) ->
                        {Reply, Text} = answer(Request),
                        {Reply, [Before, Text]}
                end, {ok, []}, Requests);
answer(getopts) ->
    {[{binary, true}, {encoding, unicode}], []};
answer({setopts, _}) ->
    {ok, []};
answer(Request) when element(1, Request) =:= get_geometry ->
    {{error, enotsup}, []};
answer(_) ->
    {eof, []}.
