// What the suite has seen: what was asked and how it was answered, what readers got, who worked on what and when
// whom it struck. The verdict is passed on this.

import type { Plan } from "./plan.ts";

/** A message that a user sent, to start or steer a run. */
export interface Sent {
  /** Stands in the message, and in no other one. */
  readonly text: string;
  readonly thread: string;
  /** `unknown`: the server may have taken it, and may not. */
  fate: "accepted" | "refused" | "unknown";
  /** The run that it is for. */
  run?: string;
  /** The id that the server gave it. */
  message?: string;
  /** The run that the thread was said to be busy with. */
  busyWith?: string;
}

export interface Stop {
  readonly run: string;
  readonly mode: "cancel" | "interrupt";
  readonly at: number;
}

/** What the server said of a run that it called ended. */
export interface Told {
  readonly run: string;
  readonly status: string;
  /** What it had added to the thread, by id, if that was said as well. */
  readonly messages?: readonly string[];
}

/** What one line of a run's log is, as readers get it. */
export interface Line {
  readonly epoch: number;
  readonly event: string;
  readonly data: string;
}

export const STRIKES = ["kill", "stop", "drain"] as const;
export type Strike = (typeof STRIKES)[number];

/** From when on a process could write nothing more. */
export interface Struck {
  readonly replica: string;
  readonly by: Strike;
  readonly at: number;
}

/** More than these are counted, not kept. */
const MAX_FAULTS = 200;

export class Journal {
  readonly sent: Sent[] = [];
  readonly stops: Stop[] = [];
  readonly told: Told[] = [];
  readonly struck: Struck[] = [];
  /** When the store did not answer. The last one may have no end yet. */
  readonly outages: { readonly from: number; to: number }[] = [];
  /** When connections to it were cut. */
  readonly cuts: number[] = [];
  readonly threads = new Set<string>();
  readonly counts = new Map<string, number>();
  readonly faults: string[] = [];
  readonly timeline: string[] = [];
  readonly #logs = new Map<string, (Line | undefined)[]>();
  readonly #arrivals = new Map<Line, number>();
  readonly #workers = new Map<string, { replica: string; at: number }[]>();
  #calls = 0;
  #plans = 0;

  /** For debugging: every fault, with its target and time. */
  note(text: string): void {
    this.timeline.push(`${new Date().toISOString()} ${text}`);
  }

  strike(replica: string, by: Strike): void {
    this.count(`${by}s`);
    this.note(`${by} ${replica}`);
    this.struck.push({ replica, by, at: Date.now() });
  }

  count(what: string, by = 1): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + by);
  }

  /** Something that the server had promised never to do. */
  fault(text: string): void {
    this.count("faults");
    this.note(`FAULT ${text}`);
    if (this.faults.length < MAX_FAULTS) this.faults.push(text);
  }

  newPlanId = () => `m${++this.#plans}`;
  newCallId = () => `c${++this.#calls}`;

  /** A replica asked the model what to do next. */
  workedOn(plan: Plan, replica: string): void {
    this.count("model requests");
    const entries = this.#workers.get(plan.id) ?? [];
    if (entries.at(-1)?.replica !== replica) {
      entries.push({ replica, at: Date.now() });
      this.note(`${replica} works on ${plan.id}`);
    }
    this.#workers.set(plan.id, entries);
  }

  /** Who worked on a plan last between two moments. */
  workerOf(planId: string, from: number, to: number): string | undefined {
    return this.#workers.get(planId)?.findLast(({ at }) => at >= from && at < to)?.replica;
  }

  /** A reader got event number `seq`. All that readers get of a run must be the same. */
  read(run: string, seq: number, line: Line): void {
    const log = this.#logs.get(run) ?? [];
    this.#logs.set(run, log);
    const known = log[seq - 1];
    if (known === undefined) {
      log[seq - 1] = line;
      this.#arrivals.set(line, Date.now());
    } else if (known.epoch !== line.epoch || known.data !== line.data)
      this.fault(`${run}: readers got two different events ${seq}: ${shown(known)} and ${shown(line)}`);
  }

  /** When the first reader got event number `seq`. */
  arrivalOf(run: string, seq: number): number | undefined {
    const line = this.#logs.get(run)?.[seq - 1];
    return line && this.#arrivals.get(line);
  }

  /** The runs that readers have read. */
  get runs(): readonly string[] {
    return [...this.#logs.keys()];
  }

  /** What readers have got of a run; what none has got is missing in it. */
  seen(run: string): readonly (Line | undefined)[] {
    return this.#logs.get(run) ?? [];
  }
}

export const shown = ({ epoch, event, data }: Line) => `${epoch} ${event} ${data.slice(0, 300)}`;

/** Whether that is the name of an event after which nothing comes. */
export const isEnd = (event: string) => event === "done" || event === "error";
