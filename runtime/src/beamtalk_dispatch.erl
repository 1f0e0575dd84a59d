%% Message sends. Compiled code calls this module for every send whose receiver
%% is not known.
%%
%% Each class has a table `Selector => external fun' in `persistent_term' under
%% its own name ('Rect' for instances, 'Rect class' for the class object), with
%% inherited methods and extensions flattened in, and before it the few entries
%% that the class defines itself. A send is one lookup of the two, one of the
%% selector and a call.
%%
%% Binaries: whether the bytes are text (String) or not (Binary) matters only
%% for selectors whose methods differ. The table '$bt_text' holds, for each
%% selector of either class, the method itself when String and Binary agree on
%% it and `{StringMethod, BinaryMethod}' otherwise; only then are the bytes
%% checked.
-module(beamtalk_dispatch).

-export([send/2, send/3, send/4, send/5, send/6, send_list/3, send_as/4, super/5, cast/3]).
-export([compare/3, concat/2, at/2, at_put/3]).
-export([class_name/1, class_of/1, info/1, responds_to/2, is_kind_of/2, is_text/1]).
-export([call_local/4, method/2, not_found/4, table/1]).

-compile({inline, [native_method/2, table/1]}).

-type table() :: #{atom() => fun() | map()}.
-export_type([table/0]).

%% Texts from this size on are made only where the evaluation may have them.
-define(LONG_TEXT, 67108864).

-define(SEND(R, Sel, Call, Args),
        case R of
            #{'$beamtalk_class' := C} ->
                case persistent_term:get(C, []) of
                    {#{Sel := F}, _} -> Call;
                    {_, #{Sel := F}} -> Call;
                    _ -> not_found(C, R, Sel, Args)
                end;
            {beamtalk_object, C, _, X} when is_atom(X) ->
                case persistent_term:get(C, []) of
                    {#{Sel := F}, _} -> Call;
                    {_, #{Sel := F}} -> Call;
                    _ -> not_found(C, R, Sel, Args)
                end;
            {beamtalk_object, C, _, X} when X =:= self() ->
                case beamtalk_former:tables(C, persistent_term:get(C, [])) of
                    {#{Sel := F}, _} -> Call;
                    {_, #{Sel := F}} -> Call;
                    _ -> not_found(C, R, Sel, Args)
                end;
            {beamtalk_object, _, _, _} ->
                beamtalk_actor:send(R, Sel, Args);
            _ ->
                case native_method(R, Sel) of
                    none -> not_found(class_name(R), R, Sel, Args);
                    F -> Call
                end
        end).

-spec send(term(), atom()) -> term().
send(R, Sel) -> ?SEND(R, Sel, F(R), []).

-spec send(term(), atom(), term()) -> term().
send(R, Sel, A1) -> ?SEND(R, Sel, F(R, A1), [A1]).

-spec send(term(), atom(), term(), term()) -> term().
send(R, Sel, A1, A2) -> ?SEND(R, Sel, F(R, A1, A2), [A1, A2]).

-spec send(term(), atom(), term(), term(), term()) -> term().
send(R, Sel, A1, A2, A3) -> ?SEND(R, Sel, F(R, A1, A2, A3), [A1, A2, A3]).

-spec send(term(), atom(), term(), term(), term(), term()) -> term().
send(R, Sel, A1, A2, A3, A4) -> ?SEND(R, Sel, F(R, A1, A2, A3, A4), [A1, A2, A3, A4]).

%% A send with any number of arguments. The selector may come from user data
%% (`perform:'), so the number of arguments is checked here.
-spec send_list(term(), atom(), [term()]) -> term().
send_list({beamtalk_object, _, _, X} = R, Sel, Args) when not is_atom(X), X =/= self() ->
    beamtalk_actor:send(R, Sel, Args);
send_list(R, Sel, Args) ->
    call_local(class_name(R), R, Sel, Args).

%% The receiver is statically known to be of class `Class'.
-spec send_as(atom(), term(), atom(), [term()]) -> term().
send_as(Class, R, Sel, Args) ->
    call_local(Class, R, Sel, Args).

%% Run the method that class `Class' has for the selector in this process.
-spec call_local(atom(), term(), atom(), [term()]) -> term().
call_local(Class, R, Sel, Args) ->
    case table_for(R, Class) of
        #{Sel := F} when is_function(F, length(Args) + 1) -> apply(F, [R | Args]);
        #{Sel := F} when is_function(F) -> beamtalk_error:arity_mismatch(Class, R, Sel, Args);
        _ -> not_found(Class, R, Sel, Args)
    end.

%% `super sel' in the source of `Class'.
-spec super(term(), atom(), instance | class, atom(), [term()]) -> term().
super(Self, Class, Side, Sel, Args) ->
    case table_for(Self, Class) of
        #{'$info' := #{superclass := Super}} when Super =/= nil; Side =:= class ->
            case table_for(Self, super_table(Super, Side)) of
                #{Sel := F} -> apply(F, [Self | Args]);
                _ -> not_found(class_name(Self), Self, Sel, Args)
            end;
        _ -> beamtalk_error:raise(no_superclass, Class, Sel)
    end.

super_table(nil, class) -> 'Class';
super_table(Super, instance) -> Super;
super_table(Super, class) ->
    #{object := {_, Tag, _, _}} = info(Super),
    Tag.

%% `receiver sel!'
-spec cast(term(), atom(), [term()]) -> nil.
cast({beamtalk_object, _, _, X} = R, Sel, Args) when not is_atom(X) ->
    beamtalk_actor:cast(R, Sel, Args);
cast(R, Sel, _Args) ->
    beamtalk_error:raise(type_error, class_name(R), Sel, undefined,
                         <<"Only an actor can receive a cast (!)">>, #{}).

%% `< > <= >=': messages to instances and actors, the native order otherwise.
-spec compare('<' | '>' | '<=' | '>=', term(), term()) -> term().
compare(Op, #{'$beamtalk_class' := _} = A, B) -> send(A, Op, B);
compare(Op, {beamtalk_object, _, _, X} = A, B) when not is_atom(X) -> send(A, Op, B);
compare('<', A, B) -> A < B;
compare('>', A, B) -> A > B;
compare('<=', A, B) -> A =< B;
compare('>=', A, B) -> A >= B.

%% `at:' and `at:put:' of a Dictionary are sealed, so they need no look-up; every other receiver is sent the message.
%% All keys of an instance are Symbols, so a map with any other key is a Dictionary. `#{Key => Value}' makes the new part of a
%% large map in a fragment beside the heap, and so many of them take half as long again: `maps:put/3' makes it on the heap.
-spec at(term(), term()) -> term().
at(R, Key) when is_atom(Key), is_map_key('$beamtalk_class', R) -> send(R, 'at:', Key);
at(R, Key) ->
    case R of
        #{Key := Value} -> Value;
        _ -> send(R, 'at:', Key)
    end.

-spec at_put(term(), term(), term()) -> term().
at_put(R, Key, Value) when is_map(R), not is_map_key('$beamtalk_class', R) -> maps:put(Key, Value, R);
at_put(R, Key, Value) -> send(R, 'at:put:', Key, Value).

-spec concat(term(), term()) -> term().
concat(A, B) when is_binary(A), is_binary(B), byte_size(A) + byte_size(B) < ?LONG_TEXT -> <<A/binary, B/binary>>;
concat(A, B) when is_binary(A), is_binary(B) ->
    beamtalk_guard:check_text(byte_size(A) + byte_size(B)),
    <<A/binary, B/binary>>;
concat(A, B) when is_list(A), is_list(B) -> A ++ B;
concat(A, B) -> send(A, '++', B).

%% Name of the class whose methods answer for this term. For class objects it
%% is 'Rect class', for a metaclass 'Metaclass'.
-spec class_name(term()) -> atom().
class_name(#{'$beamtalk_class' := C}) -> C;
class_name(T) when is_integer(T) -> 'Integer';
class_name(T) when is_binary(T) ->
    case is_text(T) of
        true -> 'String';
        false -> 'Binary'
    end;
class_name(T) when is_bitstring(T) -> 'Binary';
class_name({beamtalk_object, C, _, _}) -> C;
class_name({beamtalk_supervisor, C, _, _}) -> C;
class_name(T) -> native_class(T).

native_class(T) when is_list(T) -> 'List';
native_class(nil) -> 'UndefinedObject';
native_class(true) -> 'True';
native_class(false) -> 'False';
native_class(T) when is_atom(T) -> 'Symbol';
native_class(T) when is_integer(T) -> 'Integer';
native_class(T) when is_function(T) -> 'Block';
native_class(T) when is_float(T) -> 'Float';
native_class({beamtalk_supervisor, C, _, _}) -> C;
native_class(T) when is_tuple(T) -> 'Tuple';
native_class(T) when is_map(T) -> 'Dictionary';
native_class(T) when is_pid(T) -> 'Pid';
native_class(T) when is_reference(T) -> 'Reference';
native_class(T) when is_port(T) -> 'Port';
native_class(_) -> 'Binary'.

native_method(R, Sel) when is_binary(R) ->
    case persistent_term:get('$bt_text', []) of
        #{Sel := {Text, Bytes}} ->
            case is_text(R) of
                true -> Text;
                false -> Bytes
            end;
        #{Sel := F} -> F;
        _ -> none
    end;
native_method(R, Sel) ->
    case persistent_term:get(native_class(R), []) of
        {_, #{Sel := F}} -> F;
        _ -> none
    end.

%% Is the binary valid UTF-8?
-spec is_text(binary()) -> boolean().
is_text(<<A:56, Rest/binary>>) when A band 16#80808080808080 =:= 0 -> is_text(Rest);
is_text(<<_/utf8, Rest/binary>>) -> is_text(Rest);
is_text(Rest) -> Rest =:= <<>>.

%% The class object of a term; of a class object its metaclass.
-spec class_of(term()) -> tuple().
class_of({beamtalk_object, 'Metaclass', _, X} = Meta) when is_atom(X) -> Meta;
class_of({beamtalk_object, _, Module, X}) when is_atom(X) ->
    {beamtalk_object, 'Metaclass', Module, X};
class_of(Term) ->
    beamtalk_class:named(class_name(Term)).

%% What the runtime knows about a loaded class, `none' for an unknown name.
-spec info(atom()) -> map() | none.
info(Class) ->
    case persistent_term:get(Class, []) of
        {#{'$info' := Info}, _} -> Info;
        _ -> none
    end.

%% Everything the class of that name answers; empty where there is none.
-spec table(atom()) -> table().
table(Class) ->
    case persistent_term:get(Class, []) of
        {_, Table} -> Table;
        [] -> #{}
    end.

%% An actor that could not follow a change of its class goes on with the tables from before.
table_for({beamtalk_object, _, _, Pid}, Class) when Pid =:= self() ->
    case beamtalk_former:tables(Class, persistent_term:get(Class, [])) of
        {_, Table} -> Table;
        [] -> #{}
    end;
table_for(_, Class) -> table(Class).

%% The method found for a selector in a class's table.
-spec method(atom(), atom()) -> fun() | none.
method(Class, Sel) ->
    case table(Class) of
        #{Sel := F} when is_function(F) -> F;
        _ -> none
    end.

-spec responds_to(term(), atom()) -> boolean().
responds_to({beamtalk_object, 'Metaclass', _, Name}, Sel) when is_atom(Name) ->
    method('Metaclass', Sel) =/= none orelse method(super_table(Name, class), Sel) =/= none;
responds_to(R, Sel) ->
    method(class_name(R), Sel) =/= none.

%% Is the term an instance of the class of that name or of a descendant?
-spec is_kind_of(term(), atom()) -> boolean().
is_kind_of({beamtalk_object, 'Metaclass', _, Name}, Class) when is_atom(Name) ->
    beamtalk_class:inherits('Metaclass', Class);
is_kind_of({beamtalk_object, _, _, Name}, Class) when is_atom(Name) ->
    beamtalk_class:inherits('Class', Class);
is_kind_of(Term, Class) ->
    beamtalk_class:inherits(class_name(Term), Class).

%% No method: a metaclass passes the message to its class; everything else gets
%% `doesNotUnderstand:args:'.
-spec not_found(atom(), term(), atom(), [term()]) -> term().
not_found('Metaclass', {beamtalk_object, _, _, Name} = R, Sel, Args) when is_atom(Name) ->
    case info(Name) of
        #{object := {_, Tag, _, _} = Class} ->
            case method(Tag, Sel) of
                none -> not_understood('Metaclass', R, Sel, Args);
                _ -> call_local(Tag, Class, Sel, Args)
            end;
        none -> beamtalk_error:raise(class_not_found, Name, Sel)
    end;
not_found(Class, {beamtalk_object, _, _, Name} = R, Sel, Args) when is_atom(Name) ->
    case info(Name) of
        none -> beamtalk_error:raise(class_not_found, Name, Sel);
        _ -> not_understood(Class, R, Sel, Args)
    end;
not_found(Class, R, Sel, Args) ->
    not_understood(Class, R, Sel, Args).

not_understood(Class, R, Sel, Args) ->
    case table(Class) of
        #{'doesNotUnderstand:args:' := F} -> F(R, Sel, Args);
        _ -> beamtalk_error:does_not_understand(R, Sel, Args)
    end.
