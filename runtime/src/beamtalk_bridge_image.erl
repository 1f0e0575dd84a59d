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
%% Generated code as text. Nothing of it is run or loaded.
perform(<<"print-forms">>, #{<<"form">> := Form} = Args) ->
    {ok, #{<<"text">> => unicode:characters_to_binary(texts(Form, Args))}};
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

%%% Generated code

texts(Form, Args) ->
    Modules = [binary_to_term(Binary) || Binary <- maps:get(<<"modules">>, Args, [])],
    Expression = case Args of
        #{<<"expression">> := Binary} when is_binary(Binary) -> [expression(binary_to_term(Binary))];
        _ -> []
    end,
    Selector = maps:get(<<"selector">>, Args, nil),
    lists:join("\n", [print(Form, selected(Forms, Selector)) || Forms <- Modules ++ Expression]).

%% An expression prints as the function it would be.
expression(Forms) ->
    [{attribute, 1, module, session},
     {attribute, 1, export, [{run, 0}]},
     {function, 1, run, 0, [{clause, 1, [], [], Forms}]}].

%% The functions of one method, or all.
selected(Forms, nil) -> Forms;
selected(Forms, Selector) ->
    [Form || Form <- Forms, case Form of
        {function, _, Function, _, _} -> belongs(atom_to_binary(Function), Selector);
        _ -> false
    end].

belongs(Selector, Selector) -> true;
belongs(<<"class ", Selector/binary>>, Selector) -> true;
belongs(Function, Selector) ->
    Size = byte_size(Selector),
    case Function of
        <<Selector:Size/binary, " ", _/binary>> -> true;
        _ -> false
    end.

print(<<"core">>, Forms) ->
    case compile:noenv_forms(Forms, [to_core, nowarn_unused_vars]) of
        {ok, _, Core} -> core_pp:format(Core);
        _ -> print(<<"erlang">>, Forms)
    end;
print(_, Forms) ->
    [erl_pp:form(Form, [{encoding, unicode}]) || Form <- Forms].
