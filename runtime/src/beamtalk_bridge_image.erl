%% Requests of the daemon that change the image without a client having named them so: the halves of ops
%% whose other half, compiling and logging, is the daemon's.
-module(beamtalk_bridge_image).

-export([perform/2]).

-spec perform(binary(), map()) -> {ok, map()} | unknown.
%% Start the supervisor of the project's application, unless it runs.
perform(<<"start-application">>, #{<<"class">> := Class}) ->
    Name = class(Class, supervise),
    Supervisor = beamtalk_class:named(Name),
    case beamtalk_dispatch:send(Supervisor, current) of
        nil -> started(beamtalk_dispatch:send(Supervisor, supervise));
        _ -> {ok, #{<<"running">> => true}}
    end;
perform(_, _) ->
    unknown.

started(Result) ->
    case beamtalk_dispatch:send(Result, isOk) of
        true -> {ok, #{<<"running">> => true}};
        _ ->
            Reason = beamtalk_display:native_display(beamtalk_dispatch:send(Result, errReason)),
            beamtalk_error:raise(runtime_error, 'Supervisor', supervise, Reason, nil, #{})
    end.

class(Text, Selector) ->
    case existing(Text) of
        {ok, Name} ->
            case beamtalk_class:exists(Name) of
                true -> Name;
                false -> no_class(Text, Selector)
            end;
        none -> no_class(Text, Selector)
    end.

-spec no_class(binary(), atom()) -> no_return().
no_class(Text, Selector) ->
    beamtalk_error:raise(class_not_found, nil, Selector, <<"there is no class '", Text/binary, "'">>, nil, #{}).

existing(Text) ->
    try {ok, binary_to_existing_atom(Text)} catch error:badarg -> none end.
