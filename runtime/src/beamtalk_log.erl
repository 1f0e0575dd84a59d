%% The log of a workspace's node: lines of text or JSON on standard output, and events for those who watch.
%%
%% The level decides what is logged; targets of debugging let more of some places through. So while a
%% target is active everything reaches the filter, which then looks at the level itself.
-module(beamtalk_log).

-export([start/0, watch/1]).
-export([level/0, set_level/1, format/0, set_format/1, levels/0]).
-export([targets/0, active/0, enable/1, disable/1, disable_all/0]).
-export([filter/2, format/2, log/2]).

-define(LEVELS, [emergency, alert, critical, error, warning, notice, info, debug]).
-define(TARGETS, [actor, supervisor, dispatch, compiler, workspace, stdlib, hotreload, mcp, runtime, user]).
-define(SETTINGS, '$bt_log').
-define(SECRETS, ["cookie", "token", "secret", "password"]).
-define(EVENT_LIMIT, 8192).

%%% Settings

-spec start() -> ok.
start() ->
    settings(#{level => info, format => text, active => []}),
    _ = logger:remove_handler(default),
    _ = logger:remove_handler(simple),
    ok = logger:add_handler(default, logger_std_h,
                            #{config => #{type => standard_io},
                              filter_default => log,
                              filters => [{beamtalk, {fun ?MODULE:filter/2, none}}],
                              formatter => {?MODULE, #{}}}),
    logger:set_primary_config(level, info).

settings() -> persistent_term:get(?SETTINGS, #{level => notice, format => text, active => []}).

settings(Settings) -> persistent_term:put(?SETTINGS, Settings).

-spec levels() -> [atom()].
levels() -> ?LEVELS.

-spec level() -> atom().
level() -> maps:get(level, settings()).

-spec set_level(atom()) -> ok.
set_level(Level) -> changed((settings())#{level := Level}).

-spec format() -> text | json.
format() -> maps:get(format, settings()).

-spec set_format(text | json) -> ok.
set_format(Format) -> changed((settings())#{format := Format}).

-spec targets() -> [atom()].
targets() -> ?TARGETS.

%% Symbols, names of classes, and processes of actors.
-spec active() -> [atom() | pid()].
active() -> [Target || Target <- maps:get(active, settings()), is_alive(Target)].

is_alive({pid, Pid}) -> is_process_alive(Pid);
is_alive(_) -> true.

-spec enable(term()) -> ok.
enable(Target) -> changed((settings())#{active := lists:usort([Target | active()])}).

-spec disable(term()) -> ok.
disable(Target) -> changed((settings())#{active := active() -- [Target]}).

-spec disable_all() -> ok.
disable_all() -> changed((settings())#{active := []}).

changed(#{level := Level, active := Active} = Settings) ->
    settings(Settings),
    logger:set_primary_config(level, case Active of [] -> Level; _ -> debug end).

%% Send entries as events too, while somebody wants them.
-spec watch(boolean()) -> ok.
watch(true) ->
    _ = logger:add_handler(?MODULE, ?MODULE, #{filters => [{beamtalk, {fun ?MODULE:filter/2, none}}]}),
    ok;
watch(false) ->
    _ = logger:remove_handler(?MODULE),
    ok.

%%% What is logged

-spec filter(logger:log_event(), term()) -> logger:filter_return().
filter(#{level := Level, msg := Message, meta := Meta} = Event, _) ->
    #{level := Limit, active := Active} = settings(),
    case is_progress(Message) of
        true -> allow(lists:member(supervisor, Active), Event);
        false ->
            IsEnough = logger:compare_levels(Level, Limit) =/= lt,
            allow(IsEnough orelse lists:any(fun(Target) -> is_of(Target, Meta) end, Active), Event)
    end.

allow(true, Event) -> Event;
allow(false, _) -> stop.

is_progress({report, #{label := {_, progress}}}) -> true;
is_progress(_) -> false.

is_of({pid, Pid}, Meta) -> maps:get(pid, Meta, none) =:= Pid;
is_of({class, Class}, Meta) -> maps:get(beamtalk_class, Meta, none) =:= Class;
is_of(actor, #{mfa := {Module, _, _}}) -> lists:member(Module, [beamtalk_actor, beamtalk_actor_class, beamtalk_actor_server]);
is_of(supervisor, #{mfa := {Module, _, _}}) -> Module =:= beamtalk_supervisor orelse Module =:= supervisor;
is_of(Target, Meta) -> domain(Meta) =:= atom_to_list(Target).

%% Where an entry comes from: `user', `stdlib', `runtime' or `otp'.
domain(#{beamtalk_class := Class}) ->
    case is_atom(Class) andalso beamtalk_class:is_library(Class) of
        true -> "stdlib";
        false -> "user"
    end;
domain(#{beamtalk := _}) -> "user";
domain(#{domain := [beamtalk | _]}) -> "runtime";
domain(#{domain := [otp | _]}) -> "otp";
domain(#{mfa := {Module, _, _}}) ->
    case atom_to_list(Module) of
        "beamtalk_" ++ _ -> "runtime";
        "bt@" ++ _ -> "user";
        _ -> "otp"
    end;
domain(_) -> "otp".

%%% Lines

%% The formatter of the handlers.
-spec format(logger:log_event(), logger:formatter_config()) -> unicode:chardata().
format(Event, _) ->
    case format() of
        text -> [text(entry(Event)), $\n];
        json -> [beamtalk_json:'class generate:'(nil, json(Event)), $\n]
    end.

entry(#{level := Level, msg := Message, meta := Meta}) ->
    #{time => time(Meta), level => Level, domain => domain(Meta), place => place(Meta),
      message => message(Message, Meta), fields => maps:get(beamtalk, Meta, #{})}.

text(#{time := Time, level := Level, domain := Domain, place := Place, message := Message, fields := Fields}) ->
    [Time, " [", atom_to_list(Level), "] [", Domain, "] ", [[Place, $\s] || Place =/= ""],
     indented(Message), [[$\s, key(Key), $=, value(Value)] || {Key, Value} <- lists:sort(maps:to_list(Fields))]].

%% Every entry starts a line, and only an entry does.
indented(Message) -> string:replace(string:trim(Message, trailing), "\n", "\n    ", all).

json(#{level := Level, meta := Meta} = Event) ->
    #{time := Time, domain := Domain, message := Message, fields := Fields} = entry(Event),
    Known = #{<<"time">> => binary(Time), <<"level">> => atom_to_binary(Level), <<"domain">> => binary(Domain),
              <<"class">> => name(maps:get(beamtalk_class, Meta, nil)),
              <<"selector">> => name(maps:get(beamtalk_selector, Meta, nil)),
              <<"pid">> => binary(io_lib:format("~p", [maps:get(pid, Meta, nil)])),
              <<"msg">> => binary(Message)},
    maps:merge(maps:from_list([{binary(key(Key)), binary(value(Value))} || {Key, Value} <- maps:to_list(Fields)]), Known).

time(#{time := Microseconds}) ->
    calendar:system_time_to_rfc3339(Microseconds div 1000, [{unit, millisecond}, {offset, "Z"}]);
time(_) -> time(#{time => logger:timestamp()}).

place(#{beamtalk_class := Class, beamtalk_selector := Selector}) ->
    [name(Class), ">>", name(Selector)];
place(_) -> "".

name(nil) -> nil;
name(Name) when is_atom(Name) -> atom_to_binary(Name);
name(Name) -> binary(io_lib:format("~tp", [Name])).

message({string, Text}, _) -> Text;
message({report, Report}, #{report_cb := Callback}) when is_function(Callback, 1) ->
    {Format, Args} = Callback(hidden(Report)),
    io_lib:format(Format, Args, [{chars_limit, ?EVENT_LIMIT}]);
message({report, Report}, #{report_cb := Callback}) when is_function(Callback, 2) ->
    Callback(hidden(Report), #{depth => 30, chars_limit => ?EVENT_LIMIT, single_line => false});
message({report, Report}, _) ->
    {Format, Args} = logger:format_report(hidden(Report)),
    io_lib:format(Format, Args, [{chars_limit, ?EVENT_LIMIT}]);
message({Format, Args}, _) -> io_lib:format(Format, Args, [{chars_limit, ?EVENT_LIMIT}]).

key(Key) when is_atom(Key); is_binary(Key) -> io_lib:format("~ts", [Key]);
key(Key) -> io_lib:format("~0tp", [Key]).

value(Value) when is_binary(Value) -> Value;
value(Value) -> beamtalk_display:native(Value).

binary(Text) -> unicode:characters_to_binary(Text).

%% Values under names of secrets are not written, wherever in a report they stand.
hidden(Map) when is_map(Map) -> maps:map(fun hidden/2, Map);
hidden([Head | Tail]) -> [hidden(Head) | hidden(Tail)];
hidden({Key, Value}) when is_atom(Key); is_binary(Key) -> {Key, hidden(Key, Value)};
hidden(Tuple) when is_tuple(Tuple) -> list_to_tuple([hidden(Element) || Element <- tuple_to_list(Tuple)]);
hidden(Term) -> Term.

hidden(Key, Value) when is_atom(Key); is_binary(Key) ->
    Name = string:lowercase(unicode:characters_to_list(key(Key))),
    case lists:any(fun(Word) -> string:find(Name, Word) =/= nomatch end, ?SECRETS) of
        true -> <<"***">>;
        false -> hidden(Value)
    end;
hidden(_, Value) -> hidden(Value).

%%% Events

%% Callback of the handler that `watch/1' adds.
-spec log(logger:log_event(), logger:handler_config()) -> ok.
log(#{level := Level, meta := Meta} = Event, _) ->
    #{time := Time, domain := Domain, message := Message} = entry(Event),
    {Text, _} = beamtalk_bridge_value:cut(binary(Message), ?EVENT_LIMIT),
    beamtalk_bridge:event(<<"logs">>, <<"entry">>,
                          #{<<"time">> => binary(Time), <<"level">> => atom_to_binary(Level),
                            <<"domain">> => binary(Domain), <<"class">> => name(maps:get(beamtalk_class, Meta, nil)),
                            <<"selector">> => name(maps:get(beamtalk_selector, Meta, nil)), <<"msg">> => Text}).
