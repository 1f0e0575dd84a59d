%% Primitives of BeamtalkInterface: classes by name, help, and the level of the log.
-module(beamtalk_beamtalk_interface).

-export(['class current'/1, 'class current:'/2]).
-export([version/1, allClasses/1, 'classNamed:'/2, globals/1]).
-export(['help:'/2, 'help:selector:'/3, 'erlangHelp:'/2, 'erlangHelp:selector:'/3]).
-export([logLevel/1, 'logLevel:'/2]).

-define(CLASS, 'BeamtalkInterface').
-define(LEVELS, [emergency, alert, critical, error, warning, notice, info, debug]).

-spec 'class current'(term()) -> term().
'class current'(_Class) ->
    case beamtalk_workspace:is_live() of
        true -> persistent_term:get(?MODULE, #{'$beamtalk_class' => ?CLASS});
        false -> nil
    end.

-spec 'class current:'(term(), term()) -> term().
'class current:'(_Class, Interface) ->
    persistent_term:put(?MODULE, Interface),
    Interface.

%%% Classes

-spec version(term()) -> binary().
version(_Self) ->
    #{version := Version} = beamtalk_package:find(<<"stdlib">>),
    Version.

-spec allClasses(term()) -> [tuple()].
allClasses(_Self) -> [beamtalk_class:named(Name) || Name <- beamtalk_class:all()].

-spec 'classNamed:'(term(), term()) -> tuple() | nil.
'classNamed:'(_Self, Name) ->
    beamtalk_argument:symbol(Name, ?CLASS, 'classNamed:'),
    case beamtalk_class:find(Name) of
        {ok, Class} -> Class;
        none -> nil
    end.

-spec globals(term()) -> #{atom() => tuple()}.
globals(_Self) -> maps:from_list([{Name, beamtalk_class:named(Name)} || Name <- beamtalk_class:all()]).

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

%%% The log

-spec logLevel(term()) -> atom().
logLevel(_Self) ->
    #{level := Level} = logger:get_primary_config(),
    Level.

-spec 'logLevel:'(term(), term()) -> nil.
'logLevel:'(_Self, Level) ->
    beamtalk_argument:symbol(Level, ?CLASS, 'logLevel:'),
    case lists:member(Level, ?LEVELS) of
        true ->
            ok = logger:set_primary_config(level, Level),
            nil;
        false ->
            Levels = lists:join(", ", [atom_to_binary(Known) || Known <- ?LEVELS]),
            beamtalk_error:raise(argument_error, ?CLASS, 'logLevel:', iolist_to_binary(["Levels are ", Levels]))
    end.
