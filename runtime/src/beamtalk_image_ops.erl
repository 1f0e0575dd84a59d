%% Requests about the image: what is loaded, what runs, and how it behaves. The workspace asks them for its clients.
%%
%% Fields and answers are those of the wire protocol. Requests marked R there run no code of the user: they look at
%% tables, metadata and process information, and print values with beamtalk_plain.
-module(beamtalk_image_ops).

-export([perform/3, names/0]).

%% Perform one request for a session. The caller gives it a process of its own.
-spec perform(binary(), beamtalk_image_ops_fields:fields(), binary() | nil) -> {ok, map()} | {error, map()}.
perform(Op, Fields, Session) ->
    case operations() of
        #{Op := Operation} ->
            try {ok, apply_to(Operation, Fields, Session)}
            catch
                throw:{op_failed, Failure} -> {error, Failure};
                error:#{error := _} = Exception:Stack ->
                    {error, beamtalk_bridge_error:of_exception(beamtalk_error:from_caught(error, Exception, Stack))};
                Class:Reason:Stack -> {error, fault(Class, Reason, Stack)}
            end;
        _ ->
            {error, beamtalk_bridge_error:new(<<"unknown_op">>, ["the node knows no '", Op, "'"])}
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
      <<"browse-class">> => fun beamtalk_image_ops_browse:class/1,
      <<"browse-native-source">> => fun beamtalk_image_ops_browse:native_source/1,
      <<"docs">> => fun beamtalk_image_ops_docs:docs/1,
      <<"erlang-complete">> => fun beamtalk_image_ops_docs:erlang_complete/1,
      <<"actors">> => fun beamtalk_image_ops_actors:actors/1,
      <<"inspect">> => fun beamtalk_image_ops_actors:inspect/2,
      <<"views">> => fun beamtalk_image_ops_views:views/2,
      <<"view">> => fun beamtalk_image_ops_views:view/2,
      <<"pid-stats">> => fun beamtalk_image_ops_actors:pid_stats/1,
      <<"top-actors">> => fun beamtalk_image_ops_actors:top_actors/1,
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
      <<"vitals">> => fun beamtalk_image_ops_tracing:vitals/1,
      <<"health">> => fun beamtalk_image_ops_tracing:health/1,
      <<"work">> => fun beamtalk_image_ops_tracing:work/1}.

%% Something that is our own fault.
fault(Class, Reason, Stack) ->
    beamtalk_bridge_error:new(<<"internal_error">>, "the request failed inside Beamtalk",
                              beamtalk_bridge_error:details(#{reason => {Class, Reason, lists:sublist(Stack, 8)}})).
