// `skein schedules`, against a running server.

import { expect, test } from "vitest";
import { createClient } from "../../../src/client/client.ts";
import {
  deleteSchedule,
  listSchedules,
  pauseSchedule,
  previewSchedule,
  putSchedule,
  runSchedule,
} from "../../../src/skein/cli/schedules.ts";
import { startServer } from "../../support/server.ts";

test("skein schedules shows times, and creates, pauses, runs, lists and deletes schedules", async () => {
  const { url } = await startServer({ script: [{ say: "Hello." }] });
  const server = { url, key: undefined };
  const times = { cron: "0 9 * * MON-FRI", timezone: "Europe/Berlin" };
  const preview = await previewSchedule(server, times);
  expect(preview.split("\n")).toHaveLength(5);
  await expect(previewSchedule(server, { cron: "0 99 * * *" })).rejects.toThrow("column 3");

  const options = { ...times, input: "Summarize.", overlap: "queue", missed: "none" };
  expect(await putSchedule(server, "briefing", options)).toMatchObject({ output: preview });
  expect(await createClient({ baseUrl: url }).schedules.get("briefing")).toMatchObject({
    ...{ input: "Summarize.", overlap: "queue", catch_up: "none" },
  });
  expect(await listSchedules(server)).toMatch(/briefing +active +0 9 \* \* MON-FRI Europe\/Berlin +\d{4}-/);
  expect(await pauseSchedule(server, "briefing", true)).toBe("Paused briefing.");
  expect(await listSchedules(server)).toMatch(/briefing +paused: requested/);
  const { output: thread } = await runSchedule(server, "briefing");
  expect(thread).toMatch(/^briefing_/);
  expect(await pauseSchedule(server, "briefing", false)).toBe("Resumed briefing.");
  expect(await createClient({ baseUrl: url }).schedules.get("briefing")).toMatchObject({
    ...{ status: "active", input: "Summarize.", overlap: "queue", catch_up: "none" },
  });
  expect(await deleteSchedule(server, "briefing")).toBe("Deleted briefing. Its runs are kept.");
  expect(await listSchedules(server)).not.toContain("briefing");
});
