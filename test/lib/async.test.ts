import { setImmediate } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { orAborted } from "../../src/lib/async.ts";

test("work that fails after its caller has left does not end the process", async () => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => void unhandled.push(reason);
  process.on("unhandledRejection", note);
  onTestFinished(() => void process.off("unhandledRejection", note));
  const work = Promise.withResolvers<never>();
  await expect(orAborted(work.promise, AbortSignal.abort(new Error("The caller left.")))).rejects.toThrow(
    "The caller left.",
  );
  work.reject(new Error("It failed late."));
  await setImmediate();
  expect(unhandled).toEqual([]);
});
