import { describe, expect, test } from "vitest";
import type { Hook } from "../../../src/agent/core/hook.ts";
import { mapEvents } from "../../../src/agent/core/stream.ts";
import { metering } from "../../../src/agent/hooks/metering.ts";
import { retry } from "../../../src/agent/hooks/retry.ts";
import { summarization } from "../../../src/agent/hooks/summarization/index.ts";
import { timeout } from "../../../src/agent/hooks/timeout.ts";
import { tracing } from "../../../src/agent/hooks/tracing.ts";
import type { StreamEvent } from "../../../src/protocol/event.ts";
import { type Play, play } from "../../support/agent.ts";
import { dataOf, names, textSeen } from "../../support/drain.ts";
import { made } from "../hooks/made.ts";

/** All events in the order in which they came, and those that came through the layers. */
async function played(parts: Play, takes: (taken: number) => boolean = () => true) {
  const all: StreamEvent[] = [];
  let taken = 0;
  const deltas = (delta: StreamEvent) => {
    if (!takes(taken)) return false;
    taken++;
    all.push(delta);
    return true;
  };
  const { events: yielded, outcome } = await play({
    ...parts,
    input: { ...parts.input, deltas },
    onEvent: (event) => void all.push(event),
  });
  return { all, yielded, outcome };
}

const script = [{ say: "one two three" }];
const builtIn = [tracing, retry, summarization, metering, timeout].map((hook) => made(hook));

describe("a sink for deltas", () => {
  test("receives them in order with the events", async () => {
    const { all, yielded } = await played({ script });
    expect(names(all)).toEqual(names((await play({ script })).events));
    expect(textSeen(all)).toBe("one two three");
    expect(textSeen(yielded)).toBe("");
  });

  test("receives them without passing through every agent's hooks", async () => {
    const { all, yielded } = await played({ script, hooks: builtIn });
    expect(textSeen(all)).toBe("one two three");
    expect(textSeen(yielded)).toBe("");
  });

  test("can leave some to the stream, which keeps the order", async () => {
    const { all, yielded } = await played({ script, hooks: builtIn }, (taken) => taken < 1);
    expect(textSeen(all)).toBe("one two three");
    expect(textSeen(yielded)).toBe(" two three");
  });

  test("receives nothing that a hook must see", async () => {
    const loud: Hook = {
      name: "loud",
      wrapModelCall: (request, next) => mapEvents(next(request), (event) => [louder(event)]),
    };
    const { all, yielded } = await played({ script, hooks: [...builtIn, loud] });
    expect(textSeen(all)).toBe("ONE TWO THREE");
    expect(textSeen(yielded)).toBe("ONE TWO THREE");
  });

  test("does not hide the first token from the hook that times it", async () => {
    const { all } = await played({ script });
    expect(dataOf(all, "on_chat_model_end")[0]?.first_token_ms).toBeGreaterThanOrEqual(0);
  });

  test("shows the hook that waits for silence that a model is writing", async () => {
    const say = Array.from({ length: 30 }, (_, word) => `word${word}`).join(" ");
    const { all, outcome } = await played({
      script: [{ say, delay_ms: 25 }],
      hooks: [made(timeout, { options: { tool: 600, model: 0.5 } })],
    });
    expect(outcome.status).toBe("success");
    expect(textSeen(all)).toBe(say);
  });
});

function louder(event: StreamEvent): StreamEvent {
  if (event.event !== "on_chat_model_stream" || !("delta" in event.data)) return event;
  return { ...event, data: { delta: event.data.delta.toUpperCase() } };
}
