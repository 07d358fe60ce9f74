// A provider that refuses an image: the conversation continues without it.

import { expect, test } from "vitest";
import { dataOf, textSeen } from "../support/drain.ts";
import { httpServer } from "../support/hostile.ts";
import { startServer } from "../support/server.ts";
import { post } from "../support/sse.ts";

const png =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const jpeg = Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 16, 0x4a, 0x46, 0x49, 0x46]).toString("base64");
const image = (data: string) => ({ type: "image", media_type: "image/png", data });
const withImage = (data: string) => ({
  messages: [{ role: "user", content: [{ type: "text", text: "look" }, image(data)] }],
});

type Refuses = (messages: string) => { status: number; message: string } | undefined;

/** A provider of chat completions, and the messages of each request. */
async function provider(refuses: Refuses) {
  const asked: string[] = [];
  const { url } = await httpServer(({ body }, response) => {
    const messages = JSON.stringify(JSON.parse(body).messages);
    asked.push(messages);
    const refusal = refuses(messages);
    if (refusal) {
      response.writeHead(refusal.status, { "content-type": "application/json" });
      return void response.end(JSON.stringify({ error: { message: refusal.message } }));
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const frame = (data: object) => `data: ${JSON.stringify(data)}\n\n`;
    response.write(frame({ choices: [{ index: 0, delta: { content: "I see." } }] }));
    response.end(`${frame({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}data: [DONE]\n\n`);
  });
  const model = (name: string) =>
    `{ model: { provider: openai, model: ${name}, base_url: "${url}/v1", api_key: test }, hooks: { retry: { base_ms: 1 } } }`;
  return { asked, agents: `version: 1\nagents:\n  a: ${model("one")}\n  b: ${model("two")}\n` };
}

const unreadable: Refuses = (messages) =>
  messages.includes("image_url") ? { status: 400, message: "Could not process image" } : undefined;

test("a refused image is left out with a warning, and remains so after a restart", async () => {
  const { asked, agents } = await provider(unreadable);
  const config = { store: "sqlite" };
  const { url, dir, app } = await startServer({ agents, realModels: true, config });
  const events = await (await post(`${url}/threads/t/runs`, withImage(png))).ended();
  expect(textSeen(events)).toBe("I see.");
  expect(dataOf(events, "warning")).toEqual([
    { code: "files_left_out", message: expect.stringContaining("rejected the request with image/png.") },
  ]);
  expect(asked).toHaveLength(2);
  expect(asked[1]).toContain("[image/png: removed, because the provider rejected it]");
  await app.close();
  const again = await startServer({ agents, realModels: true, config, dir });
  const later = await (await post(`${again.url}/threads/t/runs`, { input: "next" })).ended();
  expect(dataOf(later, "done")).toMatchObject([{ status: "success" }]);
  expect(dataOf(later, "warning")).toEqual([]);
  expect(asked).toHaveLength(3);
});

test("an image that one model refused is still sent to others", async () => {
  const { asked, agents } = await provider(unreadable);
  const { url } = await startServer({ agents, realModels: true });
  await (await post(`${url}/threads/t/runs`, { ...withImage(png), agent: "a" })).ended();
  await (await post(`${url}/threads/t/runs`, { input: "and you?", agent: "b" })).ended();
  expect(asked.map((each) => each.includes("image_url"))).toEqual([true, false, true, false]);
});

test("only the newest image is left out if that is enough, otherwise all of them", async () => {
  const { asked, agents } = await provider((messages) => {
    const count = messages.split("image_url").length / 2 - 0.5;
    const most = messages.includes("none") ? 0 : 1;
    return count > most ? { status: 400, message: "Too many images" } : undefined;
  });
  const { url } = await startServer({ agents, realModels: true });
  const counts = () => asked.splice(0).map((each) => (each.split("image_url").length - 1) / 2);
  await (await post(`${url}/threads/t/runs`, withImage(png))).ended();
  expect(counts()).toEqual([1]);
  await (await post(`${url}/threads/t/runs`, withImage(jpeg))).ended();
  expect(counts()).toEqual([2, 1]);
  await (await post(`${url}/threads/t/runs`, { input: "none" })).ended();
  expect(counts()).toEqual([1, 0]);
});

test.each([
  [400, "This model does not support the prompt.", 3, "model_rejected"],
  [404, "There is no such model.", 1, "model_rejected"],
  [401, "Wrong key.", 1, "model_auth"],
])("an error about the text itself remains an error: %i %s", async (status, message, requests, code) => {
  const { asked, agents } = await provider((messages) =>
    messages.includes("no more") ? { status, message } : undefined,
  );
  const { url } = await startServer({ agents, realModels: true });
  await (await post(`${url}/threads/t/runs`, withImage(png))).ended();
  asked.length = 0;
  const body = { messages: [{ role: "user", content: [{ type: "text", text: "no more" }, image(png)] }] };
  const events = await (await post(`${url}/threads/t/runs`, body)).ended();
  expect(dataOf(events, "error")).toMatchObject([{ code }]);
  expect(asked).toHaveLength(requests);
  expect(dataOf(events, "warning")).toEqual([]);
});

test.each([404, 413, 500])("an image that is refused with %i is left out too", async (status) => {
  const { agents } = await provider((messages) =>
    messages.includes("image_url") ? { status, message: "This model takes no image input." } : undefined,
  );
  const { url } = await startServer({ agents, realModels: true });
  const events = await (await post(`${url}/threads/t/runs`, withImage(png))).ended();
  expect(dataOf(events, "done")).toMatchObject([{ status: "success" }]);
});

test("an image has the media type of its bytes, even if its sender names another", async () => {
  const { asked, agents } = await provider(() => undefined);
  const { url } = await startServer({ agents, realModels: true });
  await (await post(`${url}/threads/t/runs`, withImage(jpeg))).ended();
  const openai = { type: "image_url", image_url: { url: `data:image/png;base64,${jpeg}` } };
  await (
    await post(`${url}/v1/chat/completions`, {
      model: "a",
      messages: [{ role: "user", content: [{ type: "text", text: "look" }, openai] }],
    })
  ).ended();
  expect(asked).toHaveLength(2);
  for (const messages of asked) expect(messages).toContain(`data:image/jpeg;base64,${jpeg}`);
});
