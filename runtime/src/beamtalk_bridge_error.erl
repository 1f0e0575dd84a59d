%% Errors as the daemon and its clients see them: a map with kind, message and what else is known.
-module(beamtalk_bridge_error).

-export([new/2, new/3, new/4, of_exception/1, exception/1, unattached/1, details/1]).

-define(REASON_LIMIT, 4096).
-define(FRAMES, 50).

-spec new(binary(), unicode:chardata()) -> map().
new(Kind, Message) -> new(Kind, Message, nil, #{}).

-spec new(binary(), unicode:chardata(), map()) -> map().
new(Kind, Message, Details) -> new(Kind, Message, nil, Details).

-spec new(binary(), unicode:chardata(), unicode:chardata() | nil, map()) -> map().
new(Kind, Message, Hint, Details) ->
    present(#{<<"kind">> => Kind, <<"message">> => unicode:characters_to_binary(Message),
              <<"hint">> => text(Hint), <<"details">> => Details}).

%% The error of something raised in the image.
-spec of_exception(map()) -> map().
of_exception(Exception) ->
    Frames = frames(Exception),
    Field = fun(Name) -> beamtalk_error:field(Exception, Name) end,
    {Told, Hint} = beamtalk_error_words:told(Exception),
    Standard = message(Exception, Field(message)),
    Message = message(Exception, Told),
    Error = present(#{<<"kind">> => atom_to_binary(Field(kind)),
              <<"message">> => Message,
              <<"class">> => name(Field(errorClass)),
              <<"selector">> => name(Field(selector)),
              <<"hint">> => text(Hint),
              <<"location">> => location(Frames),
              <<"stack">> => Frames,
              <<"details">> => standard(Standard, Message, details(Field(details)))}),
    case Field(details) of
        #{wire_error := Wire} -> maps:merge(Error, Wire);
        _ -> Error
    end.

%% What programs see as the message goes with what a person is told instead.
standard(Message, Message, Details) -> Details;
standard(Standard, _, Details) -> Details#{<<"standard_message">> => Standard}.

message(_, Message) when is_binary(Message) -> Message;
message(#{'$beamtalk_class' := Class}, nil) -> atom_to_binary(Class);
message(_, Other) -> beamtalk_display:native_display(Other).

name(nil) -> nil;
name(Name) when is_atom(Name) -> atom_to_binary(Name);
name(Name) when is_binary(Name) -> Name;
name(_) -> nil.

text(nil) -> nil;
text(Text) when is_binary(Text) -> Text;
text(Text) when is_list(Text) -> unicode:characters_to_binary(Text);
text(Other) -> beamtalk_display:native_display(Other).

present(Map) -> maps:filter(fun(_, Value) -> Value =/= nil end, Map).

frames(#{stacktrace := Stack}) ->
    [frame(Frame) || Frame <- lists:sublist(beamtalk_stack:frames(Stack), ?FRAMES)];
frames(_) -> [].

frame(#{method := Method, receiverClass := Class, file := File, line := Line}) ->
    present(#{<<"class">> => class_name(Class), <<"selector">> => name(Method),
              <<"file">> => File, <<"line">> => Line}).

class_name({beamtalk_object, _, _, Class}) when is_atom(Class) -> atom_to_binary(Class);
class_name(Class) -> name(Class).

location([#{<<"file">> := File, <<"line">> := Line} | _]) -> #{<<"file">> => File, <<"line">> => Line};
location([_ | Rest]) -> location(Rest);
location([]) -> nil.

%% Details hold whatever the raiser put there; an Erlang reason is printed, and cut.
-spec details(term()) -> map().
details(Details) when is_map(Details) ->
    maps:from_list([{key(Key), detail(Key, Value)} || {Key, Value} <- maps:to_list(Details), Key =/= wire_error]);
details(_) -> #{}.

key(Key) when is_atom(Key) -> key_name(atom_to_binary(Key));
key(Key) when is_binary(Key) -> Key;
key(Key) -> beamtalk_display:native(Key).

key_name(<<"erlang_error">>) -> <<"reason">>;
key_name(Name) -> Name.

detail(Key, Value) when Key =:= erlang_error; Key =:= reason -> reason(Value);
detail(_, Value) -> beamtalk_bridge_value:bounded(Value, fun() -> printed(Value) end).

%% Printing runs methods of the image, which may fail.
printed(Value) ->
    try cut(beamtalk_display:print(Value))
    catch _:_ -> reason(Value)
    end.

reason(Text) when is_binary(Text) -> cut(Text);
reason(Reason) -> cut(unicode:characters_to_binary(io_lib:format("~0tP", [Reason, 200]))).

cut(Text) -> element(1, beamtalk_bridge_value:cut(Text, ?REASON_LIMIT)).

%% The exception that the daemon's error becomes in the image.
-spec exception(map()) -> map().
exception(#{<<"kind">> := Kind, <<"message">> := Message} = Error) ->
    Known = fun(Key) -> maps:get(Key, Error, nil) end,
    %% The kinds that the daemon knows are few.
    beamtalk_error:new(binary_to_atom(Kind), existing(Known(<<"class">>)),
                       existing(Known(<<"selector">>)), Message, Known(<<"hint">>), #{wire_error => Error});
exception(_) ->
    beamtalk_error:new(internal_error, nil, nil, <<"the daemon answered without a reason">>, nil, #{}).

existing(nil) -> nil;
existing(Name) ->
    try binary_to_existing_atom(Name) catch error:badarg -> nil end.

-spec unattached(binary()) -> map().
unattached(Op) ->
    beamtalk_error:new(unsupported, nil, nil, <<"'", Op/binary, "' needs the workspace's daemon">>, nil, #{}).
