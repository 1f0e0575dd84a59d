%% Primitives of Duration: whole milliseconds, maybe negative.
-module(beamtalk_duration).

-export(['class new:'/2, 'class milliseconds:'/2, 'class seconds:'/2,
         'class minutes:'/2, 'class hours:'/2, 'class days:'/2, 'class fromString:'/2]).
-export([asMilliseconds/1, asString/1, printString/1, '+'/2, '-'/2, '*'/2, '<'/2, '>'/2, '<='/2, '>='/2]).
-export([make/1]).

-define(CLASS, 'Duration').
-define(SECOND, 1000).
-define(MINUTE, 60000).
-define(HOUR, 3600000).
-define(DAY, 86400000).

-type duration() :: #{'$beamtalk_class' := 'Duration', ms := integer()}.

-spec make(integer()) -> duration().
make(Ms) ->
    #{'$beamtalk_class' => ?CLASS, ms => Ms}.

%%% Class side

-spec 'class new:'(term(), term()) -> no_return().
'class new:'(_Class, _) ->
    Message = <<"use Duration seconds: and kin instead of new:">>,
    beamtalk_error:raise(user_error, ?CLASS, 'new:', Message, nil, #{}).

-spec 'class milliseconds:'(term(), term()) -> duration().
'class milliseconds:'(_Class, Count) -> from_units(Count, 1, 'milliseconds:').

-spec 'class seconds:'(term(), term()) -> duration().
'class seconds:'(_Class, Count) -> from_units(Count, ?SECOND, 'seconds:').

-spec 'class minutes:'(term(), term()) -> duration().
'class minutes:'(_Class, Count) -> from_units(Count, ?MINUTE, 'minutes:').

-spec 'class hours:'(term(), term()) -> duration().
'class hours:'(_Class, Count) -> from_units(Count, ?HOUR, 'hours:').

-spec 'class days:'(term(), term()) -> duration().
'class days:'(_Class, Count) -> from_units(Count, ?DAY, 'days:').

from_units(Count, Unit, Selector) ->
    make(round(beamtalk_argument:number(Count, ?CLASS, Selector) * Unit)).

-spec 'class fromString:'(term(), term()) -> duration().
'class fromString:'(_Class, Text) ->
    beamtalk_argument:string(Text, ?CLASS, 'fromString:'),
    Pattern = <<"\\A(-?)P(?=[0-9T])(?:(\\d+)D)?(?:T(?=\\d)(?:(\\d+)H)?(?:(\\d+)M)?"
                "(?:(\\d+)(?:\\.(\\d{1,3}))?S)?)?\\z">>,
    case re:run(Text, Pattern, [{capture, all_but_first, binary}]) of
        {match, [Sign | Parts]} ->
            Sum = lists:sum(milliseconds(Parts, [?DAY, ?HOUR, ?MINUTE, ?SECOND, fraction])),
            make(case Sign of <<"-">> -> -Sum; <<>> -> Sum end);
        nomatch ->
            beamtalk_argument:fail(?CLASS, 'fromString:', <<"Expected an ISO 8601 duration such as PT1H30M">>)
    end.

milliseconds([<<>> | Parts], [_ | Units]) ->
    milliseconds(Parts, Units);
milliseconds([Digits], [fraction]) ->
    [binary_to_integer(iolist_to_binary(string:pad(Digits, 3, trailing, $0)))];
milliseconds([Digits | Parts], [Unit | Units]) ->
    [binary_to_integer(Digits) * Unit | milliseconds(Parts, Units)];
milliseconds([], _) ->
    [].

%%% Instance side

-spec asMilliseconds(duration()) -> integer().
asMilliseconds(#{ms := Ms}) -> Ms.

-spec asString(duration()) -> binary().
asString(#{ms := 0}) ->
    <<"PT0S">>;
asString(#{ms := Ms}) ->
    {Days, Hours, Minutes, Seconds, Millis} = split(abs(Ms)),
    Clock = [unit(Hours, "H"), unit(Minutes, "M"), seconds(Seconds, Millis)],
    Time = case iolist_size(Clock) of
               0 -> "";
               _ -> ["T", Clock]
           end,
    iolist_to_binary([sign(Ms), "P", unit(Days, "D"), Time]).

seconds(0, 0) -> "";
seconds(Seconds, 0) -> unit(Seconds, "S");
seconds(Seconds, Millis) ->
    [integer_to_list(Seconds), ".", string:pad(integer_to_list(Millis), 3, leading, $0), "S"].

-spec printString(duration()) -> binary().
printString(#{ms := 0}) ->
    <<"0ms">>;
printString(#{ms := Ms}) ->
    {Days, Hours, Minutes, Seconds, Millis} = split(abs(Ms)),
    Units = [unit(Days, "d"), unit(Hours, "h"), unit(Minutes, "m"), unit(Seconds, "s"),
             unit(Millis, "ms")],
    iolist_to_binary([sign(Ms), lists:join(" ", [Unit || Unit <- Units, Unit =/= ""])]).

unit(0, _) -> "";
unit(Count, Name) -> [integer_to_list(Count), Name].

sign(Ms) when Ms < 0 -> "-";
sign(_) -> "".

split(Ms) ->
    {Ms div ?DAY, Ms rem ?DAY div ?HOUR, Ms rem ?HOUR div ?MINUTE, Ms rem ?MINUTE div ?SECOND,
     Ms rem ?SECOND}.

-spec '+'(duration(), term()) -> duration().
'+'(#{ms := Ms}, Other) -> make(Ms + ms(Other, '+')).

-spec '-'(duration(), term()) -> duration().
'-'(#{ms := Ms}, Other) -> make(Ms - ms(Other, '-')).

-spec '*'(duration(), term()) -> duration().
'*'(#{ms := Ms}, Factor) -> make(round(Ms * beamtalk_argument:number(Factor, ?CLASS, '*'))).

-spec '<'(duration(), term()) -> boolean().
'<'(#{ms := Ms}, Other) -> Ms < ms(Other, '<').

-spec '>'(duration(), term()) -> boolean().
'>'(#{ms := Ms}, Other) -> Ms > ms(Other, '>').

-spec '<='(duration(), term()) -> boolean().
'<='(#{ms := Ms}, Other) -> Ms =< ms(Other, '<=').

-spec '>='(duration(), term()) -> boolean().
'>='(#{ms := Ms}, Other) -> Ms >= ms(Other, '>=').

ms(#{'$beamtalk_class' := ?CLASS, ms := Ms}, _) -> Ms;
ms(_, Selector) -> beamtalk_argument:fail(?CLASS, Selector, <<"Expected a Duration">>).
