%% Capabilities a workspace may be started without: `subprocess', `ffi', `http', `fs'.
%%
%% The list of those switched off is the application variable `disabled_capabilities'
%% of `beamtalk', set on the command line of the node.
-module(beamtalk_capability).

-export([is_enabled/1, require/3, require_native/2, guard/4, failure/3]).

-type capability() :: subprocess | ffi | http | fs.

-spec is_enabled(capability()) -> boolean().
is_enabled(Capability) ->
    not lists:member(Capability, application:get_env(beamtalk, disabled_capabilities, [])).

%% Raises `capability_disabled' when the capability is switched off.
-spec require(capability(), atom(), atom()) -> ok.
require(Capability, Class, Selector) ->
    case is_enabled(Capability) of
        true -> ok;
        false -> erlang:error(refusal(Capability, Class, Selector))
    end.

%% A class backed by an Erlang module: those of the library always, those of a project unless `ffi' is switched off.
-spec require_native(atom(), atom()) -> ok.
require_native(Class, Selector) ->
    case is_enabled(ffi) orelse beamtalk_class:is_library(backed(Class)) of
        true -> ok;
        false -> require(ffi, Class, Selector)
    end.

%% The class in the chain that names the module.
backed(Class) ->
    case beamtalk_dispatch:info(Class) of
        #{native := nil, superclass := Super} when Super =/= nil -> backed(Super);
        _ -> Class
    end.

%% Runs `Fun', which answers a Result, unless the capability is switched off.
-spec guard(capability(), atom(), atom(), fun(() -> map())) -> map().
guard(Capability, Class, Selector, Fun) ->
    case is_enabled(Capability) of
        true -> Fun();
        false -> failure(Capability, Class, Selector)
    end.

-spec failure(capability(), atom(), atom()) -> map().
failure(Capability, Class, Selector) ->
    beamtalk_result:error(refusal(Capability, Class, Selector)).

%% A workspace audits every refusal: it sets `fun(Capability, Class, Selector)' as the persistent term
%% `{beamtalk_capability, refused}'. A hook that fails changes nothing.
refusal(Capability, Class, Selector) ->
    case persistent_term:get({?MODULE, refused}, none) of
        Hook when is_function(Hook, 3) -> _ = (catch Hook(Capability, Class, Selector));
        _ -> ok
    end,
    Message = iolist_to_binary([atom_to_binary(Class), ">>", atom_to_binary(Selector),
                                " is switched off in this workspace (", flag(Capability), ")"]),
    beamtalk_error:new(capability_disabled, Class, Selector, Message,
                       <<"Restart the workspace without the flag to allow it">>,
                       #{capability => Capability}).

flag(subprocess) -> "--no-subprocess";
flag(ffi) -> "--no-ffi";
flag(http) -> "--no-http";
flag(fs) -> "--read-only-fs".
