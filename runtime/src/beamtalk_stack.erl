%% Erlang stack frames as Beamtalk sees them.
%%
%% A closure's function is called `-at:put:/3-fun-0-', a lifted loop
%% `at:put: loop 1'; both belong to the method `at:put:'. Frames of the runtime
%% and of Erlang's own modules are left out, so the first frame is the Beamtalk
%% code that made the failing send; the compiler keeps it on the stack.
-module(beamtalk_stack).

-export([frames/1, trace/1, actor_method/2, method_of/1]).

-type side() :: instance | class | function.

%% StackFrame values, innermost first.
-spec frames([tuple()]) -> [map()].
frames(Stack) ->
    join([frame(F) || F <- Stack, is_visible(F)]).

%% The same; code of a session or script, which has no method, stands for itself when there is no other.
-spec trace([tuple()]) -> [map()].
trace(Stack) ->
    case frames(Stack) of
        [] -> [session_frame() || lists:any(fun is_session_code/1, Stack)];
        Frames -> Frames
    end.

is_session_code({erl_eval, _, _, _}) -> true;
is_session_code({Module, _, _, _}) -> lists:prefix("bt@eval@", atom_to_list(Module)).

session_frame() ->
    Line = case get('$bt_line') of
        Known when is_integer(Known), Known > 0 -> Known;
        _ -> nil
    end,
    #{'$beamtalk_class' => 'StackFrame', method => session, receiverClass => nil, arguments => 0,
      line => Line, file => nil, moduleName => nil}.

is_visible({Module, Function, _, Location}) ->
    case beamtalk_class:of_module(Module) of
        {ok, _} -> Function =/= '__beamtalk_meta';
        none ->
            case atom_to_list(Module) of
                "bt@eval@" ++ _ -> false;
                "bt@" ++ _ -> true;
                "beamtalk_" ++ _ -> false;
                _ -> Location =/= [] andalso not is_otp(Module)
            end
    end;
is_visible(_) -> false.

%% Erlang's own modules are machinery; an application's Erlang modules are not.
is_otp(Module) ->
    case code:which(Module) of
        Path when is_list(Path) -> lists:prefix(code:lib_dir(), Path);
        _ -> true
    end.

frame({Module, Function, Arity, Location}) ->
    {Side, Method} = method_of(Function),
    N = if is_list(Arity) -> length(Arity); true -> Arity end,
    Class = frame_class(Module, Function, Side),
    #{'$beamtalk_class' => 'StackFrame',
      method => Method,
      receiverClass => Class,
      arguments => case Class of
                       nil -> N;
                       _ -> arity_of(Method)
                   end,
      line => proplists:get_value(line, Location, nil),
      file => case proplists:get_value(file, Location) of
                  undefined -> nil;
                  File -> unicode:characters_to_binary(File)
              end,
      moduleName => atom_to_binary(canonical(Module))}.

%% The module a class is known by, wherever a reload had to put its code.
canonical(Module) ->
    case beamtalk_class:of_module(Module) of
        {ok, Name} -> maps:get(module, beamtalk_class:record(Name), Module);
        none -> Module
    end.

%% Several Erlang frames of one activation (a method and its closures on
%% neighbouring lines) stay apart; only exact repetitions are dropped.
join([A, A | Rest]) -> join([A | Rest]);
join([A | Rest]) -> [A | join(Rest)];
join([]) -> [].

frame_class(Module, Function, Side) ->
    case {extension_target(Function), beamtalk_class:of_module(Module)} of
        {{ok, Class}, _} -> sided(Class, Side);
        {none, {ok, Class}} -> sided(Class, Side);
        {none, none} -> nil
    end.

sided(Class, class) -> binary_to_atom(<<(atom_to_binary(Class))/binary, " class">>);
sided(Class, _) -> Class.

arity_of(Method) ->
    case atom_to_binary(Method) of
        <<C, _/binary>> = Name when C >= $a, C =< $z; C >= $A, C =< $Z; C =:= $_ ->
            length(binary:matches(Name, <<":">>));
        _ -> 1
    end.

%% Side and selector of the method an Erlang function belongs to.
-spec method_of(atom()) -> {side(), atom()}.
method_of(Function) ->
    sided_name(without_loop(without_closure(atom_to_binary(Function)))).

without_closure(<<"-", Rest/binary>>) when Rest =/= <<>> ->
    case re:run(Rest, "^(.*?)/[0-9]+-(fun|lc|lbc|blc|bbc|anonymous|inlined)", [{capture, [1], binary}]) of
        {match, [Name]} -> without_closure(Name);
        nomatch -> <<"-", Rest/binary>>
    end;
without_closure(Name) -> Name.

without_loop(Name) ->
    case re:run(Name, "^(.*?) (?:loop|rest|fast) [0-9]+$", [{capture, [1], binary}]) of
        {match, [Method]} -> Method;
        nomatch -> Name
    end.

sided_name(Name) ->
    case binary:split(Name, <<" >> ">>) of
        [Target, Sel] ->
            case binary:split(Target, <<" class">>) of
                [_, <<>>] -> {class, binary_to_atom(Sel)};
                _ -> {instance, binary_to_atom(Sel)}
            end;
        [<<"class ", Sel/binary>>] -> {class, binary_to_atom(Sel)};
        [Sel] -> {instance, binary_to_atom(Sel)}
    end.

extension_target(Function) ->
    case binary:split(without_closure(atom_to_binary(Function)), <<" >> ">>) of
        [Target, _] ->
            [Class | _] = binary:split(Target, <<" class">>),
            {ok, binary_to_atom(Class)};
        _ -> none
    end.

%% Selector of the innermost method of an actor of class `Class' on the stack.
-spec actor_method(atom(), [tuple()]) -> atom() | none.
actor_method(Class, [{Module, Function, _, _} | Rest]) ->
    Owner = case extension_target(Function) of
        {ok, Target} -> {ok, Target};
        none -> beamtalk_class:of_module(Module)
    end,
    case Owner of
        {ok, Name} ->
            case beamtalk_class:inherits(Class, Name) andalso is_actor_class(Name) andalso method_of(Function) of
                {instance, Method} -> Method;
                _ -> actor_method(Class, Rest)
            end;
        none -> actor_method(Class, Rest)
    end;
actor_method(_, []) -> none.

is_actor_class(Name) ->
    case beamtalk_dispatch:info(Name) of
        #{kind := actor} -> true;
        _ -> false
    end.
