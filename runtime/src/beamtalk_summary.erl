%% What the registry must know of a module before its code is loaded. A build writes it into the module's file as a
%% chunk of its own, so that a project's classes are there without loading all of their code.
-module(beamtalk_summary).

-export([chunk/1, read/1, unit/2]).

-define(CHUNK, "BtSm").
%% What else the registry asks a module for: whether it has these functions.
-define(ASKED, [{'__defaults', 1}, {'__initial', 0}, {'__class_defaults', 0}, {'__beamtalk_replaced', 0}]).

-type summary() :: #{meta := map() | none, protocol := term(), home := module(), extensions := [map()]}.
-export_type([summary/0]).

%% The option of the Erlang compiler that puts the summary of the forms into their file.
-spec chunk([term()]) -> [{extra_chunks, [{binary(), binary()}]}].
chunk(Forms) ->
    case beamtalk_code:module_of(Forms) of
        none -> [];
        Module ->
            Literal = fun(Name, Default) -> beamtalk_code:literal(Name, Forms, Default) end,
            Summary = #{meta => light(Literal('__beamtalk_meta', none), Forms),
                        protocol => Literal('__beamtalk_protocol', none),
                        home => Literal('__beamtalk_home', Module),
                        extensions => Literal('__beamtalk_extensions', [])},
            [{extra_chunks, [{<<?CHUNK>>, term_to_binary(Summary, [deterministic])}]}]
    end.

light(none, _) -> none;
light(Meta, Forms) ->
    Has = [{Name, Arity} || {function, _, Name, Arity, _} <- Forms, lists:member({Name, Arity}, ?ASKED)],
    (beamtalk_class:without_texts(Meta))#{has => lists:sort(Has)}.

-spec read(binary()) -> {ok, summary()} | none.
read(<<"FOR1", _:32, "BEAM", Chunks/binary>>) -> find(Chunks);
read(_) -> none.

find(<<?CHUNK, Size:32, Data:Size/binary, _/binary>>) ->
    try {ok, binary_to_term(Data)}
    catch error:badarg -> none
    end;
find(<<_:4/binary, Size:32, Rest/binary>>) ->
    %% Chunks start at multiples of four bytes.
    case Rest of
        <<_:((Size + 3) band bnot 3)/binary, More/binary>> -> find(More);
        _ -> none
    end;
find(_) -> none.

%% What a loaded module would tell the registry.
-spec unit(module(), summary()) -> {module(), map() | none, term(), {module(), [map()]}}.
unit(Module, #{meta := Meta, protocol := Protocol, home := Home, extensions := Extensions}) ->
    {Module, Meta, Protocol, {Home, Extensions}}.
