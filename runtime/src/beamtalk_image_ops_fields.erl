%% The fields of a request about the image. They come from outside: every one is checked, and a name becomes an atom
%% only when such an atom exists.
%%
%% What is wrong ends the request by a throw that beamtalk_image_ops turns into its answer.
-module(beamtalk_image_ops_fields).

-export([fail/2, fail/3, fail/4, raised/3]).
-export([text/2, text/3, choice/4, boolean/3, integer/4, list/3, is_given/2]).
-export([class/2, optional_class/2, class_named/1, find_class/1, selector/2, side/1, behaviour/1, existing/1]).

-type fields() :: #{binary() => term()}.
-export_type([fields/0]).

%%% Failing

-spec fail(atom(), unicode:chardata()) -> no_return().
fail(Kind, Message) -> fail(Kind, Message, nil, #{}).

-spec fail(atom(), unicode:chardata(), binary() | nil) -> no_return().
fail(Kind, Message, Hint) -> fail(Kind, Message, Hint, #{}).

-spec fail(atom(), unicode:chardata(), binary() | nil, map()) -> no_return().
fail(Kind, Message, Hint, Details) ->
    throw({op_failed, beamtalk_bridge_error:new(atom_to_binary(Kind), Message, Hint, Details)}).

%% The request raised what the user's code raised.
-spec raised(error | exit | throw, term(), list()) -> no_return().
raised(Class, Reason, Stack) ->
    throw({op_failed, beamtalk_bridge_error:of_exception(beamtalk_error:from_caught(Class, Reason, Stack))}).

-spec missing(binary()) -> no_return().
missing(Key) ->
    fail(missing_parameter, ["the field '", Key, "' is missing"], nil, #{<<"parameter">> => Key}).

-spec invalid(binary(), iodata()) -> no_return().
invalid(Key, Expected) ->
    fail(invalid_parameter, ["the field '", Key, "' must be ", Expected], nil, #{<<"parameter">> => Key}).

%%% Plain fields

-spec is_given(fields(), binary()) -> boolean().
is_given(Fields, Key) -> maps:get(Key, Fields, nil) =/= nil.

-spec text(fields(), binary()) -> binary().
text(Fields, Key) ->
    case Fields of
        #{Key := Text} when is_binary(Text), Text =/= <<>> -> Text;
        #{Key := Value} when Value =/= nil -> invalid(Key, "a string that is not empty");
        _ -> missing(Key)
    end.

-spec text(fields(), binary(), Default) -> binary() | Default when Default :: term().
text(Fields, Key, Default) ->
    case Fields of
        #{Key := Text} when is_binary(Text) -> Text;
        #{Key := Value} when Value =/= nil -> invalid(Key, "a string");
        _ -> Default
    end.

%% One of the given atoms, written as a string.
-spec choice(fields(), binary(), [atom()], atom()) -> atom().
choice(Fields, Key, Choices, Default) ->
    case text(Fields, Key, none) of
        none -> Default;
        Text ->
            case [Choice || Choice <- Choices, atom_to_binary(Choice) =:= Text] of
                [Choice] -> Choice;
                [] -> invalid(Key, ["one of ", lists:join(", ", [atom_to_binary(C) || C <- Choices])])
            end
    end.

-spec boolean(fields(), binary(), boolean()) -> boolean().
boolean(Fields, Key, Default) ->
    case maps:get(Key, Fields, nil) of
        nil -> Default;
        Value when is_boolean(Value) -> Value;
        _ -> invalid(Key, "true or false")
    end.

-spec integer(fields(), binary(), non_neg_integer(), integer() | none) -> integer() | none.
integer(Fields, Key, Least, Default) ->
    case maps:get(Key, Fields, nil) of
        nil -> Default;
        Value when is_integer(Value), Value >= Least -> Value;
        _ -> invalid(Key, ["an integer of at least ", integer_to_list(Least)])
    end.

-spec list(fields(), binary(), fun((term()) -> boolean())) -> list().
list(Fields, Key, IsAllowed) ->
    case maps:get(Key, Fields, nil) of
        nil -> [];
        Value when is_list(Value) ->
            lists:all(IsAllowed, Value) orelse invalid(Key, "an array of names"),
            Value;
        _ -> invalid(Key, "an array")
    end.

%%% Classes and selectors

-spec class(fields(), binary()) -> atom().
class(Fields, Key) -> class_named(text(Fields, Key)).

-spec optional_class(fields(), binary()) -> atom() | none.
optional_class(Fields, Key) ->
    case is_given(Fields, Key) of
        true -> class(Fields, Key);
        false -> none
    end.

-spec class_named(binary()) -> atom().
class_named(Text) ->
    case find_class(Text) of
        {ok, Class} -> Class;
        none -> fail(class_not_found, ["no class named '", Text, "' is loaded"], nil, #{<<"class">> => Text})
    end.

%% `Lamp', or `light@Lamp' for the class of that package.
-spec find_class(binary()) -> {ok, atom()} | none.
find_class(Text) ->
    {Package, Name} = case binary:split(Text, <<"@">>) of
        [Given, Rest] -> {Given, Rest};
        [Whole] -> {any, Whole}
    end,
    Record = case existing(Name) of
        {ok, Atom} -> beamtalk_class:record(Atom);
        none -> none
    end,
    case Record of
        #{name := Class, package := Actual} when Package =:= any; Package =:= Actual -> {ok, Class};
        _ -> none
    end.

%% A selector is known when some class or code has it.
-spec selector(fields(), binary()) -> {ok, atom()} | {unknown, binary()}.
selector(Fields, Key) ->
    Text = without_mark(text(Fields, Key)),
    case existing(Text) of
        {ok, Selector} -> {ok, Selector};
        none -> {unknown, Text}
    end.

without_mark(<<"#", Rest/binary>>) when Rest =/= <<>> -> Rest;
without_mark(Text) -> Text.

-spec existing(binary()) -> {ok, atom()} | none.
existing(Text) ->
    try {ok, binary_to_existing_atom(Text)}
    catch error:_ -> none
    end.

-spec side(fields()) -> instance | class.
side(Fields) -> choice(Fields, <<"side">>, [instance, class], instance).

%% The class object or metaclass that `class' and `side' name.
-spec behaviour(fields()) -> tuple().
behaviour(Fields) ->
    Class = class(Fields, <<"class">>),
    case side(Fields) of
        instance -> beamtalk_class:named(Class);
        class -> beamtalk_reflect:metaclass(Class)
    end.
