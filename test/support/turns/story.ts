// What may happen in a turn, in the words of its tests.

import fc from "fast-check";

const text = fc.string({ minLength: 1, maxLength: 12 });
const rarely = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 4 });

const Delta = fc.oneof(
  text.map((delta) => ({ delta })),
  text.map((reasoning_delta) => ({ reasoning_delta })),
);
const Said = fc.array(Delta, { maxLength: 4 });

/** What a tool does to the thread's state while it runs. */
const Change = fc.oneof(
  fc.constant({
    key: "todos",
    value: [
      { id: "1", title: "A", status: "done" },
      { id: "2", title: "B", status: "pending" },
    ],
  }),
  fc.constant({ key: "todos", value: [] }),
  fc
    .constantFrom({ a: { bytes: 1, op: "write", content: "x" } }, { a: null }, { a: null, b: { bytes: 9 } })
    .map((patch) => ({ key: "files", patch: patch as Record<string, unknown> })),
  fc.constant({ key: "files", value: { c: { bytes: 2, op: "edit" } } }),
  fc.constant({ key: "notes", patch: { n1: "Remember." } as Record<string, unknown> }),
);

const Child = fc.record({
  said: fc.array(text, { maxLength: 2 }),
  calls: fc.boolean(),
  /** A child of its own. */
  below: rarely(text),
  /** It runs in the background: its call waits for it, or leaves it running. */
  background: rarely(fc.constantFrom("completed", "running")),
});

const Call = fc.record({
  name: fc.constantFrom("read_file", "task", "ask_user", "where"),
  outcome: fc.constantFrom("result", "error", "unstarted", "malformed"),
  /** The call waits in the run that makes it. */
  waits: fc.option(fc.constantFrom("approval", "question", "tool", "deferred", "child"), {
    nil: undefined,
    freq: 2,
  }),
  progress: fc.array(text, { maxLength: 2 }),
  changes: fc.array(Change, { maxLength: 2 }),
  child: Child,
});

const Step = fc.record({
  said: Said,
  /** Attempts that fail before the one that counts: by a busy provider, or because the process dies. */
  failures: fc.array(
    fc.record({
      said: fc.array(Delta, { maxLength: 2 }),
      /** It has begun a call. */
      calls: fc.boolean(),
      isCrash: fc.boolean(),
    }),
    { maxLength: 2 },
  ),
  warning: rarely(fc.constantFrom("odd", "context_compacted", "model_fallback")),
  calls: fc.array(Call, { maxLength: 3 }),
  /** The order in which calls that run at once write their events. */
  picks: fc.array(fc.nat(7), { minLength: 1, maxLength: 6 }),
  /** The process dies after this event of the calls; another one takes over. */
  crashAt: rarely(fc.nat(12)),
  /** A message that comes while the calls run. A step without calls has one, else it would be the last. */
  mail: rarely(text),
});

const End = fc.record({
  as: fc.constantFrom(
    ...(["answer", "max_tokens", "refusal", "guardrail", "ends_with_result"] as const),
    ...(["stopped", "cancelled", "limit", "error"] as const),
  ),
  said: Said,
});

const Decision = fc.record({
  decision: fc.constantFrom("approve", "deny", "edit", "respond"),
  words: text,
  /** All that wait are answered at once, not one in each run. */
  isForAll: fc.boolean(),
});

const Story = fc.record({
  input: text,
  /** The turn before it left a call open, which the first run answers. */
  hasLeft: fc.boolean(),
  steps: fc.array(Step, { maxLength: 3 }),
  end: End,
  /** What each further run of the turn brings. The turn is left waiting after the last one. */
  decisions: fc.array(Decision, { maxLength: 4 }),
  /** A turn that waits for an answer in the end is cancelled. */
  isCancelled: fc.boolean(),
});

type Value<A> = A extends fc.Arbitrary<infer T> ? T : never;
export type StoryValue = Value<typeof Story>;
export type DeltaValue = Value<typeof Delta>;
export type StepValue = Value<typeof Step>;
export type CallValue = Value<typeof Call>;
export type DecisionValue = Value<typeof Decision>;

export const story: fc.Arbitrary<StoryValue> = Story;
