// What every client in JavaScript does with a server, whichever library it is written with.
//
// The server has the tools, resources and prompts of the fixture. A step that fails does not keep the
// others from being tried: what went wrong is in the report.

const LONGEST_STEP = 30_000;
const LONGEST_CANCELLATION = 10_000;

// The answer to a form: something for every field that is a text.
export const filled = (schema) =>
  Object.fromEntries(
    Object.keys(schema.properties).map((name) => [name, name === "email" ? "ada@example.org" : "Ada"]),
  );

// The server of the command line: a URL, or a command line as a JSON array.
export const endpoint = (server) => {
  if (!server.startsWith("[")) return { url: new URL(server) };
  const [command, ...args] = JSON.parse(server);
  return { command, args };
};

const textOf = (result) => result.content.map((block) => block.text).join("");

const within = (time, promise) => {
  const timeout = new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`not within ${time} ms`)), time).unref();
  });
  return Promise.race([promise, timeout]);
};

// Cancels a call as soon as it is known to run, and waits until the server says that it has noticed.
const cancel = async ({ call }) => {
  const label = `cancelled-${process.pid}-${Date.now()}`;
  const controller = new AbortController();
  let refusal = "the call was not cancelled";
  const options = { signal: controller.signal, onprogress: () => controller.abort("enough") };
  try {
    await call("test_slow", { seconds: 20, label }, options);
  } catch (error) {
    refusal = controller.signal.aborted ? undefined : error;
  }
  if (refusal) throw refusal;
  const end = Date.now() + LONGEST_CANCELLATION;
  while (Date.now() < end) {
    if (textOf(await call("test_cancelled_count", { label })) === "1") return true;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return false;
};

const steps = {
  tools: async ({ client }) => (await client.listTools()).tools.map((tool) => tool.name),
  resources: async ({ client }) => (await client.listResources()).resources.map(({ uri }) => uri),
  templates: async ({ client }) =>
    (await client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate),
  prompts: async ({ client }) => (await client.listPrompts()).prompts.map((prompt) => prompt.name),
  text: async ({ call }) => textOf(await call("test_simple_text", {})),
  structured: async ({ call }) =>
    (await call("test_structured_content", { city: "Paris" })).structuredContent,
  error: async ({ call }) => {
    const result = await call("test_error_handling", {});
    return result.isError ? textOf(result) : undefined;
  },
  resource: async ({ client }) =>
    (await client.readResource({ uri: "test://static-text" })).contents[0].text,
  prompt: async ({ client }) => {
    const params = { name: "test_prompt_with_arguments", arguments: { arg1: "one", arg2: "two" } };
    return (await client.getPrompt(params)).messages[0].content.text;
  },
  completions: async ({ client }) => {
    const ref = { type: "ref/prompt", name: "test_prompt_with_arguments" };
    const params = { ref, argument: { name: "arg1", value: "par" } };
    return (await client.complete(params)).completion.values;
  },
  progress: async ({ call }) => {
    const seen = [];
    const options = { onprogress: ({ progress }) => seen.push(progress) };
    await call("test_tool_with_progress", {}, options);
    return seen;
  },
  elicited: async ({ call }) => [
    textOf(await call("test_elicitation", { message: "Who are you?" })),
    textOf(await call("test_input_required_result_elicitation", {})),
  ],
  cancelled: cancel,
};

// Does everything and prints the report. `call` is `(name, arguments, options) => result`.
export const exercise = async ({ client, transport, call, protocol }) => {
  const report = { failures: {} };
  const attempt = async (name, work) => {
    try {
      report[name] = await within(LONGEST_STEP, work());
    } catch (error) {
      report.failures[name] = `${error?.message ?? error}`;
    }
  };
  await attempt("server", async () => {
    await client.connect(transport);
    report.protocol = protocol();
    return client.getServerVersion()?.name;
  });
  if (!report.failures.server) {
    for (const [name, step] of Object.entries(steps)) {
      await attempt(name, () => step({ client, call }));
    }
    await attempt("closed", () => client.close().then(() => true));
  }
  console.log(JSON.stringify(report));
  // A stream that the server has not closed must not keep us.
  process.exit(0);
};
