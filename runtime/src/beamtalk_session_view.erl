%% Values as a session shows them.
-module(beamtalk_session_view).

-export([shown/3, bindings/3]).

%% Text of a variable in a list of bindings.
-define(BINDING_LIMIT, 1024).

%% The answer of an evaluation: JSON form, text and class of its value. Whoever shows it on so many columns needs no
%% JSON form.
-spec shown(term(), map(), pos_integer()) -> map().
shown(_, #{<<"is_cast">> := true}, _) ->
    #{<<"value">> => nil, <<"text">> => <<>>, <<"class">> => <<"UndefinedObject">>};
shown(Value, #{<<"is_character">> := true}, _) when is_integer(Value) ->
    Text = beamtalk_dispatch:send_as('Character', Value, printString, []),
    #{<<"value">> => Text, <<"text">> => Text, <<"class">> => <<"Character">>};
shown(Value, #{<<"width">> := Width}, Limit) when is_integer(Width) ->
    {Text, IsCut} = beamtalk_bridge_value:cut(beamtalk_layout:text(Value, Width, Limit), Limit),
    marked(IsCut, #{<<"text">> => Text, <<"class">> => class(Value)});
shown(Value, _, Limit) ->
    {Text, IsCut} = beamtalk_bridge_value:cut(beamtalk_report:print(Value), Limit),
    marked(IsCut, #{<<"value">> => beamtalk_bridge_value:json(Value, Text), <<"text">> => Text,
                    <<"class">> => class(Value)}).

marked(true, Shown) -> Shown#{<<"truncated">> => true};
marked(false, Shown) -> Shown.

class(Value) -> atom_to_binary(beamtalk_dispatch:class_name(Value)).

%% Built-in reflection only: a class that prints itself in its own way is not asked.
-spec bindings(ets:tid(), [atom()], map()) -> map().
bindings(Table, Names, #{<<"scope">> := Scope} = Args) when is_binary(Scope) ->
    scoped(Scope, Table, Names, maps:remove(<<"scope">>, Args));
bindings(Table, Names, #{<<"values">> := false}) ->
    #{<<"bindings">> => maps:from_list([{atom_to_binary(Name), #{}} || Name <- Names, ets:member(Table, Name)])};
bindings(Table, Names, _) ->
    Shown = [{atom_to_binary(Name), binding(Value)} || Name <- Names, {_, Value} <- ets:lookup(Table, Name)],
    #{<<"bindings">> => maps:from_list(Shown)}.

%% With whom a name is bound for.
scoped(<<"session">>, Table, Names, Args) -> marked_as(<<"session">>, bindings(Table, Names, Args));
scoped(<<"workspace">>, _, _, Args) -> globals(<<"workspace">>, fun(Name) -> not is_singleton(Name) end, Args);
scoped(<<"global">>, _, _, Args) -> globals(<<"global">>, fun is_singleton/1, Args);
scoped(_, Table, Names, Args) ->
    Parts = [Shown || Scope <- [<<"global">>, <<"workspace">>, <<"session">>],
                      #{<<"bindings">> := Shown} <- [scoped(Scope, Table, Names, Args)]],
    #{<<"bindings">> => lists:foldl(fun(Part, Done) -> maps:merge(Done, Part) end, #{}, Parts)}.

globals(Scope, IsMeant, Args) ->
    Shown = [{atom_to_binary(Name), case Args of #{<<"values">> := false} -> #{}; _ -> binding(Value) end}
             || Name <- beamtalk_workspace:global_names(), IsMeant(Name), {ok, Value} <- [beamtalk_workspace:global(Name)]],
    marked_as(Scope, #{<<"bindings">> => maps:from_list(Shown)}).

marked_as(Scope, #{<<"bindings">> := Shown}) ->
    #{<<"bindings">> => maps:map(fun(_, Binding) -> Binding#{<<"scope">> => Scope} end, Shown)}.

%% Those the workspace itself makes.
is_singleton(Name) -> lists:member(Name, ['Transcript', 'Workspace', 'Beamtalk']).

binding(Value) ->
    {Text, _} = beamtalk_bridge_value:cut(beamtalk_plain:text(Value), ?BINDING_LIMIT),
    #{<<"text">> => Text, <<"class">> => atom_to_binary(beamtalk_plain:class(Value))}.
