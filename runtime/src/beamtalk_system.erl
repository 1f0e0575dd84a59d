%% Primitives of System and OS: the environment, the machine, and commands that
%% run to their end.
-module(beamtalk_system).

-export(['class getEnv:'/2, 'class getEnv:default:'/3, 'class setEnv:value:'/3,
         'class unsetEnv:'/2, 'class osPlatform'/1, 'class osFamily'/1, 'class architecture'/1,
         'class hostname'/1, 'class erlangVersion'/1, 'class pid'/1, 'class uniqueId'/1,
         'class halt'/1, 'class halt:'/2, 'class runCommand:'/2, 'class runCommand:args:'/3,
         'class runCommand:args:options:'/4]).
-export([os_run/2, os_run/3]).

-define(CLASS, 'System').

%%% Environment

-spec 'class getEnv:'(term(), term()) -> binary() | nil.
'class getEnv:'(_Class, Name) ->
    get_env(Name, nil, 'getEnv:').

-spec 'class getEnv:default:'(term(), term(), term()) -> binary().
'class getEnv:default:'(_Class, Name, Default) ->
    beamtalk_argument:string(Default, ?CLASS, 'getEnv:default:'),
    get_env(Name, Default, 'getEnv:default:').

get_env(Name, Default, Selector) ->
    case os:getenv(variable(Name, Selector)) of
        false -> Default;
        Value -> unicode:characters_to_binary(Value)
    end.

-spec 'class setEnv:value:'(term(), term(), term()) -> true.
'class setEnv:value:'(_Class, Name, Value) ->
    Variable = variable(Name, 'setEnv:value:'),
    beamtalk_argument:string(Value, ?CLASS, 'setEnv:value:'),
    binary:match(Value, <<0>>) =:= nomatch
        orelse beamtalk_argument:fail(?CLASS, 'setEnv:value:', <<"A value has no NUL characters">>),
    os:putenv(Variable, unicode:characters_to_list(Value)).

-spec 'class unsetEnv:'(term(), term()) -> true.
'class unsetEnv:'(_Class, Name) ->
    os:unsetenv(variable(Name, 'unsetEnv:')).

variable(Name, Selector) ->
    beamtalk_argument:string(Name, ?CLASS, Selector),
    case Name =/= <<>> andalso binary:match(Name, [<<"=">>, <<0>>]) of
        nomatch -> unicode:characters_to_list(Name);
        _ -> beamtalk_argument:fail(?CLASS, Selector, <<"This is no name of a variable">>)
    end.

%%% The machine

-spec 'class osPlatform'(term()) -> binary().
'class osPlatform'(_Class) ->
    case os:type() of
        {win32, _} -> <<"win32">>;
        {_, Name} -> atom_to_binary(Name)
    end.

-spec 'class osFamily'(term()) -> binary().
'class osFamily'(_Class) ->
    atom_to_binary(element(1, os:type())).

-spec 'class architecture'(term()) -> binary().
'class architecture'(_Class) ->
    unicode:characters_to_binary(erlang:system_info(system_architecture)).

-spec 'class hostname'(term()) -> binary().
'class hostname'(_Class) ->
    case inet:gethostname() of
        {ok, Name} -> unicode:characters_to_binary(Name);
        {error, _} -> beamtalk_error:raise(runtime_error, ?CLASS, hostname)
    end.

-spec 'class erlangVersion'(term()) -> binary().
'class erlangVersion'(_Class) ->
    unicode:characters_to_binary(erlang:system_info(otp_release)).

-spec 'class pid'(term()) -> integer().
'class pid'(_Class) ->
    list_to_integer(os:getpid()).

-spec 'class uniqueId'(term()) -> pos_integer().
'class uniqueId'(_Class) ->
    erlang:unique_integer([positive, monotonic]).

-spec 'class halt'(term()) -> nil.
'class halt'(_Class) ->
    halt_with(0, halt).

-spec 'class halt:'(term(), term()) -> nil.
'class halt:'(_Class, Code) ->
    beamtalk_argument:integer(Code, ?CLASS, 'halt:'),
    halt_with(Code, 'halt:').

%% Only a program that has the node for itself may end it; the application
%% variable `owns_node' says so.
halt_with(Code, Selector) when Code >= 0, Code =< 255 ->
    case application:get_env(beamtalk, owns_node, false) of
        true ->
            erlang:halt(Code);
        false ->
            beamtalk_error:raise(unsupported, ?CLASS, Selector,
                                 <<"The node is shared; Program exit: ends this evaluation with a status">>)
    end;
halt_with(_, Selector) ->
    beamtalk_error:raise(invalid_argument, ?CLASS, Selector, <<"An exit code is from 0 to 255">>).

%%% Commands

-spec 'class runCommand:'(term(), term()) -> map().
'class runCommand:'(_Class, Command) ->
    run(Command, [], #{}, 'runCommand:').

-spec 'class runCommand:args:'(term(), term(), term()) -> map().
'class runCommand:args:'(_Class, Command, Arguments) ->
    run(Command, Arguments, #{}, 'runCommand:args:').

-spec 'class runCommand:args:options:'(term(), term(), term(), term()) -> map().
'class runCommand:args:options:'(_Class, Command, Arguments, Options) ->
    Selector = 'runCommand:args:options:',
    beamtalk_argument:dictionary(Options, ?CLASS, Selector),
    run(Command, Arguments, options(Options, Selector), Selector).

options(Options, Selector) ->
    maps:fold(fun(input, Input, Acc) ->
                      Acc#{input => beamtalk_argument:binary(Input, ?CLASS, Selector)};
                 (timeout, Timeout, Acc) ->
                      Acc#{timeout => beamtalk_argument:timeout(Timeout, ?CLASS, Selector)};
                 (maxOutput, Limit, Acc) ->
                      Acc#{max_output => beamtalk_argument:non_negative(Limit, ?CLASS, Selector)};
                 (Key, Value, Acc) when Key =:= env; Key =:= dir ->
                      Acc#{Key => Value};
                 (_, _, _) ->
                      beamtalk_argument:fail(?CLASS, Selector,
                                             <<"Options are #env, #dir, #input, #timeout, #maxOutput">>)
              end, #{}, Options).

run(Command, Arguments, Options, Selector) ->
    beamtalk_port_helper:check_arguments(Command, Arguments, ?CLASS, Selector),
    Checked = beamtalk_subprocess:config(Options, {?CLASS, Selector}),
    beamtalk_capability:guard(subprocess, ?CLASS, Selector,
                              fun() ->
                                      case beamtalk_command:run({Command, Arguments}, Checked) of
                                          {ok, Result} -> beamtalk_result:ok(command_result(Result));
                                          {error, Reason} -> failure(Reason, Selector, Command)
                                      end
                              end).

command_result(#{stdout := Output, stderr := Errors, exit := Code}) ->
    #{'$beamtalk_class' => 'CommandResult', output => Output, stderr => Errors, exitCode => Code}.

failure(Reason, Selector, Command) ->
    beamtalk_result:failure(Reason, ?CLASS, Selector, hint(Reason, Command), #{command => Command}).

hint(timeout, _) -> <<"The program did not end in time and was stopped">>;
hint(output_too_large, _) -> <<"The program wrote too much and was stopped">>;
hint(not_found, _) -> <<"The directory does not exist">>;
hint(_, Command) -> <<"Could not run ", Command/binary>>.

%%% OS

-spec os_run(term(), term()) -> binary().
os_run(_Class, Command) ->
    run_shell(Command, 30000, 'run:').

-spec os_run(term(), term(), term()) -> binary().
os_run(_Class, Command, Timeout) ->
    beamtalk_argument:positive(Timeout, 'OS', 'run:timeout:'),
    run_shell(Command, Timeout, 'run:timeout:').

run_shell(Command, Timeout, Selector) ->
    beamtalk_port_helper:check_arguments(Command, [], 'OS', Selector),
    beamtalk_capability:require(subprocess, 'OS', Selector),
    case beamtalk_command:run({<<"/bin/sh">>, [<<"-c">>, Command]}, #{timeout => Timeout}) of
        {ok, #{stdout := Output}} -> without_trailing_space(Output);
        {error, Reason} -> beamtalk_error:raise(Reason, 'OS', Selector, hint(Reason, Command))
    end.

%% Byte by byte, since the output may be no text.
without_trailing_space(<<>>) ->
    <<>>;
without_trailing_space(Output) ->
    case lists:member(binary:last(Output), " \t\n\v\f\r") of
        true -> without_trailing_space(binary:part(Output, 0, byte_size(Output) - 1));
        false -> Output
    end.
