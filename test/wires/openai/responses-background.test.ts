// Responses in the background, as OpenAI's own SDK starts, resumes and cancels them.

import OpenAI from "openai";
import type { ResponseStreamEvent } from "openai/resources/responses/responses";
import { describe, expect, test } from "vitest";
import { statusesOf, threadsOf } from "../../support/native.ts";
import { conversationOf, model, SLOW, started } from "./responses.ts";

describe("a response in the background", () => {
  test("returns immediately, continues without its client, and can be read when it is done", async () => {
    const { client } = await started([{ say: "All the words there are.", delay_ms: 5 }]);
    const { id, status, background } = await client.responses.create({
      model,
      input: "go",
      background: true,
    });
    expect(["queued", "in_progress"]).toContain(status);
    expect(background).toBe(true);
    const statusNow = async () => (await client.responses.retrieve(id)).status;
    await expect.poll(statusNow).toBe("completed");
    expect((await client.responses.retrieve(id)).output_text).toBe("All the words there are.");
  });

  test("can be resumed after the client's last event, unchanged, at any position", async () => {
    const { url, client } = await started([
      { think: "Hm.", say: "one two three four five six", delay_ms: 5 },
    ]);
    const stream = await client.responses.create({ model, input: "go", background: true, stream: true });
    const seen: ResponseStreamEvent[] = [];
    for await (const event of stream) {
      seen.push(event);
      if (event.type === "response.output_text.delta") break;
    }
    const id = seen[0]?.type === "response.created" ? seen[0].response.id : "";
    const after = seen.at(-1)?.sequence_number ?? 0;
    const rest = await client.responses.retrieve(id, { stream: true, starting_after: after });
    for await (const event of rest) seen.push(event);
    expect(seen.map((each) => each.sequence_number)).toEqual(seen.map((_, index) => index));
    const text = seen.flatMap((each) => (each.type === "response.output_text.delta" ? [each.delta] : []));
    expect(text.join("")).toBe("one two three four five six");
    expect(await threadsOf(url)).toHaveLength(1);

    const replay = await client.responses.retrieve(id, { stream: true });
    const whole: ResponseStreamEvent[] = [];
    for await (const event of replay) whole.push(event);
    const withoutEcho = (events: ResponseStreamEvent[]) => events.filter((event) => !("response" in event));
    expect(withoutEcho(whole)).toEqual(withoutEcho(seen));
    for (const cut of [0, 3, whole.length - 2]) {
      const tail: ResponseStreamEvent[] = [];
      for await (const event of await client.responses.retrieve(id, { stream: true, starting_after: cut }))
        tail.push(event);
      expect(tail).toEqual(whole.slice(cut + 1));
    }
  });

  test("is shown in full to a page that connects in the middle of it", async () => {
    const { client } = await started([{ say: "one two three four five six", delay_ms: 10 }]);
    const { id } = await client.responses.create({ model, input: "go", background: true });
    const stream = client.responses.stream({ response_id: id });
    expect((await stream.finalResponse()).output_text).toBe("one two three four five six");
  });

  test("can be cancelled, and its conversation accepts the next message", async () => {
    const { url, client } = await started(({ messages }) =>
      JSON.stringify(messages.at(-1)).includes("slowly") ? SLOW : { say: "Here." },
    );
    const { id } = await client.responses.create({ model, input: "slowly", background: true });
    const stream = await client.responses.retrieve(id, { stream: true });
    let last: ResponseStreamEvent | undefined;
    let isAsked = false;
    for await (const event of stream) {
      last = event;
      if (event.type !== "response.output_text.delta" || isAsked) continue;
      isAsked = true;
      expect(await client.responses.cancel(id)).toMatchObject({ id, status: "cancelled" });
    }
    expect(last).toMatchObject({ type: "response.incomplete", response: { status: "cancelled" } });
    const next = await client.responses.create({ model, input: "hello?", previous_response_id: id });
    expect(next.output_text).toBe("Here.");
    expect(await statusesOf(url, conversationOf(next))).toEqual(["success", "cancelled"]);
    expect(await client.responses.cancel(next.id)).toMatchObject({ status: "completed" });
  });

  test("is busy until it ends: its client is refused, and does not retry", async () => {
    const { url, client } = await started([SLOW]);
    const busy = await client.responses.create({ model, input: "slowly", background: true });
    let requests = 0;
    const counting = new OpenAI({
      ...{ baseURL: `${url}/v1`, apiKey: "unused" },
      fetch: (input, init) => {
        requests++;
        return fetch(input, init);
      },
    });
    const more = counting.responses.create({ model, input: "more", previous_response_id: busy.id });
    await expect(more).rejects.toMatchObject({ status: 409, code: "thread_busy" });
    expect(requests).toBe(1);
    await client.responses.cancel(busy.id);
  });
});
