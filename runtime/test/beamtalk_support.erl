%% Makes class modules for tests from source text, by the calling convention.
%%
%% `define(Spec)' takes a map: name, superclass, kind, slots (`{Name, DefaultText}' or
%% `{Name, Type}' with `required'), methods (`{Selector, Arity, "fun text"}'), the same
%% for the class side, and compiles, loads and registers the module. A fourth element of a method
%% adds to what its MethodInfo says, the key `meta' to what the class says about itself. With `initial' all defaults of an
%% actor are constants.
-module(beamtalk_support).

-export([start_workspace/0, kill_child/1, await/1]).
-export([start/0, define/1, forms/1, object/1, root_classes/0, stop_all/1, catch_error/1]).

-spec start() -> ok.
start() ->
    {ok, _} = application:ensure_all_started(beamtalk),
    case beamtalk_class:exists('ProtoObject') of
        true -> ok;
        false -> root_classes()
    end.

%% A workspace behind a pipe that gives back what is written to it, without the bridge that would read it.
-spec start_workspace() -> port().
start_workspace() ->
    start(),
    define(#{name => 'TranscriptStream', superclass => 'Actor', kind => actor}),
    Port = open_port({spawn_executable, "/bin/cat"}, [{packet, 4}, binary]),
    persistent_term:put(beamtalk_bridge, Port),
    {ok, {_, Children}} = beamtalk_sup:init(workspace),
    [{ok, _} = supervisor:start_child(beamtalk_sup, Child) || #{id := Id} = Child <- Children, Id =/= beamtalk_bridge],
    Port.

%% End a process of the tree; answers the one that took its place.
-spec kill_child(atom()) -> pid().
kill_child(Name) ->
    Former = whereis(Name),
    Monitor = monitor(process, Former),
    exit(Former, kill),
    receive {'DOWN', Monitor, process, Former, _} -> ok end,
    await(fun() -> is_pid(whereis(Name)) end),
    whereis(Name).

%% Wait until something holds.
-spec await(fun(() -> boolean())) -> ok.
await(Condition) -> await(Condition, erlang:monotonic_time(millisecond) + 30000).

await(Condition, Deadline) ->
    case Condition() of
        true -> ok;
        false ->
            erlang:monotonic_time(millisecond) < Deadline orelse error(timeout),
            receive after 2 -> ok end,
            await(Condition, Deadline)
    end.

%% The part of the library the runtime itself relies on.
-spec root_classes() -> ok.
root_classes() ->
    Dnu = {'doesNotUnderstand:args:', 2, "fun(S, Sel, Args) -> beamtalk_error:does_not_understand(S, Sel, Args) end"},
    Roots =
        [{'ProtoObject', nil, object, [Dnu, {class, 0, "fun(S) -> beamtalk_dispatch:class_of(S) end"},
                                       {'perform:withArguments:', 2,
                                        "fun(S, Sel, A) -> beamtalk_dispatch:send_list(S, Sel, A) end"}], []},
         {'Object', 'ProtoObject', object,
          [{printString, 0, "fun(S) -> beamtalk_display:native(S) end"},
           {displayString, 0, "fun(S) -> beamtalk_display:native_display(S) end"},
           {isNil, 0, "fun(_) -> false end"}], []},
         {'Behaviour', 'Object', object, [], []},
         {'Class', 'Behaviour', object, [{name, 0, "fun({_, _, _, N}) -> N end"}], []},
         {'Metaclass', 'Class', object, [{isMeta, 0, "fun(_) -> true end"}], []},
         {'Value', 'Object', value, [],
          [{new, 0, "fun(S) -> beamtalk_value:'class new'(S) end"},
           {'new:', 1, "fun(S, F) -> beamtalk_value:'class new:'(S, F) end"}]},
         {'Number', 'Value', value, [], []},
         {'Integer', 'Number', value, [{'+', 1, "fun(A, B) -> A + B end"}], []},
         {'Float', 'Number', value, [], []},
         {'Collection', 'Value', value, [], []},
         {'Binary', 'Collection', value, [{size, 0, "fun erlang:byte_size/1"}], []},
         {'String', 'Binary', value, [{size, 0, "fun string:length/1"}], []},
         {'List', 'Collection', value, [{size, 0, "fun erlang:length/1"}], []},
         {'Tuple', 'Collection', value, [], []},
         {'Dictionary', 'Collection', value, [], []},
         {'Symbol', 'Object', object, [], []},
         {'UndefinedObject', 'Object', object, [{isNil, 0, "fun(_) -> true end"}], []},
         {'True', 'Value', value, [], []},
         {'False', 'Value', value, [], []},
         {'Block', 'Object', object, [{value, 0, "fun(B) -> B() end"}], []},
         {'Pid', 'Object', object, [], []},
         {'Reference', 'Object', object, [], []},
         {'Port', 'Object', object, [], []},
         {'Actor', 'Object', actor,
          [{'initialize', 0, "fun(_) -> nil end"}, {'terminate:', 1, "fun(_, _) -> nil end"}],
          [{spawn, 0, "fun(S) -> beamtalk_actor_class:spawn_default(S) end"}]},
         {'Server', 'Actor', actor, [{'handleInfo:', 1, "fun(_, _) -> nil end"}], []},
         {'Exception', 'Object', object, [], []},
         {'Error', 'Exception', object, [], []},
         {'RuntimeError', 'Error', object, [], []},
         {'TypeError', 'Error', object, [], []},
         {'InstantiationError', 'Error', object, [], []},
         {'BEAMError', 'Error', object, [], []},
         {'ExitError', 'BEAMError', object, [], []},
         {'ThrowError', 'BEAMError', object, [], []},
         {'StackFrame', 'Value', value, [], []},
         {'Protocol', 'Object', object, [], []},
         {'ErlangModule', 'ProtoObject', object, [], []},
         {'Result', 'Value', value, [], []}],
    Specs = [#{name => N, superclass => S, kind => K, methods => M, class_methods => C,
               package => <<"stdlib">>} || {N, S, K, M, C} <- Roots],
    ok = beamtalk_class:load_forms([forms(Spec) || Spec <- Specs]).

-spec define(map()) -> tuple().
define(#{name := Name} = Spec) ->
    start(),
    ok = beamtalk_class:load_forms(forms(Spec)),
    beamtalk_class:named(Name).

-spec object(atom()) -> tuple().
object(Name) -> beamtalk_class:named(Name).

-spec forms(map()) -> [term()].
forms(#{name := Name} = Spec) ->
    Given = maps:get(methods, Spec, []),
    GivenClass = maps:get(class_methods, Spec, []),
    Bare = fun(All) -> [{element(1, M), element(2, M), element(3, M)} || M <- All] end,
    {Methods, ClassMethods} = {Bare(Given), Bare(GivenClass)},
    Slots = maps:get(slots, Spec, []),
    ClassSlots = maps:get(class_slots, Spec, []),
    Extensions = maps:get(extensions, Spec, []),
    Module = module(Spec),
    Meta = maps:merge(#{class => Name, superclass => maps:get(superclass, Spec, 'Object'),
             kind => maps:get(kind, Spec, object), module => Module,
             package => maps:get(package, Spec, nil), modifiers => maps:get(modifiers, Spec, []),
             visibility => public, native => maps:get(native, Spec, nil), handle_scope => nil,
             doc => <<"A test class.">>, source_file => nil, line => 1, type_parameters => [],
             slots => [slot(S) || S <- Slots], class_slots => [slot(S) || S <- ClassSlots],
             method_info => infos(Given), class_method_info => infos(GivenClass),
             locked => [], version => 1}, maps:get(meta, Spec, #{})),
    Functions =
        [function(S, N + 1, T) || {S, N, T} <- Methods]
        ++ [function(decorated("class ", S), N + 1, T) || {S, N, T} <- ClassMethods]
        ++ [function(decorated(lists:concat([C, case Side of class -> " class >> "; _ -> " >> " end]), S), N + 1, T)
            || {C, Side, S, N, T} <- Extensions]
        ++ [F || Slots =/= [], F <- [defaults(Slots), default(Slots)]]
        ++ [function('__initial', 0, "fun() -> " ++ map_text([{'$beamtalk_class', io_lib:format("~p", [Name])} | Slots]) ++ " end")
            || maps:get(initial, Spec, false)]
        ++ [function('__class_defaults', 0, "fun() -> " ++ map_text(ClassSlots) ++ " end") || ClassSlots =/= []]
        ++ [constant('__beamtalk_meta', Meta) || not maps:get(only_extensions, Spec, false)]
        ++ [constant('__beamtalk_extensions',
                     [#{class => C, side => Side, selector => S,
                        function => decorated(lists:concat([C, case Side of class -> " class >> "; _ -> " >> " end]), S),
                        info => info(N)} || {C, Side, S, N, _} <- Extensions])
            || Extensions =/= []],
    [{attribute, 1, module, Module}, {attribute, 1, file, {lists:concat([Module, ".bt"]), 1}},
     {attribute, 1, export, [{F, A} || {function, _, F, A, _} <- Functions]} | Functions].

module(#{module := Module}) -> Module;
module(#{package := <<"stdlib">>, name := Name}) -> list_to_atom("bt@stdlib@" ++ string:lowercase(atom_to_list(Name)));
module(#{name := Name}) -> list_to_atom("bt@" ++ string:lowercase(atom_to_list(Name))).

decorated(Prefix, Selector) -> list_to_atom(Prefix ++ atom_to_list(Selector)).

slot({Name, Default}) -> slot({Name, Default, nil});
slot({Name, Default, Type}) ->
    #{name => Name, type => Type, has_default => Default =/= none, default => nil,
      required => Type =/= nil andalso Default =:= none, doc => nil}.

infos(Methods) -> maps:from_list([method_info(Method) || Method <- Methods]).

method_info({Selector, Arity, _}) -> {Selector, info(Arity)};
method_info({Selector, Arity, _, More}) -> {Selector, maps:merge(info(Arity), More)}.

info(N) ->
    #{arity => N, visibility => public, sealed => false, doc => nil, line => 1, source => nil,
      parameters => [], return_type => nil, generated => false}.

constant(Name, Term) ->
    {function, 1, Name, 0, [{clause, 1, [], [], [erl_parse:abstract(Term)]}]}.

defaults(Slots) ->
    function('__defaults', 1, "fun(M) -> maps:merge(M, " ++ map_text(Slots) ++ ") end").

default(Slots) ->
    Clauses = [io_lib:format("(~p) -> ~s", [element(1, S), default_text(element(2, S))]) || S <- Slots],
    function('__default', 1, "fun" ++ lists:append(lists:join("; ", [lists:flatten(C) || C <- Clauses])) ++ " end").

map_text(Slots) ->
    "#{" ++ lists:join(", ", [io_lib:format("~p => ~s", [element(1, S), default_text(element(2, S))]) || S <- Slots]) ++ "}".

default_text(none) -> "nil";
default_text(Text) -> Text.

%% A function of the module from the text of a fun; calls to other functions are
%% written as remote calls by the tests.
function(Name, Arity, Text) ->
    {ok, Tokens, _} = erl_scan:string(lists:flatten([Text, "."])),
    {ok, [Expression]} = erl_parse:parse_exprs(Tokens),
    Clauses = case Expression of
        {'fun', _, {clauses, C}} -> C;
        Other ->
            Vars = [{var, 1, list_to_atom("A" ++ integer_to_list(I))} || I <- lists:seq(1, Arity)],
            [{clause, 1, Vars, [], [{call, 1, Other, Vars}]}]
    end,
    {function, 1, Name, Arity, Clauses}.

-spec stop_all([term()]) -> ok.
stop_all(Actors) ->
    [exit(Pid, kill) || {beamtalk_object, _, _, Pid} <- Actors, is_pid(Pid), unlink(Pid)],
    ok.

%% The exception a fun raises, as `on:do:' would see it.
-spec catch_error(fun(() -> term())) -> map().
catch_error(Fun) ->
    try Fun() of
        Value -> error({no_error, Value})
    catch
        error:{no_error, _} = Reason -> erlang:error(Reason);
        Class:Reason:Stack -> beamtalk_error:from_caught(Class, Reason, Stack)
    end.
