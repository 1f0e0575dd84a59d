%% Primitives of WorkspaceInterface. What concerns files and the change log is an op of the daemon.
-module(beamtalk_workspace_interface).

-export(['class current'/1, actors/1, 'actorAt:'/2, classes/1, globals/1, sessions/1]).
-export([sync/1, 'load:'/2, 'newClass:at:'/3, changes/1, recheckImage/1, dependencies/1]).
-export([flush/1, 'flush:confirmDestructive:'/3, flushIncludingDestructive/1, autoflush/1, 'autoflush:'/2]).
-export(['unbind:'/2, supervisor/1, 'startSupervisor:'/2, 'stopSupervisor:'/2, supervisors/1]).
-export([ask/3, flushed/1]).

-define(CLASS, 'WorkspaceInterface').

-spec 'class current'(term()) -> map() | nil.
'class current'(_Class) ->
    case beamtalk_workspace:is_live() of
        true -> #{'$beamtalk_class' => ?CLASS};
        false -> nil
    end.

%%% The image

-spec actors(map()) -> [tuple()].
actors(_Self) -> [Actor || {_, Class, _, _} = Actor <- beamtalk_actor_class:all(), Class =/= 'TranscriptStream'].

-spec 'actorAt:'(map(), term()) -> tuple() | nil.
'actorAt:'(_Self, Text) when is_binary(Text) ->
    Wanted = string:trim(Text, both, "<>"),
    case [Actor || {_, _, _, Pid} = Actor <- beamtalk_actor_class:all(), is_pid(Pid),
                   beamtalk_plain:pid(Pid) =:= Wanted] of
        [Actor | _] -> Actor;
        [] -> nil
    end;
'actorAt:'(_Self, _) -> type_error('actorAt:', <<"The id of a process is a String">>).

-spec classes(map()) -> [tuple()].
classes(_Self) ->
    [beamtalk_class:named(Name) || Name <- beamtalk_class:all(),
                                   #{source_file := File, package := Package} <- [beamtalk_class:record(Name)],
                                   File =/= nil, Package =/= <<"stdlib">>].

-spec globals(map()) -> map().
globals(_Self) -> #{'$beamtalk_class' => 'BindingsView', scope => globals}.

-spec sessions(map()) -> [map()].
sessions(_Self) ->
    beamtalk_workspace:require(?CLASS, sessions),
    [Session || Id <- beamtalk_session_keeper:all(), Session <- [beamtalk_session:of_id(Id)], Session =/= nil].

-spec 'unbind:'(map(), term()) -> nil.
'unbind:'(_Self, Name) when is_atom(Name) ->
    case beamtalk_workspace:unbind(Name) of
        ok -> nil;
        none -> beamtalk_error:raise(name_not_found, ?CLASS, 'unbind:',
                                     <<"No name '", (atom_to_binary(Name))/binary, "' is bound">>, nil, #{})
    end;
'unbind:'(_Self, _) -> type_error('unbind:', <<"A name is a Symbol">>).

%%% Ops of the daemon

%% The answer of an op; its error is raised here.
-spec ask(binary(), map(), atom()) -> map().
ask(Op, Args, Selector) ->
    beamtalk_workspace:require(?CLASS, Selector),
    case beamtalk_bridge:ask(Op, Args) of
        {ok, Answer} -> Answer;
        {error, #{error := Error} = Exception} ->
            Located = case Error of
                {_, _, nil, _, _, _, _} -> setelement(4, setelement(3, Error, ?CLASS), Selector);
                _ -> Error
            end,
            erlang:error(Exception#{error := renamed(Selector, Located)})
    end.

%% What tools call a file that is missing has another name here.
renamed('load:', {_, file_not_found, _, _, _, _, _} = Error) -> of_kind(not_found, Error);
renamed(sync, {_, file_not_found, _, _, _, _, _} = Error) -> of_kind(runtime_error, Error);
renamed(_, Error) -> Error.

of_kind(Kind, Error) -> setelement(7, setelement(2, Error, Kind), #{}).

-spec sync(map()) -> map().
sync(_Self) ->
    Answer = ask(<<"load-project">>, #{}, sync),
    Count = fun(Key) -> maps:get(Key, Answer, 0) end,
    #{summary => maps:get(<<"summary">>, Answer, <<>>), classes => class_objects(Answer),
      errors => maps:get(<<"errors">>, Answer, []), changedCount => Count(<<"changed_count">>),
      unchangedCount => Count(<<"unchanged_count">>), deletedCount => Count(<<"deleted_count">>)}.

-spec 'load:'(map(), term()) -> [tuple()].
'load:'(_Self, Path) when is_binary(Path) ->
    Answer = ask(<<"load-file">>, #{<<"path">> => Path}, 'load:'),
    case maps:get(<<"errors">>, Answer, []) of
        [] -> class_objects(Answer);
        [First | _] ->
            Message = maps:get(<<"message">>, First, <<"the file could not be loaded">>),
            beamtalk_error:raise(compile_failed, ?CLASS, 'load:', Message, maps:get(<<"hint">>, First, nil), #{})
    end;
'load:'(_Self, _) -> type_error('load:', <<"A path is a String">>).

-spec 'newClass:at:'(map(), term(), term()) -> [tuple()].
'newClass:at:'(_Self, Source, Path) when is_binary(Source), is_binary(Path) ->
    class_objects(ask(<<"save-class">>, #{<<"source">> => Source, <<"path">> => Path}, 'newClass:at:'));
'newClass:at:'(_Self, _, _) -> type_error('newClass:at:', <<"Source and path are Strings">>).

class_objects(Answer) ->
    [Class || Name <- maps:get(<<"classes">>, Answer, []), {ok, Class} <- [known_class(Name)]].

known_class(Name) ->
    try beamtalk_class:find(binary_to_existing_atom(Name))
    catch error:badarg -> none
    end.

-spec changes(map()) -> map().
changes(_Self) -> beamtalk_change_log:current().

-spec recheckImage(map()) -> map().
recheckImage(_Self) ->
    Answer = ask(<<"recheck-image">>, #{}, recheckImage),
    #{checked => maps:get(<<"checked">>, Answer, 0), stale => maps:get(<<"stale">>, Answer, 0),
      findings => maps:get(<<"findings">>, Answer, [])}.

-spec flush(map()) -> map().
flush(_Self) -> flushed(ask(<<"flush">>, #{}, flush)).

-spec 'flush:confirmDestructive:'(map(), term(), term()) -> map().
'flush:confirmDestructive:'(_Self, Filter, Confirmed) when is_boolean(Confirmed) ->
    Args = (filter(Filter))#{<<"confirm_destructive">> => Confirmed},
    flushed(ask(<<"flush">>, Args, 'flush:'));
'flush:confirmDestructive:'(_Self, _, _) ->
    type_error('flush:confirmDestructive:', <<"The confirmation is a Boolean">>).

filter({beamtalk_object, _, _, Class}) when is_atom(Class) -> #{<<"class">> => atom_to_binary(Class)};
filter(#{file := File}) when is_binary(File) -> #{<<"file">> => File};
filter(Kind) when is_atom(Kind), Kind =/= nil, not is_boolean(Kind) -> #{<<"kind">> => atom_to_binary(Kind)};
filter(_) -> type_error('flush:', <<"A filter is a class, the Symbol of a kind, or #{#file => path}">>).

-spec flushIncludingDestructive(map()) -> map().
flushIncludingDestructive(_Self) ->
    flushed(ask(<<"flush">>, #{<<"confirm_destructive">> => true}, flushIncludingDestructive)).

%% The answer of a flush as the image knows it.
-spec flushed(map()) -> map().
flushed(Answer) ->
    Part = fun(Key, Default) -> maps:get(Key, Answer, Default) end,
    #{flushed => Part(<<"flushed">>, 0), files => [file_name(File) || File <- Part(<<"files">>, [])],
      merged => Part(<<"merged">>, []), newClasses => count(Part(<<"new_classes">>, 0)),
      removedClasses => count(Part(<<"removed_classes">>, 0)),
      skipped => [symbols(Entry) || Entry <- Part(<<"skipped">>, [])],
      conflicts => [symbols(Entry) || Entry <- Part(<<"conflicts">>, [])]}.

file_name(#{<<"file">> := Name}) -> Name;
file_name(Name) -> Name.

%% Clients get the names; the image gets how many there are.
count(Names) when is_list(Names) -> length(Names);
count(Count) -> Count.

symbols(Entry) when is_map(Entry) ->
    maps:from_list([{symbol(Key), case Key of <<"reason">> -> symbol(Value); _ -> Value end}
                    || {Key, Value} <- maps:to_list(Entry)]);
symbols(Entry) -> Entry.

%% Names the daemon chooses are few.
symbol(Name) when is_binary(Name), byte_size(Name) < 64 -> binary_to_atom(Name);
symbol(Name) -> Name.

-spec autoflush(map()) -> boolean().
autoflush(_Self) -> maps:get(<<"value">>, ask(<<"autoflush">>, #{}, autoflush), false).

-spec 'autoflush:'(map(), term()) -> boolean().
'autoflush:'(_Self, Value) when is_boolean(Value) ->
    maps:get(<<"value">>, ask(<<"autoflush">>, #{<<"value">> => Value}, 'autoflush:'), Value);
'autoflush:'(_Self, _) -> type_error('autoflush:', <<"The setting is a Boolean">>).

-spec dependencies(map()) -> map().
dependencies(_Self) ->
    Named = case beamtalk_package:project() of
        none -> [];
        Project -> beamtalk_package:'class dependencies:'(nil, Project)
    end,
    maps:from_list([{Name, Package} || Name <- Named, Package <- [beamtalk_package:find(Name)], Package =/= nil]).

%%% Supervisors

-spec supervisor(map()) -> tuple() | nil.
supervisor(_Self) ->
    beamtalk_workspace:require(?CLASS, supervisor),
    case beamtalk_workspace:supervisors() of
        [Root | _] -> Root;
        [] -> nil
    end.

-spec supervisors(map()) -> [tuple()].
supervisors(_Self) ->
    beamtalk_workspace:require(?CLASS, supervisors),
    beamtalk_workspace:supervisors().

-spec 'startSupervisor:'(map(), term()) -> tuple().
'startSupervisor:'(_Self, {beamtalk_object, _, _, Name} = Class) when is_atom(Name) ->
    check_supervisor(Name, 'startSupervisor:'),
    beamtalk_workspace:require(?CLASS, 'startSupervisor:'),
    case beamtalk_workspace:start_supervisor(Class) of
        {ok, Supervisor} -> Supervisor;
        {error, Exception} -> erlang:error(Exception)
    end;
'startSupervisor:'(_Self, _) -> type_error('startSupervisor:', <<"The argument is a Supervisor class">>).

-spec 'stopSupervisor:'(map(), term()) -> nil.
'stopSupervisor:'(_Self, {beamtalk_object, _, _, Name}) when is_atom(Name) ->
    check_supervisor(Name, 'stopSupervisor:'),
    beamtalk_workspace:require(?CLASS, 'stopSupervisor:'),
    case beamtalk_workspace:stop_supervisor(Name) of
        ok -> nil;
        none -> beamtalk_error:raise(runtime_error, ?CLASS, 'stopSupervisor:',
                                     <<(atom_to_binary(Name))/binary, " is not running">>, nil, #{})
    end;
'stopSupervisor:'(_Self, _) -> type_error('stopSupervisor:', <<"The argument is a Supervisor class">>).

check_supervisor(Name, Selector) ->
    beamtalk_class:inherits(Name, 'Supervisor') orelse beamtalk_class:inherits(Name, 'DynamicSupervisor')
        orelse type_error(Selector, <<"The argument is a Supervisor class">>).

-spec type_error(atom(), binary()) -> no_return().
type_error(Selector, Hint) -> beamtalk_error:type_error(?CLASS, Selector, Hint).
