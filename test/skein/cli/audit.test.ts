// `skein audit`, against a running server.

import { expect, test } from "vitest";
import { createClient } from "../../../src/client/client.ts";
import { listTrail } from "../../../src/skein/cli/audit.ts";
import { startServer } from "../../support/server.ts";

test("skein audit lists who did what, newest first, with the requested filters", async () => {
  const { url } = await startServer();
  const server = { url, key: undefined };
  const { threads } = createClient({ baseUrl: url });
  await threads.create({ id: "trip" });
  await threads.delete("trip");
  const asked = { action: "thread", user: "default" };
  await expect.poll(() => listTrail(server, asked)).toContain("thread.delete");
  const [head, ...lines] = (await listTrail(server, asked)).split("\n");
  expect(head).toMatch(/^TIME +ACTOR +ACTION +TARGET +OUTCOME +ADDRESS$/);
  expect(lines).toEqual([
    expect.stringMatching(/ user default +thread\.delete +trip +ok +127\.0\.0\.1$/),
    expect.stringMatching(/ user default +thread\.create +trip +ok +127\.0\.0\.1$/),
  ]);
  expect(await listTrail(server, { since: "2100-01-01T00:00:00Z" })).not.toContain("trip");
});
