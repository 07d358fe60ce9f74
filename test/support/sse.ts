// A viewer: opens an event stream like a browser's fetch, and keeps the events. Every test that reads a run to its end with
// it is a test of the grammar.

import { expect } from "vitest";
import { isTerminal, type StreamEvent } from "../../src/protocol/event.ts";
import { checkGrammar } from "../../src/protocol/grammar.ts";

export interface Seen {
  readonly id: string;
  readonly event: StreamEvent;
}

export interface Viewer {
  readonly status: number;
  readonly headers: Headers;
  /** The events so far. */
  readonly seen: Seen[];
  /** Comments and frames that are not events of the run. */
  readonly others: string[];
  /** Resolves when an event fits; rejects when the stream ends before. */
  until(fits: (event: StreamEvent) => boolean): Promise<Seen>;
  /** Resolves when the stream has ended, with all its events: none is missing, and each run keeps the grammar. */
  ended(): Promise<StreamEvent[]>;
  leave(): void;
}

export async function post(
  url: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Viewer> {
  return view(url, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json", ...headers },
  });
}

export async function view(url: string, init: RequestInit = {}): Promise<Viewer> {
  const leave = new AbortController();
  const response = await fetch(url, { ...init, signal: leave.signal });
  const seen: Seen[] = [];
  const others: string[] = [];
  const waiting = new Set<() => void>();
  const wake = () => {
    for (const check of waiting) check();
  };
  let over = false;
  const reading = read(response, seen, others, wake).finally(() => {
    over = true;
    wake();
  });
  reading.catch(() => {});
  return {
    status: response.status,
    headers: response.headers,
    seen,
    others,
    until: (fits) =>
      new Promise((resolve, reject) => {
        const check = () => {
          const found = seen.find(({ event }) => fits(event));
          if (!found && !over) return;
          waiting.delete(check);
          if (found) resolve(found);
          else reject(new Error(`The stream ended after ${seen.map(({ event }) => event.event).join(" ")}`));
        };
        waiting.add(check);
        check();
      }),
    async ended() {
      await reading;
      if (!others.some((block) => block.startsWith("event: stream_reset"))) checkRuns(seen);
      return seen.map(({ event }) => event);
    },
    leave: () => leave.abort(),
  };
}

/** A stream may begin in the middle of a run, and end there. */
function checkRuns(seen: readonly Seen[]): void {
  for (const run of Map.groupBy(seen, ({ id }) => id.split(":")[0]).values()) {
    const found = numbers(run);
    const [first = 0] = found;
    // Said in one number: to compare thousands takes a while.
    expect(found.findIndex((number, index) => number !== first + index)).toBe(-1);
    const events = run.map(({ event }) => event);
    const isWhole = first === 1 && events.some(({ event }) => isTerminal(event));
    if (isWhole) expect(checkGrammar(events)).toEqual([]);
  }
}

async function read(response: Response, seen: Seen[], others: string[], wake: () => void): Promise<void> {
  if (!response.body) return;
  let rest = "";
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
    rest += text;
    for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
      const block = rest.slice(0, end);
      rest = rest.slice(end + 2);
      const match = /^id: (.*)\nevent: (.*)\ndata: (.*)$/.exec(block);
      if (match?.[1] && match[3]) seen.push({ id: match[1], event: JSON.parse(match[3]) as StreamEvent });
      else others.push(block);
      wake();
    }
  }
}

/** The events that `before` saw, and those after them from another server. */
export async function reconnect(before: Viewer, url: string): Promise<Seen[]> {
  const cursor = before.seen.at(-1)?.id ?? "";
  const after = await view(url + before.headers.get("location"), { headers: { "last-event-id": cursor } });
  await after.ended();
  return [...before.seen, ...after.seen];
}

/** As `reconnect`, for events that must be whole and well formed. */
export async function seenOn(before: Viewer, { url }: { readonly url: string }): Promise<StreamEvent[]> {
  const seen = await reconnect(before, url);
  expect(numbers(seen)).toEqual(seen.map((_, index) => index + 1));
  const events = seen.map(({ event }) => event);
  expect(checkGrammar(events)).toEqual([]);
  return events;
}

/** The numbers of the events seen, out of their ids. */
export const numbers = (seen: readonly Seen[]) =>
  seen.map(({ id }) => Number(id.slice(id.lastIndexOf("-") + 1)));
