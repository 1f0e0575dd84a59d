%% Primitives of Set, and the total order Set and `List unique' are sorted in.
%%
%% The order is Erlang's term order with ties (`1' and `1.0', also inside
%% compound values) broken so that the Integer comes first. Comparing one-key
%% maps does exactly that: keys of maps compare Integers before Floats.
-module(beamtalk_set).

-export(['class withAll:'/2, 'class new:'/2, 'class new'/1, size/1, isEmpty/1, 'includes:'/2,
         'add:'/2, 'remove:'/2, 'union:'/2, 'intersection:'/2, 'difference:'/2, 'isSubsetOf:'/2,
         'fromList:'/2, asList/1, 'do:'/2]).
-export([from_list/1, sort_unique/1]).

-type set() :: #{'$beamtalk_class' := 'Set', elements := list()}.

-spec 'class new'(term()) -> set().
'class new'(_Class) ->
    from_list([]).

-spec 'class withAll:'(term(), term()) -> set().
'class withAll:'(_Class, List) ->
    from_list(beamtalk_argument:list(List, 'Set', 'withAll:')).

-spec 'class new:'(term(), term()) -> set().
'class new:'(_Class, List) ->
    from_list(beamtalk_argument:list(List, 'Set', 'new:')).

-spec size(set()) -> non_neg_integer().
size(#{elements := Elements}) ->
    length(Elements).

-spec isEmpty(set()) -> boolean().
isEmpty(#{elements := Elements}) ->
    Elements =:= [].

-spec 'includes:'(set(), term()) -> boolean().
'includes:'(#{elements := Elements}, Element) ->
    lists:member(Element, Elements).

-spec 'add:'(set(), term()) -> set().
'add:'(#{elements := Elements} = Self, Element) ->
    Self#{elements := insert(Element, Elements)}.

insert(Element, [Head | Tail] = Elements) ->
    if
        Element =:= Head -> Elements;
        Element < Head -> [Element | Elements];
        Element > Head -> [Head | insert(Element, Tail)];
        #{Element => []} < #{Head => []} -> [Element | Elements];
        true -> [Head | insert(Element, Tail)]
    end;
insert(Element, []) ->
    [Element].

-spec 'remove:'(set(), term()) -> set().
'remove:'(#{elements := Elements} = Self, Element) ->
    Self#{elements := lists:delete(Element, Elements)}.

-spec 'union:'(set(), term()) -> set().
'union:'(#{elements := Left} = Self, Other) ->
    Self#{elements := sort_unique(Left ++ elements(Other, 'union:'))}.

-spec 'intersection:'(set(), term()) -> set().
'intersection:'(#{elements := Left} = Self, Other) ->
    Keys = maps:from_keys(elements(Other, 'intersection:'), []),
    Self#{elements := [Element || Element <- Left, is_map_key(Element, Keys)]}.

-spec 'difference:'(set(), term()) -> set().
'difference:'(#{elements := Left} = Self, Other) ->
    Keys = maps:from_keys(elements(Other, 'difference:'), []),
    Self#{elements := [Element || Element <- Left, not is_map_key(Element, Keys)]}.

-spec 'isSubsetOf:'(set(), term()) -> boolean().
'isSubsetOf:'(#{elements := Left}, Other) ->
    Keys = maps:from_keys(elements(Other, 'isSubsetOf:'), []),
    lists:all(fun(Element) -> is_map_key(Element, Keys) end, Left).

-spec 'fromList:'(set(), term()) -> set().
'fromList:'(_Self, List) ->
    from_list(beamtalk_argument:list(List, 'Set', 'fromList:')).

-spec asList(set()) -> list().
asList(#{elements := Elements}) ->
    Elements.

-spec 'do:'(set(), term()) -> nil.
'do:'(#{elements := Elements}, Block) ->
    beamtalk_argument:block(Block, 1, 'Set', 'do:'),
    lists:foreach(Block, Elements),
    nil.

-spec from_list(list()) -> set().
from_list(List) ->
    #{'$beamtalk_class' => 'Set', elements => sort_unique(List)}.

%% Sorted in the total order, without elements that are `=:='.
-spec sort_unique(list()) -> list().
sort_unique(List) ->
    unify(lists:sort(List)).

%% The sort leaves equal elements beside each other in input order; only a run
%% that mixes Integers and Floats has to be ordered again.
unify([First, Second | Rest]) when First =:= Second ->
    unify([Second | Rest]);
unify([First, Second | _] = List) when First == Second ->
    {Run, Rest} = lists:splitwith(fun(Element) -> Element == First end, List),
    lists:usort(fun(A, B) -> #{A => []} =< #{B => []} end, Run) ++ unify(Rest);
unify([First | Rest]) ->
    [First | unify(Rest)];
unify([]) ->
    [].

elements(#{'$beamtalk_class' := 'Set', elements := Elements}, _Selector) ->
    Elements;
elements(_, Selector) ->
    beamtalk_argument:fail('Set', Selector, <<"Expected a Set">>).
