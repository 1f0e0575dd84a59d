%% Primitives of Loop, LoopProcess, LoopState and LoopRun: questions to the daemon, which hosts the loop.
-module(beamtalk_loop).

-export(['class isRunning'/1, 'class processes'/1, 'class process:'/2, 'class workflows'/1, 'class events'/1]).
-export(['class run:'/2, 'class run:changed:'/3, 'class state'/1, 'class post:to:'/3, 'class status'/1]).
-export(['class graph'/1, 'class stop'/1]).
-export([process_field/2, process_state/1, process_pid/1, process_uptime/1, process_restarts/1, process_last_exit/1]).
-export([process_start/1, process_stop/1, process_restart/1, process_wait/1, process_tail/2]).
-export([state_at/2, state_at_if_absent/3, state_keys/1, state_dictionary/1]).
-export([run_is_done/1, run_await/1, run_await/2, run_error/1]).

%% As many lines of a process as the loop keeps.
-define(LINES, 1000).

%%% Loop

-spec 'class isRunning'(term()) -> boolean().
'class isRunning'(_Class) ->
    case ask(#{<<"verb">> => <<"is-running">>}) of
        {ok, #{<<"running">> := IsRunning}} -> IsRunning;
        {error, _} -> false
    end.

-spec 'class processes'(term()) -> [map()].
'class processes'(_Class) -> [process(Name) || Name <- names(<<"processes">>, processes)].

-spec 'class process:'(term(), term()) -> map().
'class process:'(_Class, Name) ->
    _ = one(text(Name, 'Loop', 'process:'), 'Loop', 'process:'),
    process(symbol(text(Name, 'Loop', 'process:'))).

process(Name) -> #{'$beamtalk_class' => 'LoopProcess', name => Name}.

-spec 'class workflows'(term()) -> [atom()].
'class workflows'(_Class) -> names(<<"workflows">>, workflows).

-spec 'class events'(term()) -> [atom()].
'class events'(_Class) -> names(<<"events">>, events).

names(Part, Selector) ->
    #{<<"status">> := #{Part := Rows}} = demand(#{<<"verb">> => <<"status">>}, 'Loop', Selector),
    [symbol(Name) || #{<<"name">> := Name} <- Rows].

-spec 'class run:'(term(), term()) -> map().
'class run:'(Class, Name) -> 'class run:changed:'(Class, Name, []).

-spec 'class run:changed:'(term(), term(), term()) -> map().
'class run:changed:'(_Class, Name, Changed) ->
    Workflow = text(Name, 'Loop', 'run:changed:'),
    is_list(Changed) orelse beamtalk_error:type_error('Loop', 'run:changed:', <<"The paths are a List of Strings">>),
    Paths = [text(Path, 'Loop', 'run:changed:') || Path <- Changed],
    Question = #{<<"verb">> => <<"run">>, <<"workflow">> => Workflow, <<"changed">> => Paths},
    result(ask(Question), fun(#{<<"run">> := Number}) ->
        #{'$beamtalk_class' => 'LoopRun', workflow => symbol(Workflow), number => Number}
    end).

-spec 'class state'(term()) -> map().
'class state'(_Class) -> #{'$beamtalk_class' => 'LoopState'}.

-spec 'class post:to:'(term(), term(), term()) -> map().
'class post:to:'(_Class, Value, Event) ->
    Question = #{<<"verb">> => <<"post">>, <<"event">> => text(Event, 'Loop', 'post:to:'),
                 <<"value">> => text(Value, 'Loop', 'post:to:')},
    result(ask(Question), fun(#{<<"changed">> := Changed}) -> Changed end).

-spec 'class status'(term()) -> map().
'class status'(_Class) ->
    #{<<"status">> := Status} = demand(#{<<"verb">> => <<"status">>}, 'Loop', status),
    symbolic(Status).

-spec 'class graph'(term()) -> binary().
'class graph'(_Class) ->
    #{<<"text">> := Text} = demand(#{<<"verb">> => <<"graph">>}, 'Loop', graph),
    Text.

-spec 'class stop'(term()) -> map().
'class stop'(_Class) -> result(ask(#{<<"verb">> => <<"stop">>}), fun(_) -> nil end).

%% The keys of a status are few and the loop's own.
symbolic(Map) when is_map(Map) ->
    maps:from_list([{binary_to_atom(Key), symbolic(Value)} || {Key, Value} <- maps:to_list(Map)]);
symbolic(List) when is_list(List) -> [symbolic(Element) || Element <- List];
symbolic(Value) -> Value.

%%% LoopProcess

-spec process_field(map(), binary()) -> term().
process_field(#{name := Name}, Field) ->
    maps:get(Field, one(atom_to_binary(Name), 'LoopProcess', binary_to_atom(Field)), nil).

one(Name, Class, Selector) ->
    #{<<"process">> := Process} = demand(#{<<"verb">> => <<"process">>, <<"name">> => Name}, Class, Selector),
    Process.

-spec process_state(map()) -> atom().
process_state(Self) -> symbol(process_field(Self, <<"state">>)).

-spec process_pid(map()) -> integer() | nil.
process_pid(Self) -> process_field(Self, <<"pid">>).

-spec process_restarts(map()) -> integer().
process_restarts(Self) -> process_field(Self, <<"restarts">>).

-spec process_uptime(map()) -> term().
process_uptime(Self) ->
    Process = one(atom_to_binary(maps:get(name, Self)), 'LoopProcess', uptime),
    case Process of
        #{<<"pid">> := Pid, <<"since">> := Since} when is_integer(Pid), is_binary(Since) ->
            Began = calendar:rfc3339_to_system_time(binary_to_list(Since), [{unit, millisecond}]),
            beamtalk_duration:make(max(0, erlang:system_time(millisecond) - Began));
        _ -> nil
    end.

-spec process_last_exit(map()) -> map() | nil.
process_last_exit(Self) ->
    case process_field(Self, <<"last_exit">>) of
        nil -> nil;
        Exit -> symbolic(Exit)
    end.

-spec process_start(map()) -> map().
process_start(Self) -> operate(Self, <<"start">>).

-spec process_stop(map()) -> map().
process_stop(Self) -> operate(Self, <<"stop">>).

-spec process_restart(map()) -> map().
process_restart(Self) -> operate(Self, <<"restart">>).

operate(#{name := Name}, Operation) ->
    new_state(ask(#{<<"verb">> => <<"operate">>, <<"name">> => atom_to_binary(Name), <<"operation">> => Operation})).

-spec process_wait(map()) -> map().
process_wait(#{name := Name}) ->
    new_state(ask(#{<<"verb">> => <<"wait-ready">>, <<"name">> => atom_to_binary(Name)})).

new_state(Answer) ->
    result(Answer, fun(#{<<"process">> := #{<<"state">> := State}}) -> symbol(State) end).

-spec process_tail(map(), term()) -> [binary()].
process_tail(#{name := Name}, Count) when is_integer(Count), Count >= 0 ->
    Question = #{<<"verb">> => <<"tail">>, <<"name">> => atom_to_binary(Name), <<"count">> => min(Count, ?LINES)},
    #{<<"lines">> := Lines} = demand(Question, 'LoopProcess', 'tail:'),
    Lines;
process_tail(_, _) -> beamtalk_error:type_error('LoopProcess', 'tail:', <<"The count is an Integer, 0 or more">>).

%%% LoopState

-spec state_at(map(), term()) -> term().
state_at(Self, Key) -> state_at_if_absent(Self, Key, fun() -> nil end).

-spec state_at_if_absent(map(), term(), term()) -> term().
state_at_if_absent(_Self, Key, Block) ->
    beamtalk_argument:block(Block, 0, 'LoopState', 'at:ifAbsent:'),
    Name = text(Key, 'LoopState', 'at:'),
    case values(Name, 'at:') of
        #{Name := Value} -> Value;
        _ -> Block()
    end.

-spec state_keys(map()) -> [binary()].
state_keys(_Self) -> lists:sort(maps:keys(values(nil, keys))).

-spec state_dictionary(map()) -> map().
state_dictionary(_Self) -> values(nil, asDictionary).

values(Key, Selector) ->
    #{<<"state">> := Values} = demand(#{<<"verb">> => <<"state">>, <<"key">> => Key}, 'LoopState', Selector),
    Values.

%%% LoopRun

-spec run_is_done(map()) -> boolean().
run_is_done(Self) ->
    case ending(Self, 0) of
        {ok, #{<<"done">> := IsDone}} -> IsDone;
        {error, _} -> true
    end.

-spec run_await(map()) -> map().
run_await(Self) -> awaited(Self, ending(Self, nil)).

-spec run_await(map(), term()) -> map().
run_await(Self, Ms) when is_integer(Ms), Ms >= 0 -> awaited(Self, ending(Self, Ms));
run_await(_, _) -> beamtalk_error:type_error('LoopRun', 'await:', <<"The time is an Integer of milliseconds">>).

ending(#{number := Number}, Ms) ->
    ask(#{<<"verb">> => <<"await">>, <<"run">> => Number, <<"ms">> => Ms}).

awaited(_, {ok, #{<<"done">> := false}}) ->
    beamtalk_result:failure(loop_timeout, 'LoopRun', 'await:', <<"the workflow has not ended yet">>, nil, #{});
awaited(_, {ok, #{<<"error">> := Text}}) when is_binary(Text) ->
    beamtalk_result:failure(loop_failed, 'LoopRun', await, Text, nil, #{});
awaited(_, {ok, _}) -> beamtalk_result:ok(ok);
awaited(_, {error, Exception}) -> beamtalk_result:error(Exception).

%% Why it failed; nil while it runs and when it succeeded.
-spec run_error(map()) -> binary() | nil.
run_error(Self) ->
    case ending(Self, 0) of
        {ok, #{<<"error">> := Text}} when is_binary(Text) -> Text;
        _ -> nil
    end.

%%% Asking

%% What the evaluation has no right to is no answer of the loop.
ask(Question) ->
    Alone = {loop_not_running, <<"no loop runs here: this is no workspace">>,
             <<"Run it in one: beamtalk loop run --workspace">>},
    case beamtalk_asking:ask(<<"loop">>, Question, Alone) of
        {error, Exception} = Answer ->
            beamtalk_error:field(Exception, kind) =:= loop_forbidden andalso erlang:error(Exception),
            Answer;
        Answer -> Answer
    end.

result(Answer, Make) -> beamtalk_asking:result(Answer, Make).

demand(Question, Class, Selector) -> beamtalk_asking:demand(ask(Question), Class, Selector).

text(Name, Class, Selector) ->
    beamtalk_asking:text(Name, Class, Selector, <<"A name is a Symbol or a String">>).

%% Names that the config declares are few.
symbol(Name) -> binary_to_atom(Name).
