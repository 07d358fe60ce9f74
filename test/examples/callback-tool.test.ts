import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { callbackServer } from "../../examples/callback-tool/server.ts";
import { createHttpTools } from "../../src/agent/tools/http/index.ts";
import { HttpToolRegistration, newHttpTool } from "../../src/agent/tools/http/registration.ts";
import { hostList } from "../../src/lib/hosts.ts";
import { createPublicFetch } from "../../src/lib/ssrf-safe-fetch/index.ts";
import { play } from "../support/agent.ts";
import { dataOf } from "../support/drain.ts";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/** What the model reads of a call of the example's tool. */
async function priced(args: Record<string, unknown>, secret = SECRET) {
  const server = callbackServer(SECRET).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // of a port that is listened on
  const tool = await newHttpTool(
    HttpToolRegistration.parse({
      ...{ name: "delivery_price", description: "The price of a delivery.", parameters: { type: "object" } },
      ...{ callback_url: `http://127.0.0.1:${port}/`, idempotent: true },
    }),
    { isTaken: () => false, isRefused: async () => false },
  );
  const fetch = createPublicFetch({ allow: hostList(`127.0.0.1:${port}`) });
  const tools = await createHttpTools([{ ...tool, secret }], { fetch });
  const script = [{ call: [{ tool: "delivery_price", args }] }, { say: "So much." }];
  const { events, messages } = await play({ script, tools });
  return {
    progress: dataOf(events, "on_tool_progress").map(({ output }) => output),
    answer: messages.find((message) => message.role === "tool"),
  };
}

test("reports its progress and a price", async () => {
  const { progress, answer } = await priced({ city: "Oslo", kilograms: 10 });
  expect(progress).toEqual(["Asking carriers on behalf of ada …\n"]);
  expect(answer).toMatchObject({ content: '{"city":"Oslo","price":17,"currency":"EUR"}' });
});

test("reports the error to the model", async () => {
  const { answer } = await priced({ city: "Oslo", kilograms: -1 });
  expect(answer?.error).toMatch(/in kilograms/);
});

test("rejects calls that are not signed with its secret", async () => {
  const { answer } = await priced({ city: "Oslo", kilograms: 10 }, "whsec_b3RoZXI=");
  expect(answer?.error).toBe("The tool's server returned HTTP 401: This call is not signed with my secret.");
});
