%% Primitives of Logger, over Erlang's logger.
-module(beamtalk_logger).

-export(['class debug:'/2, 'class debug:metadata:'/3, 'class info:'/2, 'class info:metadata:'/3,
         'class warn:'/2, 'class warn:metadata:'/3, 'class error:'/2, 'class error:metadata:'/3]).

-spec 'class debug:'(term(), term()) -> nil.
'class debug:'(_Class, Message) -> log(debug, Message, #{}, 'debug:').

-spec 'class debug:metadata:'(term(), term(), term()) -> nil.
'class debug:metadata:'(_Class, Message, Data) -> log(debug, Message, Data, 'debug:metadata:').

-spec 'class info:'(term(), term()) -> nil.
'class info:'(_Class, Message) -> log(info, Message, #{}, 'info:').

-spec 'class info:metadata:'(term(), term(), term()) -> nil.
'class info:metadata:'(_Class, Message, Data) -> log(info, Message, Data, 'info:metadata:').

-spec 'class warn:'(term(), term()) -> nil.
'class warn:'(_Class, Message) -> log(warning, Message, #{}, 'warn:').

-spec 'class warn:metadata:'(term(), term(), term()) -> nil.
'class warn:metadata:'(_Class, Message, Data) -> log(warning, Message, Data, 'warn:metadata:').

-spec 'class error:'(term(), term()) -> nil.
'class error:'(_Class, Message) -> log(error, Message, #{}, 'error:').

-spec 'class error:metadata:'(term(), term(), term()) -> nil.
'class error:metadata:'(_Class, Message, Data) -> log(error, Message, Data, 'error:metadata:').

log(Level, Message, Data, Selector) ->
    beamtalk_argument:dictionary(Data, 'Logger', Selector),
    Fields = maps:map(fun hide_secret/2, Data),
    Location = caller(),
    case logger:allow(Level, ?MODULE) of
        true ->
            Text = beamtalk_display:display(Message),
            logger:log(Level, "~ts", [Text], maps:merge(Location#{beamtalk => Fields}, atom_keys(Fields)));
        false ->
            ok
    end,
    nil.

atom_keys(Fields) ->
    maps:filter(fun(Key, _) -> is_atom(Key) end, Fields).

hide_secret(Key, Value) when is_atom(Key); is_binary(Key) ->
    Name = string:lowercase(beamtalk_display:display(Key)),
    Words = [<<"cookie">>, <<"token">>, <<"secret">>, <<"password">>],
    case lists:any(fun(Word) -> string:find(Name, Word) =/= nomatch end, Words) of
        true -> <<"***">>;
        false -> Value
    end;
hide_secret(_, Value) ->
    Value.

%% The innermost Beamtalk method on the stack.
caller() ->
    {current_stacktrace, Stack} = process_info(self(), current_stacktrace),
    case [Frame || #{receiverClass := Class} = Frame <- beamtalk_stack:frames(Stack),
                   Class =/= nil, Class =/= 'Logger'] of
        [#{receiverClass := Class, method := Method} | _] ->
            #{beamtalk_class => Class, beamtalk_selector => Method};
        [] ->
            #{}
    end.
