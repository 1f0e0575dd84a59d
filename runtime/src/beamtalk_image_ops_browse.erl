%% Requests of a class browser: classes, their protocols, methods, definitions and native sources.
-module(beamtalk_image_ops_browse).

-export([classes/1, protocols/1, method_source/1, class_definition/1, class/1, native_source/1]).
-export([signature/2, slot_text/1]).

-include_lib("kernel/include/file.hrl").

-import(beamtalk_image_ops_fields, [fail/2]).

-type fields() :: beamtalk_image_ops_fields:fields().

-define(UNCLASSIFIED, <<"as yet unclassified">>).
%% Larger files are not read.
-define(MAX_FILE, 16#1000000).

-spec classes(fields()) -> map().
classes(_) ->
    #{rows => [row(Record) || Name <- beamtalk_class:all(), #{} = Record <- [beamtalk_class:record(Name)]]}.

row(#{name := Name, superclass := Super, package := Package, modifiers := Modifiers, source_file := File} = Record) ->
    #{name => Name, superclass => Super, category => Package,
      comment => beamtalk_reflect:class_doc(beamtalk_class:named(Name)),
      sealed => lists:member(sealed, Modifiers), abstract => lists:member(abstract, Modifiers),
      internal => lists:member(internal, Modifiers), source_file => File, origin => origin(Record),
      is_test => Name =/= 'TestCase' andalso beamtalk_class:inherits(Name, 'TestCase'),
      is_protocol => ets:member(beamtalk_protocols, Name)}.

%%% Protocols

%% A selector belongs to the protocol that requires it; what the compiler made is accessing.
-spec protocols(fields()) -> map().
protocols(Fields) ->
    Behaviour = beamtalk_image_ops_fields:behaviour(Fields),
    {Side, Class} = beamtalk_reflect:target(Behaviour),
    Required = [{Protocol, beamtalk_protocol:required(Protocol)} || Protocol <- beamtalk_protocol:protocols_of(Class)],
    Disk = on_disk(Class),
    Grouped = lists:foldl(fun({Selector, Info, _}, Groups) ->
                                  Row = selector_row({Class, Side, Selector}, Info, Disk),
                                  Name = protocol({Side, Selector}, Info, Required),
                                  maps:update_with(Name, fun(Rows) -> [Row | Rows] end, [Row], Groups)
                          end, #{}, lists:reverse(beamtalk_reflect:own_methods(Behaviour))),
    #{protocols => [#{name => Name, selectors => Rows} || {Name, Rows} <- lists:sort(maps:to_list(Grouped))]}.

protocol(Signature, Info, Required) ->
    case [Protocol || {Protocol, Signatures} <- Required, lists:member(Signature, Signatures)] of
        [Protocol | _] -> atom_to_binary(Protocol);
        [] ->
            case source_status(Info) of
                synthetic -> <<"accessing">>;
                _ -> ?UNCLASSIFIED
            end
    end.

selector_row({_, _, Selector} = Method, Info, Disk) ->
    #{selector => Selector, line => maps:get(line, Info, nil), source_status => source_status(Info),
      origin => method_origin(Method, Info, Disk)}.

source_status(#{generated := true}) -> synthetic;
source_status(#{source := Source}) when is_binary(Source) -> indexed;
source_status(_) -> runtime.

%%% Methods

-spec method_source(fields()) -> map().
method_source(Fields) ->
    Behaviour = beamtalk_image_ops_fields:behaviour(Fields),
    {Side, Class} = beamtalk_reflect:target(Behaviour),
    Selector = own_selector(Behaviour, Fields),
    Info = beamtalk_reflect:method_info(Behaviour, Selector),
    Disk = on_disk(Class),
    #{source => maps:get(source, Info, nil), doc => beamtalk_reflect:method_doc(Behaviour, Selector),
      signature => signature(Selector, Info), source_status => source_status(Info),
      origin => method_origin({Class, Side, Selector}, Info, Disk),
      disk_differs => method_differs(Info, Disk)}.

own_selector(Behaviour, Fields) ->
    case beamtalk_image_ops_fields:selector(Fields, <<"selector">>) of
        {ok, Selector} ->
            lists:member(Selector, beamtalk_reflect:own_selectors(Behaviour))
                orelse not_found(Behaviour, atom_to_binary(Selector)),
            Selector;
        {unknown, Text} -> not_found(Behaviour, Text)
    end.

-spec not_found(tuple(), binary()) -> no_return().
not_found(Behaviour, Selector) ->
    fail(selector_not_found, [beamtalk_plain:text(Behaviour), " does not define '", Selector, "'"]).

%% `at: index :: Integer put: value -> Self', as it stands in the source.
-spec signature(atom(), map()) -> binary().
signature(Selector, Info) ->
    Parameters = [typed(Parameter) || Parameter <- maps:get(parameters, Info, [])],
    Keywords = [<<Part/binary, ":">> || Part <- binary:split(atom_to_binary(Selector), <<":">>, [global, trim])],
    Head = case {Parameters, Keywords} of
        {[_ | _], [_ | _]} when length(Parameters) =:= length(Keywords), length(Keywords) > 1 ->
            zipped(Keywords, Parameters);
        {[Parameter], _} -> [atom_to_binary(Selector), " ", Parameter];
        _ -> atom_to_binary(Selector)
    end,
    Result = case maps:get(return_type, Info, nil) of
        nil -> [];
        Type -> [" -> ", Type]
    end,
    iolist_to_binary([Head, Result]).

typed({Name, nil}) -> Name;
typed({Name, Type}) -> [Name, " :: ", Type].

zipped(Keywords, Parameters) ->
    lists:join(" ", lists:zipwith(fun(Keyword, Parameter) -> [Keyword, " ", Parameter] end, Keywords, Parameters)).

%%% Class definitions

-spec class_definition(fields()) -> map().
class_definition(Fields) ->
    Class = beamtalk_image_ops_fields:class(Fields, <<"class">>),
    Meta = beamtalk_class:meta(Class),
    #{slots := Slots, class_slots := ClassSlots} = Meta,
    #{definition => definition(Meta), comment => beamtalk_reflect:class_doc(beamtalk_class:named(Class)),
      state => [slot(Slot) || Slot <- Slots] ++ [slot(Slot) || Slot <- ClassSlots],
      origin => origin(beamtalk_class:record(Class)), disk_differs => class_differs(Class)}.

%% A class as the one who edits it sees it, in one answer.
-spec class(fields()) -> map().
class(Fields) ->
    Class = beamtalk_image_ops_fields:class(Fields, <<"class">>),
    #{superclass := Super, package := Package, source_file := File} = Record = beamtalk_class:record(Class),
    #{kind := Kind} = Meta = beamtalk_class:meta(Class),
    #{definition => definition(Meta), comment => beamtalk_reflect:class_doc(beamtalk_class:named(Class)),
      superclass => Super, package => Package, source_file => File, line => maps:get(line, Record, nil), kind => Kind,
      methods => [#{selector => Selector, side => Side, source => maps:get(source, Info, nil), doc => Doc,
                    source_status => source_status(Info), line => maps:get(line, Info, nil)}
                  || {Side, Behaviour} <- [{instance, beamtalk_class:named(Class)},
                                           {class, beamtalk_reflect:metaclass(Class)}],
                     {Selector, Info, Doc} <- beamtalk_reflect:own_methods(Behaviour)]}.

slot(#{name := Name, type := Type, default := Default}) -> #{name => Name, type => Type, default => Default}.

definition(#{class := Class, superclass := Super, modifiers := Modifiers, slots := Slots,
             class_slots := ClassSlots, kind := Kind} = Meta) ->
    Header = [[[atom_to_binary(Modifier), " "] || Modifier <- [abstract, sealed, typed, internal],
                                                  lists:member(Modifier, Modifiers)],
              atom_to_binary(Super), " subclass: ", atom_to_binary(Class), type_parameters(Meta), native(Meta)],
    Keyword = case Kind of
        actor -> "state";
        _ -> "field"
    end,
    Lines = [slot_line(Keyword, Slot) || Slot <- Slots] ++ [slot_line("classState", Slot) || Slot <- ClassSlots],
    iolist_to_binary(lists:join("\n", [Header | Lines])).

type_parameters(#{type_parameters := [_ | _] = Parameters}) -> ["(", lists:join(", ", Parameters), ")"];
type_parameters(_) -> [].

native(#{native := Module}) when Module =/= nil -> [" native: ", atom_to_binary(Module)];
native(_) -> [].

slot_line(Keyword, Slot) -> ["  ", Keyword, ": ", slot_text(Slot)].

%% A slot as it is declared, without its keyword.
-spec slot_text(map()) -> iolist().
slot_text(#{name := Name, type := Type, default := Default}) ->
    [atom_to_binary(Name), [[" :: ", Type] || Type =/= nil], [[" = ", Default] || Default =/= nil]].

%%% The image against the disk

origin(Record) ->
    case path(Record) of
        none -> runtime;
        Path ->
            case size_of(Path) of
                none -> runtime;
                _ -> both
            end
    end.

%% Files are named as their package names them.
path(#{source_file := nil}) -> none;
path(#{source_file := File, package := Package}) ->
    filename:join(beamtalk_package:root(Package), File).

%% The source file of a class as it is now; empty when it is not there, or not yet.
on_disk(Class) ->
    case path(beamtalk_class:record(Class)) of
        none -> none;
        Path ->
            case read(Path) of
                {ok, Content} -> {file, Content};
                none -> {file, <<>>}
            end
    end.

is_in_body(Class, Side, Selector) ->
    #{method_info := Methods, class_method_info := ClassMethods} = beamtalk_class:record(Class),
    case Side of
        instance -> is_map_key(Selector, Methods);
        class -> is_map_key(Selector, ClassMethods)
    end.

%% The text of its head, as far as that can be told without parsing the file.
mentions(Content, Selector) ->
    [First | _] = binary:split(atom_to_binary(Selector), <<":">>),
    binary:match(Content, First) =/= nomatch.

read(Path) ->
    Size = size_of(Path),
    case is_integer(Size) andalso Size < ?MAX_FILE andalso file:open(Path, [raw, read, binary]) of
        {ok, File} ->
            try file:read(File, ?MAX_FILE) of
                {ok, Content} -> {ok, Content};
                eof -> {ok, <<>>};
                {error, _} -> none
            after
                file:close(File)
            end;
        _ -> none
    end.

%% Read without the process that serves files to all: it would be asked four times for every class.
size_of(Path) ->
    case file:read_file_info(Path, [raw]) of
        {ok, #file_info{type = regular, size = Size}} -> Size;
        _ -> none
    end.

%% A method of the class body may have another text in the file; any other one is there only if its text is.
method_origin(_, _, none) -> runtime;
method_origin(_, _, {file, <<>>}) -> runtime;
method_origin({Class, Side, Selector}, Info, {file, Content} = Disk) ->
    IsThere = not method_differs(Info, Disk)
        orelse (is_in_body(Class, Side, Selector) andalso mentions(Content, Selector)),
    case IsThere of
        true -> both;
        false -> runtime
    end.

method_differs(_, none) -> nil;
method_differs(#{source := Source}, {file, Content}) when is_binary(Source), Source =/= <<>> ->
    not has_definition(Content, Source);
method_differs(_, _) -> false.

%% The text stands in the file as a whole: from the head of a method to its end, not as a part of another one or of a comment.
has_definition(Content, Source) ->
    lists:any(fun({Start, Length}) ->
                      <<Before:Start/binary, _:Length/binary, After/binary>> = Content,
                      Line = lists:last(binary:split(Before, <<"\n">>, [global])),
                      is_head(Line) andalso is_end(After, indentation(Line))
              end, binary:matches(Content, Source)).

%% Only words such as `class' stand before the head of a method.
is_head(Line) -> re:run(Line, "^\\s*([a-z]+\\s+)*$", [{capture, none}]) =:= match.

is_end(After, Indentation) ->
    [Rest | Lines] = binary:split(After, <<"\n">>, [global]),
    IsNothing = fun(Line) -> string:trim(Line) =:= <<>> end,
    IsNothing(Rest) andalso
        case lists:dropwhile(IsNothing, Lines) of
            [] -> true;
            [Next | _] -> indentation(Next) =< Indentation
        end.

indentation(Line) -> byte_size(Line) - byte_size(string:trim(Line, leading, " \t")).

%% A method that is not in the file as it stands in the image, or one that was removed from the image and not from the file.
class_differs(Class) ->
    case on_disk(Class) of
        none -> nil;
        Disk ->
            #{removed := Removed} = beamtalk_class:record(Class),
            lists:any(fun(Method) -> is_still_there(Class, Method, Disk) end, Removed) orelse
                lists:any(fun(Behaviour) ->
                                  lists:any(fun({_, Info, _}) -> method_differs(Info, Disk) end,
                                            beamtalk_reflect:own_methods(Behaviour))
                          end, [beamtalk_class:named(Class), beamtalk_reflect:metaclass(Class)])
    end.

is_still_there(Class, {Side, Selector}, {file, Content}) ->
    #{method_info := Methods, class_method_info := ClassMethods} = beamtalk_class:meta(Class),
    case {Side, Methods, ClassMethods} of
        {instance, #{Selector := #{source := Source}}, _} when is_binary(Source) -> has_definition(Content, Source);
        {class, _, #{Selector := #{source := Source}}} when is_binary(Source) -> has_definition(Content, Source);
        _ -> false
    end.

%%% Native sources

-spec native_source(fields()) -> map().
native_source(Fields) ->
    Class = beamtalk_image_ops_fields:class(Fields, <<"class">>),
    case beamtalk_class:record(Class) of
        #{native := nil} -> fail(no_source_file, [atom_to_binary(Class), " has no native module"]);
        #{native := Module} ->
            case read_first([Path || Path <- source_paths(Module), Path =/= none]) of
                {ok, Source} -> #{module => Module, source => Source, clauses => clauses(Source)};
                none -> fail(no_source_file, ["the source of ", atom_to_binary(Module), " is not on this machine"])
            end
    end.

source_paths(Module) ->
    Name = atom_to_list(Module) ++ ".erl",
    Compiled = case erlang:module_loaded(Module) of
        true -> proplists:get_value(source, Module:module_info(compile), none);
        false -> none
    end,
    Beside = case code:which(Module) of
        Beam when is_list(Beam), Beam =/= [] ->
            filename:join([filename:dirname(filename:dirname(Beam)), "src", Name]);
        _ -> none
    end,
    [Compiled, filename:join("native", Name), Beside].

read_first([Path | Rest]) ->
    case read(Path) of
        none -> read_first(Rest);
        Found -> Found
    end;
read_first([]) -> none.

%% Functions and the lines of their clauses; forms with macros in their way are left out.
clauses(Source) ->
    case erl_scan:string(unicode:characters_to_list(Source)) of
        {ok, Tokens, _} ->
            [#{function => Name, arity => Arity, line => Line}
             || Form <- forms(Tokens, []), {ok, {function, _, Name, Arity, Clauses}} <- [erl_parse:parse_form(Form)],
                {clause, Line, _, _, _} <- Clauses];
        _ -> []
    end.

forms([], _) -> [];
forms([{dot, _} = Dot | Rest], Form) -> [lists:reverse([Dot | Form]) | forms(Rest, [])];
forms([Token | Rest], Form) -> forms(Rest, [Token | Form]).
