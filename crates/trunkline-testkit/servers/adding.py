"""A server as FastMCP's documentation has them, over stdio or, with a port, over HTTP.

    python adding.py [PORT]
"""

import sys

from fastmcp import Context, FastMCP

mcp = FastMCP("adding")


@mcp.tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@mcp.tool
async def count(to: int, context: Context) -> str:
    """Counts, and says how far it is."""
    for number in range(to):
        await context.report_progress(number + 1, to)
    return f"counted to {to}"


# The banner would ask the network for updates.
if len(sys.argv) > 1:
    mcp.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)
else:
    mcp.run(show_banner=False)
