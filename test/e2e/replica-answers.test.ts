// What a run waits for comes to another replica than the one that asked, which may be gone.

import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { checkGrammar } from "../../src/core/grammar.ts";
import type { Interrupt } from "../../src/core/interrupt.ts";
import { dataOf, textSeen } from "../support/drain.ts";
import { needing } from "../support/needing.ts";
import { serve } from "../support/process.ts";
import { temporaryFolder } from "../support/server.ts";
import { SHARED_STORES, type SharedStore } from "../support/shared-stores.ts";
import { post, view } from "../support/sse.ts";

const send = (url: string, body: unknown) =>
  fetch(url, {
    method: "POST",
    headers: { accept: "application/json", "content-type": "application/json" },
    body: JSON.stringify(body),
  });

interface Setup {
  readonly script: string;
  /** Of the agent. */
  readonly options: string;
  readonly settings?: string;
}

/** Two processes on one store and one folder. */
async function twoProcessesOn(shared: SharedStore | undefined, { script, options, settings = "" }: Setup) {
  if (!shared) throw new Error("There was a store a moment ago.");
  const { kind, database } = shared;
  const dir = await temporaryFolder();
  const [config, agents] = [join(dir, "server.yaml"), join(dir, "answering.yaml")];
  await writeFile(config, `${kind}: { url: "${await database()}", lease: 2s }\n${settings}`);
  const model = `scripted:${join(dir, "script.yaml")}`;
  await writeFile(agents, `agents: { assistant: { model: "${model}", ${options} } }`);
  const start = () => serve(dir, script, { STORE: kind, CONFIG_FILE: config, AGENTS_FILE: agents });
  return { dir, one: await start(), other: await start() };
}

for (const { start, program } of SHARED_STORES) {
  const shared = await start();
  afterAll(() => shared?.close());

  needing(shared, program).describe(`${program}: an approval that one replica asks for`, () => {
    const script = (mark: string) => `
- { call: [{ tool: execute, args: { command: "echo done | tee -a ${mark}" } }] }
- { say: It is over. }`;

    async function asked() {
      const mark = join(await temporaryFolder(), "marks");
      const options = "backend: { type: local }, permissions: { rules: [{ ask: execute }] }";
      const { one, other } = await twoProcessesOn(shared, { script: script(mark), options });
      const viewer = await post(`${one.url}/threads/t1/runs`, { input: "go" });
      const events = await viewer.ended();
      expect(dataOf(events, "done")[0]?.status).toBe("interrupted");
      const run = viewer.headers.get("location")?.replace(/\/events$/, "");
      const answer = async () => {
        const { items } = (await (await fetch(`${other.url}/threads/t1/interrupts`)).json()) as {
          items: Interrupt[];
        };
        expect(items).toMatchObject([{ kind: "approval", name: "execute" }]);
        const answers = [{ id: items[0]?.id, decision: "approve" }];
        return (await post(`${other.url}${run}/resume`, { answers })).ended();
      };
      return { one, other, answer, marks: () => readFile(mark, "utf8") };
    }

    test("is given on another, and the call runs there, once", async () => {
      const { one, answer, marks } = await asked();
      const events = await answer();
      expect(checkGrammar(events)).toEqual([]);
      expect(dataOf(events, "done")[0]?.status).toBe("success");
      expect(textSeen(events)).toBe("It is over.");
      expect(await marks()).toBe("done\n");
      expect(await (await fetch(`${one.url}/threads/t1/interrupts`)).json()).toMatchObject({ items: [] });
    });

    test("outlives that replica", async () => {
      const { one, answer, marks } = await asked();
      one.child.kill("SIGKILL");
      await one.exited;
      const events = await answer();
      expect(checkGrammar(events)).toEqual([]);
      expect(dataOf(events, "done")[0]?.status).toBe("success");
      expect(await marks()).toBe("done\n");
    });
  });

  needing(shared, program).describe(`${program}: a result that a tool delivers later`, () => {
    const script = `
- { call: [{ tool: freight, args: {} }] }
- { say: There you are. }`;

    /** A tool that accepts every call; and where the result of the newest one is to be sent. */
    async function slowTool() {
      let place = "";
      const server = createServer(async (request, response) => {
        const chunks: Buffer[] = [];
        for await (const chunk of request) chunks.push(chunk);
        place = (JSON.parse(Buffer.concat(chunks).toString()) as { result_url: string }).result_url;
        response.writeHead(202).end();
      }).listen(0, "127.0.0.1");
      await once(server, "listening");
      onTestFinished(() => void server.close().closeAllConnections());
      const address = server.address();
      if (typeof address !== "object" || !address) throw new Error("A server that listens has an address.");
      return { at: `127.0.0.1:${address.port}`, place: () => new URL(place).pathname };
    }

    async function waiting() {
      const tool = await slowTool();
      const settings = `public_url: http://skein.example\nhttp_tools: { allow: "${tool.at}" }`;
      const { one, other } = await twoProcessesOn(shared, { script, options: "tools: [freight]", settings });
      const parameters = { type: "object", properties: {} };
      const registered = { name: "freight", description: "A quote.", parameters };
      const reply = await send(`${other.url}/tools`, { ...registered, callback_url: `http://${tool.at}/` });
      expect(reply.status).toBe(201);
      const run = await post(`${one.url}/threads/t1/runs`, { input: "go" });
      expect(dataOf(await run.ended(), "done")[0]?.status).toBe("interrupted");
      const deliver = () => send(other.url + tool.place(), { result: { price: 17 } });
      return { one, other, deliver };
    }

    test.each([
      ["wakes the thread on another", false],
      ["wakes the thread although the replica that asked was killed", true],
    ])("%s", async (_, isGone) => {
      const { one, other, deliver } = await waiting();
      const viewer = await view(`${other.url}/threads/t1/events`);
      if (isGone) {
        one.child.kill("SIGKILL");
        await one.exited;
      }
      expect((await deliver()).status).toBe(204);
      await viewer.until((event) => event.event === "done" && event.data.status === "success");
      const events = viewer.seen.map(({ event }) => event);
      expect(dataOf(events, "on_tool_end").at(-1)?.output).toBe('{"price":17}');
      expect(textSeen(events)).toBe("There you are.");
      viewer.leave();
      // A second delivery is refused and changes nothing.
      expect((await deliver()).status).toBe(404);
    });
  });
}
