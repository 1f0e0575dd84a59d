%% Evaluating one input of a script or session in the calling process, whose session variables it uses.
-module(beamtalk_eval).

-export([input/1, value/1, failed_line/0]).

%% An input as the compiler made it: modules to load first, then an expression. `expression' is the
%% external format of a list of abstract expressions.
-type input() :: #{modules := [{module(), binary()}], expression := binary() | nil,
                   is_character := boolean(), is_cast := boolean()}.
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
expression(#{expression := Forms} = Input) ->
    case value(Forms) of
        {value, Value} ->
            try shown(Value, Input)
            catch Class:Reason:Stack -> raised(beamtalk_error:from_caught(Class, Reason, Stack))
            end;
        {ended, Status} -> {ended, Status};
        {raised, Exception} -> {raised, beamtalk_report:exception(Exception)}
    end.

%% The value of an input, given by the external format of its forms. Session variables hold it, or what was raised,
%% afterwards.
-spec value(binary()) -> {value, term()} | {raised, map()} | {ended, byte()}.
value(Input) ->
    erase('$bt_line'),
    try
        Value = statements(binary_to_term(Input), Input, 1, #{}),
        erase('$bt_line'),
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

%% One by one, so that a failure has a line: walking leaves none in the stack.
statements([Form | Rest], Input, Number, Bindings) ->
    put('$bt_line', erl_anno:line(element(2, Form))),
    case {beamtalk_walk:statement(Form, Input, Number, Bindings), Rest} of
        {{Value, _}, []} -> Value;
        {{_, NewBindings}, _} -> statements(Rest, Input, Number + 1, NewBindings)
    end.

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
