%% The protocol of Collection for every collection, native or user-defined.
%%
%% `fold/3' visits the elements of any collection: native representations are
%% turned into a list (an Interval into a short one at a time), all others are sent `do:'. Searches stop early through a
%% non-local return, so they also end on a collection whose `do:' never does.
-module(beamtalk_collection).

-export(['class withAll:'/2, 'inject:into:'/3, 'collect:'/2, 'select:'/2, 'reject:'/2,
         'detect:'/2, 'detect:ifNone:'/3, 'anySatisfy:'/2, 'noneSatisfy:'/2, 'allSatisfy:'/2, 'count:'/2, sum/1,
         max/1, min/1, average/1, 'eachWithIndex:'/2, 'do:separatedBy:'/3, asList/1, anyOne/1,
         'includes:'/2, 'parallelCollect:'/2, 'parallelCollect:maxConcurrency:'/3]).
-export([elements/1, fold/3, find/3, class_name/1, member/2, position/2, are_equal/2, rebuild/2,
         filter/4, native_elements/1]).

-define(INTERVAL, #{'$beamtalk_class' := 'Interval'}).
-define(DETECT_HINT, <<"Use detect:ifNone: to supply a default">>).

%%% Selectors

-spec 'class withAll:'(term(), term()) -> list().
'class withAll:'(Self, List) ->
    beamtalk_argument:list(List, class_named(Self), 'withAll:').

-spec 'inject:into:'(term(), term(), term()) -> term().
'inject:into:'(Self, Initial, Block) ->
    beamtalk_argument:block(Block, 2, class_name(Self), 'inject:into:'),
    fold(fun(Element, Acc) -> Block(Acc, Element) end, Initial, Self).

-spec 'collect:'(term(), term()) -> term().
'collect:'(Self, Block) ->
    beamtalk_argument:block(Block, 1, class_name(Self), 'collect:'),
    rebuild(Self, [Block(Element) || Element <- elements(Self)]).

-spec 'select:'(term(), term()) -> term().
'select:'(Self, Block) ->
    rebuild(Self, filter(Self, Block, true, 'select:')).

-spec 'reject:'(term(), term()) -> term().
'reject:'(Self, Block) ->
    rebuild(Self, filter(Self, Block, false, 'reject:')).

-spec 'detect:'(term(), term()) -> term().
'detect:'(Self, Block) ->
    case find(Self, Block, 'detect:') of
        {value, Element} -> Element;
        none -> beamtalk_error:raise(not_found, class_name(Self), 'detect:', ?DETECT_HINT)
    end.

-spec 'detect:ifNone:'(term(), term(), term()) -> term().
'detect:ifNone:'(Self, Block, None) ->
    beamtalk_argument:block(None, 0, class_name(Self), 'detect:ifNone:'),
    case find(Self, Block, 'detect:ifNone:') of
        {value, Element} -> Element;
        none -> None()
    end.

-spec 'anySatisfy:'(term(), term()) -> boolean().
'anySatisfy:'(Self, Block) ->
    find(Self, Block, 'anySatisfy:') =/= none.

-spec 'noneSatisfy:'(term(), term()) -> boolean().
'noneSatisfy:'(Self, Block) ->
    find(Self, Block, 'noneSatisfy:') =:= none.

-spec 'allSatisfy:'(term(), term()) -> boolean().
'allSatisfy:'(Self, Block) ->
    Class = class_name(Self),
    beamtalk_argument:block(Block, 1, Class, 'allSatisfy:'),
    Fails = fun(Element) -> not beamtalk_argument:boolean(Block(Element), Class, 'allSatisfy:') end,
    find(Self, Fails, 'allSatisfy:') =:= none.

-spec 'count:'(term(), term()) -> non_neg_integer().
'count:'(Self, Block) ->
    Class = class_name(Self),
    beamtalk_argument:block(Block, 1, Class, 'count:'),
    fold(fun(Element, Count) ->
                 case beamtalk_argument:boolean(Block(Element), Class, 'count:') of
                     true -> Count + 1;
                     false -> Count
                 end
         end, 0, Self).

-spec sum(term()) -> number().
sum(?INTERVAL = Self) ->
    beamtalk_interval:sum(Self);
sum(Self) ->
    fold(fun(Element, Acc) -> Acc + Element end, 0, Self).

-spec max(term()) -> term().
max(?INTERVAL = Self) ->
    {_, Largest} = ends(Self, max),
    Largest;
max(Self) ->
    lists:max(non_empty(Self, max)).

-spec min(term()) -> term().
min(?INTERVAL = Self) ->
    {Smallest, _} = ends(Self, min),
    Smallest;
min(Self) ->
    lists:min(non_empty(Self, min)).

-spec average(term()) -> float().
average(?INTERVAL = Self) ->
    {Smallest, Largest} = ends(Self, average),
    (Smallest + Largest) / 2;
average(Self) ->
    Elements = non_empty(Self, average),
    lists:foldl(fun(Element, Acc) -> Acc + Element end, 0, Elements) / length(Elements).

-spec 'eachWithIndex:'(term(), term()) -> nil.
'eachWithIndex:'(Self, Block) ->
    beamtalk_argument:block(Block, 2, class_name(Self), 'eachWithIndex:'),
    fold(fun(Element, Index) -> Block(Element, Index), Index + 1 end, 1, Self),
    nil.

-spec 'do:separatedBy:'(term(), term(), term()) -> nil.
'do:separatedBy:'(Self, Block, Separator) ->
    Class = class_name(Self),
    beamtalk_argument:block(Block, 1, Class, 'do:separatedBy:'),
    beamtalk_argument:block(Separator, 0, Class, 'do:separatedBy:'),
    fold(fun(Element, first) -> Block(Element), rest;
            (Element, rest) -> Separator(), Block(Element), rest
         end, first, Self),
    nil.

-spec asList(term()) -> list().
asList(Self) ->
    lists:reverse(fold(fun(Element, Acc) -> [Element | Acc] end, [], Self)).

-spec anyOne(term()) -> term().
anyOne(Self) ->
    case find(Self, fun(_) -> true end, anyOne) of
        {value, Element} -> Element;
        none -> beamtalk_error:raise(empty_collection, class_name(Self), anyOne)
    end.

-spec 'includes:'(term(), term()) -> boolean().
'includes:'(?INTERVAL = Self, Wanted) ->
    beamtalk_interval:'includes:'(Self, Wanted);
'includes:'(Self, Wanted) ->
    case native_elements(Self) of
        {ok, Elements} -> member(Wanted, Elements);
        none -> find(Self, fun(Element) -> are_equal(Element, Wanted) end, 'includes:') =/= none
    end.

-spec 'parallelCollect:'(term(), term()) -> term().
'parallelCollect:'(Self, Block) ->
    beamtalk_argument:block(Block, 1, class_name(Self), 'parallelCollect:'),
    Elements = elements(Self),
    replay(Self, beamtalk_parallel:map(Block, Elements, max(1, length(Elements)))).

-spec 'parallelCollect:maxConcurrency:'(term(), term(), term()) -> term().
'parallelCollect:maxConcurrency:'(Self, Block, Limit) ->
    Class = class_name(Self),
    beamtalk_argument:block(Block, 1, Class, 'parallelCollect:maxConcurrency:'),
    beamtalk_argument:positive(Limit, Class, 'parallelCollect:maxConcurrency:'),
    replay(Self, beamtalk_parallel:map(Block, elements(Self), Limit)).

%%% Used by the other collections

-spec elements(term()) -> list().
elements(Self) ->
    case native_elements(Self) of
        {ok, Elements} -> Elements;
        none -> beamtalk_dispatch:send(Self, asList)
    end.

-spec native_elements(term()) -> {ok, list()} | none.
native_elements(Self) when is_list(Self) ->
    {ok, Self};
native_elements(#{'$beamtalk_class' := 'Array', data := Data}) ->
    {ok, beamtalk_array:data_to_list(Data)};
native_elements(#{'$beamtalk_class' := 'Set', elements := Elements}) ->
    {ok, Elements};
native_elements(?INTERVAL = Self) ->
    {ok, beamtalk_interval:asList(Self)};
native_elements(#{'$beamtalk_class' := _}) ->
    none;
native_elements(Self) when is_map(Self) ->
    {ok, maps:values(Self)};
native_elements(Self) when is_tuple(Self) ->
    {ok, tuple_to_list(Self)};
native_elements(Self) when is_binary(Self) ->
    {ok, beamtalk_binary:elements(Self)};
native_elements(_) ->
    none.

%% Calls `Fun(Element, Acc)' for every element in iteration order.
-spec fold(fun((term(), Acc) -> Acc), Acc, term()) -> Acc.
fold(Fun, Acc, ?INTERVAL = Self) ->
    case beamtalk_interval:batch(Self) of
        {Elements, Rest} -> fold(Fun, lists:foldl(Fun, Acc, Elements), Rest);
        done -> Acc
    end;
fold(Fun, Acc, Self) ->
    case native_elements(Self) of
        {ok, Elements} -> lists:foldl(Fun, Acc, Elements);
        none -> fold_by_do(Fun, Acc, Self)
    end.

fold_by_do(Fun, Acc, Self) ->
    Key = {?MODULE, make_ref()},
    put(Key, Acc),
    try
        beamtalk_dispatch:send(Self, 'do:', fun(Element) ->
                                                    put(Key, Fun(Element, get(Key))),
                                                    nil
                                            end),
        get(Key)
    after
        erase(Key)
    end.

%% The first element for which the block answers true.
-spec find(term(), term(), atom()) -> {value, term()} | none.
find(Self, Block, Selector) ->
    Class = class_name(Self),
    beamtalk_argument:block(Block, 1, Class, Selector),
    find_in(Self, Block, Class, Selector).

find_in(?INTERVAL = Self, Block, Class, Selector) ->
    case beamtalk_interval:batch(Self) of
        done ->
            none;
        {Elements, Rest} ->
            case find_in_list(Elements, Block, Class, Selector) of
                none -> find_in(Rest, Block, Class, Selector);
                Found -> Found
            end
    end;
find_in(Self, Block, Class, Selector) ->
    case native_elements(Self) of
        {ok, Elements} -> find_in_list(Elements, Block, Class, Selector);
        none -> find_by_do(Self, Block, Class, Selector)
    end.

find_in_list([Element | Rest], Block, Class, Selector) ->
    case Block(Element) of
        true -> {value, Element};
        false -> find_in_list(Rest, Block, Class, Selector);
        Other -> beamtalk_argument:boolean(Other, Class, Selector)
    end;
find_in_list([], _, _, _) ->
    none.

find_by_do(Self, Block, Class, Selector) ->
    beamtalk_return:run(
      fun(Home) ->
              beamtalk_dispatch:send(
                Self, 'do:',
                fun(Element) ->
                        case beamtalk_argument:boolean(Block(Element), Class, Selector) of
                            true -> beamtalk_return:return(Home, {value, Element});
                            false -> nil
                        end
                end),
              none
      end, Selector).

%% Elements for which the block answers `Wanted'.
-spec filter(term(), term(), boolean(), atom()) -> list().
filter(Self, Block, Wanted, Selector) ->
    Class = class_name(Self),
    beamtalk_argument:block(Block, 1, Class, Selector),
    Keep = fun(Element) -> beamtalk_argument:boolean(Block(Element), Class, Selector) =:= Wanted end,
    case Self of
        ?INTERVAL -> lists:reverse(fold(fun(Element, Kept) ->
                                                case Keep(Element) of
                                                    true -> [Element | Kept];
                                                    false -> Kept
                                                end
                                        end, [], Self));
        _ -> [Element || Element <- elements(Self), Keep(Element)]
    end.

%% A collection of the receiver's species with the given elements.
-spec rebuild(term(), list()) -> term().
rebuild(Self, Elements) when is_list(Self) ->
    Elements;
rebuild(#{'$beamtalk_class' := 'Array'}, Elements) ->
    beamtalk_array:from_list(Elements);
rebuild(#{'$beamtalk_class' := 'Set'}, Elements) ->
    beamtalk_set:from_list(Elements);
rebuild(?INTERVAL, Elements) ->
    Elements;
rebuild(Self, Elements) when is_tuple(Self) ->
    list_to_tuple(Elements);
rebuild(Self, Elements) when is_binary(Self) ->
    Elements;
rebuild(Self, Elements) ->
    beamtalk_dispatch:send(beamtalk_dispatch:send(Self, species), 'withAll:', Elements).

%% Sends `collect:' with a block that answers the given results one by one.
replay(Self, Results) ->
    Key = {?MODULE, make_ref()},
    put(Key, Results),
    try
        beamtalk_dispatch:send(Self, 'collect:', fun(_) ->
                                                         [Result | Rest] = get(Key),
                                                         put(Key, Rest),
                                                         Result
                                                 end)
    after
        erase(Key)
    end.

%% Strict equality first, then `equals:' of Value instances.
-spec member(term(), list()) -> boolean().
member(Wanted, Elements) ->
    lists:member(Wanted, Elements)
        orelse lists:any(fun(Element) -> value_equals(Element, Wanted) end, Elements).

-spec position(term(), list()) -> pos_integer() | nil.
position(Wanted, Elements) ->
    position(Wanted, Elements, 1).

position(Wanted, [Element | Rest], Index) ->
    case are_equal(Element, Wanted) of
        true -> Index;
        false -> position(Wanted, Rest, Index + 1)
    end;
position(_, [], _) ->
    nil.

-spec are_equal(term(), term()) -> boolean().
are_equal(Left, Right) ->
    Left =:= Right orelse value_equals(Left, Right).

value_equals(#{'$beamtalk_class' := _} = Left, Right) ->
    beamtalk_dispatch:send(Left, 'equals:', Right) =:= true;
value_equals(_, _) ->
    false.

-spec class_name(term()) -> atom().
class_name(Self) when is_list(Self) -> 'List';
class_name(#{'$beamtalk_class' := Class}) -> Class;
class_name(Self) when is_map(Self) -> 'Dictionary';
class_name(Self) when is_tuple(Self) -> 'Tuple';
class_name(Self) when is_binary(Self) -> beamtalk_binary:class_name(Self);
class_name(_) -> 'Collection'.

class_named({beamtalk_object, _, _, Name}) when is_atom(Name) -> Name;
class_named(_) -> 'Collection'.

%% The smallest and the largest element of an Interval.
ends(Self, Selector) ->
    case beamtalk_interval:size(Self) of
        0 ->
            beamtalk_error:raise(empty_collection, 'Interval', Selector);
        _ ->
            First = beamtalk_interval:first(Self),
            Last = beamtalk_interval:last(Self),
            {erlang:min(First, Last), erlang:max(First, Last)}
    end.

non_empty(Self, Selector) ->
    case elements(Self) of
        [] -> beamtalk_error:raise(empty_collection, class_name(Self), Selector);
        Elements -> Elements
    end.
