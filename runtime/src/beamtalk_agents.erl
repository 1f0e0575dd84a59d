%% Primitives of Agents, Agent and AgentMessage: questions to the daemon, which is a client of the agents' file tree.
-module(beamtalk_agents).

-export([is_running/1, new_in/3, new_in_options/4, all/1, at/2, backends/1, user_inbox/1]).
-export([state/1, alias/1, cwd/1, backend/1, pid/1, context/1, output/1, last_answer/1, screen/1]).
-export([set_alias/2, set_context/2, set_role/2, prompt/2, prompt_timeout/3, send/2, queue/2]).
-export([stop/1, restart/1, interrupt/1, kill/1, mail/4, inbox/1, complete/1]).

%% How long a turn may take for one who waits.
-define(TURN, 120000).

%%% Agents

-spec is_running(term()) -> boolean().
is_running(_Class) ->
    case ask(#{<<"verb">> => <<"is-running">>}) of
        {ok, #{<<"running">> := IsRunning}} -> IsRunning;
        {error, _} -> false
    end.

-spec new_in(term(), term(), term()) -> map().
new_in(Class, Backend, Directory) -> new_in_options(Class, Backend, Directory, #{}).

-spec new_in_options(term(), term(), term(), term()) -> map().
new_in_options(_Class, Backend, Directory, Options) when is_map(Options) ->
    Text = fun(Value) -> text(Value, 'Agents', 'new:in:options:') end,
    Question = #{<<"verb">> => <<"new">>, <<"backend">> => Text(Backend), <<"cwd">> => Text(Directory),
                 <<"options">> => maps:from_list([{Text(Key), Text(Value)}
                                                  || {Key, Value} <- maps:to_list(Options)])},
    result(ask(Question), fun(#{<<"id">> := Id}) -> agent(Id) end);
new_in_options(_, _, _, _) ->
    beamtalk_error:type_error('Agents', 'new:in:options:', <<"The options are a Dictionary">>).

agent(Id) -> #{'$beamtalk_class' => 'Agent', id => Id}.

-spec all(term()) -> [map()].
all(_Class) ->
    #{<<"ids">> := Ids} = demand(#{<<"verb">> => <<"all">>}, 'Agents', all),
    [agent(Id) || Id <- Ids].

-spec at(term(), term()) -> map().
at(_Class, Name) ->
    Question = #{<<"verb">> => <<"at">>, <<"name">> => text(Name, 'Agents', 'at:')},
    result(ask(Question), fun(#{<<"id">> := Id}) -> agent(Id) end).

-spec backends(term()) -> [binary()].
backends(_Class) ->
    #{<<"names">> := Names} = demand(#{<<"verb">> => <<"backends">>}, 'Agents', backends),
    Names.

-spec user_inbox(term()) -> [map()].
user_inbox(_Class) -> messages(<<"user">>, 'Agents', userInbox).

%%% Agent

-spec state(map()) -> atom().
state(Self) -> binary_to_atom(line(Self, <<"state">>)).

-spec alias(map()) -> binary() | nil.
alias(#{id := Id} = Self) ->
    case line(Self, <<"alias">>) of
        Id -> nil;
        Alias -> Alias
    end.

-spec cwd(map()) -> binary().
cwd(Self) -> line(Self, <<"cwd">>).

-spec backend(map()) -> binary().
backend(Self) -> line(Self, <<"backend">>).

-spec pid(map()) -> integer() | nil.
pid(Self) ->
    case string:to_integer(line(Self, <<"pid">>)) of
        {Pid, _} when is_integer(Pid) -> Pid;
        _ -> nil
    end.

-spec context(map()) -> binary().
context(Self) -> read(Self, <<"context">>, context).

-spec output(map()) -> binary().
output(Self) -> read(Self, <<"output">>, output).

-spec last_answer(map()) -> binary().
last_answer(Self) -> read(Self, <<"out">>, lastAnswer).

-spec screen(map()) -> binary().
screen(Self) -> read(Self, <<"screen">>, screen).

line(Self, File) -> string:trim(read(Self, File, binary_to_atom(File)), trailing, "\n").

read(#{id := Id}, File, Selector) ->
    Question = #{<<"verb">> => <<"read">>, <<"id">> => Id, <<"file">> => File},
    #{<<"text">> := Text} = demand(Question, 'Agent', Selector),
    Text.

-spec set_alias(map(), term()) -> map().
set_alias(Self, Name) -> write(Self, <<"alias">>, Name, 'alias:').

-spec set_context(map(), term()) -> map().
set_context(Self, Text) -> write(Self, <<"context">>, Text, 'context:').

-spec set_role(map(), term()) -> map().
set_role(Self, Name) -> write(Self, <<"role">>, Name, 'role:').

-spec send(map(), term()) -> map().
send(Self, Text) -> write(Self, <<"in">>, Text, 'send:').

-spec queue(map(), term()) -> map().
queue(Self, Text) -> write(Self, <<"queue">>, Text, 'queue:').

write(#{id := Id} = Self, File, Text, Selector) ->
    Question = #{<<"verb">> => <<"write">>, <<"id">> => Id, <<"file">> => File,
                 <<"text">> => text(Text, 'Agent', Selector)},
    result(ask(Question), fun(_) -> Self end).

-spec prompt(map(), term()) -> map().
prompt(Self, Text) -> prompt_timeout(Self, Text, ?TURN).

-spec prompt_timeout(map(), term(), term()) -> map().
prompt_timeout(#{id := Id}, Text, Ms) when is_integer(Ms), Ms >= 0 ->
    Question = #{<<"verb">> => <<"prompt">>, <<"id">> => Id, <<"text">> => text(Text, 'Agent', 'prompt:'), <<"ms">> => Ms},
    result(ask(Question), fun(#{<<"text">> := Answer}) -> Answer end);
prompt_timeout(_, _, _) ->
    beamtalk_error:type_error('Agent', 'prompt:timeout:', <<"The limit is an Integer of milliseconds">>).

-spec stop(map()) -> map().
stop(Self) -> ctl(Self, <<"stop">>).

-spec restart(map()) -> map().
restart(Self) -> ctl(Self, <<"restart">>).

-spec interrupt(map()) -> map().
interrupt(Self) -> ctl(Self, <<"interrupt">>).

-spec kill(map()) -> map().
kill(Self) -> ctl(Self, <<"kill">>).

ctl(#{id := Id} = Self, Line) ->
    result(ask(#{<<"verb">> => <<"ctl">>, <<"id">> => Id, <<"line">> => Line}), fun(_) -> Self end).

%%% Mail

-spec mail(map(), term(), term(), term()) -> map().
mail(#{id := Id}, Type, Subject, Body) ->
    Text = fun(Value) -> text(Value, 'Agent', 'mail:subject:body:') end,
    Question = #{<<"verb">> => <<"mail">>, <<"from">> => <<"user">>, <<"to">> => Id, <<"type">> => Text(Type),
                 <<"subject">> => Text(Subject), <<"body">> => Text(Body)},
    result(ask(Question), fun(#{<<"id">> := Message}) -> Message end).

-spec inbox(map()) -> [map()].
inbox(#{id := Id}) -> messages(Id, 'Agent', inbox).

messages(Of, Class, Selector) ->
    #{<<"messages">> := Messages} = demand(#{<<"verb">> => <<"inbox">>, <<"of">> => Of}, Class, Selector),
    [message(Message) || Message <- Messages].

message(Message) ->
    Field = fun(Name, Default) -> maps:get(Name, Message, Default) end,
    #{'$beamtalk_class' => 'AgentMessage', id => Field(<<"id">>, <<>>), from => Field(<<"from">>, <<>>),
      to => Field(<<"to">>, <<>>), type => Field(<<"type">>, <<>>), subject => Field(<<"subject">>, <<>>),
      body => Field(<<"body">>, <<>>), timestamp => Field(<<"timestamp">>, 0)}.

-spec complete(map()) -> map().
complete(#{id := Id, to := To} = Self) ->
    result(ask(#{<<"verb">> => <<"complete">>, <<"of">> => To, <<"message">> => Id}), fun(_) -> Self end).

%%% Asking

ask(Question) ->
    beamtalk_asking:ask(<<"agents">>, Question,
                        {agent_unavailable, <<"agents are reached from a workspace only">>,
                         <<"Run it in one: beamtalk repl">>}).

result(Answer, Make) -> beamtalk_asking:result(Answer, Make).

demand(Question, Class, Selector) -> beamtalk_asking:demand(ask(Question), Class, Selector).

text(Text, Class, Selector) ->
    beamtalk_asking:text(Text, Class, Selector, <<"A String or a Symbol is expected">>).
