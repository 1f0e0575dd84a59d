%% The output and input of one evaluation, as its keeper holds them.
%%
%% Text goes out in order, joined over a short while. The daemon grants credit in bytes; a writer whose text
%% finds none waits for its reply, so that nothing is lost and nothing piles up. Past the limit of
%% output the rest is dropped and the evaluation goes on.
-module(beamtalk_session_output).

-export([idle/0, start/2, is_done/1, is_finished/1, finish/2, discard/1]).
-export([io_request/2, flush/2, credit/2, input/2, input_timeout/2]).
-export_type([state/0]).

-define(JOIN, 50).
-define(CHUNK, 65536).
-define(CREDIT, 262144).
-define(OUTPUT_LIMIT, 1048576).
-define(INPUT_LIMIT, 30000).

-record(output, {id :: beamtalk_bridge:id(),
                 credit = ?CREDIT :: integer(),
                 limit :: non_neg_integer(),
                 %% Bytes taken in so far; `full' once the limit was passed.
                 taken = 0 :: non_neg_integer() | full,
                 buffer = [] :: iodata(),
                 size = 0 :: non_neg_integer(),
                 %% The last chunk, once the limit was passed.
                 note = none :: none | binary(),
                 is_scheduled = false :: boolean(),
                 writers = [] :: [{pid(), term()}],
                 %% Input that nobody has read yet, whether it has ended, and who waits for more.
                 pending = <<>> :: binary() | eof,
                 is_ended = false :: boolean(),
                 reader = none :: none | {pid(), term(), tuple(), reference()},
                 answer = none :: none | term(),
                 is_sent = false :: boolean()}).

-opaque state() :: idle | #output{}.

-spec idle() -> state().
idle() -> idle.

-spec start(beamtalk_bridge:id(), map()) -> state().
start(Id, Args) ->
    #output{id = Id, limit = maps:get(<<"output_bytes">>, Args, ?OUTPUT_LIMIT)}.

%% Has everything gone out, the answer too?
-spec is_done(state()) -> boolean().
is_done(#output{is_sent = IsSent}) -> IsSent;
is_done(idle) -> true.

%% Has the evaluation ended, whatever still waits to go out?
-spec is_finished(state()) -> boolean().
is_finished(#output{answer = Answer}) -> Answer =/= none;
is_finished(idle) -> true.

-spec finish(term(), state()) -> state().
finish(Frame, #output{answer = none} = Output) ->
    push(Output#output{answer = Frame});
finish(_, Output) -> Output.

%% Forget what has not gone out.
-spec discard(state()) -> state().
discard(#output{writers = Writers} = Output) ->
    release(Writers),
    push(no_reader(eof, Output#output{buffer = [], size = 0, note = none, writers = []}));
discard(idle) -> idle.

%%% Writing

%% A request of the I/O protocol, from any process whose group leader the keeper is.
-spec io_request({pid(), term(), term()}, state()) -> state().
io_request({From, ReplyAs, Request}, #output{answer = none} = Output) ->
    case beamtalk_io:decode(Request) of
        {reply, Reply} ->
            From ! {io_reply, ReplyAs, Reply},
            Output;
        {write, Text} ->
            take(Text, {From, ReplyAs}, Output);
        {read, Prompt, Read} ->
            read(Prompt, Read, {From, ReplyAs}, Output)
    end;
io_request({From, ReplyAs, Request}, Output) ->
    %% Nobody's evaluation: the workspace shows it.
    beamtalk_workspace ! {io_request, From, ReplyAs, Request},
    Output.

take(Text, {From, ReplyAs} = Writer, Output) ->
    #output{size = Size, credit = Credit, writers = Writers} = Added = add(Text, Output),
    case Size > Credit of
        true -> scheduled(Added#output{writers = [Writer | Writers]});
        false ->
            From ! {io_reply, ReplyAs, ok},
            scheduled(Added)
    end.

add(_, #output{taken = full} = Output) -> Output;
add(Text, #output{taken = Taken, limit = Limit, buffer = Buffer, size = Size} = Output) ->
    case Taken + byte_size(Text) of
        Total when Total =< Limit ->
            Output#output{taken = Total, buffer = [Buffer | Text], size = Size + byte_size(Text)};
        _ ->
            Kept = beamtalk_io:prefix(Text, Limit - Taken),
            Note = iolist_to_binary([<<"… output truncated ("/utf8>>, integer_to_binary(Limit), " bytes)"]),
            Output#output{taken = full, note = Note, buffer = [Buffer | Kept], size = Size + byte_size(Kept)}
    end.

scheduled(#output{size = 0, note = none} = Output) -> Output;
scheduled(#output{size = Size} = Output) when Size >= ?CHUNK -> push(Output);
scheduled(#output{is_scheduled = true} = Output) -> Output;
scheduled(#output{id = Id} = Output) ->
    erlang:send_after(?JOIN, self(), {flush, Id}),
    Output#output{is_scheduled = true}.

-spec flush(none, state()) -> state().
flush(none, #output{} = Output) -> push(Output#output{is_scheduled = false});
flush(none, idle) -> idle.

-spec credit(non_neg_integer(), state()) -> state().
credit(Bytes, #output{credit = Credit} = Output) -> push(Output#output{credit = Credit + Bytes});
credit(_, idle) -> idle.

%% Send what credit allows; the answer follows the last byte.
push(#output{size = 0, note = Note, id = Id} = Output) when Note =/= none ->
    beamtalk_bridge:send({out, Id, Note}),
    push(Output#output{note = none});
push(#output{size = 0, answer = none} = Output) -> Output;
push(#output{size = 0, answer = Answer, writers = Writers, is_sent = false} = Output) ->
    release(Writers),
    beamtalk_bridge:send(Answer),
    Output#output{is_sent = true, writers = []};
push(#output{is_sent = true} = Output) -> Output;
push(#output{id = Id, size = Size, credit = Credit, buffer = Buffer} = Output) when Size =< Credit ->
    beamtalk_bridge:send({out, Id, iolist_to_binary(Buffer)}),
    release(Output#output.writers),
    push(Output#output{size = 0, buffer = [], credit = Credit - Size, writers = []});
push(#output{credit = Credit} = Output) when Credit =< 0 -> Output;
push(#output{id = Id, credit = Credit, buffer = Buffer} = Output) ->
    Text = iolist_to_binary(Buffer),
    case beamtalk_io:prefix(Text, Credit) of
        <<>> -> Output;
        First ->
            beamtalk_bridge:send({out, Id, First}),
            Rest = binary:part(Text, byte_size(First), byte_size(Text) - byte_size(First)),
            Output#output{buffer = [Rest], size = byte_size(Rest), credit = Credit - byte_size(First)}
    end.

release(Writers) ->
    [From ! {io_reply, ReplyAs, ok} || {From, ReplyAs} <- lists:reverse(Writers)],
    ok.

%%% Reading

read(Prompt, Read, {From, ReplyAs}, #output{id = Id, reader = none, is_ended = IsEnded} = Output) ->
    case beamtalk_io:read(Read, Output#output.pending, IsEnded) of
        {done, Reply, Rest} ->
            From ! {io_reply, ReplyAs, Reply},
            Output#output{pending = Rest};
        {more, Waiting, Rest} ->
            %% What was printed before the question is seen before it.
            Pushed = push(Output),
            beamtalk_bridge:send({need_input, Id, Prompt}),
            Number = make_ref(),
            erlang:send_after(?INPUT_LIMIT, self(), {input_timeout, Id, Number}),
            Pushed#output{pending = Rest, reader = {From, ReplyAs, Waiting, Number}}
    end;
read(_, _, {From, ReplyAs}, Output) ->
    %% One reader at a time; a second one finds the end of the input.
    From ! {io_reply, ReplyAs, eof},
    Output.

%% Text the client sent; `none' when nobody waits for it.
-spec input(binary() | eof, state()) -> {ok, state()} | none.
input(Input, #output{reader = {_, _, _, _}} = Output) -> {ok, no_reader(Input, Output)};
input(_, _) -> none.

-spec input_timeout(reference(), state()) -> state().
input_timeout(Number, #output{reader = {_, _, _, Number}} = Output) -> no_reader(eof, Output);
input_timeout(_, Output) -> Output.

no_reader(_, #output{reader = none} = Output) -> Output;
no_reader(Input, #output{id = Id, reader = {From, ReplyAs, Read, _}, pending = Pending} = Output) ->
    {Text, IsEnded} = case Input of
        eof -> {Pending, true};
        _ -> {<<Pending/binary, Input/binary>>, false}
    end,
    case beamtalk_io:read(Read, Text, IsEnded) of
        {done, Reply, Rest} ->
            From ! {io_reply, ReplyAs, Reply},
            Output#output{reader = none, pending = Rest};
        {more, Waiting, Rest} ->
            beamtalk_bridge:send({need_input, Id, <<>>}),
            Number = make_ref(),
            erlang:send_after(?INPUT_LIMIT, self(), {input_timeout, Id, Number}),
            Output#output{reader = {From, ReplyAs, Waiting, Number}, pending = Rest}
    end.
