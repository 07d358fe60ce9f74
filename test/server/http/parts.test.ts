// Parts of the server that are loaded by the first request that needs them.

import fastify from "fastify";
import { expect, onTestFinished, test } from "vitest";
import { handOn } from "../../../src/server/http/parts.ts";

test("a wire that failed to load is loaded by a later request, and once for all simultaneous ones", async () => {
  const server = fastify();
  onTestFinished(() => server.close());
  let loads = 0;
  handOn(server, ["openai"], async () => {
    if (++loads === 1) throw new Error("no memory");
    const part = fastify();
    part.get("/v1/models", async () => "models");
    await part.ready();
    return part;
  });
  const url = await server.listen({ port: 0, host: "127.0.0.1" });
  const get = async () => (await fetch(`${url}/v1/models`)).status;
  expect(await get()).toBe(500);
  expect(await Promise.all(Array.from({ length: 20 }, get))).toEqual(Array.from({ length: 20 }, () => 200));
  expect(await get()).toBe(200);
  expect(loads).toBe(2);
});
