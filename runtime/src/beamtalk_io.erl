%% Erlang's I/O protocol, as much of it as a group leader has to answer.
-module(beamtalk_io).

-export([decode/1, read/3, prefix/2]).

-type read() :: {line} | {characters, pos_integer()} | {until, module(), atom(), [term()], term()}.

%% What a request asks for.
-spec decode(term()) -> {write, binary()} | {read, Prompt :: binary(), read()} | {reply, term()}.
decode({put_chars, Characters}) -> decode({put_chars, latin1, Characters});
decode({put_chars, Module, Function, Args}) -> decode({put_chars, latin1, Module, Function, Args});
decode({put_chars, Encoding, Module, Function, Args}) ->
    try apply(Module, Function, Args) of
        Characters -> decode({put_chars, Encoding, Characters})
    catch _:_ -> {reply, {error, put_chars}}
    end;
decode({put_chars, Encoding, Characters}) ->
    try unicode:characters_to_binary(Characters, Encoding) of
        Text when is_binary(Text) -> {write, Text};
        _ -> {reply, {error, put_chars}}
    catch error:_ -> {reply, {error, put_chars}}
    end;
decode({requests, Requests}) -> all(Requests, []);
decode({get_line, Prompt}) -> {read, prompt(Prompt), {line}};
decode({get_line, _, Prompt}) -> {read, prompt(Prompt), {line}};
decode({get_chars, Prompt, Count}) -> {read, prompt(Prompt), {characters, Count}};
decode({get_chars, _, Prompt, Count}) -> {read, prompt(Prompt), {characters, Count}};
decode({get_until, Prompt, Module, Function, Args}) ->
    {read, prompt(Prompt), {until, Module, Function, Args, []}};
decode({get_until, _, Prompt, Module, Function, Args}) ->
    {read, prompt(Prompt), {until, Module, Function, Args, []}};
decode({get_password, _}) -> {reply, {error, enotsup}};
decode(getopts) -> {reply, [{binary, true}, {encoding, unicode}]};
decode({setopts, _}) -> {reply, ok};
decode({get_geometry, _}) -> {reply, {error, enotsup}};
decode(_) -> {reply, {error, request}}.

%% Several writes in one request become one.
all([Request | Rest], Texts) ->
    case decode(Request) of
        {write, Text} -> all(Rest, [Text | Texts]);
        Other when Rest =:= [] -> Other;
        _ -> all(Rest, Texts)
    end;
all([], Texts) -> {write, iolist_to_binary(lists:reverse(Texts))}.

prompt(Prompt) ->
    try unicode:characters_to_binary(prompt_text(Prompt)) of
        Text when is_binary(Text) -> Text;
        _ -> <<>>
    catch error:_ -> <<>>
    end.

prompt_text({format, Format, Args}) -> io_lib:format(Format, Args);
prompt_text(Prompt) when is_atom(Prompt) -> atom_to_binary(Prompt);
prompt_text(Prompt) -> Prompt.

%% Satisfy a read from the text at hand.
-spec read(read(), binary(), IsEnded :: boolean()) -> {done, term(), binary()} | {more, read(), binary()}.
read({line} = Read, Text, IsEnded) ->
    case binary:split(Text, <<"\n">>) of
        [Line, Rest] -> {done, <<Line/binary, "\n">>, Rest};
        [_] when not IsEnded -> {more, Read, Text};
        [<<>>] -> {done, eof, <<>>};
        [Line] -> {done, Line, <<>>}
    end;
read({characters, Count} = Read, Text, IsEnded) ->
    case string:length(Text) of
        Length when Length >= Count ->
            First = unicode:characters_to_binary(string:slice(Text, 0, Count)),
            {done, First, unicode:characters_to_binary(string:slice(Text, Count))};
        _ when not IsEnded -> {more, Read, Text};
        0 -> {done, eof, <<>>};
        _ -> {done, Text, <<>>}
    end;
read({until, _, _, _, _} = Read, <<>>, false) -> {more, Read, <<>>};
read({until, Module, Function, Args, Continuation}, Text, IsEnded) ->
    Data = case Text of
        <<>> -> eof;
        _ -> unicode:characters_to_list(Text)
    end,
    try apply(Module, Function, [Continuation, Data | Args]) of
        {done, Result, eof} -> {done, Result, <<>>};
        {done, Result, Rest} -> {done, Result, unicode:characters_to_binary(Rest)};
        {more, Next} when Data =/= eof -> read({until, Module, Function, Args, Next}, <<>>, IsEnded);
        _ -> {done, {error, Function}, <<>>}
    catch _:_ -> {done, {error, Function}, <<>>}
    end.

%% The longest start of the text within that many bytes that ends between characters.
-spec prefix(binary(), integer()) -> binary().
prefix(Text, Bytes) when byte_size(Text) =< Bytes -> Text;
prefix(_, Bytes) when Bytes =< 0 -> <<>>;
prefix(Text, Bytes) ->
    case binary:at(Text, Bytes) of
        Byte when Byte band 16#C0 =:= 16#80 -> prefix(Text, Bytes - 1);
        _ -> binary:part(Text, 0, Bytes)
    end.
