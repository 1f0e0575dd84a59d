%% Primitives of DateTime: wall-clock fields and a fixed offset from UTC.
-module(beamtalk_date_time).

-export(['class new:'/2, 'class monotonicNow'/1,
         'class year:month:day:'/4, 'class year:month:day:hour:minute:second:'/7,
         'class year:month:day:hour:minute:second:offsetMinutes:'/8, 'class fromTimestamp:'/2,
         'class fromString:'/2, 'class parse:format:'/3]).
-export([year/1, month/1, day/1, hour/1, minute/1, second/1, offsetMinutes/1, asTimestamp/1,
         asString/1, toUtc/1, 'toOffset:'/2, 'format:'/2, 'addSeconds:'/2,
         'addDays:'/2, 'addDuration:'/2, 'diffSeconds:'/2, '-'/2, '<'/2, '>'/2, '<='/2, '>='/2,
         'sameInstant:'/2, 'differentInstant:'/2]).
-export([from_timestamp/1]).

-define(EPOCH, 62167219200).
-define(CLASS, 'DateTime').

-type date_time() :: #{'$beamtalk_class' := 'DateTime', date := calendar:date(),
                       time := calendar:time(), offset := integer()}.

%%% Class side

-spec 'class new:'(term(), term()) -> no_return().
'class new:'(_Class, _) ->
    Message = <<"use DateTime year:month:day: instead of new:">>,
    beamtalk_error:raise(user_error, ?CLASS, 'new:', Message, nil, #{}).

-spec 'class monotonicNow'(term()) -> integer().
'class monotonicNow'(_Class) ->
    erlang:monotonic_time(nanosecond).

-spec 'class year:month:day:'(term(), term(), term(), term()) -> date_time().
'class year:month:day:'(_Class, Year, Month, Day) ->
    checked({Year, Month, Day}, {0, 0, 0}, 0, 'year:month:day:').

-spec 'class year:month:day:hour:minute:second:'(term(), term(), term(), term(), term(), term(),
                                                 term()) -> date_time().
'class year:month:day:hour:minute:second:'(_Class, Year, Month, Day, Hour, Minute, Second) ->
    checked({Year, Month, Day}, {Hour, Minute, Second}, 0,
            'year:month:day:hour:minute:second:').

-spec 'class year:month:day:hour:minute:second:offsetMinutes:'(
        term(), term(), term(), term(), term(), term(), term(), term()) -> date_time().
'class year:month:day:hour:minute:second:offsetMinutes:'(_Class, Year, Month, Day, Hour, Minute,
                                                         Second, Offset) ->
    checked({Year, Month, Day}, {Hour, Minute, Second}, Offset,
            'year:month:day:hour:minute:second:offsetMinutes:').

checked(Date, Time, Offset, Selector) ->
    case is_valid(Date, Time, Offset) of
        true -> make(Date, Time, Offset);
        false -> beamtalk_argument:fail(?CLASS, Selector, <<"There is no such date, time or offset">>)
    end.

is_valid({Year, Month, Day} = Date, Time, Offset) ->
    lists:all(fun is_integer/1, [Year, Month, Day, Offset])
        andalso calendar:valid_date(Date)
        andalso is_valid_time(Time)
        andalso Offset >= -720 andalso Offset =< 840.

is_valid_time({Hour, Minute, Second}) ->
    lists:all(fun({Value, Limit}) -> is_integer(Value) andalso Value >= 0 andalso Value < Limit end,
              [{Hour, 24}, {Minute, 60}, {Second, 60}]).

make(Date, Time, Offset) ->
    #{'$beamtalk_class' => ?CLASS, date => Date, time => Time, offset => Offset}.

-spec 'class fromTimestamp:'(term(), term()) -> date_time().
'class fromTimestamp:'(_Class, Seconds) ->
    beamtalk_argument:integer(Seconds, ?CLASS, 'fromTimestamp:'),
    at_instant(Seconds, 0, 'fromTimestamp:').

-spec from_timestamp(integer()) -> date_time().
from_timestamp(Seconds) ->
    at_instant(Seconds, 0, 'fromTimestamp:').

%% The given instant on a clock that is `Offset' minutes ahead of UTC.
at_instant(Seconds, Offset, Selector) ->
    case Seconds + Offset * 60 + ?EPOCH of
        Gregorian when Gregorian >= 0 ->
            {Date, Time} = calendar:gregorian_seconds_to_datetime(Gregorian),
            make(Date, Time, Offset);
        _ ->
            beamtalk_argument:fail(?CLASS, Selector, <<"The year would be before 0">>)
    end.

-spec 'class fromString:'(term(), term()) -> date_time().
'class fromString:'(_Class, Text) ->
    beamtalk_argument:string(Text, ?CLASS, 'fromString:'),
    Pattern = <<"\\A(\\d{4})-(\\d\\d)-(\\d\\d)T(\\d\\d):(\\d\\d):(\\d\\d)(Z|[+-]\\d\\d:\\d\\d)?\\z">>,
    case re:run(Text, Pattern, [{capture, all_but_first, binary}]) of
        {match, [Year, Month, Day, Hour, Minute, Second | Zone]} ->
            [Y, Mo, D, H, Mi, S] =
                [binary_to_integer(Part) || Part <- [Year, Month, Day, Hour, Minute, Second]],
            checked({Y, Mo, D}, {H, Mi, S}, zone(Zone), 'fromString:');
        nomatch ->
            beamtalk_argument:fail(?CLASS, 'fromString:',
                                   <<"Expected YYYY-MM-DDThh:mm:ss with an optional Z or ±hh:mm"/utf8>>)
    end.

zone([]) -> 0;
zone([<<"Z">>]) -> 0;
zone([<<Sign, Hours:2/binary, ":", Minutes:2/binary>>]) ->
    case {binary_to_integer(Hours), binary_to_integer(Minutes)} of
        {_, M} when M > 59 -> invalid;
        {H, M} when Sign =:= $- -> -(H * 60 + M);
        {H, M} -> H * 60 + M
    end.

-spec 'class parse:format:'(term(), term(), term()) -> map().
'class parse:format:'(_Class, Text, Format) ->
    beamtalk_argument:string(Text, ?CLASS, 'parse:format:'),
    beamtalk_argument:string(Format, ?CLASS, 'parse:format:'),
    Defaults = #{$y => 0, $M => 1, $d => 1, $H => 0, $m => 0, $s => 0},
    case parse(tokens(Format), Text, Defaults) of
        #{$y := Y, $M := Mo, $d := D, $H := H, $m := Mi, $s := S} ->
            case is_valid({Y, Mo, D}, {H, Mi, S}, 0) of
                true -> beamtalk_result:ok(make({Y, Mo, D}, {H, Mi, S}, 0));
                false -> unparsable(Text, Format)
            end;
        none ->
            unparsable(Text, Format)
    end.

unparsable(Text, Format) ->
    Message = <<"'", Text/binary, "' is no date of the form '", Format/binary, "'">>,
    beamtalk_binary:parse_error('parse:format:', Message, Text, ?CLASS).

%%% Patterns

%% `{Letter, Count}' for a run of a pattern letter, text for everything else.
tokens(<<C, _/binary>> = Format) when C =:= $y; C =:= $M; C =:= $d; C =:= $H; C =:= $m; C =:= $s ->
    Count = run_length(Format, C, 0),
    [{C, Count} | tokens(binary:part(Format, Count, byte_size(Format) - Count))];
tokens(<<C, Rest/binary>>) ->
    [<<C>> | tokens(Rest)];
tokens(<<>>) ->
    [].

run_length(<<C, Rest/binary>>, C, Count) -> run_length(Rest, C, Count + 1);
run_length(_, _, Count) -> Count.

parse([], <<>>, Fields) ->
    Fields;
parse([Literal | Tokens], Text, Fields) when is_binary(Literal) ->
    case Text of
        <<Literal:1/binary, Rest/binary>> -> parse(Tokens, Rest, Fields);
        _ -> none
    end;
parse([{Letter, Count} | Tokens], Text, Fields) ->
    Width = case Count of
                1 -> <<"\\A[0-9]+">>;
                _ -> <<"\\A[0-9]{", (integer_to_binary(Count))/binary, "}">>
            end,
    case re:run(Text, Width, [{capture, first, binary}]) of
        {match, [Digits]} ->
            Rest = binary:part(Text, byte_size(Digits), byte_size(Text) - byte_size(Digits)),
            parse(Tokens, Rest, Fields#{Letter := number(Letter, Count, Digits)});
        nomatch ->
            none
    end;
parse(_, _, _) ->
    none.

number($y, 2, Digits) -> 2000 + binary_to_integer(Digits);
number(_, _, Digits) -> binary_to_integer(Digits).

-spec 'format:'(date_time(), term()) -> binary().
'format:'(Self, Format) ->
    beamtalk_argument:string(Format, ?CLASS, 'format:'),
    iolist_to_binary([written(Token, Self) || Token <- tokens(Format)]).

written(Literal, _) when is_binary(Literal) -> Literal;
written({$y, 2}, Self) -> padded(year(Self) rem 100, 2);
written({Letter, Count}, Self) -> padded(part(Letter, Self), Count).

part($y, Self) -> year(Self);
part($M, Self) -> month(Self);
part($d, Self) -> day(Self);
part($H, Self) -> hour(Self);
part($m, Self) -> minute(Self);
part($s, Self) -> second(Self).

padded(Number, Width) ->
    string:pad(integer_to_list(Number), Width, leading, $0).

%%% Instance side

-spec year(date_time()) -> integer().
year(#{date := {Year, _, _}}) -> Year.

-spec month(date_time()) -> integer().
month(#{date := {_, Month, _}}) -> Month.

-spec day(date_time()) -> integer().
day(#{date := {_, _, Day}}) -> Day.

-spec hour(date_time()) -> integer().
hour(#{time := {Hour, _, _}}) -> Hour.

-spec minute(date_time()) -> integer().
minute(#{time := {_, Minute, _}}) -> Minute.

-spec second(date_time()) -> integer().
second(#{time := {_, _, Second}}) -> Second.

-spec offsetMinutes(date_time()) -> integer().
offsetMinutes(#{offset := Offset}) -> Offset.

-spec asTimestamp(date_time()) -> integer().
asTimestamp(#{date := Date, time := Time, offset := Offset}) ->
    calendar:datetime_to_gregorian_seconds({Date, Time}) - ?EPOCH - Offset * 60.

-spec asString(date_time()) -> binary().
asString(#{offset := Offset} = Self) ->
    <<('format:'(Self, <<"yyyy-MM-ddTHH:mm:ss">>))/binary, (offset_text(Offset))/binary>>.

offset_text(0) ->
    <<"Z">>;
offset_text(Offset) ->
    Sign = case Offset < 0 of true -> "-"; false -> "+" end,
    iolist_to_binary([Sign, padded(abs(Offset) div 60, 2), ":", padded(abs(Offset) rem 60, 2)]).

-spec toUtc(date_time()) -> date_time().
toUtc(Self) ->
    at_instant(asTimestamp(Self), 0, toUtc).

-spec 'toOffset:'(date_time(), term()) -> date_time().
'toOffset:'(Self, Minutes) when is_integer(Minutes), Minutes >= -720, Minutes =< 840 ->
    at_instant(asTimestamp(Self), Minutes, 'toOffset:');
'toOffset:'(_, _) ->
    beamtalk_argument:fail(?CLASS, 'toOffset:', <<"Expected an Integer from -720 to 840">>).

-spec 'addSeconds:'(date_time(), term()) -> date_time().
'addSeconds:'(#{offset := Offset} = Self, Count) ->
    beamtalk_argument:integer(Count, ?CLASS, 'addSeconds:'),
    at_instant(asTimestamp(Self) + Count, Offset, 'addSeconds:').

-spec 'addDays:'(date_time(), term()) -> date_time().
'addDays:'(#{offset := Offset} = Self, Count) ->
    beamtalk_argument:integer(Count, ?CLASS, 'addDays:'),
    at_instant(asTimestamp(Self) + Count * 86400, Offset, 'addDays:').

-spec 'addDuration:'(date_time(), term()) -> date_time().
'addDuration:'(#{offset := Offset} = Self, #{'$beamtalk_class' := 'Duration', ms := Ms}) ->
    at_instant(asTimestamp(Self) + Ms div 1000, Offset, 'addDuration:');
'addDuration:'(_, _) ->
    beamtalk_argument:fail(?CLASS, 'addDuration:', <<"Expected a Duration">>).

-spec 'diffSeconds:'(date_time(), term()) -> integer().
'diffSeconds:'(Self, Other) ->
    asTimestamp(Self) - instant(Other, 'diffSeconds:').

-spec '-'(date_time(), term()) -> map().
'-'(Self, Other) ->
    beamtalk_duration:make((asTimestamp(Self) - instant(Other, '-')) * 1000).

-spec '<'(date_time(), term()) -> boolean().
'<'(Self, Other) -> asTimestamp(Self) < instant(Other, '<').

-spec '>'(date_time(), term()) -> boolean().
'>'(Self, Other) -> asTimestamp(Self) > instant(Other, '>').

-spec '<='(date_time(), term()) -> boolean().
'<='(Self, Other) -> asTimestamp(Self) =< instant(Other, '<=').

-spec '>='(date_time(), term()) -> boolean().
'>='(Self, Other) -> asTimestamp(Self) >= instant(Other, '>=').

-spec 'sameInstant:'(date_time(), term()) -> boolean().
'sameInstant:'(Self, Other) ->
    asTimestamp(Self) =:= instant(Other, 'sameInstant:').

-spec 'differentInstant:'(date_time(), term()) -> boolean().
'differentInstant:'(Self, Other) ->
    asTimestamp(Self) =/= instant(Other, 'differentInstant:').

instant(#{'$beamtalk_class' := ?CLASS} = Other, _) ->
    asTimestamp(Other);
instant(_, Selector) ->
    beamtalk_argument:fail(?CLASS, Selector, <<"Expected a DateTime">>).
