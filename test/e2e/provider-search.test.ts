// Answers of models whose provider searches the web itself: their pages, citations and price.

import OpenAI from "openai";
import { describe, expect, onTestFinished, test } from "vitest";
import { openThread } from "../../src/client/thread.ts";
import { ANSWER, searchWorld, WOOL, YARN } from "../support/claude-search.ts";
import { cited, rawCall, say, search } from "../support/fake-provider/script.ts";
import { blocksOf, sentBody } from "../support/fake-provider/sent-body.ts";
import { postJson } from "../support/native.ts";

const world = searchWorld();
const { serve, sentTypes } = world;

test("an answer keeps its pages, the parts that come from them, and the number of searches", async () => {
  world.provider.enqueue(ANSWER);
  const { run, answer } = await serve({ search: { max_uses: 3, blocked_domains: ["bad.example"] } });
  expect(await run("What is wool?")).toMatchObject({ status: "success", usage: { web_searches: 1 } });
  const { content, sources, citations, usage } = await answer();
  expect(content).toBe("Let me search. I found this: Wool comes from sheep, says a page.");
  expect(sources).toEqual([WOOL, YARN]);
  expect(
    citations?.map(({ start_index, end_index, ...page }) => [content.slice(start_index, end_index), page]),
  ).toEqual([["Wool comes from sheep", WOOL]]);
  expect(usage).toMatchObject({ web_searches: 1 });
  const { tools } = sentBody(world.provider.requests()[0]);
  expect(tools?.find(({ name }) => name === "web_search")).toEqual({
    ...{ type: "web_search_20250305", name: "web_search", max_uses: 3, blocked_domains: ["bad.example"] },
  });
});

test("an answer with a schema is the provider's last call, and its search goes back before it", async () => {
  world.provider.enqueue({ blocks: [...ANSWER.blocks, rawCall("final_answer", '{"from":"sheep"}')] });
  const { run, answer } = await serve();
  const output_schema = {
    type: "object",
    properties: { from: { type: "string" } },
    required: ["from"],
  };
  expect(await run("What is wool?", { output_schema })).toMatchObject({ output: { from: "sheep" } });
  const said = await answer();
  expect(said).toMatchObject({ content: '{"from":"sheep"}', sources: [WOOL, YARN] });
  expect(said).not.toHaveProperty("citations");
  expect(sentBody(world.provider.requests()[0])).not.toHaveProperty("output_config");
});

test("the address and the title of a page are safe to show, and go back as they were", async () => {
  const page = {
    url: "HTTPS://Wool.Example/a b/../c",
    title: "\u202eWo\u200bol\u0007\nand\u2066 sheep \u0645\u06cc\u200c\u0634\u0648\u062f ",
  };
  const shown = {
    url: "https://wool.example/c",
    title: "Wool and sheep \u0645\u06cc\u200c\u0634\u0648\u062f",
  };
  world.provider.enqueue({ blocks: [...search("wool", [page]), cited("Of sheep.", page)] });
  const { run, answer } = await serve();
  await run("What is wool?");
  const { sources, citations } = await answer();
  expect(sources).toEqual([shown]);
  expect(citations).toMatchObject([shown]);
  await run("And yarn?");
  const [, found, text] = blocksOf(sentBody(world.provider.requests().at(-1)).messages[1] ?? {});
  expect(found).toMatchObject({ content: [page] });
  expect(text).toMatchObject({ citations: [page] });
});

test("a search that failed does not fail the run, and is not counted", async () => {
  world.provider.enqueue({
    blocks: [...search("wool", { error: "unavailable" }), say("I could not search.")],
  });
  const { run, answer } = await serve();
  const { status, usage } = await run("What is wool?");
  expect(status).toBe("success");
  expect(usage).not.toHaveProperty("web_searches");
  expect(await answer()).not.toHaveProperty("sources");
  await run("And yarn?");
  expect(sentTypes(1)).toEqual(["server_tool_use", "web_search_tool_result", "text"]);
});

test("searches have a price, and count in the budget", async () => {
  world.provider.enqueue(ANSWER);
  const prices = { "*": { input: 1, output: 1, web_search: 10 } };
  const { run, url } = await serve({ config: { quotas: { user: { cost_per_day: 0.005 }, prices } } });
  const { usage } = await run("What is wool?");
  expect(usage.cost).toBe(10_000 + 15);
  const report = (await (await fetch(`${url}/usage`)).json()) as { items: { cost: number }[] };
  expect(report.items[0]?.cost).toBe(10_015);
  await expect(run("And yarn?")).rejects.toThrow("Your limit `cost_per_day`, 0.005, is reached.");
});

test("a call makes only as many searches as the budget pays, and is offered none at the end", async () => {
  const prices = { "*": { input: 0, output: 0, web_search: 10 } };
  const quotas = { user: { cost_per_day: 0.025 }, prices };
  world.provider.enqueue(ANSWER, { blocks: [...search("yarn", [YARN]), say("Of wool.")] });
  const { run } = await serve({ search: { max_uses: 5 }, config: { quotas } });
  for (const input of ["What is wool?", "What is yarn?", "And silk?"])
    expect(await run(input)).toMatchObject({ status: "success" });
  const offered = world.provider
    .requests()
    .map((request) => sentBody(request).tools?.find(({ name }) => name === "web_search")?.max_uses);
  expect(offered).toEqual([2, 1, undefined]);
});

describe("front ends show", () => {
  test("the pages, in a thread's answer", async () => {
    world.provider.enqueue(ANSWER);
    const { client, run } = await serve();
    await run("What is wool?");
    const thread = openThread(client, "t");
    const shown = await new Promise<readonly object[]>((resolve) => {
      const stop = thread.subscribe(() => {
        const { state, cells } = thread.getSnapshot();
        if (state === "ready") resolve(cells);
      });
      onTestFinished(stop);
    });
    expect(shown).toContainEqual(expect.objectContaining({ kind: "text", sources: [WOOL, YARN] }));
  });

  test("the pages, as parts of the AI SDK, in the stream and later", async () => {
    world.provider.enqueue(ANSWER);
    const { url } = await serve();
    const messages = [{ id: "m1", role: "user", parts: [{ type: "text", text: "What is wool?" }] }];
    const stream = await postJson(`${url}/ai-sdk/assistant/chat`, { id: "t", messages });
    const parts = (text: string) =>
      text.match(/"type":"source-url","sourceId":"[^"]*","url":"https:\/\/wool/g);
    expect(parts(await stream.text())).toHaveLength(1);
    const later = await fetch(`${url}/ai-sdk/assistant/chat/t/messages`);
    expect(parts(await later.text())).toHaveLength(1);
  });

  describe("the parts that come from pages, as citations of OpenAI, in the stream and later", () => {
    const citation = { type: "url_citation", ...WOOL };

    test.each([
      ["of a search for the answer", [], { ...citation, start_index: 29, end_index: 50 }],
      [
        "of an earlier search",
        [{ blocks: [cited("Of sheep", WOOL)] }],
        { ...citation, start_index: 0, end_index: 8 },
      ],
    ])("%s", async (_, answers, expected) => {
      world.provider.enqueue(ANSWER, ...answers);
      const { url } = await serve();
      const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: "unused" });
      const ask = (more: object) => openai.responses.create({ model: "assistant", input: "Wool?", ...more });
      const first = answers.length > 0 ? await ask({}) : undefined;
      const events = await openai.responses.create({
        ...{ model: "assistant", input: "What is wool?", stream: true },
        ...(first ? { previous_response_id: first.id } : {}),
      });
      const annotated: unknown[] = [];
      let last: OpenAI.Responses.Response | undefined;
      for await (const event of events) {
        if (event.type === "response.output_text.annotation.added") annotated.push(event.annotation);
        if (event.type === "response.completed") last = event.response;
      }
      expect(annotated).toEqual([expected]);
      const { data } = await openai.conversations.items.list(last?.conversation?.id ?? "");
      const said = [
        ...(last?.output ?? []),
        ...data.filter(({ id }) => last?.output.some((item) => item.id === id)),
      ];
      const texts = said.flatMap((item) => (item.type === "message" ? item.content : []));
      expect(texts).toMatchObject([{ annotations: [expected] }, { annotations: [expected] }]);
    });
  });
});
