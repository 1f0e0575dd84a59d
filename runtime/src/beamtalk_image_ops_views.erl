%% Requests for ways to look at something.
-module(beamtalk_image_ops_views).

-export([views/2, view/2]).

-import(beamtalk_image_ops_fields, [fail/2]).

-type fields() :: beamtalk_image_ops_fields:fields().

-define(COUNT, 100).
-define(LARGEST, 500).
%% What names a target, and so a view.
-define(TARGET, [<<"actor">>, <<"binding">>, <<"class">>, <<"ref">>]).

-spec views(fields(), binary() | nil) -> map().
views(Fields, Session) ->
    Names = beamtalk_image_ops_target:look(Fields, Session, fun beamtalk_views:names/1),
    #{views => [#{name => Name, title => Title, origin => builtin} || {Name, Title} <- Names]}.

-spec view(fields(), binary() | nil) -> map().
view(Given, Session) ->
    Fields = of_view(Given),
    Target = maps:from_list([{binary_to_existing_atom(Key), Value} || Key <- ?TARGET, Value <- [maps:get(Key, Fields, nil)], Value =/= nil]),
    Path = beamtalk_image_ops_target:path(Fields),
    Name = beamtalk_image_ops_fields:text(Fields, <<"name">>, none),
    Options = #{from => beamtalk_image_ops_fields:integer(Fields, <<"from">>, 0, 0),
                count => min(beamtalk_image_ops_fields:integer(Fields, <<"count">>, 1, ?COUNT), ?LARGEST),
                sort => beamtalk_image_ops_fields:text(Fields, <<"sort">>, none),
                find => beamtalk_image_ops_fields:text(Fields, <<"find">>, none),
                node => beamtalk_image_ops_fields:text(Fields, <<"node">>, none),
                target => Target, path => Path},
    Seen = beamtalk_image_ops_target:look(Fields, Session, fun(Value) ->
        Wanted = case Name of
            none -> element(1, hd(beamtalk_views:names(Value)));
            _ -> Name
        end,
        {Wanted, beamtalk_views:show(Value, Wanted, Options)}
    end),
    case Seen of
        {Shown, {ok, View}} -> #{view => View#{id => id(Fields, Shown), computed => false}};
        {Shown, unknown} -> fail(not_found, ["there is no view '", Shown, "' of this"])
    end.

%% A view is named by what it is of, so nothing has to be remembered for it.
id(Fields, Name) ->
    Kept = maps:filter(fun(_, Value) -> Value =/= nil end, maps:with([<<"path">> | ?TARGET], Fields)),
    beamtalk_json:'class generate:'(nil, Kept#{<<"name">> => Name}).

of_view(Fields) ->
    case beamtalk_image_ops_fields:text(Fields, <<"view">>, none) of
        none -> Fields;
        Id ->
            case beamtalk_json:decode(Id) of
                {ok, #{<<"name">> := _} = Kept} -> maps:merge(Fields, maps:with([<<"name">>, <<"path">> | ?TARGET], Kept));
                _ -> fail(invalid_parameter, "the field 'view' must be the id of a view")
            end
    end.
