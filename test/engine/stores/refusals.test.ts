// The errors that Redis and PostgreSQL answer with: which of them everyone retries, and which a run waits for.

import { describe, expect, test } from "vitest";
import { AppError } from "../../../src/agent/core/errors.ts";
import * as postgres from "../../../src/engine/stores/postgres/client.ts";
import * as redis from "../../../src/engine/stores/redis/client.ts";
import type { Chance } from "../../../src/engine/stores/shared/outages.ts";

const reply = (message: string) => Object.assign(new Error(message), { name: "ReplyError" });
const answer = (code: string, severity = "ERROR") => Object.assign(new Error(code), { code, severity });

const REDIS: Readonly<Record<Chance, readonly string[]>> = {
  soon: [
    "LOADING Redis is loading the dataset in memory",
    "READONLY You can't write against a read only replica.",
    "CLUSTERDOWN The cluster is down",
    "TRYAGAIN Multiple keys request during rehashing of slot",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    "ERR max number of clients reached",
  ],
  later: [
    "OOM command not allowed when used memory > 'maxmemory'.",
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
    "NOREPLICAS Not enough good replicas to write.",
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    "NOAUTH Authentication required.",
    "WRONGPASS invalid username-password pair or user is disabled.",
    "NOPERM User app has no permissions to run the 'evalsha' command",
    "IOERR error writing to the disk",
  ],
  never: [
    "ERR unknown command 'FROB'",
    "WRONGTYPE Operation against a key holding the wrong kind of value",
    "CROSSSLOT Keys in request don't hash to the same slot",
  ],
};

const POSTGRES: Readonly<Record<Chance, readonly string[]>> = {
  soon: ["08006", "40001", "40P01", "53300", "55P03", "57014", "57P01", "57P02", "57P03", "25006", "0A000"],
  later: ["53000", "53100", "53200", "53400", "58000", "58030", "28P01", "42501", "3D000", "57000", "XX000"],
  never: ["22003", "23505", "42601", "42P01", "P0001"],
};

describe.each(Object.entries(REDIS))("temporary Redis errors: %s", (chance, messages) => {
  test.each(messages)("%s", (message) => {
    expect(redis.chanceOf(reply(message))).toBe(chance);
    if (chance === "later")
      expect(redis.refusal(reply(message))).toEqual(
        expect.objectContaining({ code: "unavailable", message: expect.stringMatching(/^Redis /) }),
      );
    if (chance === "never") expect(redis.refusal(reply(message))).not.toBeInstanceOf(AppError);
  });
});

describe.each(Object.entries(POSTGRES))("temporary PostgreSQL errors: %s", (chance, codes) => {
  test.each(codes)("%s", (code) => {
    expect(postgres.chanceOf(answer(code))).toBe(chance);
    if (chance === "later")
      expect(postgres.refusal(answer(code))).toEqual(
        expect.objectContaining({ code: "unavailable", message: expect.stringMatching(/^PostgreSQL /) }),
      );
    if (chance === "never") expect(postgres.refusal(answer(code))).not.toBeInstanceOf(AppError);
  });
});

test("an error that ends PostgreSQL's connection is temporary, and the connection is not used again", () => {
  expect(postgres.chanceOf(answer("99999", "FATAL"))).toBe("later");
  expect(postgres.leavesConnection(answer("99999", "FATAL"))).toBe(false);
  expect(postgres.leavesConnection(answer("23505"))).toBe(true);
});

test("a connection error is temporary", () => {
  for (const { chanceOf } of [redis, postgres]) expect(chanceOf(new Error("read ECONNRESET"))).toBe("soon");
});
