%% Views of everything that is no collection, text or number: actors, classes, exceptions, tables, values.
-module(beamtalk_views_object).

-export([names/1, show/3]).

-import(beamtalk_views, [table/3, listing/3, figures/1]).

%% Messages of a mailbox that are shown, and how many may wait at most for that.
-define(MESSAGES, 50).
-define(WAITING, 1000).
%% Rows of a table of the VM that are read at once.
-define(CHUNK, 1000).

-spec names(term()) -> [{binary(), binary()}].
names({beamtalk_object, _, _, Class}) when is_atom(Class) ->
    [{<<"definition">>, <<"Definition">>}, {<<"methods">>, <<"Methods">>}, {<<"hierarchy">>, <<"Hierarchy">>},
     {<<"instances">>, <<"Instances">>}, {<<"state">>, <<"Class state">>}, {<<"comment">>, <<"Comment">>}];
names({beamtalk_object, _, _, _}) -> process_views();
names({beamtalk_supervisor, _, _, _}) -> tl(process_views());
names(#{'$beamtalk_class' := 'Result'} = Result) ->
    Inner = inner(Result),
    [{<<"result">>, <<"Result">>} | [{<<"inside ", Name/binary>>, Title} || {Name, Title} <- beamtalk_views:names(Inner)]];
names(#{'$beamtalk_class' := 'Ets', table := Table}) ->
    [{<<"rows">>, <<"Rows">>} || is_readable(Table)] ++ [{<<"info">>, <<"Info">>}];
names(#{'$beamtalk_class' := 'Stream'}) -> [{<<"pipeline">>, <<"Pipeline">>}];
names(#{'$beamtalk_class' := _, error := _} = Value) ->
    case beamtalk_error:is_exception(Value) of
        true -> [{<<"message">>, <<"Message and hint">>}, {<<"frames">>, <<"Frames">>}, {<<"details">>, <<"Details">>}]
                    ++ [{<<"receiver">>, <<"Receiver and arguments">>} || beamtalk_error:retained(Value) =/= none];
        false -> fields_view()
    end;
names(#{'$beamtalk_class' := _}) -> fields_view();
names(Value) when is_function(Value) -> [{<<"block">>, <<"Block">>}];
names(Value) when is_pid(Value) -> [{<<"process">>, <<"Process">>}];
names(_) -> [{<<"text">>, <<"Text">>}].

process_views() ->
    [{<<"state">>, <<"State">>}, {<<"mailbox">>, <<"Mailbox">>}, {<<"process">>, <<"Process">>},
     {<<"traffic">>, <<"Traffic">>}, {<<"children">>, <<"Children">>}, {<<"path">>, <<"Path to the root">>}].

fields_view() -> [{<<"fields">>, <<"Fields">>}].

-spec show(binary(), term(), map()) -> beamtalk_views:shown().
show(Name, {beamtalk_object, _, _, Class}, Options) when is_atom(Class) -> of_class(Name, Class, Options);
show(<<"state">>, {beamtalk_object, _, _, _} = Actor, _) ->
    slots(beamtalk_image_ops_target:with_state(Actor, fun() -> shown_slots(Actor) end));
show(Name, {beamtalk_object, _, _, Target}, _) -> of_process(Name, beamtalk_actor:resolve(Target));
show(Name, {beamtalk_supervisor, _, _, Pid}, _) -> of_process(Name, Pid);
show(Name, Pid, _) when is_pid(Pid) -> of_process(Name, Pid);
show(<<"result">>, #{isOk := IsOk} = Result, _) ->
    {Word, State} = case IsOk of true -> {<<"ok">>, ok}; _ -> {<<"error">>, danger} end,
    figures([{Word, beamtalk_plain:text(inner(Result)), State}]);
show(<<"inside ", Name/binary>>, #{isOk := IsOk} = Result, #{path := Path} = Options) ->
    Step = case IsOk of true -> <<"okValue">>; _ -> <<"errReason">> end,
    {ok, View} = beamtalk_views:show(inner(Result), Name, Options#{path := Path ++ [Step]}),
    {ready, View};
show(<<"rows">>, #{table := Table}, _) ->
    Rows = fun(From, Count) -> [{[{value, Element} || Element <- tuple_to_list(Row)], none}
                                || Row <- table_rows(Table, From, Count)] end,
    Width = case Rows(0, 1) of [{Cells, _}] -> length(Cells); [] -> 2 end,
    Titles = lists:sublist([<<"key">>, <<"value">>] ++ [integer_to_binary(N) || N <- lists:seq(3, Width)], Width),
    {rows, table, [{Title, object} || Title <- Titles], #{total => ets:info(Table, size), order => unsorted, rows => Rows}};
show(<<"info">>, #{name := Name, table := Table}, _) ->
    Known = case ets:info(Table) of
        undefined -> [{<<"status">>, {text, <<"deleted">>}}];
        Info ->
            Owner = proplists:get_value(owner, Info),
            [{<<"type">>, {value, proplists:get_value(type, Info)}}, {<<"size">>, {number, proplists:get_value(size, Info)}},
             {<<"memory">>, {number, proplists:get_value(memory, Info) * erlang:system_info(wordsize)}},
             {<<"protection">>, {value, proplists:get_value(protection, Info)}}, {<<"owner">>, {text, beamtalk_plain:pid(Owner)}}]
    end,
    facts([{<<"name">>, {value, Name}} | Known]);
show(<<"pipeline">>, #{text := Text}, Options) -> beamtalk_views:text(Text, <<"text">>, Options);
show(<<"message">>, Exception, _) ->
    Field = fun(Name) -> beamtalk_error:field(Exception, Name) end,
    figures([{<<"kind">>, beamtalk_plain:label(Field(kind)), danger}, {<<"message">>, beamtalk_plain:label(Field(message)), nil}]
            ++ [{<<"hint">>, beamtalk_plain:label(Hint), nil} || Hint <- [Field(hint)], Hint =/= nil]);
show(<<"frames">>, Exception, _) ->
    Frames = beamtalk_stack:frames(maps:get(stacktrace, Exception, [])),
    listing(table, [{<<"class">>, text}, {<<"method">>, text}, {<<"file">>, text}, {<<"line">>, number}],
            [{[{text, class_text(Class)}, {text, beamtalk_plain:label(Method)}, {text, optional(File)}, line(Line)], class_open(Class)}
             || #{receiverClass := Class, method := Method, file := File, line := Line} <- Frames]);
show(<<"details">>, Exception, _) ->
    case beamtalk_error:field(Exception, details) of
        #{} = Details -> pairs(lists:sort(maps:to_list(Details)), fun(_) -> none end);
        _ -> pairs([], fun(_) -> none end)
    end;
show(<<"receiver">>, Exception, _) ->
    {Receiver, Arguments} = beamtalk_error:retained(Exception),
    Rows = [{receiver, Receiver} | lists:zip([binary_to_list(<<"argument ", (integer_to_binary(N))/binary>>) || N <- lists:seq(1, length(Arguments))], Arguments)],
    listing(table, [{<<"what">>, text}, {<<"value">>, object}],
            [{[{text, unicode:characters_to_binary(io_lib:format("~ts", [What]))}, {value, Value}], none} || {What, Value} <- Rows]);
show(<<"block">>, Block, _) ->
    {module, Module} = erlang:fun_info(Block, module),
    {name, Function} = erlang:fun_info(Block, name),
    Place = case beamtalk_class:of_module(Module) of
        {ok, Class} ->
            {_, Method} = beamtalk_stack:method_of(Function),
            iolist_to_binary([atom_to_binary(Class), ">>", beamtalk_plain:label(Method)]);
        none -> <<"the session">>
    end,
    figures([{<<"arguments">>, integer_to_binary(beamtalk_block:arity(Block)), nil}, {<<"written in">>, Place, nil}]);
show(<<"fields">>, Value, _) -> slots(shown_slots(Value));
show(<<"text">>, Value, Options) -> beamtalk_views:text(beamtalk_plain:text(Value), <<"text">>, Options).

%%% Fields

%% In the order of their declaration where that is known. The cells are made where the values are.
shown_slots(Value) ->
    {_, _, Entries} = beamtalk_inspector:look(Value),
    [{beamtalk_plain:label(Name), beamtalk_views:cell({value, Inner}), beamtalk_plain:text(Inner)} || {Name, Inner} <- declared(Value, Entries)].

declared({beamtalk_object, Class, _, _}, Entries) ->
    case beamtalk_class:record(Class) of
        #{} ->
            Order = [Name || Class1 <- lists:reverse([Class | ancestors(Class)]), #{name := Name} <- own_slots(Class1)],
            Known = [Entry || Name <- Order, {Slot, _} = Entry <- Entries, Slot =:= Name],
            Known ++ (Entries -- Known);
        _ -> Entries
    end;
declared(_, Entries) -> Entries.

own_slots(Class) ->
    case beamtalk_class:meta(Class) of
        #{slots := Slots} -> Slots;
        _ -> []
    end.

ancestors(Class) ->
    case beamtalk_dispatch:info(Class) of
        #{ancestors := Ancestors} -> Ancestors;
        _ -> []
    end.

slots(Shown) ->
    listing(table, [{<<"name">>, text}, {<<"value">>, object}],
            [{[{text, Name}, {made, Cell, Text}], {step, Name}} || {Name, Cell, Text} <- Shown]).

facts(Rows) -> listing(table, [{<<"what">>, text}, {<<"value">>, object}], [{[{text, Name}, Cell], none} || {Name, Cell} <- Rows]).

pairs(Pairs, Open) ->
    listing(table, [{<<"key">>, object}, {<<"value">>, object}],
            [{[{text, beamtalk_plain:label(Key)}, {value, Value}], Open(Key)} || {Key, Value} <- Pairs]).

inner(#{isOk := true, okValue := Value}) -> Value;
inner(#{errReason := Reason}) -> Reason.

optional(nil) -> <<>>;
optional(Text) -> Text.

line(nil) -> {text, <<>>};
line(Line) -> {number, Line}.

class_text({beamtalk_object, _, _, Class}) when is_atom(Class) -> <<(atom_to_binary(Class))/binary, " class">>;
class_text(nil) -> <<>>;
class_text(Class) -> beamtalk_plain:label(Class).

class_open({beamtalk_object, _, _, Class}) when is_atom(Class) -> {class, atom_to_binary(Class)};
class_open(Class) when is_atom(Class), Class =/= nil -> {class, atom_to_binary(Class)};
class_open(_) -> none.

%%% Classes

of_class(<<"definition">>, Class, Options) ->
    #{definition := Text} = beamtalk_image_ops_browse:class_definition(#{<<"class">> => atom_to_binary(Class)}),
    beamtalk_views:text(unicode:characters_to_binary(Text), <<"beamtalk">>, Options);
of_class(<<"comment">>, Class, Options) ->
    Text = case beamtalk_reflect:class_doc(beamtalk_class:named(Class)) of
        Doc when is_binary(Doc) -> Doc;
        _ -> <<>>
    end,
    beamtalk_views:text(Text, <<"markdown">>, Options);
of_class(<<"methods">>, Class, _) ->
    Sides = [{<<"instance">>, beamtalk_class:named(Class)}, {<<"class">>, beamtalk_reflect:metaclass(Class)}],
    listing(table, [{<<"selector">>, text}, {<<"side">>, text}, {<<"line">>, number}],
            [{[{text, atom_to_binary(Selector)}, {text, Side}, line(maps:get(line, beamtalk_reflect:method_info(Behaviour, Selector), nil))], none}
             || {Side, Behaviour} <- Sides, Selector <- lists:sort(beamtalk_reflect:own_selectors(Behaviour))]);
of_class(<<"hierarchy">>, Class, _) ->
    Above = lists:reverse(ancestors(Class)),
    Below = lists:sort([Name || Name <- beamtalk_class:all(), #{superclass := Super} <- [beamtalk_class:record(Name)], Super =:= Class]),
    Row = fun(Name, What) -> {[{text, atom_to_binary(Name)}, {text, What}], {class, atom_to_binary(Name)}} end,
    listing(table, [{<<"class">>, text}, {<<"is">>, text}],
            [Row(Name, <<"above">>) || Name <- Above] ++ [Row(Class, <<"this class">>)] ++ [Row(Name, <<"below">>) || Name <- Below]);
of_class(<<"instances">>, Class, _) ->
    listing(list, [{<<"actor">>, object}],
            [{[{value, Actor}], {actor, beamtalk_plain:pid(Pid)}} || {_, Actual, _, Pid} = Actor <- beamtalk_actor_class:all(), Actual =:= Class, is_pid(Pid)]);
of_class(<<"state">>, Class, _) ->
    pairs(lists:sort(maps:to_list(beamtalk_class_state:variables(Class))), fun(_) -> none end).

%%% Processes

of_process(_, undefined) -> facts([{<<"status">>, {text, <<"dead">>}}]);
of_process(<<"mailbox">>, Pid) ->
    Columns = [{<<"number">>, number}, {<<"message">>, object}],
    case process_info(Pid, message_queue_len) of
        {_, Length} when Length > ?WAITING ->
            {rows, list, Columns, Source} = listing(list, Columns, []),
            {rows, list, Columns, Source#{total := Length}};
        {_, Length} ->
            {messages, Messages} = case process_info(Pid, messages) of undefined -> {messages, []}; Some -> Some end,
            Shown = lists:sublist(Messages, ?MESSAGES),
            {rows, list, Columns, Source} = listing(list, Columns, [{[{number, N}, {value, Message}], none}
                                                                    || {N, Message} <- lists:zip(lists:seq(1, length(Shown)), Shown)]),
            {rows, list, Columns, Source#{total := Length}};
        undefined -> of_process(<<"mailbox">>, undefined)
    end;
of_process(<<"process">>, Pid) ->
    Items = [status, message_queue_len, memory, reductions, total_heap_size, current_function, initial_call, registered_name,
             links, monitors, priority, trap_exit],
    case process_info(Pid, Items) of
        undefined -> of_process(<<"process">>, undefined);
        Facts -> facts([{atom_to_binary(Name), {text, unicode:characters_to_binary(io_lib:format("~0tP", [Value, 40]))}} || {Name, Value} <- Facts])
    end;
of_process(<<"traffic">>, Pid) ->
    #{stats := Stats} = beamtalk_image_ops_tracing:stats(#{}),
    Own = [Row || #{<<"actor">> := Actor} = Row <- Stats, Actor =:= beamtalk_plain:pid(Pid)],
    Keys = [<<"selector">>, <<"calls">>, <<"ok">>, <<"errors">>, <<"timeouts">>, <<"avg_duration_ns">>, <<"max_duration_ns">>],
    listing(table, [{Key, case Key of <<"selector">> -> text; _ -> number end} || Key <- Keys],
            [{[counted(maps:get(Key, Row, nil)) || Key <- Keys], none} || Row <- Own]);
of_process(<<"children">>, Pid) ->
    listing(table, [{<<"actor">>, text}, {<<"class">>, text}, {<<"kind">>, text}],
            [tree_row(Row) || #{parent := Parent} = Row <- tree(), Parent =:= beamtalk_plain:pid(Pid)]);
of_process(<<"path">>, Pid) ->
    Rows = maps:from_list([{Node, Row} || #{pid := Node} = Row <- tree()]),
    listing(table, [{<<"actor">>, text}, {<<"class">>, text}, {<<"kind">>, text}],
            [tree_row(Row) || Row <- up(beamtalk_plain:pid(Pid), Rows, 100)]).

counted(Number) when is_number(Number) -> {number, Number};
counted(Text) when is_binary(Text) -> {text, Text};
counted(Other) -> {text, beamtalk_plain:label(Other)}.

tree() ->
    #{nodes := Nodes} = beamtalk_image_ops_actors:supervision_tree(#{}),
    Nodes.

up(nil, _, _) -> [];
up(_, _, 0) -> [];
up(Pid, Rows, Left) ->
    case Rows of
        #{Pid := #{parent := Parent} = Row} -> up(Parent, Rows, Left - 1) ++ [Row];
        _ -> []
    end.

tree_row(#{pid := Pid, class := Class, kind := Kind}) ->
    {[{text, Pid}, {text, class_text(Class)}, {text, beamtalk_plain:label(Kind)}], {actor, Pid}}.

%%% Tables of the VM

is_readable(Table) ->
    case {ets:info(Table, protection), ets:info(Table, owner)} of
        {undefined, _} -> false;
        {private, Owner} -> Owner =:= self();
        _ -> true
    end.

%% By continuing from the start: a table has no places to jump to.
table_rows(Table, From, Count) ->
    true = ets:safe_fixtable(Table, true),
    try skip(ets:select(Table, [{'$1', [], ['$1']}], ?CHUNK), From, Count)
    after ets:safe_fixtable(Table, false)
    end.

skip('$end_of_table', _, _) -> [];
skip({Rows, Next}, From, Count) when From >= length(Rows) -> skip(ets:select(Next), From - length(Rows), Count);
skip({Rows, Next}, From, Count) ->
    Part = lists:sublist(lists:nthtail(From, Rows), Count),
    case Count - length(Part) of
        0 -> Part;
        Left -> Part ++ skip(ets:select(Next), 0, Left)
    end.
