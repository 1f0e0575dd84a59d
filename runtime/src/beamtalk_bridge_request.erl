%% Requests of the daemon that concern no session's variables. Each runs in a process of its own.
-module(beamtalk_bridge_request).

-export([start/4, aside/2, work/3, cancel/1, sweep/1]).

%% What a question about the image may take.
-define(READ_WORDS, 16777216).
-define(READ_TIME, 10000).
%% Requests that change the image or run code of the user: they have limits of their own, or none.
-define(CHANGES, [<<"load">>, <<"remove-method">>, <<"remove-class">>, <<"cluster">>, <<"start-application">>,
                  <<"session-start">>, <<"test">>, <<"test-all">>, <<"kill">>, <<"enable-tracing">>,
                  <<"disable-tracing">>, <<"clear-traces">>, <<"export-traces">>, <<"log-level">>]).

%% Called by the bridge: nothing here waits.
-spec start(beamtalk_bridge:id(), binary() | nil, binary(), map()) -> ok.
start(Id, Session, Op, Args) -> work(Id, fun() -> serve(Id, Session, Op, Args) end, []).

%% Answer a request from a process of its own, within the limits of a question.
-spec aside(beamtalk_bridge:id(), fun(() -> {ok, map()} | {error, map()})) -> ok.
aside(Id, Question) -> work(Id, fun() -> answer(Id, within_limits(Question)) end, []).

%% Whoever works on a request is written down: the guard leaves it alone, and if it is killed the request is answered.
-spec work(beamtalk_bridge:id(), fun(() -> term()), [{priority, high}]) -> ok.
work(Id, Work, Options) ->
    try spawn_opt(Work, Options) of
        Pid ->
            ets:insert(beamtalk_requests, {Id, Pid}),
            %% It may have answered before it was written down.
            is_process_alive(Pid) orelse ets:delete(beamtalk_requests, Id),
            ok
    catch error:system_limit ->
        beamtalk_bridge_writer:send({err, Id, beamtalk_guard:no_process()})
    end.

%% Whoever asked is gone.
-spec cancel(beamtalk_bridge:id()) -> ok.
cancel(Id) ->
    [exit(Pid, kill) || {_, Pid} <- ets:take(beamtalk_requests, Id), not ets:member(beamtalk_keepers, Pid)],
    ok.

%% Answer the requests whose process ended without an answer, if that was so at the last look too.
-spec sweep([beamtalk_bridge:id()]) -> [beamtalk_bridge:id()].
sweep(Suspects) ->
    Dead = [Id || {Id, Pid} <- ets:tab2list(beamtalk_requests), not is_process_alive(Pid)],
    {Lost, Fresh} = lists:partition(fun(Id) -> lists:member(Id, Suspects) end, Dead),
    [beamtalk_bridge_writer:send({err, Id, lost()}) || Id <- Lost],
    Fresh.

lost() ->
    beamtalk_bridge_error:new(<<"interrupted">>, "the process that worked on this was killed",
                              <<"variables are as the last evaluation left them; ask again">>, #{}).

serve(Id, Session, Op, Args) ->
    Answer = case lists:member(Op, ?CHANGES) of
        true -> outcome(Op, Args, Session);
        false -> within_limits(fun() -> outcome(Op, Args, Session) end)
    end,
    answer(Id, Answer).

answer(Id, {ok, Map}) -> beamtalk_bridge:respond(Id, Map);
answer(Id, {error, Error}) -> beamtalk_bridge:refuse(Id, Error).

within_limits(Work) ->
    case beamtalk_limited:run(Work, ?READ_WORDS, ?READ_TIME) of
        {ok, Answer} -> Answer;
        {limit, Limit} -> {error, too_much(Limit)};
        {crashed, Reason} -> {error, beamtalk_bridge_error:of_exception(beamtalk_error:from_caught(exit, Reason, []))}
    end.

too_much(Limit) ->
    Amount = case Limit of
        time -> [integer_to_list(?READ_TIME div 1000), " s"];
        memory -> [integer_to_list(?READ_WORDS * erlang:system_info(wordsize) div 1048576), " MiB"]
    end,
    beamtalk_bridge_error:new(<<"read_limit">>, ["the question took more than ", Amount],
                              <<"ask for less at a time">>, #{<<"limit">> => atom_to_binary(Limit)}).

outcome(Op, Args, Session) ->
    try perform(Op, Args, Session)
    catch Class:Reason:Stack ->
        {error, beamtalk_bridge_error:of_exception(beamtalk_error:from_caught(Class, Reason, Stack))}
    end.

perform(<<"load">>, #{<<"modules">> := Units} = Args, _Session) ->
    beamtalk_bridge_load:load(Units, Args);
perform(<<"remove-method">>, #{<<"class">> := _, <<"selector">> := _} = Args, _) ->
    beamtalk_bridge_change:remove_method(Args);
perform(<<"remove-class">>, #{<<"class">> := _} = Args, _) ->
    beamtalk_bridge_change:remove_class(Args);
perform(<<"cluster">>, Args, _) ->
    beamtalk_cluster:start(Args);
perform(<<"session-start">>, Args, Session) ->
    _ = beamtalk_session_keeper:start(Session, maps:get(<<"kind">>, Args, <<"unknown">>), Args),
    {ok, #{<<"session">> => Session}};
perform(Op, Args, Session) ->
    case beamtalk_bridge_image:perform(Op, Args) of
        unknown -> beamtalk_image_ops:perform(Op, Args, Session);
        Answer -> Answer
    end.
