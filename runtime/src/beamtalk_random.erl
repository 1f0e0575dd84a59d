%% Primitives of Random. The class draws from the generator of the calling
%% process; an instance is the exported state of a generator.
-module(beamtalk_random).

-export(['class next'/1, 'class nextInteger:'/2, 'class new'/1, 'class seed:'/2, 'class new:'/2]).
-export([next/1, 'nextInteger:'/2]).

-type random() :: #{'$beamtalk_class' := 'Random', state := rand:export_state()}.

-spec 'class next'(term()) -> float().
'class next'(_Class) ->
    rand:uniform().

-spec 'class nextInteger:'(term(), term()) -> pos_integer().
'class nextInteger:'(_Class, Max) ->
    rand:uniform(beamtalk_argument:positive(Max, 'Random', 'nextInteger:')).

-spec 'class new'(term()) -> random().
'class new'(_Class) ->
    make(rand:seed_s(exsss)).

-spec 'class seed:'(term(), term()) -> random().
'class seed:'(_Class, Seed) ->
    make(rand:seed_s(exsss, beamtalk_argument:integer(Seed, 'Random', 'seed:'))).

-spec 'class new:'(term(), term()) -> no_return().
'class new:'(_Class, _) ->
    Message = <<"use Random seed: instead of new:">>,
    beamtalk_error:raise(user_error, 'Random', 'new:', Message, nil, #{}).

make(State) ->
    #{'$beamtalk_class' => 'Random', state => rand:export_seed_s(State)}.

-spec next(random()) -> float().
next(#{state := State}) ->
    element(1, rand:uniform_s(rand:seed_s(State))).

-spec 'nextInteger:'(random(), term()) -> pos_integer().
'nextInteger:'(#{state := State}, Max) ->
    beamtalk_argument:positive(Max, 'Random', 'nextInteger:'),
    element(1, rand:uniform_s(Max, rand:seed_s(State))).
