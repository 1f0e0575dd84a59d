%% Evaluating one input of a script or session in the calling process, whose session variables it uses.
-module(beamtalk_eval).

-export([input/1, value/2, failed_line/0]).

%% An input as the compiler made it: modules to load first, then an expression. `expression' is the
%% external format of a list of abstract expressions.
-type input() :: #{modules := [{module(), binary()}], expression := binary() | nil,
                   is_character := boolean(), is_cast := boolean(), has_loop := boolean()}.
-type outcome() :: nothing
                 | {value, Printed :: binary(), Displayed :: binary() | nil}
                 | {raised, beamtalk_report:report()}
                 | {refused, binary()}
                 | {ended, Status :: byte()}.
-export_type([input/0, outcome/0]).

-spec input(input()) -> outcome().
input(#{modules := Modules} = Input) ->
    case load(Modules) of
        ok -> expression(Input);
        {error, #{error := _} = Exception} -> raised(Exception);
        {error, Reason} -> {refused, unicode:characters_to_binary(io_lib:format("~0tp", [Reason]))}
    end.

%% A definition may be refused with an exception: its superclass is unknown, or sealed.
load([]) -> ok;
load(Modules) ->
    try beamtalk_class:load_all(Modules)
    catch Class:Reason:Stack -> {error, beamtalk_error:from_caught(Class, Reason, Stack)}
    end.

raised(Exception) ->
    beamtalk_cell:set_session('_error', Exception),
    {raised, beamtalk_report:exception(Exception)}.

expression(#{expression := nil}) -> nothing;
expression(#{expression := Binary, has_loop := HasLoop} = Input) ->
    case value(binary_to_term(Binary), HasLoop) of
        {value, Value} ->
            try shown(Value, Input)
            catch Class:Reason:Stack -> raised(beamtalk_error:from_caught(Class, Reason, Stack))
            end;
        {ended, Status} -> {ended, Status};
        {raised, Exception} -> {raised, beamtalk_report:exception(Exception)}
    end.

%% The value of a list of abstract expressions. Session variables hold it, or what was raised, afterwards.
-spec value([term()], boolean()) -> {value, term()} | {raised, map()} | {ended, byte()}.
value(Forms, HasLoop) ->
    erase('$bt_line'),
    try
        Value = case HasLoop of
            true -> beamtalk_eval_code:run(Forms);
            false -> interpreted(Forms)
        end,
        beamtalk_cell:set_session('_', Value),
        {value, Value}
    catch
        throw:{'$bt_exit', Status} -> {ended, Status};
        Class:Reason:Stack ->
            Exception = beamtalk_error:from_caught(Class, Reason, Stack),
            beamtalk_cell:set_session('_error', Exception),
            {raised, Exception}
    after
        beamtalk_cell:end_evaluation()
    end.

%% Statement by statement, so that a failure has a line: the interpreter leaves none in the stack.
interpreted(Forms) ->
    Value = interpreted(Forms, []),
    erase('$bt_line'),
    Value.

interpreted([Form], Bindings) ->
    put('$bt_line', erl_anno:line(element(2, Form))),
    {value, Value, _} = erl_eval:expr(Form, Bindings),
    Value;
interpreted([Form | Rest], Bindings) ->
    put('$bt_line', erl_anno:line(element(2, Form))),
    {value, _, NewBindings} = erl_eval:expr(Form, Bindings),
    interpreted(Rest, NewBindings).

%% The line of the input's statement that failed, told once.
-spec failed_line() -> pos_integer() | undefined.
failed_line() ->
    case erase('$bt_line') of
        Line when is_integer(Line), Line > 0 -> Line;
        _ -> undefined
    end.

shown(_, #{is_cast := true}) -> nothing;
shown(Value, #{is_character := true}) when is_integer(Value) ->
    {value, beamtalk_dispatch:send_as('Character', Value, printString, []),
     beamtalk_dispatch:send_as('Character', Value, displayString, [])};
shown(Value, _) when is_binary(Value) ->
    {value, beamtalk_report:print(Value), beamtalk_display:display(Value)};
shown(Value, _) when is_atom(Value) ->
    {value, beamtalk_report:print(Value), beamtalk_display:display(Value)};
shown(Value, _) ->
    {value, beamtalk_report:print(Value), nil}.
