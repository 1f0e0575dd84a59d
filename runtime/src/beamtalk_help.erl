%% Documentation as text: classes and methods of the image, modules and functions of Erlang.
-module(beamtalk_help).

-export([class/1, method/2, erlang_module/1, erlang_function/2]).

-type behaviour() :: {beamtalk_object, atom(), module(), atom()}.

-spec class(behaviour()) -> binary().
class({_, _, _, Name} = Class) ->
    #{superclass := Super} = Meta = beamtalk_class:meta(Name),
    text([[atom_to_binary(Name), [[" < ", atom_to_binary(Super)] || Super =/= nil], $\n],
          documented(beamtalk_reflect:class_doc(Class)),
          section("Class methods:", class_method_info, Meta),
          section("Instance methods:", method_info, Meta)]).

section(Title, Key, Meta) ->
    case maps:to_list(maps:get(Key, Meta, #{})) of
        [] -> [];
        Methods -> [$\n, Title, $\n, [["  ", signature(Selector, Info), $\n] || {Selector, Info} <- lists:sort(Methods)]]
    end.

documented(nil) -> [];
documented(Doc) -> [$\n, Doc, $\n].

%% `at: index :: Integer put: value -> Object'
signature(Selector, Info) ->
    Parameters = maps:get(parameters, Info, []),
    [head(atom_to_binary(Selector), Parameters), returned(maps:get(return_type, Info, nil))].

returned(nil) -> [];
returned(Type) -> [" -> ", Type].

head(Selector, []) -> Selector;
head(Selector, [Parameter]) -> [Selector, $\s, parameter(Parameter)];
head(Selector, Parameters) ->
    Keywords = [<<Word/binary, ":">> || Word <- binary:split(Selector, <<":">>, [global, trim])],
    lists:join($\s, [[Keyword, $\s, parameter(Parameter)] || {Keyword, Parameter} <- pairs(Keywords, Parameters)]).

pairs([A | As], [B | Bs]) -> [{A, B} | pairs(As, Bs)];
pairs(_, _) -> [].

parameter({Name, nil}) -> Name;
parameter({Name, Type}) -> [Name, " :: ", Type].

-spec method(behaviour(), atom()) -> binary().
method({_, _, _, Name} = Class, Selector) ->
    case beamtalk_reflect:method(Class, Selector) of
        nil -> beamtalk_error:raise(does_not_understand, Name, Selector);
        _ ->
            Definer = beamtalk_reflect:definer(Class, Selector),
            {Side, Owner} = beamtalk_reflect:target(Definer),
            Key = case Side of
                instance -> method_info;
                class -> class_method_info
            end,
            Info = maps:get(Selector, maps:get(Key, beamtalk_class:meta(Owner), #{}), #{}),
            text([atom_to_binary(Owner), [" class" || Side =:= class], ">>", signature(Selector, Info), $\n,
                  documented(beamtalk_reflect:method_doc(Class, Selector))])
    end.

-spec erlang_module(module()) -> binary().
erlang_module(Module) ->
    text([atom_to_binary(Module), $\n, module_doc(Module), "\nFunctions:\n",
          [io_lib:format("  ~ts/~b~n", [Name, Arity]) || {Name, Arity} <- functions(Module)]]).

functions(Module) -> lists:sort(Module:module_info(exports)) -- [{module_info, 0}, {module_info, 1}].

-spec erlang_function(module(), atom()) -> binary().
erlang_function(Module, Function) ->
    case [Arity || {Name, Arity} <- functions(Module), Name =:= Function] of
        [] ->
            beamtalk_error:raise(not_found, 'BeamtalkInterface', 'erlangHelp:selector:',
                                 <<(atom_to_binary(Module))/binary, " has no function '",
                                   (atom_to_binary(Function))/binary, "'">>, nil, #{});
        Arities ->
            text([[io_lib:format("~ts:~ts/~b~n", [Module, Function, Arity]) || Arity <- Arities],
                  function_doc(Module, Function)])
    end.

%% Documentation is a chunk that many installations leave out.
module_doc(Module) ->
    case code:get_doc(Module) of
        {ok, {docs_v1, _, _, _, #{<<"en">> := _}, _, _} = Docs} -> rendered(shell_docs:render(Module, Docs));
        _ -> []
    end.

function_doc(Module, Function) ->
    case code:get_doc(Module) of
        {ok, {docs_v1, _, _, _, _, _, _} = Docs} -> rendered(shell_docs:render(Module, Function, Docs));
        _ -> []
    end.

rendered({error, _}) -> [];
rendered(Text) -> re:replace(Text, "\e\\[[0-9;]*m", "", [global, unicode]).

text(Text) -> unicode:characters_to_binary(Text).
