// What a user asks about a schedule before it exists.

import { expect, test } from "vitest";
import { createClient } from "../../../src/client/client.ts";
import { startServer } from "../../support/server.ts";

test("the next times of a schedule are shown before it is stored, and invalid values are named", async () => {
  const { url } = await startServer();
  const { schedules } = createClient({ baseUrl: url });
  const { next_runs } = await schedules.preview({ cron: "30 9 * * MON", timezone: "Europe/Berlin" });
  const inBerlin = new Intl.DateTimeFormat("en", {
    ...{ timeZone: "Europe/Berlin", weekday: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
  });
  const texts = next_runs.map((time) => inBerlin.format(new Date(time)));
  expect(texts).toEqual(Array(5).fill("Mon 09:30"));
  expect(await schedules.preview({ at: "2100-05-04T10:00:00+02:00" })).toEqual({
    next_runs: ["2100-05-04T08:00:00.000Z"],
  });
  expect(await schedules.preview({ at: "2001-01-01T00:00:00Z" })).toEqual({ next_runs: [] });
  await expect(schedules.preview({ cron: "0 99 * * *" })).rejects.toThrow("column 3");
  await expect(schedules.preview({})).rejects.toThrow("either `cron`");
  expect((await schedules.list()).items).toEqual([]);
});
