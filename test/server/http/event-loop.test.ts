import { pino } from "pino";
import { expect, test } from "vitest";
import { watchEventLoop } from "../../../src/lib/event-loop.ts";
import { startServer } from "../../support/server.ts";

/** A server whose log is kept, and how to keep its event loop busy. */
async function watched(warn_after: string | number) {
  const lines: string[] = [];
  const logger = pino({ level: "warn" }, { write: (line: string) => lines.push(line) });
  const { url } = await startServer({ logger, config: { event_loop: { warn_after } } });
  const stalls = () => lines.filter((line) => line.includes("the event loop was blocked"));
  return { url, stalls };
}

function logOf() {
  const lines: object[] = [];
  const log = (details: object) => lines.push(details);
  return { lines, logger: { info: log, warn: log, error: log } };
}

function block(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

test("work that blocks the event loop is logged once with its duration", async () => {
  const { url, stalls } = await watched("1s");
  await fetch(`${url}/threads`);
  block(1500);
  await expect.poll(() => stalls().length).toBe(1);
  const [line = ""] = stalls();
  expect(JSON.parse(line)).toMatchObject({ level: 40, untold: 0 });
  expect(JSON.parse(line).duration_ms).toBeGreaterThan(1000);
  expect(JSON.parse(line).cpu_ms).toBeGreaterThan(0);
});

test("short stalls while a server starts are not logged", async () => {
  const { lines, logger } = logOf();
  const watch = watchEventLoop(100, logger, true);
  block(300);
  await new Promise((resolve) => setTimeout(resolve, 60));
  block(1200);
  await expect.poll(() => lines.length).toBe(1);
  expect(lines[0]).toMatchObject({ untold: 0, duration_ms: expect.toSatisfy((ms: number) => ms > 1000) });
  watch.close();
});

test("0s logs no stall, and a watch that is closed logs none", async () => {
  const { stalls } = await watched("0s");
  const [closed, open] = [logOf(), logOf()];
  watchEventLoop(100, closed.logger).close();
  const watch = watchEventLoop(100, open.logger);
  block(500);
  await expect.poll(() => open.lines.length).toBe(1);
  watch.close();
  expect([stalls(), closed.lines]).toEqual([[], []]);
});

test("a stall names the most recent request before it", async () => {
  const { lines, logger } = logOf();
  const watch = watchEventLoop(100, logger);
  watch.begins(() => "GET /threads");
  watch.begins(() => "POST /threads/:thread_id/runs");
  block(500);
  await expect.poll(() => lines.length).toBe(1);
  expect(lines[0]).toMatchObject({ last_begun: "POST /threads/:thread_id/runs" });
  watch.close();
});
