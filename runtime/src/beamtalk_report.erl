%% Raised errors as plain data for those who show them: kind, message, hint and frames as text.
-module(beamtalk_report).

-export([caught/3, exception/1, frame/1, print/1]).

-type report() :: #{kind := binary(), class := binary(), tag := binary() | nil, message := binary(),
                    hint := binary() | nil, told := binary(), advice := binary() | nil,
                    printed := binary(), frames := [binary()]}.
-export_type([report/0]).

%% The report of something caught with `Class:Reason:Stack'.
-spec caught(error | exit | throw, term(), list()) -> report().
caught(Class, Reason, Stack) ->
    exception(beamtalk_error:from_caught(Class, Reason, Stack)).

-spec exception(map()) -> report().
exception(#{'$beamtalk_class' := Class} = Exception) ->
    Kind = beamtalk_error:field(Exception, kind),
    {Told, Advice} = beamtalk_error_words:told(Exception),
    #{kind => atom_to_binary(Kind),
      class => atom_to_binary(Class),
      tag => tag(Exception),
      message => text(beamtalk_error:field(Exception, message)),
      hint => optional_text(beamtalk_error:field(Exception, hint)),
      told => text(Told),
      advice => optional_text(Advice),
      printed => printed(Exception),
      frames => frames(Exception)}.

%% The first word of the raw Erlang reason behind an exception.
tag(Exception) ->
    case beamtalk_error:field(Exception, details) of
        #{erlang_error := Reason} -> atom_to_binary(beamtalk_error:erlang_tag(Reason));
        _ -> nil
    end.

text(Text) when is_binary(Text) -> Text;
text(nil) -> <<>>;
text(Other) -> beamtalk_display:native(Other).

optional_text(nil) -> nil;
optional_text(Text) -> text(Text).

%% A class may override printString, and its own method may fail.
printed(Exception) ->
    try beamtalk_display:print(Exception)
    catch _:_ -> beamtalk_display:exception(Exception)
    end.

frames(#{stacktrace := Stack}) ->
    [frame(Frame) || Frame <- beamtalk_stack:frames(Stack)];
frames(_) -> [].

%% `Kettle>>fill: (src/Kettle.bt:12)'; a frame outside any class has only its place.
-spec frame(map()) -> binary().
frame(#{method := Method, receiverClass := Class, file := File, line := Line}) ->
    iolist_to_binary([method(Class, Method), place(File, Line)]).

method(nil, Method) -> name(Method);
method(Class, Method) -> [class_name(Class), ">>", name(Method)].

class_name({beamtalk_object, _, _, Class}) when is_atom(Class) -> atom_to_binary(Class);
class_name(Class) -> name(Class).

name(Name) when is_atom(Name) -> atom_to_binary(Name);
name(Name) when is_binary(Name) -> Name;
name(Name) -> beamtalk_display:native(Name).

place(nil, _) -> [];
place(File, nil) -> [" (", File, ")"];
place(File, Line) -> [" (", File, ":", integer_to_binary(Line), ")"].

%% The printString a session shows. An actor is asked in a process of its own with a short limit, so
%% that a stuck one hangs nobody.
-spec print(term()) -> binary().
print({beamtalk_object, _, _, Place} = Actor) when is_pid(Place) ->
    {Pid, Monitor} = spawn_monitor(fun() -> exit({printed, beamtalk_display:print(Actor)}) end),
    receive
        {'DOWN', Monitor, process, _, {printed, Text}} -> Text;
        {'DOWN', Monitor, process, _, _} -> beamtalk_display:native(Actor)
    after 500 ->
        erlang:demonitor(Monitor, [flush]),
        exit(Pid, kill),
        beamtalk_display:native(Actor)
    end;
print(Value) ->
    beamtalk_display:print(Value).
