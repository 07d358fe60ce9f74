// One run: its log is whole and well formed, everybody who read it got the same, and its end is what was said of it.

import type { StreamEvent } from "../../src/protocol/event.ts";
import { checkGrammar } from "../../src/protocol/grammar.ts";
import { isEnd, type Journal, shown } from "./journal.ts";
import { NOTHING_MORE, planIn, wordsOf } from "./plan.ts";
import type { RunOnRecord } from "./records.ts";

/** How long a run may continue after a cancel or an outage of the store. */
const SETTLE_LIMIT_MS = 60_000;

export function judgeRun(record: RunOnRecord, journal: Journal): void {
  const { run, events } = record;
  const fault = (text: string) => journal.fault(`${run.id} of ${run.thread_id}: ${text}`);
  for (const text of checkGrammar(events)) fault(text);
  judgeOrder(record, fault);
  judgeReaders(record, journal, fault);
  judgeEnd(record, journal, fault);
  judgeTold(record, journal, fault);
  judgeWords(events, fault);
}

type Fault = (text: string) => void;

function judgeOrder({ run, ids, lines }: RunOnRecord, fault: Fault): void {
  lines.forEach(({ epoch, event }, index) => {
    const id = `${run.id}:${epoch}-${index + 1}`;
    if (ids[index] !== id) fault(`event ${index + 1} has the id ${ids[index]}`);
    if (epoch < (lines[index - 1]?.epoch ?? 0))
      fault(`event ${index + 1} is of an older attempt than the one before`);
    if (isEnd(event) && index !== lines.length - 1)
      fault(`${event} is event ${index + 1} of ${lines.length}`);
  });
}

function judgeReaders({ run, lines }: RunOnRecord, journal: Journal, fault: Fault): void {
  const seen = journal.seen(run.id);
  if (seen.length > lines.length) fault(`readers got ${seen.length} events, the log has ${lines.length}`);
  lines.forEach((line, index) => {
    const known = seen[index];
    if (known && (known.data !== line.data || known.epoch !== line.epoch))
      fault(`readers got ${shown(known)} as event ${index + 1}, the log has ${shown(line)}`);
  });
}

function judgeEnd({ run, events }: RunOnRecord, journal: Journal, fault: Fault): void {
  const last = events.at(-1);
  const status = last?.event === "done" ? last.data.status : last?.event;
  if (status !== run.status) fault(`it is ${run.status}, its last event says ${status}`);
  if (last?.event === "error" && last.data.code !== run.error?.code)
    fault(`it failed with ${run.error?.code}, its last event says ${last.data.code}`);
  if (run.error && !isExcused(run.error.code, Date.parse(run.ended_at ?? ""), journal))
    fault(`it failed with ${run.error.code}: ${run.error.message}`);
}

/** What may end a run in such times; nothing else may. */
function isExcused(code: string, at: number, { outages }: Journal): boolean {
  if (code === "unavailable") return outages.some(({ from, to }) => from < at && to > at - SETTLE_LIMIT_MS);
  return code === "crashed_too_often";
}

function judgeTold({ run, events }: RunOnRecord, journal: Journal, fault: Fault): void {
  const added = messagesIn(events).map(({ id }) => id);
  for (const told of journal.told.filter((each) => each.run === run.id)) {
    if (told.status !== run.status) fault(`it was reported as ${told.status}, and is ${run.status}`);
    if (told.messages && told.messages.join() !== added.join())
      fault(`it was reported to have added ${told.messages.join()}, and has added ${added.join()}`);
  }
  const stopped = journal.stops.find((each) => each.run === run.id && each.mode === "cancel");
  const went = stopped ? Date.parse(run.ended_at ?? "") - stopped.at : 0;
  if (run.status === "success" && went > SETTLE_LIMIT_MS)
    fault(`it was cancelled, and went on for ${went} ms, to its own end`);
}

/** What was streamed of a message is the message, and it is what the model had to say. */
function judgeWords(events: readonly StreamEvent[], fault: Fault): void {
  const plan = planIn(JSON.stringify(messagesIn(events).find(({ role }) => role === "user") ?? ""));
  const said = new Set([NOTHING_MORE, ""]);
  plan?.steps.forEach((_, step) => void said.add(wordsOf(plan, step)));
  let text = "";
  for (const event of events) {
    if (event.event === "on_chat_model_start") text = "";
    if (event.event === "on_chat_model_stream" && "delta" in event.data) text += event.data.delta;
    if (event.event !== "on_message" || event.data.message.role !== "assistant") continue;
    const { id, content, incomplete } = event.data.message;
    if (text !== content) fault(`${id} was streamed as "${text}", and is "${content}"`);
    const isSaid = incomplete ? [...said].some((whole) => whole.startsWith(content)) : said.has(content);
    if (plan && !isSaid) fault(`${id} is "${content}", which the model never said`);
  }
}

const messagesIn = (events: readonly StreamEvent[]) =>
  events.flatMap((event) => (event.event === "on_message" ? [event.data.message] : []));
