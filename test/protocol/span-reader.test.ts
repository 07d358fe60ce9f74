import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { NO_USAGE } from "../../src/agent/core/message.ts";
import { type StreamEvent, warning } from "../../src/protocol/event.ts";
import { type AnySpan, readSpans } from "../../src/protocol/span-reader.ts";
import { arbitraryRun } from "../support/arbitrary-run.ts";

const START: StreamEvent = { event: "run_start", data: { agent: "boss", model: "m", attempt: 1 } };
const CANCELLED: StreamEvent = {
  event: "done",
  data: { status: "cancelled", stop_reason: "cancelled", usage: NO_USAGE },
};
const RETRY = warning("model_retry", "Model `m` failed, retrying.");
const within = (event: StreamEvent, path: string[]): StreamEvent => ({ ...event, path });
const asked = (message_id: string, model = "m"): StreamEvent => ({
  ...{ event: "on_chat_model_start", name: model, data: { message_id, model } },
});
const answered = (message_id: string, code?: string): StreamEvent => ({
  event: "on_chat_model_end",
  name: "m",
  data: { message_id, ...(code ? { error: { code, message: "Busy." } } : {}) },
});
const discarded = (message_id: string): StreamEvent => ({ event: "message_discard", data: { message_id } });
const calls = (call_id: string): StreamEvent => ({
  ...{ event: "on_tool_start", name: "task", data: { call_id, args: {} } },
});
const called = (call_id: string): StreamEvent => ({
  ...{ event: "on_tool_end", name: "task", data: { call_id, output: "", duration_ms: 1 } },
});
const delegates = (id: string, call_id: string): StreamEvent => ({
  event: "on_subagent_start",
  data: { id, call_id, agent: "coder", name: "coder-1", thread_id: "t2", run_id: "r2" },
});
const delegated = (id: string, call_id: string): StreamEvent => ({
  event: "on_subagent_end",
  data: { id, call_id, status: "completed", summary: "" },
});

const nameOf = ({ kind, id }: Pick<AnySpan, "kind" | "id">) => (id === "" ? kind : `${kind} ${id}`);

/** What a reader says of these events, in words. */
function told(events: readonly StreamEvent[]): string[] {
  const words: string[] = [];
  const say = (what: string) => {
    words.push(what);
  };
  const closed = (_: StreamEvent, span: AnySpan | undefined) =>
    say(span ? `${nameOf(span)} closed` : "an unknown span closed");
  const opened = (span: AnySpan) => say(`${nameOf(span)} opened`);
  const { see } = readSpans({
    run: { opened, closed },
    model: {
      opened: (span) => say(`${nameOf(span)} ${span.repeats ? `repeats ${span.repeats.id}` : "opened"}`),
      closed,
      discarded: (_, span) => say(span ? `${nameOf(span)} discarded` : "an unknown message discarded"),
      retried: ({ id }, end) => say(`model ${id} retried after ${end?.data.error?.code ?? "no end"}`),
      settled: ({ id }, end) => say(`model ${id} settled with ${end.data.error?.code ?? "an answer"}`),
    },
    tool: { opened, closed },
    subagent: { opened, closed },
  });
  for (const event of events) see(event);
  return words;
}

describe("the spans of a run", () => {
  test("are nested: a subagent in its tool call, its calls in the subagent, to any depth", () => {
    const ways: string[] = [];
    const wayUp = (span: AnySpan): string =>
      span.parent ? `${nameOf(span)} < ${wayUp(span.parent)}` : nameOf(span);
    const opened = (span: AnySpan) => ways.push(wayUp(span));
    const { see } = readSpans({ run: { opened }, model: { opened }, tool: { opened }, subagent: { opened } });
    const nested = [calls("c"), delegates("y", "c")].map((event) => within(event, ["x"]));
    for (const event of [START, calls("c"), delegates("x", "c"), ...nested, within(asked("1"), ["x", "y"])])
      see(event);
    expect(ways).toEqual([
      "run",
      "tool c < run",
      "subagent x < tool c < run",
      "tool c < subagent x < tool c < run",
      "subagent y < tool c < subagent x < tool c < run",
      "model 1 < subagent y < tool c < subagent x < tool c < run",
    ]);
  });

  test("of two subagents with one id are each in their own", () => {
    const parents: (string | undefined)[] = [];
    const { see } = readSpans({ model: { opened: ({ parent }) => parents.push(parent && nameOf(parent)) } });
    const children = ["x", "z"].flatMap((id) => [
      ...[calls(`c_${id}`), delegates(id, `c_${id}`)],
      ...[calls("c"), delegates("y", "c")].map((event) => within(event, [id])),
    ]);
    const ends = within(delegated("y", "c"), ["z"]);
    for (const event of [START, ...children, ends, within(asked("1"), ["x", "y"])]) see(event);
    expect(parents).toEqual(["subagent y"]);
  });

  test("that a subagent left open are dropped when it ends", () => {
    const { see, open } = readSpans({});
    for (const event of [START, delegates("x", "c"), within(calls("a"), ["x"]), delegated("x", "c")])
      see(event);
    expect(open().map(nameOf)).toEqual(["run"]);
  });

  test("close once each, in every valid run, and none is left open", () => {
    fc.assert(
      fc.property(arbitraryRun, (events) => {
        const open = new Set<AnySpan>();
        const opened = (span: AnySpan) => open.add(span);
        const closed = (_: StreamEvent, span: AnySpan | undefined) =>
          expect(span && open.delete(span)).toBe(true);
        const kind = { opened, closed };
        const reader = readSpans({
          run: kind,
          model: { ...kind, discarded: closed },
          tool: kind,
          subagent: kind,
        });
        for (const event of events) {
          reader.see(event);
          expect(reader.open()).toEqual([...open]);
        }
        expect(open.size).toBe(0);
      }),
    );
  });

  test("keep their starting values until they close", () => {
    const kept: unknown[] = [];
    const { see } = readSpans<string>({
      tool: { opened: ({ id }) => `about ${id}`, closed: (_, span) => kept.push(span?.own) },
    });
    for (const event of [START, calls("a"), calls("b"), called("a"), called("b")]) see(event);
    expect(kept).toEqual(["about a", "about b"]);
  });

  test("end even for a reader that begins after their start", () => {
    const rest = [called("a"), answered("1"), discarded("2"), delegated("x", "c"), CANCELLED];
    expect(told(rest)).toEqual([
      ...["an unknown span closed", "an unknown span closed", "an unknown message discarded"],
      ...["an unknown span closed", "an unknown span closed"],
    ]);
  });
});

describe("a model call", () => {
  test("is settled with its last attempt, once the next event shows that no other follows", () => {
    const events = [
      START,
      asked("1"),
      answered("1", "model_overloaded"),
      RETRY,
      asked("2"),
      answered("2"),
      calls("c"),
    ];
    expect(told(events)).toEqual([
      ...["run opened", "model 1 opened", "model 1 closed", "model 1 retried after model_overloaded"],
      ...["model 2 repeats 1", "model 2 closed", "model 2 settled with an answer", "tool c opened"],
    ]);
  });

  test("that fails without a retry is settled, and the next one is another call", () => {
    const events = [
      asked("1"),
      answered("1", "model_auth"),
      warning("model_fallback", "…"),
      asked("2", "other"),
    ];
    expect(told(events)).toEqual([
      ...["model 1 opened", "model 1 closed", "model 1 settled with model_auth", "model 2 opened"],
    ]);
  });

  test("is settled with its error if the run ends before its retry", () => {
    expect(told([asked("1"), answered("1", "model_overloaded"), RETRY, CANCELLED])).toEqual([
      ...["model 1 opened", "model 1 closed", "model 1 retried after model_overloaded"],
      ...["model 1 settled with model_overloaded", "an unknown span closed"],
    ]);
  });

  test("whose attempt ends only after its retry was announced is one call", () => {
    expect(told([asked("1"), RETRY, answered("1"), asked("2"), answered("2"), called("c")])).toEqual([
      ...["model 1 opened", "model 1 retried after no end", "model 1 closed", "model 2 repeats 1"],
      ...["model 2 closed", "model 2 settled with an answer", "an unknown span closed"],
    ]);
  });

  test("starts over after its process died", () => {
    const resumed: StreamEvent = { event: "run_resumed", data: { attempt: 2 } };
    expect(told([asked("1"), resumed, discarded("1"), asked("2")])).toEqual([
      ...["model 1 opened", "model 1 discarded", "model 2 repeats 1"],
    ]);
  });

  test("is settled even if an older message is discarded meanwhile", () => {
    expect(told([asked("1"), discarded("0"), answered("1"), calls("c")])).toEqual([
      ...["model 1 opened", "an unknown message discarded", "model 1 closed"],
      ...["model 1 settled with an answer", "tool c opened"],
    ]);
  });

  test("of an active subagent is settled when the run ends", () => {
    expect(told([within(asked("1"), ["x"]), within(answered("1"), ["x"]), CANCELLED])).toEqual([
      ...["model 1 opened", "model 1 closed", "model 1 settled with an answer", "an unknown span closed"],
    ]);
  });

  test("of a subagent is settled separately, at the latest when the subagent ends", () => {
    const nested = [asked("1"), answered("1", "model_overloaded"), RETRY].map((event) =>
      within(event, ["x"]),
    );
    expect(told([delegates("x", "c"), ...nested, asked("2"), delegated("x", "c")])).toEqual([
      ...["subagent x opened", "model 1 opened", "model 1 closed", "model 1 retried after model_overloaded"],
      ...["model 2 opened", "model 1 settled with model_overloaded", "subagent x closed"],
    ]);
  });
});
