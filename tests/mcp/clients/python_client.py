"""The server as the Python client sees it: both ways in, all modes.

    python_client.py stdio MODE BINARY
    python_client.py http MODE URL TOKEN
"""

import json
import os
import sys

import anyio
import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

# Tools that read, with what they need.
READING = {
    "bindings": {},
    "complete": {"code": "Lam"},
    "check_code": {"code": "1 +"},
    "docs": {"class": "Integer"},
    "search_docs": {"query": "actors"},
    "search_examples": {"query": "block"},
    "search_classes": {"query": "list"},
    "list_classes": {"filter": "user"},
    "read_source": {"class": "Lamp"},
    "find_code": {"kind": "senders", "name": "toggle"},
    "list_actors": {},
    "supervision_tree": {},
    "read_transcript": {},
    "describe": {},
    "lint": {},
    "diagnostic_summary": {},
    "precheck_method": {"class": "Lamp", "selector": "last", "source": "last => 1"},
    "list_changes": {},
    "dirty_methods": {},
    "diff_change": {},
    "list_tests": {},
    "list_approvals": {},
}


def opened(arguments, answers):
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
    return Client(server, mode=mode, elicitation_callback=person)


async def run(arguments):
    mode = arguments[1]
    answers = {"action": "decline", "yes": False}
    async with opened(arguments, answers) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert "evaluate" in tools and tools["evaluate"].output_schema, sorted(tools)
        assert (await client.list_prompts()).prompts
        resources = (await client.list_resources()).resources
        assert any(str(one.uri) == "beamtalk://class/Lamp" for one in resources)
        assert (await client.list_resource_templates()).resource_templates

        # The client checks what it gets against the schema.
        for name, given in READING.items():
            if name in tools:
                result = await client.call_tool(name, given)
                assert not result.is_error, (name, result.content)
                assert json.loads(result.content[0].text) == result.structured_content, name

        # Variables over three calls.
        first = await client.call_tool("evaluate", {"code": "x := 6", "session": "new"})
        handle = first.structured_content["session"]
        await client.call_tool("evaluate", {"code": "x := x + 1", "session": handle})
        third = await client.call_tool("evaluate", {"code": "x * 6", "session": handle})
        assert third.structured_content["value"] == 42, third

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
        if mode != "legacy":
            uri = "beamtalk://class/Lamp"
            async with client.listen(resource_subscriptions=[uri]) as changes:
                save = {"class": "Lamp", "selector": "last", "source": "last => 7"}
                assert not (await client.call_tool("save_method", save)).is_error
                with anyio.fail_after(5):
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


anyio.run(run, sys.argv[1:])
print("ok", *sys.argv[1:3])
