// The events of the protocol, each numbered by the event of our log that gave it, so that every reader sees the same numbers.

import type { Data } from "./writing.ts";

/** An event of our log, where it stands there. */
export interface Position {
  readonly epoch: number;
  readonly seq: number;
}

/** An event of the protocol. */
export interface LangGraphEvent {
  /** The event of our log that gave it, and its number among what that gave. */
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
  /** It takes back what the one before it shows: neither can be left out, though a later one shows all. */
  readonly isWithdrawal?: true;
}

/** Events before those of the first one have numbers that the event before it did not use. */
const BEGUN_LATE = 60;

/** Numbers events by the event of our log that it was last moved to. */
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

  /** Numbers what follows as if so much more had been told. */
  skip(count: number): void {
    this.#k += count;
  }

  /** What `work` tells stands before all that the first event tells. */
  beforeFirst(work: () => LangGraphEvent[]): LangGraphEvent[] {
    const position = this.#position;
    this.#position = { epoch: position.epoch, seq: position.seq - 1 };
    this.#k = BEGUN_LATE;
    const told = work();
    this.moveTo(position);
    return told;
  }
}
