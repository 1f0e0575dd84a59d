%% Arithmetic of Interval: from, to and step, never materialised.
-module(beamtalk_interval).

-export([size/1, 'do:'/2, 'at:'/2, first/1, last/1, asList/1]).
-export([make/3, batch/1, sum/1, 'includes:'/2]).

%% As many elements as are made at once when a selector visits them one after another.
-define(BATCH, 256).

-compile({no_auto_import, [size/1]}).

-type interval() :: #{'$beamtalk_class' := 'Interval', from := integer(), to := integer(),
                      step := integer()}.

-spec make(integer(), integer(), integer()) -> interval().
make(From, To, Step) ->
    #{'$beamtalk_class' => 'Interval', from => From, to => To, step => Step}.

-spec size(interval()) -> non_neg_integer().
size(#{from := From, to := To, step := Step}) when Step > 0, To >= From -> (To - From) div Step + 1;
size(#{from := From, to := To, step := Step}) when Step < 0, To =< From -> (From - To) div -Step + 1;
size(_) -> 0.

-spec 'do:'(interval(), term()) -> nil.
'do:'(#{from := From, step := Step} = Self, Block) ->
    beamtalk_argument:block(Block, 1, 'Interval', 'do:'),
    visit(From, size(Self), Step, Block).

visit(_, 0, _, _) ->
    nil;
visit(Value, Left, Step, Block) ->
    Block(Value),
    visit(Value + Step, Left - 1, Step, Block).

-spec 'at:'(interval(), term()) -> integer().
'at:'(#{from := From, step := Step} = Self, Index) when is_integer(Index) ->
    case Index >= 1 andalso Index =< size(Self) of
        true -> From + (Index - 1) * Step;
        false -> beamtalk_argument:out_of_bounds(Index, size(Self), 'Interval', 'at:')
    end;
'at:'(_, Index) ->
    beamtalk_argument:integer(Index, 'Interval', 'at:').

-spec first(interval()) -> integer().
first(#{from := From} = Self) ->
    case size(Self) of
        0 -> beamtalk_error:raise(empty_collection, 'Interval', first);
        _ -> From
    end.

-spec last(interval()) -> integer().
last(#{from := From, step := Step} = Self) ->
    case size(Self) of
        0 -> beamtalk_error:raise(empty_collection, 'Interval', last);
        Size -> From + (Size - 1) * Step
    end.

-spec asList(interval()) -> [integer()].
asList(#{from := From, to := To, step := Step} = Self) ->
    case size(Self) of
        0 -> [];
        _ -> lists:seq(From, To, Step)
    end.

%% The next elements and the interval of those after them.
-spec batch(interval()) -> {[integer(), ...], interval()} | done.
batch(#{from := From, step := Step} = Self) ->
    case min(size(Self), ?BATCH) of
        0 -> done;
        Count -> {lists:seq(From, From + (Count - 1) * Step, Step), Self#{from := From + Count * Step}}
    end.

-spec sum(interval()) -> integer().
sum(Self) ->
    case size(Self) of
        0 -> 0;
        Size -> Size * (first(Self) + last(Self)) div 2
    end.

-spec 'includes:'(interval(), term()) -> boolean().
'includes:'(#{from := From, step := Step} = Self, Wanted) when is_integer(Wanted) ->
    Size = size(Self),
    Size > 0 andalso (Wanted - From) rem Step =:= 0
        andalso (Wanted - From) div Step >= 0 andalso (Wanted - From) div Step < Size;
'includes:'(_, _) ->
    false.
