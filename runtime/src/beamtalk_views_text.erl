%% Views of texts, bytes, numbers and times.
-module(beamtalk_views_text).

-export([names/1, show/3]).

-import(beamtalk_views, [table/3, text/3]).

%% Larger images are not sent.
-define(IMAGE, 2097152).
-define(ROW, 16).

-spec names(term()) -> [{binary(), binary()}].
names(Value) when is_integer(Value) ->
    Character = [{<<"character">>, <<"Character">>} || is_character(Value)],
    [{<<"decimal">>, <<"Decimal">>}, {<<"hex">>, <<"Hex">>}, {<<"bits">>, <<"Bits">>} | Character];
names(Value) when is_float(Value) -> [{<<"decimal">>, <<"Decimal">>}, {<<"exact">>, <<"Exact value">>},
                                      {<<"bits">>, <<"Bits">>}];
names(Value) when is_atom(Value) -> texts();
names(Value) when is_binary(Value) ->
    case beamtalk_dispatch:is_text(Value) of
        true -> texts();
        false -> [{<<"hex">>, <<"Hex">>} | [{<<"image">>, <<"Image">>} || mime(Value) =/= none]]
    end;
names(Value) when is_bitstring(Value) -> [{<<"bits">>, <<"Bits">>}];
names(#{'$beamtalk_class' := 'DateTime'}) ->
    [{<<"iso">>, <<"ISO">>}, {<<"local">>, <<"Local">>}, {<<"since">>, <<"Since now">>}, {<<"parts">>, <<"Parts">>}];
names(_) -> [{<<"iso">>, <<"ISO">>}, {<<"parts">>, <<"Parts">>}].

texts() ->
    [{<<"text">>, <<"Text">>}, {<<"lines">>, <<"Lines">>}, {<<"bytes">>, <<"Bytes">>},
     {<<"characters">>, <<"Characters">>}].

is_character(Code) -> Code >= 0 andalso Code =< 16#10FFFF andalso not (Code >= 16#D800 andalso Code =< 16#DFFF).

-spec show(binary(), term(), map()) -> beamtalk_views:shown().
show(Name, Value, Options) when is_atom(Value) -> show(Name, atom_to_binary(Value), Options);
show(<<"text">>, Text, Options) -> text(Text, <<"text">>, Options);
show(<<"lines">>, Text, _) ->
    Lines = binary:split(Text, <<"\n">>, [global]),
    beamtalk_views:listing(list, [{<<"line">>, number}, {<<"text">>, text}],
                           [{[{number, N}, {text, Line}], none} || {N, Line} <- lists:zip(lists:seq(1, length(Lines)), Lines)]);
show(Name, Bytes, _) when is_binary(Bytes), Name =:= <<"bytes">> orelse Name =:= <<"hex">> ->
    Total = (byte_size(Bytes) + ?ROW - 1) div ?ROW,
    table([{<<"offset">>, number}, {<<"bytes">>, text}, {<<"text">>, text}], Total,
          fun(From, Count) -> [hex_row(Bytes, N) || N <- lists:seq(From, min(Total, From + Count) - 1)] end);
show(<<"characters">>, Text, _) ->
    %% Counting takes one walk; only the window is described.
    Total = string:length(Text),
    table([{<<"index">>, number}, {<<"character">>, text}, {<<"code">>, text}, {<<"name">>, text}], Total,
          fun(From, Count) ->
                  Clusters = string:to_graphemes(string:slice(Text, From, Count)),
                  [character_row(N, Cluster) || {N, Cluster} <- lists:zip(lists:seq(From + 1, From + length(Clusters)), Clusters)]
          end);
show(<<"image">>, Bytes, _) when byte_size(Bytes) > ?IMAGE ->
    text(<<"not shown: the image is over 2 MiB">>, <<"text">>, #{});
show(<<"image">>, Bytes, _) ->
    {ready, #{kind => image, total => 1, mime => mime(Bytes), base64 => base64:encode(Bytes),
              alt => <<"the bytes as an image">>}};
show(<<"decimal">>, Value, Options) when is_integer(Value) -> text(beamtalk_plain:text(Value), <<"text">>, Options);
show(<<"decimal">>, Value, Options) -> text(float_to_binary(Value, [short]), <<"text">>, Options);
show(<<"exact">>, Value, Options) -> text(exact(Value), <<"text">>, Options);
show(<<"hex">>, Value, Options) -> text(based(Value, 16, <<"16r">>), <<"text">>, Options);
show(<<"bits">>, Value, Options) when is_integer(Value) -> text(based(Value, 2, <<"2r">>), <<"text">>, Options);
show(<<"bits">>, Value, Options) when is_float(Value) ->
    <<Sign:1, Exponent:11, Fraction:52>> = <<Value/float>>,
    text(iolist_to_binary(io_lib:format("~b ~11.2.0b ~52.2.0b", [Sign, Exponent, Fraction])), <<"text">>, Options);
show(<<"bits">>, Value, Options) ->
    text(<< <<($0 + Bit)>> || <<Bit:1>> <= Value >>, <<"text">>, Options);
show(<<"character">>, Code, _) ->
    {_, [_, {text, Code1}, {text, Name}]} = described(Code),
    beamtalk_views:figures([{<<"character">>, shown([Code]), nil}, {<<"code">>, Code1, nil}, {<<"name">>, Name, nil}]);
show(<<"iso">>, #{'$beamtalk_class' := 'Duration', ms := Ms}, Options) -> text(iso(Ms), <<"text">>, Options);
show(<<"iso">>, #{date := _} = Time, Options) -> text(beamtalk_date_time:asString(Time), <<"text">>, Options);
show(<<"local">>, Time, Options) ->
    Seconds = beamtalk_date_time:asTimestamp(Time),
    Local = calendar:system_time_to_rfc3339(Seconds, [{time_designator, $\s}]),
    text(unicode:characters_to_binary(Local), <<"text">>, Options);
show(<<"since">>, Time, Options) ->
    Apart = beamtalk_date_time:asTimestamp(Time) - erlang:system_time(second),
    Words = words(abs(Apart) * 1000),
    Text = if
        Apart > 0 -> <<"in ", Words/binary>>;
        Apart =:= 0 -> <<"now">>;
        true -> <<Words/binary, " ago">>
    end,
    text(Text, <<"text">>, Options);
show(<<"parts">>, #{'$beamtalk_class' := 'Duration', ms := Ms}, _) ->
    {Days, Hours, Minutes, Seconds, Rest} = split(abs(Ms)),
    Sign = case Ms < 0 of true -> <<"-">>; false -> <<"+">> end,
    parts([{<<"sign">>, {text, Sign}}, {<<"days">>, {number, Days}}, {<<"hours">>, {number, Hours}},
           {<<"minutes">>, {number, Minutes}}, {<<"seconds">>, {number, Seconds}}, {<<"milliseconds">>, {number, Rest}}]);
show(<<"parts">>, #{date := {Year, Month, Day} = Date, time := {Hour, Minute, Second}, offset := Offset}, _) ->
    Names = {<<"Monday">>, <<"Tuesday">>, <<"Wednesday">>, <<"Thursday">>, <<"Friday">>, <<"Saturday">>, <<"Sunday">>},
    parts([{<<"year">>, {number, Year}}, {<<"month">>, {number, Month}}, {<<"day">>, {number, Day}},
           {<<"hour">>, {number, Hour}}, {<<"minute">>, {number, Minute}}, {<<"second">>, {number, Second}},
           {<<"offset in minutes">>, {number, Offset}},
           {<<"weekday">>, {text, element(calendar:day_of_the_week(Date), Names)}}]).

parts(Rows) ->
    beamtalk_views:listing(table, [{<<"part">>, text}, {<<"value">>, number}],
                           [{[{text, Name}, Cell], none} || {Name, Cell} <- Rows]).

%%% Bytes

hex_row(Bytes, Row) ->
    Start = Row * ?ROW,
    Part = binary:part(Bytes, Start, min(?ROW, byte_size(Bytes) - Start)),
    Hex = lists:join(" ", [io_lib:format("~2.16.0b", [Byte]) || <<Byte>> <= Part]),
    Text = << <<(printable(Byte))>> || <<Byte>> <= Part >>,
    {[{number, Start}, {text, iolist_to_binary(Hex)}, {text, Text}], none}.

printable(Byte) when Byte >= 32, Byte < 127 -> Byte;
printable(_) -> $. .

mime(<<137, "PNG\r\n", 26, "\n", _/binary>>) -> <<"image/png">>;
mime(<<255, 216, 255, _/binary>>) -> <<"image/jpeg">>;
mime(<<"GIF87a", _/binary>>) -> <<"image/gif">>;
mime(<<"GIF89a", _/binary>>) -> <<"image/gif">>;
mime(<<"RIFF", _:32, "WEBP", _/binary>>) -> <<"image/webp">>;
mime(_) -> none.

%%% Characters

character_row(Index, Cluster) when is_list(Cluster) ->
    Codes = [element(2, lists:nth(2, element(2, described(Code)))) || Code <- Cluster],
    {[{number, Index}, {text, shown(Cluster)}, {text, iolist_to_binary(lists:join(" ", Codes))},
      {text, <<"several code points">>}], none};
character_row(Index, Code) ->
    {_, [Character, CodeText, Name]} = described(Code),
    {[{number, Index}, Character, CodeText, Name], none}.

described(Code) ->
    {Code, [{text, shown([Code])}, {text, iolist_to_binary(io_lib:format("U+~4.16.0B", [Code]))}, {text, name(Code)}]}.

shown(Codes) -> unicode:characters_to_binary(Codes).

%% What a character is called. Letters of scripts have the name of what they are; Erlang knows no others.
name(0) -> <<"null">>;
name(7) -> <<"bell">>;
name(8) -> <<"backspace">>;
name(9) -> <<"tab">>;
name(10) -> <<"newline">>;
name(13) -> <<"carriage return">>;
name(27) -> <<"escape">>;
name(32) -> <<"space">>;
name(16#A0) -> <<"no-break space">>;
name(16#200B) -> <<"zero-width space">>;
name(16#200D) -> <<"zero-width joiner">>;
name(16#202E) -> <<"right-to-left override">>;
name(16#FEFF) -> <<"byte order mark">>;
name(Code) when Code < 32; Code >= 127, Code < 160 -> <<"control character">>;
name(Code) when Code >= $0, Code =< $9 -> <<"digit">>;
name(Code) ->
    Text = [Code],
    case {string:uppercase(Text), string:lowercase(Text)} of
        {Text, Text} -> <<"character">>;
        {Text, _} -> <<"upper-case letter">>;
        _ -> <<"lower-case letter">>
    end.

%%% Numbers

%% Printing takes time that grows with the square of the digits.
based(Value, _, _) when Value bsr 40000 =/= 0, Value bsr 40000 =/= -1 -> <<"a very large Integer">>;
based(Value, Base, Prefix) when Value < 0 -> <<"-", (based(-Value, Base, Prefix))/binary>>;
based(Value, Base, Prefix) -> <<Prefix/binary, (integer_to_binary(Value, Base))/binary>>.

%% All digits of the binary fraction: it ends, since its denominator is a power of two.
exact(Value) when Value < 0 -> <<"-", (exact(-Value))/binary>>;
exact(Value) ->
    <<_:1, Exponent:11, Fraction:52>> = <<Value/float>>,
    {Mantissa, Power} = case Exponent of
        0 -> {Fraction, -1074};
        _ -> {Fraction + (1 bsl 52), Exponent - 1075}
    end,
    case Power >= 0 of
        true -> integer_to_binary(Mantissa bsl Power);
        false ->
            Places = -Power,
            %% m / 2^p = m * 5^p / 10^p
            Digits = integer_to_list(Mantissa * power(5, Places)),
            Padded = lists:duplicate(max(0, Places + 1 - length(Digits)), $0) ++ Digits,
            {Whole, Part} = lists:split(length(Padded) - Places, Padded),
            case string:trim(Part, trailing, "0") of
                "" -> list_to_binary(Whole);
                Rest -> list_to_binary([Whole, ".", Rest])
            end
    end.

power(_, 0) -> 1;
power(Base, N) when N rem 2 =:= 0 -> power(Base * Base, N div 2);
power(Base, N) -> Base * power(Base, N - 1).

%%% Times

split(Ms) ->
    {Ms div 86400000, Ms rem 86400000 div 3600000, Ms rem 3600000 div 60000, Ms rem 60000 div 1000, Ms rem 1000}.

iso(Ms) when Ms < 0 -> <<"-", (iso(-Ms))/binary>>;
iso(Ms) ->
    {Days, Hours, Minutes, Seconds, Rest} = split(Ms),
    Second = case Rest of
        0 -> [[integer_to_list(Seconds), "S"] || Seconds > 0];
        _ -> [[integer_to_list(Seconds), io_lib:format(".~3..0b", [Rest]), "S"]]
    end,
    Clock = [[integer_to_list(Hours), "H"] || Hours > 0] ++ [[integer_to_list(Minutes), "M"] || Minutes > 0] ++ Second,
    Date = [[integer_to_list(Days), "D"] || Days > 0],
    iolist_to_binary(["P", Date, case {Date, Clock} of
        {[], []} -> "T0S";
        {_, []} -> [];
        _ -> ["T", Clock]
    end]).

words(Ms) ->
    {Days, Hours, Minutes, Seconds, _} = split(Ms),
    Parts = [[integer_to_list(N), Unit] || {N, Unit} <- [{Days, " d"}, {Hours, " h"}, {Minutes, " min"}, {Seconds, " s"}], N > 0],
    iolist_to_binary(lists:join(" ", lists:sublist(Parts, 2))).
