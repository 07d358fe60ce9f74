// What a page shows of a thread, folded from the events of real runs.

import { describe, expect, test } from "vitest";
import type { Turn } from "../../src/agent/models/scripted.ts";
import { type Cell, shown, type ThreadView, type ToolCell } from "../../src/client/cells.ts";
import {
  createClient,
  type Interrupt,
  type Message,
  type Run,
  type StreamEvent,
  type ThreadState,
} from "../../src/client/client.ts";
import { createFold } from "../../src/client/fold.ts";
import { startServer } from "../support/server.ts";
import { cast, completing, delegating, TEAM } from "../support/team.ts";

const untouched = { touch: () => {} };

function folded(events: Iterable<StreamEvent>): ThreadView {
  const { page, apply } = createFold(untouched);
  for (const event of events) apply(event);
  return page;
}

const toolsIn = (page: ThreadView) =>
  page.lane.cells.filter((cell): cell is ToolCell => cell.kind === "tool");
const textsIn = (page: ThreadView) =>
  page.lane.cells.flatMap((cell) => (cell.kind === "user" || cell.kind === "text" ? [cell.text] : []));

const isKept = (cell: Cell) => cell.kind === "text" && cell.isKept === true;

/** What a person reads, without what only a live viewer can know: times, output as it came, attempts that failed. */
function read(page: ThreadView) {
  const plain = (cell: Cell): unknown => {
    if (cell.kind === "user") return `You: ${cell.text}`;
    if (cell.kind === "text" || cell.kind === "thought")
      return cell.state === "done" || isKept(cell) ? `${cell.kind}: ${cell.text}` : undefined;
    if (cell.kind === "note") return `${cell.tone}: ${cell.text}`;
    if (cell.kind === "agent") return [cell.name, cell.agent, cell.status, cell.summary];
    const { name, args, state, output, agents } = cell;
    return { name, args, state, output: shown(output), agents: agents.map(plain) };
  };
  const { lane, todos, asks, run } = page;
  const cells = lane.cells.map(plain).filter((cell) => cell !== undefined);
  return { cells, todos, asks: asks.map(({ id }) => id), isActive: run.isActive, phase: run.phase };
}

/** The thread's state after these events, as the server would give it. */
function stateAfter(events: readonly StreamEvent[]): ThreadState {
  const messages: Message[] = [];
  const values: Record<string, unknown> = {};
  let status: ThreadState["status"] = "idle";
  for (const event of events) {
    if ("path" in event && event.path) continue;
    if (event.event === "run_start") status = "busy";
    if (event.event === "on_message") messages.push(event.data.message);
    if (event.event === "done") status = event.data.status === "interrupted" ? "interrupted" : "idle";
    if (event.event === "error") status = "error";
    if (event.event !== "on_state") continue;
    const { key, value, patch } = event.data;
    const merged = { ...(values[key] as object), ...patch };
    values[key] = patch
      ? Object.fromEntries(Object.entries(merged).filter(([, each]) => each !== null))
      : value;
  }
  return { thread_id: "t1", version: messages.length, ...values, messages, status };
}

/** The events of the runs of a thread: the first one, and those that answer what was asked. */
async function recorded(options: Parameters<typeof startServer>[0], answers: readonly string[] = []) {
  const { url } = await startServer(options);
  const client = createClient({ baseUrl: url });
  const events: StreamEvent[] = [];
  let ask: Interrupt | undefined;
  const keep = async (run: AsyncIterable<StreamEvent>) => {
    for await (const event of run) {
      events.push(event);
      if (event.event === "on_interrupt" && !event.path) ask = event.data;
    }
  };
  await keep(client.run("t1", { input: "go" }));
  for (const message of answers)
    if (ask) await keep(client.resume("t1", ask.run_id, [{ id: ask.id, decision: "respond", message }]));
  return { events, client };
}

const WORK: readonly Turn[] = [
  {
    think: "First a plan, then the file.",
    say: "I **begin**.",
    call: [
      { tool: "write_todos", args: { todos: [{ id: "1", title: "Write it", status: "in_progress" }] } },
      { tool: "write_file", args: { path: "a.sh", content: "echo hello\n" } },
    ],
  },
  {
    call: [
      { tool: "execute", args: { command: "sh a.sh" } },
      { tool: "read_file", args: { path: "none" } },
    ],
  },
  { say: "Done." },
];
const ASKING = `
agents:
  assistant: { model: "scripted:test", tools: [ask_user] }
`;
const scenes = {
  "tools, of which one fails": () => recorded({ script: WORK }),
  "a question that is answered": () =>
    recorded(
      {
        agents: ASKING,
        script: [
          { say: "Hm.", call: [{ tool: "ask_user", args: { question: "Which?" } }] },
          { say: "Thanks." },
        ],
      },
      ["The red one."],
    ),
  "a question that waits": () =>
    recorded({ agents: ASKING, script: [{ call: [{ tool: "ask_user", args: { question: "Which?" } }] }] }),
  "subagents side by side": () =>
    recorded({
      agents: TEAM,
      script: cast({
        lead: [
          delegating({ agent: "coder", task: "write" }, { agent: "tester", task: "test" }),
          { say: "Both did." },
        ],
        coder: [{ say: "I write." }, completing("written")],
        tester: [completing("tested")],
      }),
    }),
  "an attempt that fails and is repeated": () =>
    recorded({
      script: [
        { say: "A beginning that is", fail: { code: "model_unavailable", retry_after_ms: 1 } },
        { say: "The answer." },
      ],
    }),
  "a run that fails": () =>
    recorded({ script: [{ say: "Some words", fail: { code: "model_rejected", message: "No." } }] }),
};

describe("a thread opened during a run", () => {
  // Never repeated: what fails once, at any place of any recording, is wrong.
  for (const [name, record] of Object.entries(scenes))
    test(`finally shows the same as to a viewer of all its events: ${name}`, { retry: 0 }, async () => {
      const { events } = await record();
      const whole = read(folded(events));
      const starts = events.flatMap(({ event }, index) => (event === "run_start" ? [index] : []));
      for (let seen = 0; seen <= events.length; seen++) {
        // The events of the run in progress come again, from its first one or from a later one.
        const start = Math.max(0, ...starts.filter((each) => each < seen));
        for (let from = start; from <= seen; from++) {
          const { page, apply, begin } = createFold(untouched);
          begin({ state: stateAfter(events.slice(0, seen)) });
          for (const event of events.slice(from)) apply(event);
          const { cells, ...rest } = read(page);
          const isOver = seen === events.length && from === seen;
          const { asks, todos, isActive } = whole;
          const place = { seen, from, events };
          expect({ place, cells, ...rest }).toMatchObject({
            ...{ place, cells: isOver ? withoutNotes(whole.cells) : whole.cells },
            ...{ asks, todos, isActive },
          });
        }
      }
    });

  const withoutNotes = (cells: unknown[]) =>
    cells.filter((cell) => typeof cell !== "string" || !/^(quiet|warning|error): /.test(cell));
});

/** Each object of a page, with what it contains apart from the objects below it. */
function objectsOf(page: ThreadView): Map<object, string> {
  const found = new Map<object, string>([
    [page.run, JSON.stringify(page.run)],
    [page, JSON.stringify([page.todos, page.asks])],
  ]);
  const own = (key: string, value: unknown) => {
    if (key === "lane") return undefined;
    return key === "cells" || key === "agents" ? (value as Cell[]).map((cell) => cell.key) : value;
  };
  const visit = (what: ThreadView["lane"] | Cell): void => {
    found.set(what, JSON.stringify(what, own));
    if ("cells" in what) what.cells.forEach(visit);
    else if (what.kind === "tool") what.agents.forEach(visit);
    else if (what.kind === "agent") visit(what.lane);
  };
  visit(page.lane);
  return found;
}

test("every object that an event changes is reported, so a view can draw only these again", async () => {
  for (const record of Object.values(scenes)) {
    const touched = new Set<object>();
    const { page, apply } = createFold({ touch: (what) => touched.add(what) });
    let before = objectsOf(page);
    for (const event of (await record()).events) {
      touched.clear();
      apply(event);
      const after = objectsOf(page);
      for (const [what, text] of before)
        if (!touched.has(what)) expect({ event, text: after.get(what) ?? text }).toEqual({ event, text });
      before = after;
    }
  }
});

test("a thread opened later shows what its viewers saw, and how it ended", async () => {
  for (const record of Object.values(scenes)) {
    const { events, client } = await record();
    const [run] = (await client.runs.of("t1", { limit: 1 })).items as Run[];
    const { page, begin } = createFold(untouched);
    begin({ state: await client.threads.state("t1"), run });
    const live = read(folded(events));
    const warnings = (cell: unknown) => typeof cell !== "string" || !cell.startsWith("warning: ");
    expect(read(page).cells).toEqual(live.cells.filter(warnings));
    expect(read(page).asks).toEqual(live.asks);
  }
});

test("a subagent's events are in the card of its call, and repeating them does not duplicate it", async () => {
  const { events } = await scenes["subagents side by side"]();
  const start = events.findIndex(({ event }) => event === "on_subagent_start");
  const end = events.findIndex(({ event }) => event === "on_subagent_end");
  const opened = events[start];
  const id = opened?.event === "on_subagent_start" ? opened.data.id : "";
  const ofFirst = events
    .slice(start, end)
    .filter((event) =>
      event.event === "on_subagent_start" ? event.data.id === id : "path" in event && event.path?.[0] === id,
    );
  const once = folded(events);
  const twice = folded([...events.slice(0, end), ...ofFirst, ...events.slice(end)]);
  const lanes = (page: ThreadView) =>
    toolsIn(page).flatMap(({ agents }) =>
      agents.map(({ lane }) => lane.cells.map((cell) => ("text" in cell ? cell.text : cell.kind))),
    );
  expect(lanes(once).flat()).toContain("I write.");
  // What it was asked to do is in the call.
  expect(lanes(once).flat()).not.toContain("write");
  expect(lanes(twice)).toEqual(lanes(once));
  const usages = events.flatMap((event) =>
    event.event === "on_chat_model_end" ? (event.data.usage ?? []) : [],
  );
  const used = usages.map(({ input_tokens, output_tokens }) => input_tokens + output_tokens);
  expect(folded(events.slice(0, -1)).run.tokens).toBe(used.reduce((sum, each) => sum + each, 0));
});

test("a run's token count starts at zero and ends with the run's own count", async () => {
  const usage = { input_tokens: 10, output_tokens: 1 };
  const { events } = await recorded(
    {
      agents: ASKING,
      script: [
        { call: [{ tool: "ask_user", args: { question: "Which?" } }], usage },
        { say: "Thanks.", usage },
      ],
    },
    ["The red one."],
  );
  const { page, apply } = createFold(untouched);
  const tokens: number[] = [];
  for (const event of events) {
    apply(event);
    if (event.event === "run_start" || event.event === "done") tokens.push(page.run.tokens);
  }
  expect(tokens).toEqual([0, 11, 0, 11]);
});

test("an answer that was cut off is shown up to that point, live and after a reload", async () => {
  const { events, client } = await scenes["a run that fails"]();
  const live = folded(events);
  const { page, begin } = createFold(untouched);
  begin({ state: await client.threads.state("t1") });
  for (const { lane } of [live, page])
    expect(lane.cells.find(({ kind }) => kind === "text")).toMatchObject({
      ...{ text: "Some words", state: "failed", isKept: true },
    });
});

test("a message of the thread is shown as stored regardless of its pieces", async () => {
  const { events } = await recorded({ script: [{ say: "one two three" }] });
  const lost = events.filter(
    (event) => event.event !== "on_chat_model_stream" || !JSON.stringify(event).includes("two"),
  );
  expect(lost.length).toBeLessThan(events.length);
  expect(textsIn(folded(lost))).toEqual(["go", "one two three"]);
});

test("the page keeps the beginning and the end of a long output", () => {
  const { page, apply } = createFold(untouched);
  apply({ event: "on_tool_start", name: "execute", data: { call_id: "c", args: {} } });
  const lines = Array.from({ length: 100_000 }, (_, line) => `line ${line}\n`);
  for (const output of lines)
    apply({ event: "on_tool_progress", name: "execute", data: { call_id: "c", output } });
  const [tool] = toolsIn(page);
  const text = tool ? shown(tool.output) : "";
  expect(text.length).toBeLessThan(101_000);
  expect(text.startsWith("line 0\n")).toBe(true);
  expect(text.endsWith(lines.join("").slice(-50_000))).toBe(true);
  expect(text).toMatch(/\n… \d+ characters …\n/);
});

test("a run that stopped after a step leaves a note that it was stopped", () => {
  const usage = { input_tokens: 1, output_tokens: 1, cache_read_tokens: 0, cache_write_tokens: 0 };
  const { lane } = folded([
    { event: "done", data: { status: "interrupted", stop_reason: "interrupt", usage } } as StreamEvent,
  ]);
  expect(lane.cells).toMatchObject([{ kind: "note", tone: "quiet", outcome: "stopped" }]);
});

test("a model that is called several times leaves one note, about its newest attempt", () => {
  const warning = (code: string, message: string): StreamEvent =>
    ({ event: "warning", run_id: "r1", thread_id: "t1", data: { code, message } }) as StreamEvent;
  const { lane } = folded([
    warning("model_retry", "attempt 2"),
    warning("quota", "Almost used up."),
    warning("model_retry", "attempt 3"),
  ]);
  expect(lane.cells).toMatchObject([
    { kind: "note", reason: "quota", text: "Almost used up." },
    { kind: "note", reason: "model_retry", text: "attempt 3" },
  ]);
});

test("a thought ends when the call after it begins", async () => {
  const call = [{ tool: "ask_user", args: { question: "Which?" } }];
  const { events } = await recorded({ agents: ASKING, script: [{ think: "I ask.", call }] });
  const { page, apply } = createFold(untouched);
  events.some((event) => {
    apply(event);
    return toolsIn(page).length > 0;
  });
  expect(page.lane.cells).toMatchObject([{}, { kind: "thought", state: "done" }, { kind: "tool" }]);
});
