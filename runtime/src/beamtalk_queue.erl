%% Primitives of Queue: Erlang's functional queue.
-module(beamtalk_queue).

-export(['class new'/1, 'enqueue:'/2, dequeue/1, peek/1, isEmpty/1, size/1]).

-type queue() :: #{'$beamtalk_class' := 'Queue', '__items' := queue:queue()}.

-spec 'class new'(term()) -> queue().
'class new'(_Class) ->
    #{'$beamtalk_class' => 'Queue', '__items' => queue:new()}.

-spec 'enqueue:'(queue(), term()) -> queue().
'enqueue:'(#{'__items' := Items} = Self, Element) ->
    Self#{'__items' := queue:in(Element, Items)}.

-spec dequeue(queue()) -> {term(), queue()}.
dequeue(#{'__items' := Items} = Self) ->
    case queue:out(Items) of
        {{value, Front}, Rest} -> {Front, Self#{'__items' := Rest}};
        {empty, _} -> beamtalk_error:raise(empty_queue, 'Queue', dequeue)
    end.

-spec peek(queue()) -> term().
peek(#{'__items' := Items}) ->
    case queue:peek(Items) of
        {value, Front} -> Front;
        empty -> beamtalk_error:raise(empty_queue, 'Queue', peek)
    end.

-spec isEmpty(queue()) -> boolean().
isEmpty(#{'__items' := Items}) ->
    queue:is_empty(Items).

-spec size(queue()) -> non_neg_integer().
size(#{'__items' := Items}) ->
    queue:len(Items).
