// Answers that the provider pauses after a search. The server continues them.

import { describe, expect, test } from "vitest";
import { searchWorld, WOOL, YARN } from "../support/claude-search.ts";
import { type Answer, call, cited, say, search } from "../support/fake-provider/script.ts";
import { sentBody } from "../support/fake-provider/sent-body.ts";

const world = searchWorld();
const { serve, sentTypes } = world;

test("a paused answer continues as one message, and its usage counts once", async () => {
  const [asked, found] = search("wool", [WOOL]);
  world.provider.enqueue(
    {
      blocks: [say("Let me search. "), ...search("sheep", [YARN]), asked],
      stop: "pause_turn",
      usage: { input: 100, output: 10 },
    },
    { blocks: [found, cited("Wool comes from sheep.", WOOL)], usage: { input: 200, output: 20 } },
  );
  const { run, answer } = await serve({ search: { max_uses: 2 } });
  expect(await run("What is wool?")).toMatchObject({
    status: "success",
    usage: { input_tokens: 300, output_tokens: 30, web_searches: 2 },
  });
  const { content, sources, citations } = await answer();
  expect(content).toBe("Let me search. Wool comes from sheep.");
  expect(sources).toEqual([YARN, WOOL]);
  expect(citations).toEqual([{ start_index: 15, end_index: 37, ...WOOL }]);
  expect(
    sentBody(world.provider.requests()[1]).tools?.find(({ name }) => name === "web_search"),
  ).toMatchObject({
    max_uses: 1,
  });
  await run("And yarn?");
  expect(sentTypes(1)).toEqual([
    "text",
    ...["server_tool_use", "web_search_tool_result"],
    ...["server_tool_use", "web_search_tool_result"],
    "text",
  ]);
});

test("a paused answer with calls waits for their results, and continues with them", async () => {
  const [asked, found] = search("wool", [WOOL]);
  world.provider.enqueue(
    { blocks: [say("Both."), asked, call("save")], stop: "pause_turn" },
    { blocks: [found, cited("Of sheep.", WOOL)] },
  );
  const { run, answer } = await serve();
  expect(await run("What is wool?")).toMatchObject({ status: "success", stop_reason: "end_turn" });
  expect(await answer()).toMatchObject({ content: "Of sheep.", sources: [WOOL] });
  expect(sentTypes(1)).toEqual(["text", "server_tool_use", "tool_use"]);
});

describe("the parts of a paused answer have together the limits of one answer", () => {
  const pages = (from: number, count: number) =>
    Array.from({ length: count }, (_, n) => ({ url: `https://wool.example/${from + n}`, title: "Wool" }));
  const parts = (count: number, blocks: (part: number) => Answer["blocks"] & {}) =>
    Array.from({ length: count }, (_, part): Answer => {
      const isLast = part === count - 1;
      return { blocks: blocks(part), ...(isLast ? {} : { stop: "pause_turn" }) };
    });

  test("200 pages", async () => {
    world.provider.enqueue(...parts(3, (part) => [say("Wool. "), ...search("wool", pages(90 * part, 90))]));
    const { run, answer } = await serve();
    await run("What is wool?");
    expect((await answer()).sources).toEqual(pages(0, 200));
  });

  test("1,000 citations", async () => {
    const found = pages(0, 400);
    world.provider.enqueue(...parts(3, (part) => [cited(`Part ${part}. `, ...found), ...search("wool", [])]));
    const { run, answer } = await serve();
    await run("What is wool?");
    const { citations = [] } = await answer();
    expect(citations.map(({ start_index, url }) => [start_index, url])).toEqual(
      [0, 1, 2].flatMap((part) => found.map(({ url }) => [8 * part, url])).slice(0, 1000),
    );
  });

  test("8 Mi characters", async () => {
    const long = say(`${"m".repeat(1024 * 1024 - 1)} `.repeat(5));
    world.provider.enqueue(...parts(3, () => [long, ...search("wool", [WOOL])]));
    const { run } = await serve({ agent: "hooks: { retry: { attempts: 1 } }" });
    expect(await run("What is wool?")).toMatchObject({
      status: "error",
      error: { message: expect.stringContaining("the reply is longer than 8388608 characters") },
      usage: { web_searches: 1 },
    });
    expect(world.provider.requests()).toHaveLength(2);
  });
});

test("a provider that keeps pausing ends, as an answer that reached a limit", async () => {
  const paused: Answer = { blocks: [...search("wool", [WOOL])], stop: "pause_turn" };
  world.provider.enqueue(...Array.from({ length: 30 }, () => paused));
  const { run } = await serve();
  expect(await run("What is wool?")).toMatchObject({ status: "success", stop_reason: "max_tokens" });
  expect(world.provider.requests()).toHaveLength(11);
});

test.each([1, 2])(
  "an answer makes at most max_uses searches, however often it pauses: %d",
  async (max_uses) => {
    const [asked, found] = search("silk", [YARN]);
    world.provider.enqueue({
      blocks: [say("Let me search. "), ...search("wool", [WOOL]), asked],
      stop: "pause_turn",
    });
    if (max_uses > 1) world.provider.enqueue({ blocks: [found, search("linen", [])[0]], stop: "pause_turn" });
    const { run, answer } = await serve({ search: { max_uses } });
    expect(await run("What is wool?")).toMatchObject({
      ...{ status: "success", stop_reason: "max_tokens", usage: { web_searches: max_uses } },
    });
    expect(world.provider.requests()).toHaveLength(max_uses);
    expect(await answer()).toMatchObject({ content: "Let me search. " });
    expect(await run("And yarn?")).toMatchObject({ status: "success", stop_reason: "end_turn" });
  },
);
