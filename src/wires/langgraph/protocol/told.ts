// The events of the protocol. Their numbers derive from Skein's log, so every reader sees the same numbers.

import type { Data } from "./message-writer.ts";

/** The position of an event in Skein's log. */
export interface Position {
  readonly epoch: number;
  readonly seq: number;
}

/** An event of the protocol. */
export interface LangGraphEvent {
  /** The position of the log event that it comes from, and its number among the protocol events for that log event. */
  readonly at: Position & { readonly k: number };
  readonly method:
    | "lifecycle"
    | "messages"
    | "tools"
    | "checkpoints"
    | "values"
    | "input.requested"
    | "custom";
  readonly namespace: readonly string[];
  readonly node?: "agent" | "tools";
  /** In ms. */
  readonly timestamp: number;
  readonly data: Data;
  /** True if the event retracts part of the previous snapshot. Both must be sent, even if a later snapshot follows. */
  readonly isWithdrawal?: true;
}

/** The first number for events that precede the first log event. The previous log event has not used these numbers. */
const BEGUN_LATE = 60;

/** Numbers events relative to the log event that was last passed to `moveTo`. */
export class Teller {
  #position: Position = { epoch: 0, seq: 0 };
  #k = 0;
  #timestamp = 0;

  get timestamp(): number {
    return this.#timestamp;
  }

  moveTo(position: Position, timestamp = this.#timestamp): void {
    this.#position = position;
    this.#k = 0;
    this.#timestamp = timestamp;
  }

  tell(method: LangGraphEvent["method"], namespace: readonly string[], data: Data): LangGraphEvent {
    return { at: { ...this.#position, k: this.#k++ }, method, namespace, timestamp: this.#timestamp, data };
  }

  /** Skips `count` numbers. */
  skip(count: number): void {
    this.#k += count;
  }

  /** Numbers the events of `work` so that they precede all events of the first log event. */
  beforeFirst(work: () => LangGraphEvent[]): LangGraphEvent[] {
    const position = this.#position;
    this.#position = { epoch: position.epoch, seq: position.seq - 1 };
    this.#k = BEGUN_LATE;
    const told = work();
    this.moveTo(position);
    return told;
  }
}
