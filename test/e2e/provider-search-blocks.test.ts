// The blocks of a search go back to the provider that made it as they were, in their places.

import { describe, expect, test } from "vitest";
import { ANSWER, searchWorld, WOOL } from "../support/claude-search.ts";
import { call, cited, say, search } from "../support/fake-provider/script.ts";
import { sentBody } from "../support/fake-provider/sent-body.ts";
import { temporaryFolder } from "../support/server.ts";

const world = searchWorld();
const { serve, sentTypes } = world;

const SEARCHED = ["text", "server_tool_use", "web_search_tool_result", "text", "text", "text"];

describe("its blocks go back to the provider as they were, in their places", () => {
  test("in the next run, and after a restart", async () => {
    const dir = await temporaryFolder();
    world.provider.enqueue(ANSWER);
    const first = await serve({ dir, config: { store: "sqlite" } });
    await first.run("What is wool?");
    await first.run("And yarn?");
    expect(sentTypes(1)).toEqual(SEARCHED);
    await first.app.close();
    const second = await serve({ dir, config: { store: "sqlite" } });
    await second.run("And silk?");
    expect(sentTypes(1)).toEqual(SEARCHED);
  });

  test("around calls of tools, with the thoughts of the turn", async () => {
    world.provider.enqueue({ blocks: [...ANSWER.blocks, call("save"), call("save")] });
    const { run } = await serve({ agent: "" });
    await run("What is wool?");
    expect(sentTypes(1)).toEqual(["thinking", ...SEARCHED, "tool_use", "tool_use"]);
  });

  test("where the provider made a search only after the calls beside it", async () => {
    const [asked, found] = search("wool", [WOOL]);
    world.provider.enqueue(
      { blocks: [say("Both."), asked, call("save")] },
      { blocks: [found, cited("Of sheep.", WOOL)] },
    );
    const { run, answer } = await serve();
    expect(await run("What is wool?")).toMatchObject({ status: "success", usage: { web_searches: 1 } });
    expect(sentTypes(1)).toEqual(["text", "server_tool_use", "tool_use"]);
    expect(await answer()).toMatchObject({ content: "Of sheep.", sources: [WOOL] });
    await run("And yarn?");
    expect([sentTypes(1), sentTypes(3)]).toEqual([
      ["text", "server_tool_use", "tool_use"],
      ["web_search_tool_result", "text"],
    ]);
  });

  test("in a branch, and in a thread whose later message was edited", async () => {
    world.provider.enqueue(ANSWER);
    const { run, client, messages } = await serve();
    await run("What is wool?");
    await run("And yarn?");
    const [, , edited] = await messages();
    await run("And silk?", { replaces: edited?.id });
    expect(sentTypes(1)).toEqual(SEARCHED);
    const fork = await client.threads.fork("t", {});
    const begun = await client.start(fork.id, { input: "And now?" });
    for await (const _ of client.runs.events(fork.id, begun.id));
    expect(sentTypes(1)).toEqual(SEARCHED);
  });

  test("in long threads, whose closed turns are written once", async () => {
    world.provider.enqueue(ANSWER);
    const { run } = await serve();
    await run("What is wool?");
    for (let n = 0; n < 34; n++) await run(`question ${n}`);
    expect(sentTypes(1)).toEqual(SEARCHED);
    expect(sentTypes(67)).toEqual(["text"]);
  });

  test("to another model of the provider, and not to another provider", async () => {
    world.provider.enqueue(ANSWER);
    const { run } = await serve();
    await run("What is wool?");
    await run("And yarn?", { model: "small" });
    expect(sentTypes(1)).toEqual(SEARCHED);
    await run("And silk?", { model: "other" });
    const { messages, tools } = sentBody(world.provider.requests().at(-1));
    expect(JSON.stringify(messages)).not.toContain("encrypted");
    expect(JSON.stringify(messages)).toContain("Wool comes from sheep");
    expect(tools?.map((tool) => tool.function?.name)).toEqual(["save", "write_todos"]);
  });
});

test("a search without a result, where an answer reached its limit, does not go back", async () => {
  const [asked] = search("wool", []);
  world.provider.enqueue({ blocks: [say("Let me search."), asked], stop: "max_tokens" });
  const { run } = await serve();
  await run("What is wool?");
  expect((await run("Continue.")).status).toBe("success");
  expect(sentTypes(1)).toEqual(["text"]);
});
