%% Primitives of Regex and the regular-expression selectors of String.
%%
%% Patterns are compiled in Unicode mode, so `.' and classes match codepoints.
-module(beamtalk_regex).

-export(['class new:'/2, 'class from:'/2, 'class from:options:'/3, source/1,
         printString/1]).
-export(['matchesRegex:'/2, 'matchesRegex:options:'/3, 'firstMatch:'/2, 'allMatches:'/2,
         'replaceRegex:with:'/3, 'replaceAllRegex:with:'/3, 'splitRegex:'/2]).

-type regex() :: #{'$beamtalk_class' := 'Regex', source := binary(), options := [atom()],
                   compiled := term()}.

-spec 'class new:'(term(), term()) -> no_return().
'class new:'(_Class, _) ->
    beamtalk_error:raise(user_error, 'Regex', 'new:', <<"use Regex from: instead of new:">>, nil, #{}).

-spec 'class from:'(term(), term()) -> map().
'class from:'(_Class, Source) ->
    beamtalk_argument:string(Source, 'Regex', 'from:'),
    make(Source, [], 'from:').

-spec 'class from:options:'(term(), term(), term()) -> map().
'class from:options:'(_Class, Source, Options) ->
    beamtalk_argument:string(Source, 'Regex', 'from:options:'),
    make(Source, check_options(Options, 'Regex', 'from:options:'), 'from:options:').

make(Source, Options, Selector) ->
    case compile(Source, Options) of
        {ok, Compiled} ->
            beamtalk_result:ok(#{'$beamtalk_class' => 'Regex', source => Source,
                                 options => lists:usort(Options), compiled => Compiled});
        {error, Hint} ->
            beamtalk_result:failure(regex_error, 'Regex', Selector, Hint, #{source => Source})
    end.

-spec source(regex()) -> binary().
source(#{source := Source}) ->
    Source.

-spec printString(regex()) -> binary().
printString(#{source := Source}) ->
    <<"Regex(", Source/binary, ")">>.

%%% Selectors of String

-spec 'matchesRegex:'(binary(), term()) -> boolean().
'matchesRegex:'(Self, Pattern) ->
    run(Self, Pattern, [], [{capture, none}], 'matchesRegex:') =:= match.

-spec 'matchesRegex:options:'(binary(), term(), term()) -> boolean().
'matchesRegex:options:'(Self, Pattern, Options) ->
    Checked = check_options(Options, 'String', 'matchesRegex:options:'),
    run(Self, Pattern, Checked, [{capture, none}], 'matchesRegex:options:') =:= match.

-spec 'firstMatch:'(binary(), term()) -> binary() | nil.
'firstMatch:'(Self, Pattern) ->
    case run(Self, Pattern, [], [{capture, first, binary}], 'firstMatch:') of
        {match, [Match]} -> Match;
        nomatch -> nil
    end.

-spec 'allMatches:'(binary(), term()) -> [binary()].
'allMatches:'(Self, Pattern) ->
    case run(Self, Pattern, [], [global, {capture, first, binary}], 'allMatches:') of
        {match, Matches} -> lists:append(Matches);
        nomatch -> []
    end.

-spec 'replaceRegex:with:'(binary(), term(), term()) -> binary().
'replaceRegex:with:'(Self, Pattern, Replacement) ->
    replace(Self, Pattern, Replacement, [], 'replaceRegex:with:').

-spec 'replaceAllRegex:with:'(binary(), term(), term()) -> binary().
'replaceAllRegex:with:'(Self, Pattern, Replacement) ->
    replace(Self, Pattern, Replacement, [global], 'replaceAllRegex:with:').

replace(Self, Pattern, Replacement, Options, Selector) ->
    Compiled = compiled(Self, Pattern, [], Selector),
    beamtalk_argument:string(Replacement, 'String', Selector),
    re:replace(Self, Compiled, Replacement, [{return, binary} | Options]).

%% `group' puts the text of groups beside the pieces, where it is left out.
-spec 'splitRegex:'(binary(), term()) -> [binary()].
'splitRegex:'(Self, Pattern) ->
    Compiled = compiled(Self, Pattern, [], 'splitRegex:'),
    Groups = re:split(Self, Compiled, [{return, binary}, group]),
    Reversed = lists:reverse([Piece || [Piece | _] <- Groups]),
    lists:reverse(lists:dropwhile(fun(Piece) -> Piece =:= <<>> end, Reversed)).

run(Self, Pattern, Options, RunOptions, Selector) ->
    re:run(Self, compiled(Self, Pattern, Options, Selector), RunOptions).

compiled(Self, Pattern, Options, Selector) ->
    case beamtalk_binary:is_utf8(Self) of
        true -> pattern(Pattern, Options, Selector);
        false -> beamtalk_argument:fail('String', Selector, <<"The receiver is not UTF-8 text">>)
    end.

pattern(#{'$beamtalk_class' := 'Regex', compiled := Compiled}, [], _) ->
    Compiled;
pattern(#{'$beamtalk_class' := 'Regex', source := Source, options := Own}, Options, Selector) ->
    pattern(Source, Own ++ Options, Selector);
pattern(Source, Options, Selector) ->
    beamtalk_argument:is_string(Source) orelse
        beamtalk_argument:fail('String', Selector, <<"Expected a String pattern or a Regex">>),
    case compile(Source, Options) of
        {ok, Compiled} -> Compiled;
        {error, Hint} -> beamtalk_error:raise(regex_error, 'String', Selector, Hint)
    end.

compile(Source, Options) ->
    try re:compile(Source, [unicode | Options]) of
        {ok, Compiled} ->
            {ok, Compiled};
        {error, {Text, Position}} ->
            {error, iolist_to_binary([Text, " at position ", integer_to_list(Position)])}
    catch
        error:badarg -> {error, <<"the pattern is not UTF-8 text">>}
    end.

check_options(Options, Class, Selector) ->
    Known = [caseless, multiline, dotall, extended, ungreedy],
    beamtalk_argument:list_of(Options, fun is_atom/1, Class, Selector),
    case Options -- (Options -- Known) of
        Options -> Options;
        _ -> beamtalk_error:raise(regex_error, Class, Selector,
                                  <<"Options are #caseless, #multiline, #dotall, #extended, #ungreedy">>)
    end.
