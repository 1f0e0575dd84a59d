%% Generated code as text, in a node that lives for one answer and ends with it. Nothing of the code is run or loaded.
-module(beamtalk_printer).

-export([serve/0, text/1]).

%% One request on descriptor 0, its text on descriptor 3.
-spec serve() -> no_return().
serve() ->
    Port = open_port({fd, 0, 3}, [{packet, 4}, binary, eof]),
    receive
        {Port, {data, Frame}} ->
            %% Killed by the limit of its heap it takes the node along.
            {_, Monitor} = spawn_monitor(fun() -> exit({text, text(binary_to_term(Frame))}) end),
            receive
                {'DOWN', Monitor, process, _, {text, Text}} ->
                    port_command(Port, term_to_binary(Text)),
                    halt(0);
                {'DOWN', Monitor, process, _, _} -> halt(1)
            end;
        {Port, eof} -> halt(0)
    end.

-spec text(map()) -> binary().
text(#{<<"form">> := Form} = Args) ->
    Modules = [binary_to_term(Binary) || Binary <- maps:get(<<"modules">>, Args, [])],
    Expression = case Args of
        #{<<"expression">> := Binary} when is_binary(Binary) -> [expression(binary_to_term(Binary))];
        _ -> []
    end,
    Selector = maps:get(<<"selector">>, Args, nil),
    unicode:characters_to_binary(lists:join("\n", [print(Form, selected(Forms, Selector))
                                                   || Forms <- Modules ++ Expression])).

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
