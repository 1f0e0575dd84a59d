%% Views of collections: their elements, and what can be drawn of them.
-module(beamtalk_views_collection).

-export([names/1, show/3]).

%% So many are looked at to find out what a collection holds.
-define(LOOKED, 50).
-define(NUMBERS, 1000).
%% So many points are sent.
-define(POINTS, 5000).
-define(BINS, 30).

-spec names(term()) -> [{binary(), binary()}].
names(#{'$beamtalk_class' := 'Bag'}) -> [{<<"elements">>, <<"Elements">>}];
names(Value) ->
    {_, EntryKind, _, _, First} = beamtalk_window:look(Value, 0, ?NUMBERS),
    Values = [Element || {_, Element} <- First],
    Some = lists:sublist(Values, ?LOOKED),
    case EntryKind of
        association ->
            [{<<"entries">>, <<"Entries">>} | [{<<"tree">>, <<"Tree">>} || lists:any(fun is_nested/1, Some)]];
        _ ->
            [{<<"elements">>, <<"Elements">>}]
                ++ [{<<"table">>, <<"Table">>} || columns(Some) =/= none]
                ++ [View || Values =/= [], lists:all(fun erlang:is_number/1, Values),
                            View <- [{<<"chart">>, <<"Chart">>}, {<<"histogram">>, <<"Histogram">>}]]
                ++ [{<<"tree">>, <<"Tree">>} || lists:any(fun is_nested/1, Some)]
    end.

is_nested(Value) when is_list(Value) -> Value =/= [];
is_nested(Value) when is_map(Value) -> not is_map_key('$beamtalk_class', Value);
is_nested(_) -> false.

-spec show(binary(), term(), map()) -> beamtalk_views:shown().
show(<<"elements">>, Value, _) -> entries(list, <<"index">>, Value);
show(<<"entries">>, Value, _) -> entries(table, <<"key">>, Value);
show(<<"table">>, Value, _) ->
    {_, _, _, Total, First} = beamtalk_window:look(Value, 0, 1),
    Columns = columns([Element || {_, Element} <- First]),
    Row = fun({Name, Element}) -> {[{number, Name} | [field(Column, Element) || Column <- Columns]], {step, Name}} end,
    beamtalk_views:table([{<<"index">>, number} | [{beamtalk_plain:label(Column), object} || Column <- Columns]], Total,
                         fun(From, Count) -> [Row(Entry) || Entry <- part(Value, From, Count)] end);
show(<<"chart">>, Value, _) ->
    {Points, Of} = thinned(Value),
    {ready, chart(<<"line">>, <<"index">>, Points, length(Points), Of)};
show(<<"histogram">>, Value, _) ->
    {Bins, Of} = bins(Value),
    {ready, chart(<<"histogram">>, <<"value">>, Bins, Of, Of)};
show(<<"tree">>, Value, #{node := Node} = Options) ->
    Parent = case Node of
        none -> [];
        _ -> way(Node)
    end,
    {ready, tree(below(Parent, Value), Parent, Node, Options)}.

%%% Entries

%% Of a Bag, its elements with how many there are.
entries(Kind, Title, Value) ->
    {_, EntryKind, Order, Total, _} = beamtalk_window:look(Value, 0, 0),
    Name = case EntryKind of
        association -> fun(Key) -> {value, Key} end;
        _ -> fun(Key) when is_integer(Key) -> {number, Key};
                (Key) -> {value, Key}
             end
    end,
    Rows = fun(From, Count) ->
                   [{[Name(Key), {value, Element}], {step, beamtalk_image_ops_target:step(EntryKind, Key)}}
                    || {Key, Element} <- part(Value, From, Count)]
           end,
    Named = case EntryKind of
        association -> object;
        _ -> number
    end,
    {rows, Kind, [{Title, Named}, {second(Value), object}], #{total => Total, order => Order, rows => Rows}}.

second(#{'$beamtalk_class' := 'Bag'}) -> <<"count">>;
second(_) -> <<"value">>.

part(Value, From, Count) ->
    {_, _, _, _, Entries} = beamtalk_window:look(Value, From, Count),
    Entries.

%% Keys of Dictionaries, fields of Values of one class.
columns([]) -> none;
columns([#{'$beamtalk_class' := Class} = First | _] = Some) ->
    case beamtalk_dispatch:info(Class) of
        #{kind := value} ->
            IsSame = fun(#{'$beamtalk_class' := Other}) -> Other =:= Class;
                        (_) -> false
                     end,
            case lists:all(IsSame, Some) andalso beamtalk_value:field_names(First) of
                [_ | _] = Names -> Names;
                _ -> none
            end;
        _ -> none
    end;
columns([First | _] = Some) when is_map(First), map_size(First) > 0 ->
    case lists:all(fun(One) -> is_map(One) andalso not is_map_key('$beamtalk_class', One) end, Some) of
        true -> lists:sublist(lists:sort(maps:keys(First)), ?LOOKED);
        false -> none
    end;
columns(_) -> none.

field(Column, Element) when is_map_key(Column, Element) -> {value, map_get(Column, Element)};
field(_, _) -> {text, <<>>}.

%%% Charts

%% Every number of a collection in its order, without making a list of them.
fold(Fun, Acc, List) when is_list(List) -> fold_list(List, Fun, Acc);
fold(Fun, Acc, #{'$beamtalk_class' := 'Interval', from := From, step := Step} = Interval) ->
    fold_steps(beamtalk_interval:size(Interval), From, Step, Fun, Acc);
fold(Fun, Acc, #{'$beamtalk_class' := 'Array', data := Data}) -> fold_array(1, map_size(Data), Data, Fun, Acc);
fold(Fun, Acc, #{'$beamtalk_class' := 'Set', elements := Elements}) -> fold_list(Elements, Fun, Acc);
fold(Fun, Acc, Value) ->
    {_, _, _, Total, _} = beamtalk_window:look(Value, 0, 0),
    fold_list([Element || {_, Element} <- part(Value, 0, Total)], Fun, Acc).

fold_list([Number | Rest], Fun, Acc) when is_number(Number) -> fold_list(Rest, Fun, Fun(Number, Acc));
fold_list([_ | Rest], Fun, Acc) -> fold_list(Rest, Fun, Acc);
fold_list([], _, Acc) -> Acc.

fold_steps(0, _, _, _, Acc) -> Acc;
fold_steps(Left, Number, Step, Fun, Acc) -> fold_steps(Left - 1, Number + Step, Step, Fun, Fun(Number, Acc)).

fold_array(At, Last, _, _, Acc) when At > Last -> Acc;
fold_array(At, Last, Data, Fun, Acc) ->
    Next = case Data of
        #{At := Number} when is_number(Number) -> Fun(Number, Acc);
        _ -> Acc
    end,
    fold_array(At + 1, Last, Data, Fun, Next).

total(Value) ->
    {_, _, _, Total, _} = beamtalk_window:look(Value, 0, 0),
    Total.

%% The least and the greatest of each part, so that no peak is lost.
thinned(Value) ->
    Total = total(Value),
    Size = case Total =< ?POINTS of
        true -> 1;
        false -> (Total * 2 + ?POINTS - 1) div ?POINTS
    end,
    Take = fun(Number, {Count, Left, none, Done}) -> place(Count + 1, Left, {{Count + 1, Number}, {Count + 1, Number}}, Done, Size);
              (Number, {Count, Left, {Least, Greatest}, Done}) ->
                   One = {Count + 1, Number},
                   place(Count + 1, Left, {least(One, Least), greatest(One, Greatest)}, Done, Size)
           end,
    {Count, _, Open, Done} = fold(Take, {0, Size, none, []}, Value),
    {[{X, small(Y)} || {X, Y} <- lists:reverse(closed(Open, Done))], Count}.

%% One number more in a part, which may be full then.
place(Count, 1, Part, Done, Size) -> {Count, Size, none, closed(Part, Done)};
place(Count, Left, Part, Done, _) -> {Count, Left - 1, Part, Done}.

closed(none, Done) -> Done;
closed({One, One}, Done) -> [One | Done];
closed({{X1, _} = Least, {X2, _} = Greatest}, Done) when X1 < X2 -> [Greatest, Least | Done];
closed({Least, Greatest}, Done) -> [Least, Greatest | Done].

least({_, New} = One, {_, Known}) when New < Known -> One;
least(_, Known) -> Known.

greatest({_, New} = One, {_, Known}) when New > Known -> One;
greatest(_, Known) -> Known.

%% What a floating-point number can hold.
small(Number) when is_float(Number) -> Number;
small(Number) when abs(Number) < 1 bsl 1000 -> float(Number);
small(Number) when Number < 0 -> -1.0e300;
small(_) -> 1.0e300.

%% How many fall into each part of the range, by where the part begins.
bins(Value) ->
    Ends = fun(Number, none) -> {Number, Number, 1};
              (Number, {Least, Greatest, Count}) -> {min(Number, Least), max(Number, Greatest), Count + 1}
           end,
    case fold(Ends, none, Value) of
        none -> {[], 0};
        {Least, Greatest, Count} -> {bins(small(Least), small(Greatest), Count, Value), Count}
    end.

bins(Least, Least, Count, _) -> [{Least, Count}];
bins(Least, Greatest, _, Value) ->
    Width = (Greatest - Least) / ?BINS,
    Counts = counters:new(?BINS, []),
    fold(fun(Number, ok) -> counters:add(Counts, min(?BINS, 1 + trunc((small(Number) - Least) / Width)), 1) end, ok, Value),
    [{Least + (Bin - 1) * Width, counters:get(Counts, Bin)} || Bin <- lists:seq(1, ?BINS)].

chart(Mark, Title, Points, Shown, Of) ->
    #{kind => chart, total => Of, mark => Mark, x => #{title => Title, kind => <<"number">>}, y => #{title => <<"value">>},
      series => [#{name => <<"values">>, x => [X || {X, _} <- Points], y => [Y || {_, Y} <- Points]}],
      shown => Shown, 'of' => Of}.

%%% Trees

%% The steps to a node, as one text.
node_of(Steps) -> beamtalk_json:'class generate:'(nil, Steps).

way(Node) ->
    case beamtalk_json:decode(Node) of
        {ok, Steps} when is_list(Steps) ->
            lists:all(fun(Step) -> is_binary(Step) orelse is_integer(Step) end, Steps) orelse unknown(Node),
            Steps;
        _ -> unknown(Node)
    end.

-spec unknown(binary()) -> no_return().
unknown(Node) -> beamtalk_image_ops_fields:fail(invalid_parameter, ["the tree has no node '", Node, "'"]).

below([], Value) -> Value;
below([Step | Rest], Value) ->
    {_, EntryKind, _, Total, _} = beamtalk_window:look(Value, 0, 0),
    Found = case Step of
        Index when is_integer(Index), Index > 0, Index =< Total, EntryKind =/= association ->
            part(Value, Index - 1, 1);
        _ -> [Entry || {Key, _} = Entry <- part(Value, 0, Total), beamtalk_image_ops_target:step(EntryKind, Key) =:= Step]
    end,
    case Found of
        [{_, Inner} | _] -> below(Rest, Inner);
        [] -> unknown(node_of([Step | Rest]))
    end.

tree(Value, Parent, Node, #{from := From, count := Count, target := Target, path := Path}) ->
    {_, EntryKind, _, Total, Entries} = beamtalk_window:look(Value, From, Count),
    Nodes = [begin
                 Steps = Parent ++ [beamtalk_image_ops_target:step(EntryKind, Key)],
                 Text = iolist_to_binary([beamtalk_plain:text(Key), ": ", beamtalk_plain:text(Inner)]),
                 #{node => node_of(Steps), parent => case Node of none -> nil; _ -> Node end,
                   text => element(1, beamtalk_bridge_value:cut(Text, 4096)), class => beamtalk_plain:class(Inner),
                   has_children => is_nested(Inner), open => Target#{path => Path ++ Steps}}
             end || {Key, Inner} <- Entries],
    #{kind => tree, total => Total, from => From, nodes => Nodes}.
