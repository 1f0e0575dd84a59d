%% Requests about the image: what is loaded, what runs, and how it behaves. The workspace asks them for its clients.
%%
%% Fields and answers are those of the wire protocol. Requests marked R there run no code of the user: they look at
%% tables, metadata and process information, and print values with beamtalk_plain.
-module(beamtalk_image_ops).

-export([perform/3, names/0]).

%% `kind' and `message' always; `hint' and `details' when there is something to say.
-type failure() :: #{kind := atom(), message := binary(), hint => binary(), details => map(), atom() => term()}.

-define(MAX_REASON, 4096).

%% Perform one request for a session. The caller gives it a process of its own.
-spec perform(binary(), beamtalk_image_ops_fields:fields(), binary()) -> {ok, map()} | {error, failure()}.
perform(Op, Fields, Session) ->
    case operations() of
        #{Op := Operation} ->
            try {ok, apply_to(Operation, Fields, Session)}
            catch
                throw:{op_failed, Failure} -> {error, compact(Failure)};
                Class:Reason:Stack -> {error, compact(fault(Class, Reason, Stack))}
            end;
        _ ->
            {error, #{kind => unknown_op, message => <<"there is no op '", Op/binary, "'">>}}
    end.

apply_to(Operation, Fields, Session) when is_function(Operation, 2) -> Operation(Fields, Session);
apply_to(Operation, Fields, _) -> Operation(Fields).

%% The ops this node answers.
-spec names() -> [binary()].
names() -> lists:sort(maps:keys(operations())).

operations() ->
    #{<<"info">> => fun beamtalk_image_ops_classes:info/1,
      <<"modules">> => fun beamtalk_image_ops_classes:modules/1,
      <<"list-classes">> => fun beamtalk_image_ops_classes:list_classes/1,
      <<"methods">> => fun beamtalk_image_ops_classes:methods/1,
      <<"unload">> => fun beamtalk_image_ops_classes:unload/1,
      <<"nav-query">> => fun beamtalk_image_ops_classes:nav_query/1,
      <<"nav-symbols">> => fun beamtalk_image_ops_classes:nav_symbols/1,
      <<"browse-classes">> => fun beamtalk_image_ops_browse:classes/1,
      <<"browse-protocols">> => fun beamtalk_image_ops_browse:protocols/1,
      <<"browse-method-source">> => fun beamtalk_image_ops_browse:method_source/1,
      <<"browse-class-definition">> => fun beamtalk_image_ops_browse:class_definition/1,
      <<"browse-native-source">> => fun beamtalk_image_ops_browse:native_source/1,
      <<"docs">> => fun beamtalk_image_ops_docs:docs/1,
      <<"erlang-complete">> => fun beamtalk_image_ops_docs:erlang_complete/1,
      <<"actors">> => fun beamtalk_image_ops_actors:actors/1,
      <<"inspect">> => fun beamtalk_image_ops_actors:inspect/2,
      <<"pid-stats">> => fun beamtalk_image_ops_actors:pid_stats/1,
      <<"supervision-tree">> => fun beamtalk_image_ops_actors:supervision_tree/1,
      <<"kill">> => fun beamtalk_image_ops_actors:kill/1,
      <<"list-tests">> => fun beamtalk_image_ops_testing:list_tests/1,
      <<"test">> => fun beamtalk_image_ops_testing:test/1,
      <<"test-all">> => fun beamtalk_image_ops_testing:test_all/1,
      <<"run-entry">> => fun beamtalk_image_ops_testing:run_entry/1,
      <<"enable-tracing">> => fun beamtalk_image_ops_tracing:enable/1,
      <<"disable-tracing">> => fun beamtalk_image_ops_tracing:disable/1,
      <<"clear-traces">> => fun beamtalk_image_ops_tracing:clear/1,
      <<"get-traces">> => fun beamtalk_image_ops_tracing:traces/1,
      <<"actor-stats">> => fun beamtalk_image_ops_tracing:stats/1,
      <<"export-traces">> => fun beamtalk_image_ops_tracing:export/1,
      <<"log-level">> => fun beamtalk_image_ops_tracing:log_level/1,
      <<"health">> => fun beamtalk_image_ops_tracing:health/1}.

%%% Failures

compact(Failure) ->
    maps:filter(fun(_, Value) -> Value =/= nil andalso Value =/= #{} end, Failure).

%% What the user's code raised, or a fault of our own.
fault(error, #{error := {beamtalk_error, Kind, Class, Selector, Message, Hint, Details}} = Exception, Stack) ->
    #{kind => Kind, message => words(Message), hint => Hint, class => Class, selector => Selector,
      stack => stack(maps:get(stacktrace, Exception, Stack)),
      details => maps:from_list([{detail_name(Key), detail(Value)} || {Key, Value} <- maps:to_list(Details)])};
fault(Class, Reason, Stack) ->
    Text = unicode:characters_to_binary(io_lib:format("~0tp", [{Class, Reason, lists:sublist(Stack, 5)}],
                                                      [{chars_limit, ?MAX_REASON}])),
    #{kind => internal_error, message => <<"this request failed inside Beamtalk">>, details => #{reason => Text}}.

words(Text) when is_binary(Text) -> Text;
words(Term) -> beamtalk_plain:text(Term).

detail_name(Name) when is_atom(Name); is_binary(Name) -> Name;
detail_name(Name) -> beamtalk_plain:text(Name).

detail(Value) when is_binary(Value); is_number(Value); is_atom(Value) -> Value;
detail(Value) -> beamtalk_plain:text(Value).

stack(Stack) ->
    [#{class => Class, selector => Method, file => File, line => Line}
     || #{receiverClass := Class, method := Method, file := File, line := Line} <- beamtalk_stack:frames(Stack)].
