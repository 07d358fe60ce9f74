import { describe, expect, test } from "vitest";
import { isTransient } from "../../../src/agent/core/errors.ts";
import type { Usage } from "../../../src/agent/core/message.ts";
import type { StreamEvent } from "../../../src/protocol/event.ts";
import { textSeen } from "../../support/drain.ts";
import { say } from "../../support/fake-provider/script.ts";
import { failing, fakeProvider, hear, PROVIDERS, request } from "./providers.ts";

const fake = fakeProvider();
const blocks = [say("one two three four five six")];

describe.each(PROVIDERS)("$name", ({ model, family }) => {
  test.each([
    ["breaks the connection", "destroy"],
    ["ends the answer too early", "end"],
  ] as const)("never treats a reply as complete if the provider %s", async (_, how) => {
    // Behind a reason to stop, OpenAI's protocol may end without another word.
    for (let frames = 0; frames <= (family === "openai" ? 6 : 8); frames++) {
      fake.current.enqueue({ blocks, breakAfter: { frames, with: how } });
      const error = await failing(model(fake.current));
      expect(error.code).toBe("model_unreachable");
      expect(isTransient(error)).toBe(true);
    }
  });

  test("has yielded the output before the break", async () => {
    fake.current.enqueue({ blocks, breakAfter: { frames: 6, with: "destroy" } });
    const asked = model(fake.current);
    const events: StreamEvent[] = [];
    await hear(asked.stream(request(asked)), events).catch(() => {});
    expect(textSeen(events)).toContain("one two three");
  });

  test.each([
    ["overloaded", "model_overloaded"],
    ["rate_limit", "model_rate_limited"],
    ["server_error", "model_overloaded"],
  ] as const)("handles the error `%s` in a stream like the same error's status", async (kind, code) => {
    fake.current.enqueue({ blocks, breakAfter: { frames: 4, with: kind } });
    const error = await failing(model(fake.current));
    expect(error.code).toBe(code);
    expect(error.message).toMatch(/overloaded|rate limit|server|exhausted|internal/i);
  });

  test("counts nothing for a request that its first event refuses", async () => {
    const counted: Usage[] = [];
    fake.current.enqueue({ blocks, breakAfter: { frames: 0, with: "rate_limit" } });
    await failing(model(fake.current), { onPartialUsage: (usage) => counted.push(usage) });
    expect(counted).toEqual([]);
  });

  test("works again on the next call", async () => {
    const asked = model(fake.current);
    fake.current.enqueue({ blocks, breakAfter: { frames: 4, with: "destroy" } });
    await failing(asked);
    const { reply } = await hear(asked.stream(request(asked)));
    expect(reply.content).toBe("ok");
  });
});
