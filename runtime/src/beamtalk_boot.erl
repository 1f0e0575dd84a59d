%% Entry points of a node, named on the command line of `erl`: a worker that serves requests over a
%% pipe, the live workspace, a script that runs one program, and the build of the library's image.
-module(beamtalk_boot).

-export([worker/0, workspace/0, script/0, printer/0, library/0]).
-export([start/1, prepare_streams/0]).

%% Serve requests on descriptor 0, answer on descriptor 3, until the pipe closes.
-spec worker() -> ok.
worker() ->
    [Image | _] = init:get_plain_arguments(),
    spawn(fun() -> beamtalk_worker:start(Image) end),
    ok.

%% Serve the daemon on descriptors 3 and 4 until the pipe closes.
-spec workspace() -> ok.
workspace() ->
    [Image | _] = init:get_plain_arguments(),
    spawn(fun() ->
        beamtalk_log:start(),
        start([{role, workspace}, {image, Image}])
    end),
    ok.

%% Run the job in the file and end the node with its status.
-spec script() -> ok.
script() ->
    [Image, Job | _] = init:get_plain_arguments(),
    spawn(fun() -> beamtalk_script:start(Image, Job) end),
    ok.

%% Print generated code once, without the runtime.
-spec printer() -> ok.
printer() ->
    spawn(fun beamtalk_printer:serve/0),
    ok.

%% Compile the forms of the library and write the image of its class tables.
-spec library() -> ok.
library() ->
    [Forms, Ebin, Image | _] = init:get_plain_arguments(),
    spawn(fun() ->
        start([]),
        beamtalk_library:build(Forms, Ebin, Image)
    end),
    ok.

%% Text is Unicode, and reports of crashed processes are nobody's output.
-spec prepare_streams() -> ok.
prepare_streams() ->
    _ = [io:setopts(Device, [{encoding, unicode}]) || Device <- [user, standard_error]],
    _ = logger:remove_handler(simple),
    ok.

%% The runtime with these variables. A node that cannot have it is of no use.
-spec start([{role | image, term()}]) -> ok.
start(Settings) ->
    case beamtalk_app:run(Settings) of
        ok -> ok;
        {error, {image, Reason}} -> fail("cannot read the library image", Reason);
        {error, Reason} -> fail("the runtime does not start", Reason)
    end.

-spec fail(string(), term()) -> no_return().
fail(What, Reason) ->
    io:format(standard_error, "~ts: ~0tp~n", [What, Reason]),
    halt(70).
