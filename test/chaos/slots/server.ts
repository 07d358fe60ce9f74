// One of the servers: the whole program, on the store's movable clock, with a clock of its own that is wrong. On an order it
// stops or dies before it notes that a run has started.

import { Socket } from "node:net";
import { scriptedModel } from "../../../src/agent/models/scripted.ts";
import { createApp, createLogger } from "../../../src/app.ts";
import { loadServerConfig } from "../../../src/server/config/load.ts";
import { movableClock, skewDate } from "./clock.ts";

/** Before it sends the note with this number, counted from now on, the process gets this signal. */
export interface Blow {
  readonly note: number;
  readonly signal: "SIGKILL" | "SIGSTOP";
  /** The order holds for so long. */
  readonly withinMs: number;
}

let blow: Blow | undefined;
let notes = 0;
let until = 0;
process.on("message", (message: Blow) => {
  blow = message;
  notes = 0;
  until = performance.now() + message.withinMs;
});
process.channel?.unref();
const isNote = (sent: unknown) =>
  (typeof sent === "string" || Buffer.isBuffer(sent)) && sent.includes('"outcome":"started"');
const { write } = Socket.prototype;
Socket.prototype.write = function (this: Socket, ...given: Parameters<typeof write>) {
  if (blow && performance.now() < until && isNote(given[0]) && ++notes === blow.note)
    process.kill(process.pid, blow.signal);
  return write.apply(this, given);
} as typeof write;

const { STORE_CLOCK = "", SKEW_MS } = process.env;
skewDate(Number(SKEW_MS));
const config = await loadServerConfig(process.env);
const app = await createApp({
  config,
  env: process.env,
  logger: createLogger(config),
  now: movableClock(STORE_CLOCK).now,
  createModel: () => scriptedModel(() => ({ say: "Done." })),
});
process.once("SIGTERM", () => void app.close().then(() => process.exit(0)));
console.log(`serves on ${await app.listen()}`);
