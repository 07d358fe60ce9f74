import { request } from "node:http";
import { expect, test } from "vitest";
import { authenticateBy } from "../../../src/server/auth/own-scheme.ts";
import { answerTo, guarded } from "./guarded.ts";

test("a scheme that does not respond in time accepts no one, even if it ignores its signal", async () => {
  const signals: AbortSignal[] = [];
  const never = (_: unknown, signal: AbortSignal) => {
    signals.push(signal);
    return new Promise<undefined>(() => {});
  };
  const { url } = await guarded(authenticateBy({ name: "slow", authenticate: never }, 20));
  expect(await answerTo(`${url}/threads/t`)).toMatchObject({ status: 503, body: { code: "unavailable" } });
  expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
});

test("a header that was sent twice is refused by every scheme that reads it", async () => {
  const authenticate = (request: { header(name: string): string | undefined }) => {
    const user = request.header("X-User");
    return user === undefined ? null : { tenant: "acme", user, scopes: ["read" as const] };
  };
  const { url } = await guarded(authenticateBy({ name: "header", authenticate }));
  expect(await answerTo(`${url}/threads/t`, { headers: { "x-user": "ada" } })).toMatchObject({ status: 200 });
  const status = await new Promise((resolve, reject) => {
    const twice = request(`${url}/threads/t`, {
      headers: ["host", "localhost", "x-user", "ada", "x-user", "eve"],
    });
    twice.on("response", (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    twice.on("error", reject).end();
  });
  expect(status).toBe(401);
});
