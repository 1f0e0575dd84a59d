%% Primitives of Bag: a Dictionary of elements to counts.
-module(beamtalk_bag).

-export(['do:'/2]).

-spec 'do:'(map(), term()) -> nil.
'do:'(#{counts := Counts}, Block) ->
    beamtalk_argument:block(Block, 1, 'Bag', 'do:'),
    lists:foreach(fun({Element, Count}) -> visit(Element, Count, Block) end, maps:to_list(Counts)),
    nil.

visit(_, 0, _) ->
    nil;
visit(Element, Count, Block) ->
    Block(Element),
    visit(Element, Count - 1, Block).
