%% Primitives of BeamtalkInterface: classes, their documentation, and logging.
-module(beamtalk_beamtalk_interface).

-export(['class current'/1, 'class current:'/2, allClasses/1, 'classNamed:'/2, globals/1, version/1]).
-export(['help:'/2, 'help:selector:'/3, 'erlangHelp:'/2, 'erlangHelp:selector:'/3]).
-export([logLevel/1, 'logLevel:'/2, logFormat/1, 'logFormat:'/2, loggerInfo/1]).
-export([debugTargets/1, 'enableDebug:'/2, 'disableDebug:'/2, activeDebugTargets/1, disableAllDebug/1]).

-define(CLASS, 'BeamtalkInterface').

-spec 'class current'(term()) -> map() | nil.
'class current'(_Class) ->
    Otherwise = case beamtalk_workspace:is_live() of
        true -> #{'$beamtalk_class' => ?CLASS};
        false -> nil
    end,
    persistent_term:get(?MODULE, Otherwise).

-spec 'class current:'(term(), term()) -> term().
'class current:'(_Class, Interface) ->
    persistent_term:put(?MODULE, Interface),
    Interface.

-spec allClasses(map()) -> [tuple()].
allClasses(_Self) -> [beamtalk_class:named(Name) || Name <- beamtalk_class:all()].

-spec 'classNamed:'(map(), term()) -> tuple() | nil.
'classNamed:'(_Self, Name) when is_atom(Name) ->
    case beamtalk_class:find(Name) of
        {ok, Class} -> Class;
        none -> nil
    end;
'classNamed:'(_Self, _) -> type_error('classNamed:', <<"The name of a class is a Symbol">>).

-spec globals(map()) -> map().
globals(_Self) -> maps:from_list([{Name, beamtalk_class:named(Name)} || Name <- beamtalk_class:all()]).

-spec version(map()) -> binary().
version(_Self) ->
    _ = application:load(beamtalk),
    case application:get_key(beamtalk, vsn) of
        {ok, Version} -> list_to_binary(Version);
        undefined -> <<"0.1.0">>
    end.

%%% Help

-spec 'help:'(term(), term()) -> binary().
'help:'(_Self, Class) -> beamtalk_image_ops_docs:class_text(behaviour(Class, 'help:')).

-spec 'help:selector:'(term(), term(), term()) -> binary().
'help:selector:'(_Self, Class, Selector) ->
    Behaviour = behaviour(Class, 'help:selector:'),
    beamtalk_argument:symbol(Selector, ?CLASS, 'help:selector:'),
    case beamtalk_image_ops_docs:method_text(Behaviour, Selector) of
        none -> not_understood(Behaviour, Selector);
        Text -> Text
    end.

-spec not_understood(tuple(), atom()) -> no_return().
not_understood({_, _, _, Class} = Behaviour, Selector) ->
    Message = <<(beamtalk_plain:text(Behaviour))/binary, " does not understand '",
                (atom_to_binary(Selector))/binary, "'">>,
    beamtalk_error:raise(does_not_understand, Class, Selector, Message, nil, #{}).

%% A class or metaclass, given itself or by name.
behaviour(Name, Selector) when is_atom(Name), Name =/= nil, not is_boolean(Name) ->
    behaviour(atom_to_binary(Name), Selector);
behaviour(Name, Selector) when is_binary(Name) ->
    {Plain, IsClassSide} = case string:split(Name, <<" class">>, trailing) of
        [Start, <<>>] -> {Start, true};
        _ -> {Name, false}
    end,
    case beamtalk_image_ops_fields:find_class(Plain) of
        {ok, Class} when IsClassSide -> beamtalk_reflect:metaclass(Class);
        {ok, Class} -> beamtalk_class:named(Class);
        none ->
            beamtalk_error:raise(class_not_found, ?CLASS, Selector,
                                 <<"no class named '", Name/binary, "' is loaded">>, nil, #{name => Name})
    end;
behaviour(Term, Selector) ->
    case beamtalk_reflect:is_behaviour(Term) of
        true -> Term;
        false -> beamtalk_argument:fail(?CLASS, Selector, <<"Expected a class or the name of one">>)
    end.

-spec 'erlangHelp:'(term(), term()) -> binary().
'erlangHelp:'(_Self, Name) -> beamtalk_image_ops_docs:module_text(module(Name, 'erlangHelp:')).

-spec 'erlangHelp:selector:'(term(), term(), term()) -> binary().
'erlangHelp:selector:'(_Self, Name, Function) ->
    Module = module(Name, 'erlangHelp:selector:'),
    beamtalk_argument:symbol(Function, ?CLASS, 'erlangHelp:selector:'),
    case beamtalk_image_ops_docs:function_text(Module, atom_to_binary(Function)) of
        none ->
            not_found('erlangHelp:selector:', [Name, " exports no function '", atom_to_binary(Function), "'"]);
        Text -> Text
    end.

module(Name, Selector) ->
    beamtalk_argument:string(Name, ?CLASS, Selector),
    case beamtalk_image_ops_docs:find_module(Name) of
        {ok, Module} -> Module;
        none -> not_found(Selector, ["there is no Erlang module '", Name, "'"])
    end.

-spec not_found(atom(), iodata()) -> no_return().
not_found(Selector, Message) ->
    beamtalk_error:raise(not_found, ?CLASS, Selector, iolist_to_binary(Message), nil, #{}).

%%% Logging

-spec logLevel(map()) -> atom().
logLevel(_Self) -> beamtalk_log:level().

-spec 'logLevel:'(map(), term()) -> nil.
'logLevel:'(_Self, Level) -> set(Level, beamtalk_log:levels() ++ [all, none], fun beamtalk_log:set_level/1, 'logLevel:').

-spec logFormat(map()) -> atom().
logFormat(_Self) -> beamtalk_log:format().

-spec 'logFormat:'(map(), term()) -> nil.
'logFormat:'(_Self, Format) -> set(Format, [text, json], fun beamtalk_log:set_format/1, 'logFormat:').

set(Value, Known, Set, Selector) when is_atom(Value) ->
    case lists:member(Value, Known) of
        true ->
            ok = Set(Value),
            nil;
        false ->
            beamtalk_error:raise(argument_error, ?CLASS, Selector, iolist_to_binary(["Use one of ", symbols(Known)]))
    end;
set(_, Known, _, Selector) -> type_error(Selector, iolist_to_binary(["Use one of ", symbols(Known)])).

symbols(Names) -> lists:join(" ", [beamtalk_display:symbol(Name) || Name <- Names]).

-spec debugTargets(map()) -> [atom()].
debugTargets(_Self) -> beamtalk_log:targets().

-spec 'enableDebug:'(map(), term()) -> nil.
'enableDebug:'(_Self, Target) ->
    ok = beamtalk_log:enable(target(Target, 'enableDebug:')),
    nil.

-spec 'disableDebug:'(map(), term()) -> nil.
'disableDebug:'(_Self, Target) ->
    ok = beamtalk_log:disable(target(Target, 'disableDebug:')),
    nil.

target({beamtalk_object, _, _, Class}, _) when is_atom(Class) -> {class, Class};
target({beamtalk_object, _, _, Place}, _) -> {pid, beamtalk_actor:resolve(Place)};
target(Target, Selector) ->
    case lists:member(Target, beamtalk_log:targets()) of
        true -> Target;
        false -> type_error(Selector, iolist_to_binary(["Give a class, an actor, or one of ",
                                                        symbols(beamtalk_log:targets())]))
    end.

-spec activeDebugTargets(map()) -> [term()].
activeDebugTargets(_Self) -> [shown(Target) || Target <- beamtalk_log:active()].

shown({class, Class}) -> Class;
shown({pid, Pid}) -> binary_to_atom(list_to_binary(pid_to_list(Pid)));
shown(Target) -> Target.

-spec disableAllDebug(map()) -> nil.
disableAllDebug(_Self) ->
    ok = beamtalk_log:disable_all(),
    nil.

-spec loggerInfo(map()) -> binary().
loggerInfo(Self) ->
    iolist_to_binary(["level: ", beamtalk_display:symbol(logLevel(Self)),
                      ", format: ", beamtalk_display:symbol(logFormat(Self)),
                      ", debug: ", case activeDebugTargets(Self) of
                                       [] -> "none";
                                       Active -> symbols(Active)
                                   end]).

-spec type_error(atom(), binary()) -> no_return().
type_error(Selector, Hint) -> beamtalk_error:type_error(?CLASS, Selector, Hint).
