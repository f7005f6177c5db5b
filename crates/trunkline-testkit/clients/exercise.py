"""Does everything with a server, with the Python SDK.

    python exercise.py SERVER ERA

SERVER is a URL, or a command line as a JSON array; ERA is `legacy`, `auto` or `modern`. The server has the tools,
resources and prompts of the fixture. A step that fails does not keep the others from being tried: what went wrong is
in the report.
"""

import json
import os
import sys
import time

import anyio
from mcp import Client, StdioServerParameters, types

LONGEST_STEP = 30
LONGEST_CANCELLATION = 10


async def answer(_context, params) -> types.ElicitResult:
    """Fills in something for every field, all of which are texts."""
    fields = params.requested_schema["properties"]
    content = {name: "ada@example.org" if name == "email" else "Ada" for name in fields}
    return types.ElicitResult(action="accept", content=content)


def text_of(result) -> str:
    return "".join(block.text for block in result.content)


async def tools(client):
    return [tool.name for tool in (await client.list_tools()).tools]


async def resources(client):
    return [str(resource.uri) for resource in (await client.list_resources()).resources]


async def templates(client):
    listed = await client.list_resource_templates()
    return [template.uri_template for template in listed.resource_templates]


async def prompts(client):
    return [prompt.name for prompt in (await client.list_prompts()).prompts]


async def text(client):
    return text_of(await client.call_tool("test_simple_text", {}))


async def structured(client):
    return (await client.call_tool("test_structured_content", {"city": "Paris"})).structured_content


async def error(client):
    result = await client.call_tool("test_error_handling", {})
    return text_of(result) if result.is_error else None


async def resource(client):
    return (await client.read_resource("test://static-text")).contents[0].text


async def prompt(client):
    arguments = {"arg1": "one", "arg2": "two"}
    made = await client.get_prompt("test_prompt_with_arguments", arguments)
    return made.messages[0].content.text


async def completions(client):
    reference = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
    completed = await client.complete(reference, {"name": "arg1", "value": "par"})
    return completed.completion.values


async def progress(client):
    seen = []

    async def note(done, _total, _message):
        seen.append(done)

    await client.call_tool("test_tool_with_progress", {}, progress_callback=note)
    return seen


async def elicited(client):
    return [
        text_of(await client.call_tool("test_elicitation", {"message": "Who are you?"})),
        text_of(await client.call_tool("test_input_required_result_elicitation", {})),
    ]


async def cancelled(client):
    """Cancels a call as soon as it is known to run, and waits until the server says that it has noticed."""
    label = f"cancelled-{os.getpid()}-{time.monotonic_ns()}"
    with anyio.CancelScope() as scope:

        async def enough(_done, _total, _message):
            scope.cancel()

        await client.call_tool("test_slow", {"seconds": 20, "label": label}, progress_callback=enough)
        raise RuntimeError("the call was not cancelled")
    end = time.monotonic() + LONGEST_CANCELLATION
    while time.monotonic() < end:
        if text_of(await client.call_tool("test_cancelled_count", {"label": label})) == "1":
            return True
        await anyio.sleep(0.05)
    return False


STEPS = [
    tools,
    resources,
    templates,
    prompts,
    text,
    structured,
    error,
    resource,
    prompt,
    completions,
    progress,
    elicited,
    cancelled,
]


def opened(server: str):
    if not server.startswith("["):
        return server
    command, *arguments = json.loads(server)
    return StdioServerParameters(command=command, args=arguments)


async def main(server: str, era: str) -> None:
    report = {"failures": {}}
    mode = "2026-07-28" if era == "modern" else era
    try:
        async with Client(opened(server), mode=mode, elicitation_callback=answer) as client:
            report["protocol"] = client.protocol_version
            report["server"] = client.server_info and client.server_info.name
            for step in STEPS:
                try:
                    with anyio.fail_after(LONGEST_STEP):
                        report[step.__name__] = await step(client)
                except Exception as failure:
                    report["failures"][step.__name__] = repr(failure)
        report["closed"] = True
    except Exception as failure:
        report["failures"]["server"] = repr(failure)
    print(json.dumps(report))


anyio.run(main, *sys.argv[1:])
