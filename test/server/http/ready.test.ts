import fastify from "fastify";
import { expect, onTestFinished, test } from "vitest";
import { AppError } from "../../../src/agent/core/errors.ts";
import { createDependencies, type Dependency } from "../../../src/server/http/dependencies.ts";
import { sendProblem } from "../../../src/server/http/errors.ts";
import { healthRoutes } from "../../../src/server/http/routes/operations.ts";
import { withZod } from "../../../src/server/http/validation.ts";

/** A server whose store answers `ping` as `ping` does, with more dependencies. */
async function served(ping: () => Promise<void>, ...more: Dependency[]) {
  const server = fastify();
  onTestFinished(() => server.close());
  server.setErrorHandler<Error>(sendProblem);
  const executor = { isClosing: false };
  const log = { info() {}, warn() {} };
  const dependencies = createDependencies([{ name: "store", check: ping }, ...more], log);
  let heard = 0;
  server.addHook("onRequest", async () => void heard++);
  healthRoutes(withZod(server), { dependencies, runs: { executor } } as never);
  const url = await server.listen({ port: 0 });
  return { executor, heard: () => heard, status: async () => (await fetch(`${url}/ready`)).status };
}

test("however many clients request `/ready` at once, the store is called once", async () => {
  let asked = 0;
  const together = Promise.withResolvers<void>();
  const { status, heard } = await served(async () => {
    asked++;
    await together.promise;
  });
  const [answers] = await Promise.all([
    Promise.all(Array.from({ length: 50 }, status)),
    expect.poll(heard).toBe(50).finally(together.resolve),
  ]);
  expect(new Set(answers)).toEqual(new Set([200]));
  expect(asked).toBe(1);
});

test("`/ready` reports a store that is lost and returns", async () => {
  let isDown = true;
  const { status } = await served(async () => {
    if (isDown) throw new AppError("unavailable", "The store cannot be reached.");
  });
  expect(await status()).toBe(503);
  isDown = false;
  await expect.poll(status).toBe(200);
  isDown = true;
  await expect.poll(status).toBe(503);
});

test("`/ready` ignores one that the server does not need", async () => {
  const check = () => Promise.reject(new AppError("unavailable", "This engine cannot be reached."));
  const { status } = await served(async () => {}, { name: "engine b", check, isOptional: true });
  expect(await status()).toBe(200);
});

test("`/ready` reports the shutdown immediately", async () => {
  const { executor, status } = await served(async () => {});
  expect(await status()).toBe(200);
  executor.isClosing = true;
  expect(await status()).toBe(503);
});

test("an outage is dated from its first detection until its end", async () => {
  let isDown = true;
  const check = async () => {
    if (isDown) throw new AppError("unavailable", "The store cannot be reached.");
  };
  const { states } = createDependencies([{ name: "store", check }], { info() {}, warn() {} });
  const seen = async () => (await states())[0];
  const first = await seen();
  expect(first).toMatchObject({ isUp: false, since: first?.checked_at });
  await expect.poll(async () => (await seen())?.checked_at).not.toBe(first?.checked_at);
  expect(await seen()).toMatchObject({ isUp: false, since: first?.since });
  isDown = false;
  await expect.poll(seen).toMatchObject({ isUp: true });
  expect((await seen())?.since).not.toBe(first?.since);
});
