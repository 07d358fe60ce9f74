import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { AppError } from "../../../src/agent/core/errors.ts";
import { type Answer, say } from "../../support/fake-provider/script.ts";
import { fakeProvider, hear, PROVIDERS, request } from "./providers.ts";

const fake = fakeProvider();
const long = { blocks: [say("word ".repeat(10_000))] };

describe.each(PROVIDERS)("$name", ({ model }) => {
  const begin = async (answer: Answer) => {
    const controller = new AbortController();
    const number = fake.current.requests().length;
    fake.current.enqueue(answer);
    const asked = model(fake.current);
    const stream = asked.stream(request(asked, { signal: controller.signal }));
    return { controller, stream, arrived: fake.current.request(number) };
  };

  test("disconnects immediately when aborted before the provider responds", async () => {
    const { controller, stream, arrived } = await begin({ hang: true });
    const heard = hear(stream).catch((error: unknown) => error);
    const { hungUp } = await arrived;
    const reason = new AppError("cancelled", "Enough.");
    controller.abort(reason);
    await hungUp;
    expect(await heard).toBe(reason);
  });

  test("disconnects immediately when aborted during the response", async () => {
    const { controller, stream, arrived } = await begin(long);
    await stream.next();
    controller.abort();
    await (await arrived).hungUp;
    await expect(hear(stream)).rejects.toBe(controller.signal.reason);
  });

  test("yields nothing after it is aborted, even if more has arrived", async () => {
    const { controller, stream } = await begin({ blocks: [say("one two three")], batch: 100 });
    await stream.next();
    controller.abort();
    await expect(stream.next()).rejects.toBe(controller.signal.reason);
  });

  test("disconnects immediately when aborted while the provider is silent", async () => {
    const { controller, stream, arrived } = await begin({
      ...long,
      breakAfter: { frames: 5, with: "silence" },
    });
    const heard = hear(stream).catch((error: unknown) => error);
    const { hungUp } = await arrived;
    controller.abort();
    await hungUp;
    expect(await heard).toBe(controller.signal.reason);
  });

  test("disconnects if its reader leaves in the middle", async () => {
    const { stream, arrived } = await begin(long);
    for await (const _ of stream) break;
    await (await arrived).hungUp;
  });

  test("disconnects immediately if its reader leaves while the provider keeps it waiting", async () => {
    const { stream, arrived } = await begin({ hang: true });
    const pending = stream.next().catch((error: unknown) => error);
    const { hungUp } = await arrived;
    const left = stream.return(undefined as never);
    await hungUp;
    expect(await pending).toMatchObject({ code: "cancelled" });
    expect(await left).toMatchObject({ done: true });
  });

  test("sends nothing if it was aborted before it started", async () => {
    const before = fake.current.requests().length;
    const asked = model(fake.current);
    const signal = AbortSignal.abort(new AppError("cancelled", "Too late."));
    await expect(hear(asked.stream(request(asked, { signal })))).rejects.toThrow("Too late.");
    expect(fake.current.requests().length).toBe(before);
  });

  test("leaves no listeners on a signal that outlives many calls", async () => {
    const { signal } = new AbortController();
    const asked = model(fake.current);
    for (let turn = 0; turn < 3; turn++) await hear(asked.stream(request(asked, { signal })));
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});
