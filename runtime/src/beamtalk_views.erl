%% Ways to look at a value that run nothing of the user's: which there are, and a window of one.
%%
%% A view is made in the process that has the value, so only the window leaves it. How rows, texts and figures are
%% written for clients is here; what they say is made by the modules for collections, texts and objects.
-module(beamtalk_views).

-export([names/1, show/3]).
-export([table/3, listing/3, text/3, figures/1, cell/1, plain/1]).

-export_type([source/0, shown/0]).

%% What a cell shows: a value, or a text of ours.
%% One that was made elsewhere comes with its text.
-type cell() :: {value, term()} | {text, binary()} | {number, number()} | {made, map(), binary()}.
%% What a row opens: a step further in, another actor or class, or nothing.
-type open() :: {step, binary() | integer()} | {actor, binary()} | {class, binary()} | none.
-type row() :: {[cell()], open()}.
%% How many rows there are, their order, and those of a window.
-type source() :: #{total := non_neg_integer() | nil, order => sorted | unsorted,
                    rows := fun((non_neg_integer(), non_neg_integer()) -> [row()])}.
-type shown() :: {rows, table | list, [{binary(), text | number | time | object}], source()}
               | {text, binary(), binary()} | {figures, [{binary(), binary(), atom()}]} | {ready, map()}.
-type options() :: #{from := non_neg_integer(), count := pos_integer(), sort := binary() | none,
                     find := binary() | none, node := binary() | none, target := map(), path := list()}.

-define(PAGE_TEXT, 65536).
%% So many rows are put in order or searched.
-define(SORTED, 100000).
-define(CELL, 4096).

%% Name and title of each, the one to show first.
-spec names(term()) -> [{binary(), binary()}].
names(Value) -> maker(Value, names, [Value]).

-spec show(term(), binary(), options()) -> {ok, map()} | unknown.
show(Value, Name, Options) ->
    case lists:keyfind(Name, 1, names(Value)) of
        false -> unknown;
        {_, Title} -> {ok, (written(maker(Value, show, [Name, Value, Options]), Options))#{title => Title}}
    end.

maker(Value, Function, Arguments) -> apply(kind(Value), Function, Arguments).

%% Which module knows the value.
kind(Value) when is_number(Value); is_binary(Value); is_bitstring(Value) -> beamtalk_views_text;
kind(Value) when is_atom(Value), Value =/= nil, not is_boolean(Value) -> beamtalk_views_text;
kind(#{'$beamtalk_class' := Class}) when Class =:= 'DateTime'; Class =:= 'Duration' -> beamtalk_views_text;
kind(#{'$beamtalk_class' := Class}) when Class =:= 'Array'; Class =:= 'Interval'; Class =:= 'Queue'; Class =:= 'Set';
                                         Class =:= 'Bag' -> beamtalk_views_collection;
kind(#{'$beamtalk_class' := _}) -> beamtalk_views_object;
kind(Value) when is_list(Value); is_map(Value) -> beamtalk_views_collection;
kind({Tag, _, _, _}) when Tag =:= beamtalk_object; Tag =:= beamtalk_supervisor -> beamtalk_views_object;
kind(Value) when is_tuple(Value) -> beamtalk_views_collection;
kind(_) -> beamtalk_views_object.

%%% What the others make

-spec table([{binary(), text | number | time | object}], non_neg_integer() | nil,
            fun((non_neg_integer(), non_neg_integer()) -> [row()])) -> shown().
table(Columns, Total, Rows) -> {rows, table, Columns, #{total => Total, rows => Rows}}.

%% Rows that are all there.
-spec listing(table | list, [{binary(), text | number | time | object}], [row()]) -> shown().
listing(Kind, Columns, All) ->
    {rows, Kind, Columns, #{total => length(All), rows => fun(From, Count) -> sublist(All, From, Count) end}}.

-spec text(binary(), binary(), options()) -> shown().
text(Text, Language, _) -> {text, Text, Language}.

-spec figures([{binary(), binary(), atom()}]) -> shown().
figures(Figures) -> {figures, Figures}.

sublist(_, _, 0) -> [];
sublist(All, From, _) when From >= length(All) -> [];
sublist(All, From, Count) -> lists:sublist(All, From + 1, Count).

%%% As clients get it

written({rows, Kind, Columns, Source}, Options) ->
    {Rows, Total, Order, Note} = window(Source, Columns, Options),
    noted(Note, #{kind => Kind, total => Total, order => Order, from => maps:get(from, Options),
                  columns => [#{title => Title, kind => Of} || {Title, Of} <- Columns],
                  rows => [row(Row, Options) || Row <- Rows]});
written({text, Text, Language}, #{from := From}) ->
    Start = min(From, byte_size(Text)),
    {Page, IsEnd} = page(Text, Start),
    #{kind => text, total => byte_size(Text), text => Page, language => Language, from => Start, 'end' => IsEnd};
written({figures, Figures}, _) ->
    #{kind => figures, total => length(Figures),
      figures => [#{name => Name, text => Text, state => State} || {Name, Text, State} <- Figures]};
written({ready, View}, _) -> View.

noted(none, View) -> View;
noted(Note, View) -> View#{note => unicode:characters_to_binary(Note)}.

window(#{total := Total, rows := Rows} = Source, Columns, #{from := From, count := Count, sort := Sort, find := Find}) ->
    Order = maps:get(order, Source, sorted),
    IsLong = is_integer(Total) andalso Total > ?SORTED,
    case {Sort, Find} of
        {none, none} -> {Rows(From, Count), Total, Order, none};
        {_, none} when IsLong ->
            {Rows(From, Count), Total, Order, ["sorting needs all ", grouped(Total), " rows"]};
        _ ->
            All = [Row || {Cells, _} = Row <- Rows(0, ?SORTED), Find =:= none orelse is_found(Find, Cells)],
            Sorted = sorted(Sort, Columns, All),
            Note = case IsLong of
                true -> ["the first ", grouped(?SORTED), " rows were searched"];
                false -> none
            end,
            {sublist(Sorted, From, Count), length(Sorted), Order, Note}
    end.

is_found(Find, Cells) ->
    Wanted = string:casefold(Find),
    lists:any(fun(Cell) -> string:find(string:casefold(plain(Cell)), Wanted) =/= nomatch end, Cells).

sorted(none, _, Rows) -> Rows;
sorted(<<"-", Title/binary>>, Columns, Rows) -> lists:reverse(sorted(Title, Columns, Rows));
sorted(Title, Columns, Rows) ->
    case [At || {At, {Name, _}} <- lists:zip(lists:seq(1, length(Columns)), Columns), Name =:= Title] of
        [At | _] -> [Row || {_, _, Row} <- lists:sort([{key(lists:nth(At, Cells)), N, Row}
                                                      || {N, {Cells, _} = Row} <- lists:zip(lists:seq(1, length(Rows)), Rows)])];
        [] -> beamtalk_image_ops_fields:fail(invalid_parameter, ["the view has no column '", Title, "'"])
    end.

%% Numbers before texts.
key({number, Number}) -> {0, Number};
key({value, Number}) when is_number(Number) -> {0, Number};
key(Cell) -> {1, string:casefold(plain(Cell))}.

row({Cells, Open}, Options) -> #{cells => [cell(Cell) || Cell <- Cells], open => open(Open, Options)}.

-spec cell(cell()) -> map().
cell({value, Value}) ->
    #{text => cut(beamtalk_plain:text(Value)), class => beamtalk_plain:class(Value),
      drillable => beamtalk_inspector:is_drillable(Value)};
cell({made, Cell, _}) -> Cell;
cell(Other) -> #{text => cut(plain(Other)), class => nil, drillable => false}.

-spec plain(cell()) -> binary().
plain({value, Value}) -> beamtalk_plain:text(Value);
plain({text, Text}) -> Text;
plain({made, _, Text}) -> Text;
plain({number, Number}) when is_integer(Number) -> integer_to_binary(Number);
plain({number, Number}) -> float_to_binary(Number, [short]).

cut(Text) -> element(1, beamtalk_bridge_value:cut(Text, ?CELL)).

open(none, _) -> nil;
open({step, Step}, #{target := Target, path := Path}) -> Target#{path => Path ++ [Step]};
open({actor, Pid}, _) -> #{actor => Pid, path => []};
open({class, Class}, _) -> #{class => Class, path => []}.

%% Whole characters from a byte on.
page(Text, Start) ->
    Rest = binary:part(Text, Start, byte_size(Text) - Start),
    case byte_size(Rest) =< ?PAGE_TEXT of
        true -> {whole(Rest), true};
        false -> {whole(binary:part(Rest, 0, ?PAGE_TEXT)), false}
    end.

%% The cut may go through a character, at either end.
whole(<<2#10:2, _:6, Rest/binary>>) -> whole(Rest);
whole(Bytes) ->
    case unicode:characters_to_binary(Bytes) of
        {_, Whole, _} -> Whole;
        Whole -> Whole
    end.

grouped(Number) when Number < 1000 -> integer_to_list(Number);
grouped(Number) -> [grouped(Number div 1000), io_lib:format(",~3..0b", [Number rem 1000])].
