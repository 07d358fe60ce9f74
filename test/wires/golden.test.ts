// Readers of events show recorded logs of a server as they did when the frames were recorded. After a change that clients are meant to
// see, `node script/record-frames.ts <reader>` records them again; `node script/record-logs.ts` records the logs.

import { describe, expect, test } from "vitest";
import { checkGrammar } from "../../src/protocol/grammar.ts";
import { framesOf, READERS, recordedFrames, recordedLogs } from "../support/frames.ts";

const logs = recordedLogs();

test.each(logs)("the recorded log %s is valid", (_, log) => {
  expect(log.flatMap(({ events }) => checkGrammar(events))).toEqual([]);
});

describe.each(Object.entries(READERS))("%s", (name, reader) => {
  const recorded = recordedFrames(name);

  test("shows every recorded log as before", () => {
    expect(Object.keys(recorded)).toEqual(logs.map(([log]) => log));
    for (const [log, runs] of logs) {
      const frames = framesOf(reader, runs);
      const before = recorded[log] ?? [];
      const at = frames.findIndex((frame, index) => frame !== before[index]);
      const place = `${log}, event ${at + 1}`;
      if (at >= 0) expect(frames[at], place).toBe(before[at]);
      expect(frames.length, log).toBe(before.length);
    }
  });
});
