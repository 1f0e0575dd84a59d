"""The server as the Python client sees it: both ways in, all modes.

    python_client.py stdio MODE BINARY
    python_client.py http MODE URL TOKEN
"""

import json
import os
import pathlib
import sys
from typing import ClassVar, Literal

import anyio
import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.extension import ClientExtension, ResultClaim
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, ElicitResult, Request, RequestParams, Result
from pydantic import Field

HERE = pathlib.Path(__file__).parent
READING = json.loads((HERE / "reading.json").read_text())


class TaskResult(Result):
    """What is handed out for work that takes longer."""

    result_type: Literal["task"] = Field(alias="resultType")
    task_id: str = Field(alias="taskId")


class TaskParams(RequestParams):
    task_id: str = Field(alias="taskId")


class GetTask(Request[TaskParams, Literal["tasks/get"]]):
    method: Literal["tasks/get"] = "tasks/get"
    params: TaskParams
    name_param: ClassVar[str] = "taskId"


class TaskState(Result):
    status: str
    result: dict | None = None


class Tasks(ClientExtension):
    """Waits for tasks by asking for them."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self):
        self.seen = []

    async def wait(self, task, context):
        self.seen.append(task.task_id)
        while True:
            request = GetTask(params=TaskParams(taskId=task.task_id))
            state = await context.session.send_request(request, TaskState)
            if state.status != "working":
                assert state.status == "completed", state
                return CallToolResult.model_validate(state.result)
            await anyio.sleep(0.2)

    def claims(self):
        return [ResultClaim(result_type="task", model=TaskResult, resolve=self.wait)]


def opened(arguments, answers, told, tasks=None):
    way, mode, place, *secret = arguments

    async def person(context, params):
        content = {"approve": answers["yes"]} if answers["action"] == "accept" else None
        return ElicitResult(action=answers["action"], content=content)

    if way == "stdio":
        flags = ["mcp", "--toolsets", "all", "--policy", "full"]
        server = StdioServerParameters(command=place, args=flags, env=dict(os.environ))
    else:
        headers = {"Authorization": f"Bearer {secret[0]}"}
        server = streamable_http_client(place, http_client=httpx2.AsyncClient(headers=headers, timeout=60))

    async def hear(message):
        told.append(str(message))

    extensions = [tasks] if tasks else None
    return Client(server, mode=mode, elicitation_callback=person, message_handler=hear, extensions=extensions)


async def run(arguments):
    mode = arguments[1]
    answers, heard = {"action": "decline", "yes": False}, []
    async with opened(arguments, answers, heard) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert "evaluate" in tools and tools["evaluate"].output_schema, sorted(tools)
        assert (await client.list_prompts()).prompts
        resources = (await client.list_resources()).resources
        assert any(str(one.uri) == "beamtalk://class/Lamp" for one in resources)
        assert (await client.list_resource_templates()).resource_templates

        # Variables over three calls.
        first = await client.call_tool("evaluate", {"code": "x := 6", "session": "new"})
        handle = first.structured_content["session"]
        await client.call_tool("evaluate", {"code": "x := x + 1", "session": handle})
        third = await client.call_tool("evaluate", {"code": "x * 6", "session": handle})
        assert third.structured_content["value"] == 42, third

        # Every tool that reads; the client checks what it gets against the schema.
        for name in (name for name, tool in tools.items() if tool.annotations.read_only_hint):
            given = json.dumps(READING[name]).replace("$SESSION", handle).replace("$AGENT", os.environ["AGENT"])
            result = await client.call_tool(name, json.loads(given))
            assert not result.is_error, (name, result.content)
            assert json.loads(result.content[0].text) == result.structured_content, name

        # A class is removed only with a yes.
        remove = {"class": "Screw"}
        declined = await client.call_tool("unload", remove)
        assert declined.is_error and "declined" in declined.content[0].text, declined
        answers.update(action="accept", yes=True)
        done = await client.call_tool("unload", remove)
        assert not done.is_error, done

        # Progress, and an end by the client.
        told = []

        async def tell(progress, total, message):
            told.append(progress)

        slow = {"code": "(Timer sleep: 2500). 9", "session": handle}
        result = await client.call_tool("evaluate", slow, progress_callback=tell)
        assert result.structured_content["value"] == 9 and told and told == sorted(told), told
        forever = {"code": "[true] whileTrue: []", "timeout_ms": 60000, "session": handle}
        with anyio.move_on_after(1) as scope:
            await client.call_tool("evaluate", forever)
        assert scope.cancelled_caught
        again = {"code": "x", "session": handle}
        with anyio.fail_after(10):
            while (await client.call_tool("evaluate", again)).is_error:
                await anyio.sleep(0.05)

        # A watch.
        uri, save = "beamtalk://class/Lamp", {"class": "Lamp", "selector": "last", "source": "last => 7"}
        if mode == "legacy":
            await client.subscribe_resource(uri)
            assert not (await client.call_tool("save_method", save)).is_error
            with anyio.fail_after(10):
                while not any(uri in message for message in heard):
                    await anyio.sleep(0.05)
        else:
            async with client.listen(resource_subscriptions=[uri]) as changes:
                assert not (await client.call_tool("save_method", save)).is_error
                with anyio.fail_after(10):
                    async for change in changes:
                        if uri in str(change):
                            break

        # What is too long is refused, and the next call answered.
        try:
            large = await client.call_tool("evaluate", {"code": "x" * (2 << 20)})
            assert large.is_error
        except Exception as error:  # noqa: BLE001, each way has its own
            assert isinstance(error, (MCPError, httpx2.HTTPError)) or "413" in str(error), repr(error)
        assert (await client.call_tool("describe", {})).structured_content["policy"] == "full"

    # Long work as a task, where the client can.
    if mode != "legacy":
        tasks = Tasks()
        async with opened(arguments, answers, heard, tasks) as client:
            slow = {"code": "(Timer sleep: 3000). 9", "session": "new"}
            result = await client.call_tool("evaluate", slow)
            assert tasks.seen and result.structured_content["value"] == 9, (tasks.seen, result)


anyio.run(run, sys.argv[1:])
print("ok", *sys.argv[1:3])
