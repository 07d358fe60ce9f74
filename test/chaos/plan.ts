// What a run is to do, written into its user's message: so the fake provider knows its answers without knowing the
// run, for every replica and every repeat.

import { type Answer, type Block, call, say } from "../support/fake-provider/script.ts";
import { sentBody } from "../support/fake-provider/sent-body.ts";
import type { RecordedRequest } from "../support/fake-provider/server.ts";
import type { Random } from "./random.ts";

/** `append` is not to be run twice: it adds its call's id to the ledger. `slow` is the same, and takes seconds. */
const CALLS = ["append", "slow", "read", "write", "todos"] as const;
type Call = (typeof CALLS)[number];

/** One answer of the model. */
interface Step {
  readonly words: number;
  readonly delayMs: number;
  readonly calls: readonly Call[];
}

export interface Plan {
  /** Unique among all plans. */
  readonly id: string;
  /** The last one calls nothing. */
  readonly steps: readonly Step[];
}

const talk = (random: Random): Step => ({
  words: random.int(5, 60),
  delayMs: random.int(2, 12),
  calls: [],
});
const story = (random: Random): Step => ({
  words: random.int(100, 250),
  delayMs: random.int(20, 30),
  calls: [],
});
const work = (random: Random): Step => ({
  words: random.int(0, 20),
  delayMs: random.int(1, 8),
  calls: Array.from({ length: random.int(1, 3) }, () =>
    random.chance(0.25) ? "slow" : random.pick(["append", "append", "read", "write", "todos"] as const),
  ),
});

export function drawPlan(id: string, random: Random): Plan {
  const kind = random.next();
  if (kind < 0.35) return { id, steps: [talk(random)] };
  if (kind < 0.45) return { id, steps: [story(random)] };
  const steps = Array.from({ length: random.int(1, 4) }, () => work(random));
  return { id, steps: [...steps, talk(random)] };
}

/** As `plan m7: 12x5+append+read 30x10.` */
export function textOf({ id, steps }: Plan): string {
  const words = steps.map((step) => [`${step.words}x${step.delayMs}`, ...step.calls].join("+"));
  return `plan ${id}: ${words.join(" ")}.`;
}

const PLAN = /plan (m\d+): ([^.]+)\./g;

/** The plan in a text; the last one, if there are several. */
export function planIn(text: string): Plan | undefined {
  const [, id, words] = [...text.matchAll(PLAN)].at(-1) ?? [];
  if (id === undefined || words === undefined) return undefined;
  const steps = words.split(" ").map((word): Step => {
    const [size = "", ...calls] = word.split("+");
    const [count, delay] = size.split("x").map(Number);
    return {
      words: count ?? 0,
      delayMs: delay ?? 0,
      calls: CALLS.flatMap((known) => calls.filter((each) => each === known).map(() => known)),
    };
  });
  return { id, steps };
}

/** What the model says in a step: each word tells where it belongs. Empty for no words. */
export function wordsOf(plan: Plan, step: number): string {
  const count = plan.steps[step]?.words ?? 0;
  return Array.from({ length: count }, (_, word) => `${plan.id}.${step}.${word}`).join(" ");
}

/** What it says when it is asked once more after its last step. */
export const NOTHING_MORE = "There is nothing more to do.";

export interface Asked {
  readonly plan: Plan;
  /** How many of its steps have been taken. */
  readonly step: number;
}

/** What a model request is about. Throws when there is no plan in it. */
export function askedBy(request: RecordedRequest): Asked {
  const { messages } = sentBody(request);
  const texts = messages.map((message) => JSON.stringify(message));
  const at = texts.findLastIndex((text) => isRole(text, "user") && planIn(text) !== undefined);
  const plan = planIn(texts[at] ?? "");
  if (!plan) throw new Error(`A model request without a plan: ${texts.at(-1)?.slice(0, 500)}`);
  const step = texts.slice(at + 1).filter((text) => isRole(text, "assistant") && hasCalls(text)).length;
  return { plan, step };
}

const isRole = (text: string, role: string) => text.includes(`"role":"${role}"`);
const hasCalls = (text: string) => text.includes('"tool_calls"') || text.includes('"type":"tool_use"');

/** `ledger` is the file that every command of `append` and `slow` adds a line to. */
export function answerTo({ plan, step }: Asked, newCallId: () => string, ledger: string): Answer {
  const { delayMs = 0, calls = [] } = plan.steps[step] ?? {};
  const words = plan.steps[step] ? wordsOf(plan, step) : NOTHING_MORE;
  const blocks = [
    ...(words === "" ? [] : [say(words)]),
    ...calls.map((kind) => callOf(kind, `${newCallId()}_${plan.id}`, ledger)),
  ];
  return { blocks, delayMs, interleaved: true };
}

function callOf(kind: Call, id: string, ledger: string): Block {
  switch (kind) {
    case "append":
      return call("execute", { command: `echo ${id} >>${ledger}; echo ran ${id}` }, id);
    case "slow":
      return call("execute", { command: `echo ${id} >>${ledger}; sleep 2; echo ran ${id}` }, id);
    case "read":
      return call("read_file", { path: "notes.md" }, id);
    case "write":
      return call("write_file", { path: "notes.md", content: `written by ${id}` }, id);
    case "todos":
      return call("write_todos", { todos: [{ id: "1", title: id, status: "pending" }] }, id);
  }
}
