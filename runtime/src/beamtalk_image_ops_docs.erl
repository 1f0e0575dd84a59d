%% Documentation of classes, methods and Erlang modules as Markdown, and completion of Erlang names.
-module(beamtalk_image_ops_docs).

-export([docs/1, erlang_complete/1]).
-export([class_text/1, method_text/2, module_text/1, function_text/2, find_module/1]).

-import(beamtalk_image_ops_fields, [fail/2]).

-type fields() :: beamtalk_image_ops_fields:fields().

-define(MAX_COMPLETIONS, 200).

-spec docs(fields()) -> map().
docs(Fields) ->
    HasSelector = beamtalk_image_ops_fields:is_given(Fields, <<"selector">>),
    #{docs => case beamtalk_image_ops_fields:is_given(Fields, <<"erlang_module">>) of
        true -> erlang_docs(Fields, HasSelector);
        false -> class_docs(Fields, HasSelector)
    end}.

class_docs(Fields, false) -> class_text(beamtalk_image_ops_fields:behaviour(Fields));
class_docs(Fields, true) ->
    Behaviour = beamtalk_image_ops_fields:behaviour(Fields),
    Found = case beamtalk_image_ops_fields:selector(Fields, <<"selector">>) of
        {ok, Selector} -> method_text(Behaviour, Selector);
        {unknown, _} -> none
    end,
    Found =:= none andalso
        fail(selector_not_found, [beamtalk_plain:text(Behaviour), " does not understand '",
                                  beamtalk_image_ops_fields:text(Fields, <<"selector">>), "'"]),
    Found.

erlang_docs(Fields, HasSelector) ->
    Name = beamtalk_image_ops_fields:text(Fields, <<"erlang_module">>),
    case find_module(Name) of
        none -> fail(module_not_loaded, ["there is no Erlang module '", Name, "'"]);
        {ok, Module} when not HasSelector -> module_text(Module);
        {ok, Module} ->
            Function = beamtalk_image_ops_fields:text(Fields, <<"selector">>),
            case function_text(Module, Function) of
                none -> fail(selector_not_found, [Name, " exports no function '", Function, "'"]);
                Text -> Text
            end
    end.

%%% Classes

%% Name, superclass, documentation, slots and the signatures of one side.
-spec class_text(tuple()) -> binary().
class_text(Behaviour) ->
    {Side, Class} = beamtalk_reflect:target(Behaviour),
    #{superclass := Super} = beamtalk_class:record(Class),
    Methods = case Side of
        instance -> [slots(beamtalk_class:meta(Class)),
                     section("Methods", beamtalk_class:named(Class)),
                     section("Class methods", beamtalk_reflect:metaclass(Class))];
        class -> [section("Class methods", Behaviour)]
    end,
    markdown(["# ", beamtalk_plain:text(Behaviour),
              case Super of
                  nil -> [];
                  _ -> [" < ", atom_to_binary(Super)]
              end, "\n\n", paragraph(beamtalk_reflect:class_doc(beamtalk_class:named(Class))), Methods]).

slots(#{slots := [_ | _] = Slots, kind := Kind}) ->
    Title = case Kind of
        actor -> "State";
        _ -> "Fields"
    end,
    ["## ", Title, "\n\n", [["- `", beamtalk_image_ops_browse:slot_text(Slot), "`\n"] || Slot <- Slots], "\n"];
slots(_) -> [].

section(Title, Behaviour) ->
    case beamtalk_reflect:own_selectors(Behaviour) of
        [] -> [];
        Selectors -> ["## ", Title, "\n\n", [summary(Behaviour, Selector) || Selector <- Selectors], "\n"]
    end.

summary(Behaviour, Selector) ->
    Info = beamtalk_reflect:method_info(Behaviour, Selector),
    ["- `", beamtalk_image_ops_browse:signature(Selector, Info), "`",
     [[": ", First] || First <- first_sentence(beamtalk_reflect:method_doc(Behaviour, Selector))], "\n"].

%% The first sentence of the first paragraph, in one line.
first_sentence(Doc) when is_binary(Doc) ->
    Paragraph = hd(re:split(Doc, "\n\\s*\n|\n(?=```)")),
    Line = re:replace(Paragraph, "\\s*\n\\s*", " ", [global, unicode, {return, binary}]),
    [hd(re:split(Line, "(?<=[.!?])\\s+(?=\\p{Lu})", [unicode, {parts, 2}]))];
first_sentence(_) -> [].

%% One method, where the class or an ancestor defines it. A class stands for its instances, and for itself where these
%% do not understand the message.
-spec method_text(tuple(), atom()) -> binary() | none.
method_text(Behaviour, Selector) ->
    case {beamtalk_reflect:definer(Behaviour, Selector), beamtalk_reflect:target(Behaviour)} of
        {nil, {instance, Class}} -> method_text(beamtalk_reflect:metaclass(Class), Selector);
        {nil, {class, _}} -> none;
        {Definer, _} ->
            Info = beamtalk_reflect:method_info(Definer, Selector),
            Inherited = case Definer of
                Behaviour -> [];
                _ -> ["Inherited from ", beamtalk_plain:text(Definer), ".\n\n"]
            end,
            markdown(["# ", beamtalk_plain:text(Behaviour), " >> ", atom_to_binary(Selector), "\n\n```beamtalk\n",
                      beamtalk_image_ops_browse:signature(Selector, Info), "\n```\n\n", Inherited,
                      paragraph(beamtalk_reflect:method_doc(Definer, Selector))])
    end.

paragraph(Doc) when is_binary(Doc), Doc =/= <<>> -> [Doc, "\n\n"];
paragraph(_) -> [].

markdown(Text) -> string:trim(unicode:characters_to_binary(Text), trailing).

%%% Erlang modules

%% A module that is loaded or on the code path. Its atom is made only when there is such a file, and it is not loaded:
%% loading may run code.
-spec find_module(binary()) -> {ok, module()} | none.
find_module(Name) ->
    case re:run(Name, "\\A[a-z][A-Za-z0-9_@]{0,200}\\z", [{capture, none}]) of
        match ->
            case {beamtalk_image_ops_fields:existing(Name), code:where_is_file(binary_to_list(Name) ++ ".beam")} of
                {none, non_existing} -> none;
                {{ok, Module}, non_existing} ->
                    case erlang:module_loaded(Module) of
                        true -> {ok, Module};
                        false -> none
                    end;
                _ -> {ok, binary_to_atom(Name)}
            end;
        nomatch -> none
    end.

-spec module_text(module()) -> binary().
module_text(Module) ->
    {Doc, Functions} = documented(Module),
    Lines = [["- `", Signature, "`\n"]
             || {Name, Arity} <- exports(Module), Signature <- signatures(Name, Arity, Functions)],
    markdown(["# ", atom_to_binary(Module), "\n\n", paragraph(Doc), "## Functions\n\n", Lines]).

%% All functions of that name.
-spec function_text(module(), binary()) -> binary() | none.
function_text(Module, Function) ->
    Name = hd(binary:split(Function, <<":">>)),
    {_, Functions} = documented(Module),
    case [Export || {Known, _} = Export <- exports(Module), atom_to_binary(Known) =:= Name] of
        [] -> none;
        Found ->
            markdown(["# ", atom_to_binary(Module), ":", Name, "\n\n",
                      [["```erlang\n", lists:join("\n", signatures(Known, Arity, Functions)), "\n```\n\n",
                        paragraph(doc_of({Known, Arity}, Functions))] || {Known, Arity} <- Found]])
    end.

exports(Module) ->
    Exports = case erlang:module_loaded(Module) of
        true -> Module:module_info(exports);
        false ->
            case beam_lib:chunks(code:where_is_file(atom_to_list(Module) ++ ".beam"), [exports]) of
                {ok, {_, [{exports, Found}]}} -> Found;
                {error, _, _} -> []
            end
    end,
    lists:usort(Exports) -- [{module_info, 0}, {module_info, 1}].

%% What the documentation chunk of the module says: its own text, and signatures and text by function.
documented(Module) ->
    case code:get_doc(Module) of
        {ok, {docs_v1, _, _, _, ModuleDoc, _, Entries}} ->
            {doc_text(ModuleDoc),
             maps:from_list([{{Name, Arity}, {specs(Name, Metadata, Signature), doc_text(Doc)}}
                             || {{function, Name, Arity}, _, Signature, Doc, Metadata} <- Entries])};
        _ -> {nil, #{}}
    end.

specs(_, #{signature := Specs}, _) when is_list(Specs), Specs =/= [] ->
    [string:trim(unicode:characters_to_binary(erl_pp:attribute(Spec))) || Spec <- Specs];
specs(_, _, Signature) -> Signature.

%% OTP keeps its texts as a tree of elements.
doc_text(#{<<"en">> := Text}) when is_binary(Text) -> Text;
doc_text(#{<<"en">> := Tree}) when is_list(Tree) -> string:trim(unicode:characters_to_binary(elements(Tree)));
doc_text(_) -> nil.

elements(Elements) when is_list(Elements) -> [element_text(Element) || Element <- Elements];
elements(Element) -> element_text(Element).

element_text(Text) when is_binary(Text) -> Text;
element_text({code, _, Content}) -> ["`", elements(Content), "`"];
element_text({em, _, Content}) -> ["*", elements(Content), "*"];
element_text({pre, _, Content}) -> ["```\n", plain(Content), "\n```\n\n"];
element_text({li, _, Content}) -> ["- ", elements(Content), "\n"];
element_text({Block, _, Content}) when Block =:= p; Block =:= ul; Block =:= ol; Block =:= 'div'; Block =:= dl ->
    [elements(Content), "\n\n"];
element_text({_, _, Content}) -> elements(Content);
element_text(_) -> [].

plain(Text) when is_binary(Text) -> Text;
plain({_, _, Content}) -> plain(Content);
plain(Elements) when is_list(Elements) -> [plain(Element) || Element <- Elements].

signatures(Name, Arity, Functions) ->
    case Functions of
        #{{Name, Arity} := {[_ | _] = Specs, _}} -> Specs;
        _ -> [[atom_to_binary(Name), "/", integer_to_list(Arity)]]
    end.

doc_of(Function, Functions) ->
    case Functions of
        #{Function := {_, Doc}} -> Doc;
        _ -> nil
    end.

%%% Completion

%% Functions of a module as they are sent, or names of modules.
-spec erlang_complete(fields()) -> map().
erlang_complete(Fields) ->
    Prefix = beamtalk_image_ops_fields:text(Fields, <<"prefix">>, <<>>),
    All = case beamtalk_image_ops_fields:is_given(Fields, <<"module">>) of
        true -> functions(beamtalk_image_ops_fields:text(Fields, <<"module">>));
        false -> modules()
    end,
    Matching = [Completion || #{text := Text} = Completion <- All, string:prefix(Text, Prefix) =/= nomatch],
    #{completions => lists:sublist(Matching, ?MAX_COMPLETIONS)}.

modules() ->
    [#{text => unicode:characters_to_binary(Name), kind => module, detail => nil, origin => <<"Erlang">>}
     || {Name, _, _} <- lists:sort(code:all_available())].

functions(Name) ->
    case find_module(Name) of
        none -> fail(module_not_loaded, ["there is no Erlang module '", Name, "'"]);
        {ok, Module} ->
            [#{text => message(Function, Arity), kind => function,
               detail => iolist_to_binary([atom_to_binary(Function), "/", integer_to_list(Arity)]), origin => Name}
             || {Function, Arity} <- exports(Module)]
    end.

%% The first keyword names the function, the others are free.
message(Function, 0) -> atom_to_binary(Function);
message(Function, Arity) ->
    iolist_to_binary([atom_to_binary(Function), ":", lists:duplicate(Arity - 1, "with:")]).
