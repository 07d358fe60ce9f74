import { expect, test } from "vitest";
import { AppError } from "../../../src/agent/core/errors.ts";
import { exhausted } from "../../../src/agent/core/failures.ts";

const withCode = (code: unknown) => Object.assign(new Error("refused by the system"), { code });

test("names the missing resource behind a failed call, however deep the cause is, and reports no other failure", () => {
  const wrapped = (cause: unknown) => new AppError("backend_failed", "It failed.", { cause });
  expect(exhausted(withCode("EMFILE"))).toBe("file descriptors of the process");
  expect(exhausted(wrapped(withCode("ENOSPC")))).toBe("disk space");
  expect(exhausted(wrapped(wrapped(withCode("EROFS"))))).toBe("a writable disk");
  for (const other of [withCode("ENOENT"), withCode(1), wrapped(undefined), new Error("EMFILE"), "EMFILE"])
    expect(exhausted(other)).toBeUndefined();
  const round = withCode("EPIPE");
  round.cause = round;
  expect(exhausted(round)).toBeUndefined();
});
