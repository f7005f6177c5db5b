"""Lists the tools of an MCP server and calls one, with the Python SDK.

    python list_and_call.py SERVER TOOL ARGUMENTS [MODE]

SERVER is a URL, or a command line as a JSON array. MODE is how the client opens: `auto` (the default) tries the modern generation first, `legacy`
opens with `initialize`.
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters, stdio_client


def opened(server: str):
    if not server.startswith("["):
        return server
    command, *arguments = json.loads(server)
    return stdio_client(StdioServerParameters(command=command, args=arguments))


async def main(server: str, name: str, arguments: str, mode: str = "auto") -> None:
    async with Client(opened(server), mode=mode) as client:
        tools = (await client.list_tools()).tools
        result = await client.call_tool(name, json.loads(arguments))
        report = {
            "protocolVersion": client.protocol_version,
            "server": client.server_info.name,
            "instructions": client.instructions,
            "tools": [tool.name for tool in tools],
            "result": result.model_dump(mode="json", by_alias=True, exclude_none=True),
        }
    print(json.dumps(report))


asyncio.run(main(*sys.argv[1:]))
