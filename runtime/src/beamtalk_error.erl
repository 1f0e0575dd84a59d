%% Exceptions: kinds, standard messages, raising, and the classification of raw
%% Erlang faults.
%%
%% An exception is a tagged map whose key `error' holds
%% `{beamtalk_error, Kind, Class, Selector, Message, Hint, Details}'. It is raised
%% with `erlang:error/1'. Raw faults stay raw until somebody catches them.
-module(beamtalk_error).

-export([raise/3, raise/4, raise/6, new/6, signal/2, signal/3, reraise/1]).
-export([from_caught/3, from_caught/4, classify/1, wrap_reason/1, does_not_understand/3, arity_mismatch/4, retained/1]).
-export([no_match/1, bad_match/1, not_boolean/3, bad_condition/1]).
-export([class_of_kind/1, is_exception/1, is_listed_kind/1, standard_message/3]).
-export([field/2, type_error/3, erlang_tag/1]).

-type exception() :: map().
-export_type([exception/0]).

-spec raise(atom(), atom(), atom()) -> no_return().
raise(Kind, Class, Selector) ->
    raise(Kind, Class, Selector, undefined, nil, #{}).

-spec raise(atom(), atom(), atom(), binary() | nil) -> no_return().
raise(Kind, Class, Selector, Hint) ->
    raise(Kind, Class, Selector, undefined, Hint, #{}).

-spec raise(atom(), atom(), atom(), binary() | undefined, binary() | nil, map()) -> no_return().
raise(Kind, Class, Selector, Message, Hint, Details) ->
    erlang:error(new(Kind, Class, Selector, Message, Hint, Details)).

%% Wrong class of argument for a library selector.
-spec type_error(atom(), atom(), binary() | nil) -> no_return().
type_error(Class, Selector, Hint) ->
    raise(type_error, Class, Selector, undefined, Hint, #{}).

%% Build an exception; its class comes from the kind, its message, when
%% `undefined', too.
-spec new(atom(), atom(), atom(), binary() | undefined, binary() | nil, map()) -> exception().
new(Kind, Class, Selector, undefined, Hint, Details) ->
    new(Kind, Class, Selector, standard_message(Kind, Class, Selector), Hint, Details);
new(Kind, Class, Selector, Message, Hint, Details) ->
    make(class_of_kind(Kind), Kind, Class, Selector, Message, Hint, Details).

make(ExceptionClass, Kind, Class, Selector, Message, Hint, Details) ->
    #{'$beamtalk_class' => ExceptionClass,
      error => {beamtalk_error, Kind, Class, Selector, Message, Hint, Details}}.

%% `ExceptionClass signal: Message' (the class name when there is no text).
-spec signal(atom(), binary()) -> no_return().
signal(ExceptionClass, Message) ->
    signal(ExceptionClass, signal_kind(ExceptionClass), Message).

-spec signal(atom(), atom(), binary()) -> no_return().
signal(ExceptionClass, Kind, Message) ->
    erlang:error(make(ExceptionClass, Kind, nil, nil, Message, nil, #{})).

signal_kind('TypeError') -> type_error;
signal_kind('InstantiationError') -> instantiation_error;
signal_kind(_) -> signal.

%% Raise a caught exception again, with the stack of its first raise.
-spec reraise(exception()) -> no_return().
reraise(#{stacktrace := Stack} = Exception) when Stack =/= [] ->
    erlang:raise(error, Exception, Stack);
reraise(Exception) ->
    erlang:error(Exception).

-spec is_exception(term()) -> boolean().
is_exception(#{'$beamtalk_class' := _, error := E}) ->
    is_tuple(E) andalso element(1, E) =:= beamtalk_error;
is_exception(_) -> false.

%% The exception for something caught with `Class:Reason:Stacktrace'.
-spec from_caught(error | exit | throw, term(), list()) -> exception().
from_caught(Class, Reason, Stack) -> from_caught(Class, Reason, Stack, none).

%% The same where the message an actor was handling is known: it is the place of
%% the fault when the method has left the stack by a tail call.
-spec from_caught(error | exit | throw, term(), list(), atom()) -> exception().
from_caught(error, #{'$beamtalk_class' := _, error := _} = Exception, Stack, _) ->
    case Exception of
        #{stacktrace := _} -> Exception;
        _ -> Exception#{stacktrace => Stack}
    end;
from_caught(error, Reason, Stack, Handling) ->
    locate(raw(Reason, Stack), Stack, Handling);
from_caught(exit, Reason, Stack, _) ->
    (foreign(erlang_exit, Reason))#{stacktrace => Stack};
from_caught(throw, Reason, Stack, _) ->
    (foreign(erlang_throw, Reason))#{stacktrace => Stack}.

foreign(Kind, Reason) ->
    new(Kind, nil, nil, beamtalk_display:native_display(Reason), nil, #{reason => Reason}).

raw(undef, [{M, F, Args, _} | _] = Stack) ->
    Arity = if is_list(Args) -> length(Args); true -> Args end,
    Text = unicode:characters_to_binary(io_lib:format("Undefined function: ~ts:~ts/~b", [M, F, Arity])),
    (fault(runtime_error, Text, undef))#{stacktrace => Stack};
raw(Reason, Stack) ->
    (classify(Reason))#{stacktrace => Stack}.

%% The exception for a raw Erlang error term.
-spec classify(term()) -> exception().
classify(#{'$beamtalk_class' := _, error := _} = Exception) -> Exception;
classify(badarith) ->
    Hint = <<"Both operands must be numbers and a divisor must not be zero">>,
    new(type_error, nil, nil, <<"bad arithmetic operation">>, Hint, #{erlang_error => badarith});
classify({badkey, Key} = Reason) ->
    fault(key_error, <<"key not found: ", (beamtalk_display:print(Key))/binary>>, Reason);
classify({badmap, _} = Reason) ->
    fault(type_error, <<"expected a Dictionary but got a non-map value">>, Reason);
classify(badarg) ->
    fault(argument_error, <<"invalid argument">>, badarg);
classify({badarity, {Fun, Args}} = Reason) when is_function(Fun), is_list(Args) ->
    Expected = integer_to_binary(beamtalk_block:arity(Fun)),
    Given = integer_to_binary(length(Args)),
    Message = <<"Wrong number of arguments: block expects ", Expected/binary,
                " but was called with ", Given/binary>>,
    Hint = <<"Check that your block has the right number of parameters "
             "(e.g., [:x | ...] for 1 argument)">>,
    new(arity_mismatch, 'Block', nil, Message, Hint, #{erlang_error => Reason});
classify(system_limit) ->
    fault(resource_error, <<"a system limit was reached">>, system_limit);
classify(noproc) -> missing_process(noproc);
classify({noproc, _} = Reason) -> missing_process(Reason);
classify(timeout) -> timed_out(timeout);
classify({timeout, _} = Reason) -> timed_out(Reason);
classify(undef) -> fault(runtime_error, <<"Undefined function">>, undef);
classify(Reason) ->
    case erlang_tag(Reason) of
        Tag when Tag =:= function_clause; Tag =:= case_clause; Tag =:= badmatch;
                 Tag =:= if_clause; Tag =:= try_clause ->
            Name = atom_to_binary(Tag),
            fault(internal_error,
                  <<"internal error (", Name/binary, ") - this is a bug in Beamtalk">>, Reason);
        _ ->
            fault(runtime_error, beamtalk_display:native_display(Reason), Reason)
    end.

fault(Kind, Message, Reason) ->
    new(Kind, nil, nil, Message, nil, #{erlang_error => Reason}).

missing_process(Reason) ->
    fault(process_not_found, <<"the target process no longer exists">>, Reason).

timed_out(Reason) ->
    fault(timeout_error, <<"the operation timed out">>, Reason).

%% First word of an Erlang reason: `badarith', `badkey', `case_clause' …
-spec erlang_tag(term()) -> atom().
erlang_tag(Reason) when is_atom(Reason) -> Reason;
erlang_tag(Reason) when is_tuple(Reason), tuple_size(Reason) > 0, is_atom(element(1, Reason)) ->
    element(1, Reason);
erlang_tag(_) -> nil.

%% Inside an actor a raw fault is located at the innermost method of the actor.
locate(#{error := {_, Kind, _, Selector, Message, Hint, Details}} = Exception, Stack, Handling) ->
    case get('$bt_self') of
        {beamtalk_object, Class, _, _} ->
            Found = case beamtalk_stack:actor_method(Class, Stack) of
                none -> Handling;
                Method -> Method
            end,
            case Found of
                none -> Exception;
                _ ->
                    At = if Selector =:= nil -> Found; true -> Selector end,
                    Place = <<(atom_to_binary(Class))/binary, ">>", (atom_to_binary(At))/binary>>,
                    %% A keyword ends in the colon that separates the place from what happened.
                    Colon = case binary:last(Place) of
                        $: -> <<" ">>;
                        _ -> <<": ">>
                    end,
                    Exception#{error := {beamtalk_error, Kind, Class, At,
                                         <<Place/binary, Colon/binary, Message/binary>>, Hint, Details}}
            end;
        _ -> Exception
    end.

%% The exception inside a `Result error:' for Erlang's `{error, Reason}'.
-spec wrap_reason(term()) -> exception().
wrap_reason(#{'$beamtalk_class' := _, error := _} = Exception) -> Exception;
wrap_reason(Reason) when is_atom(Reason) ->
    new(runtime_error, nil, nil, atom_to_binary(Reason), nil, #{reason => Reason});
wrap_reason(Reason) ->
    #{error := E} = Exception = classify(Reason),
    Details = element(7, E),
    Exception#{error := setelement(7, E, Details#{reason => Reason})}.

%% The receiver and the arguments of the message that failed, where they are known.
-spec retained(exception()) -> {term(), [term()]} | none.
retained(Exception) ->
    case {field(Exception, details), Exception} of
        {#{receiver := Receiver} = Details, _} -> {Receiver, maps:get(arguments, Details, [])};
        {_, #{stacktrace := [{_, _, [Receiver | Arguments], _} | _]}} -> {Receiver, Arguments};
        _ -> none
    end.

%% The message stays on the stack, as the VM leaves the arguments of a function without a clause for them.
-spec arity_mismatch(atom(), term(), atom(), [term()]) -> no_return().
arity_mismatch(Class, R, Sel, Args) ->
    erlang:error(new(arity_mismatch, Class, Sel, undefined, nil, #{}), [R | Args]).

-spec does_not_understand(term(), atom(), [term()]) -> no_return().
does_not_understand({beamtalk_object, _, _, Name} = R, Sel, Args) when is_atom(Name) ->
    Class = class_text(R),
    beamtalk_class:exists(Name) orelse raise(class_not_found, Name, Sel),
    case Sel of
        new -> raise(instantiation_error, Name, new);
        'new:' -> raise(instantiation_error, Name, 'new:');
        _ -> not_understood(R, Class, Sel, spelling_hint(Class, Sel), Args)
    end;
does_not_understand(R, '>>', _) ->
    type_error(beamtalk_dispatch:class_name(R), '>>', <<"Only a class can be asked for a method">>);
does_not_understand(R, Sel, Args) ->
    Class = beamtalk_dispatch:class_name(R),
    Hint = case not beamtalk_former:has_left_out(R, Sel) andalso beamtalk_class:find(Class) of
        false -> former_hint(Class);
        {ok, {_, Tag, _, _}} ->
            case beamtalk_dispatch:method(Tag, Sel) of
                none -> spelling_hint(Class, Sel);
                _ ->
                    Name = atom_to_binary(Class),
                    <<"'", (atom_to_binary(Sel))/binary, "' is a class-side message: send it to ",
                      Name/binary, " itself">>
            end;
        none -> spelling_hint(Class, Sel)
    end,
    not_understood(R, Class, Sel, Hint, Args).

not_understood(R, Class, Sel, Hint, Args) ->
    erlang:error(new(does_not_understand, Class, Sel, undefined, Hint, #{}), [R | Args]).

class_text({beamtalk_object, 'Metaclass', _, Name}) ->
    binary_to_atom(<<(atom_to_binary(Name))/binary, " class">>);
class_text({beamtalk_object, Tag, _, _}) -> Tag.

spelling_hint(Class, Sel) ->
    <<"Check the spelling, or ask: ", (atom_to_binary(Class))/binary, " respondsTo: ",
      (beamtalk_display:symbol(Sel))/binary>>.

former_hint(Class) ->
    <<"This actor still runs ", (atom_to_binary(Class))/binary, " as it was before, since the default of a new slot failed: "
      "define the class again with one that does not, and the actor follows">>.

-spec no_match(term()) -> no_return().
no_match(Value) ->
    raise(no_match, nil, nil, <<"No pattern matches ", (beamtalk_display:print(Value))/binary>>,
          nil, #{}).

%% A failed destructuring assignment.
-spec bad_match(term()) -> no_return().
bad_match(Value) ->
    raise(no_match, nil, nil,
          <<"badmatch: No pattern matches ", (beamtalk_display:print(Value))/binary>>, nil, #{}).

%% `ifTrue:' and kin with a receiver that is no Boolean.
-spec not_boolean(term(), atom(), [term()]) -> term().
not_boolean(Value, Sel, Args) ->
    beamtalk_dispatch:send_list(Value, Sel, Args).

%% A loop condition or guard that answered something else than a Boolean.
-spec bad_condition(term()) -> no_return().
bad_condition(Value) ->
    Class = beamtalk_dispatch:class_name(Value),
    raise(type_error, Class, nil,
          <<"A condition must answer a Boolean, not ", (beamtalk_display:print(Value))/binary>>,
          <<"The condition block must answer true or false">>, #{}).

%% One part of an exception.
-spec field(exception(), kind | errorClass | selector | message | hint | details) -> term().
field(#{error := E}, Name) ->
    element(position(Name), E);
field(#{'$beamtalk_class' := Class}, Name) ->
    case Name of
        kind -> signal_kind(Class);
        message -> atom_to_binary(Class);
        details -> #{};
        _ -> nil
    end.

position(kind) -> 2;
position(errorClass) -> 3;
position(selector) -> 4;
position(message) -> 5;
position(hint) -> 6;
position(details) -> 7.

-spec standard_message(atom(), atom(), atom()) -> binary().
standard_message(Kind, Class, Selector) ->
    unicode:characters_to_binary(text(Kind, name(Class), name(Selector))).

name(nil) -> <<"?">>;
name(Atom) -> atom_to_binary(Atom).

text(does_not_understand, C, S) -> [C, " does not understand '", S, "'"];
text(arity_mismatch, C, S) -> ["Wrong number of arguments to '", S, "' on ", C];
text(immutable_value, C, S) -> ["Cannot call '", S, "' on ", C, " (immutable value)"];
text(index_out_of_bounds, C, S) -> ["'", S, "': index out of bounds for ", C];
text(empty_collection, C, S) -> ["'", S, "': ", C, " is empty"];
text(not_found, C, S) -> ["'", S, "': not found in ", C];
text(key_error, _, S) -> ["key not found: ", S];
text(argument_error, _, _) -> "invalid argument";
text(type_error, C, S) -> ["Type error in '", S, "' on ", C];
text(instantiation_error, C, S) -> ["Cannot call '", S, "' on ", C];
text(unknown_field, C, S) -> ["Unknown field '", S, "' for ", C];
text(class_not_found, C, _) -> ["Class '", C, "' not found"];
text(class_already_exists, C, _) -> ["Class '", C, "' already exists"];
text(no_superclass, C, _) -> [C, " has no superclass"];
text(actor_dead, C, S) -> ["Cannot send '", S, "' to ", C, ": the actor has ended"];
text(stdlib_shadowing, C, _) -> ["Cannot redefine stdlib class '", C, "'"];
text(undefined_variable, _, S) -> ["Undefined variable: ", S];
text(permission_denied, C, S) -> [C, " '", S, "': permission denied"];
text(io_error, C, S) -> [C, " '", S, "': I/O error"];
text(Kind, C, S) -> [atom_to_binary(Kind), " error in '", S, "' on ", C].

-spec class_of_kind(atom()) -> atom().
class_of_kind(type_error) -> 'TypeError';
class_of_kind(instantiation_error) -> 'InstantiationError';
class_of_kind(unknown_field) -> 'InstantiationError';
class_of_kind(erlang_exit) -> 'ExitError';
class_of_kind(erlang_throw) -> 'ThrowError';
class_of_kind(Kind) ->
    case is_runtime_kind(Kind) of
        true -> 'RuntimeError';
        false -> 'Error'
    end.

is_runtime_kind(Kind) ->
    lists:member(Kind,
        [does_not_understand, arity_mismatch, immutable_value, index_out_of_bounds,
         empty_collection, empty_queue, not_found, key_error, argument_error, class_not_found,
         no_superclass, class_already_exists, selector_not_found, no_match, block_context,
         dispatch_error, callback_failed, actor_dead, process_not_found, resource_error,
         timeout_error, future_not_awaited, internal_error, runtime_error]).

%% May `signalKind:class:selector:hint:' raise it?
-spec is_listed_kind(term()) -> boolean().
is_listed_kind(Kind) ->
    lists:member(Kind, [type_error, instantiation_error, erlang_exit, erlang_throw, signal])
        orelse (is_runtime_kind(Kind)
                andalso not lists:member(Kind, [selector_not_found, no_match, block_context])).
