import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ATTACKS, type Attack, type Attacker, attackerOn } from "../attacks.ts";
import type { Server } from "../children.ts";
import type { NeighbourData } from "../neighbour.ts";
import { longestTurn, PROBED, startTurns } from "../probing.ts";
import type { Row, Scenario } from "../rig.ts";
import { quantile } from "../stats.ts";

const ALONE_MS = 2000;

const headersOf = (tenant: string) => ({
  "x-skein-tenant": tenant,
  "x-skein-user": "user",
  "x-skein-scopes": "read,run,tools",
});

export const neighbours: Scenario = {
  name: "neighbours",
  about: "how long tenant B waits for its threads: alone (first column), and while tenant A attacks",
  async run({ targets, children }) {
    const dir = mkdtempSync(join(tmpdir(), "skein-neighbours-"));
    const server = await targets.skein.start(PROBED, {
      env: { AUTH: "header", TRUSTED_PROXIES: "127.0.0.1" },
      agents: { delegating: delegating(dir) },
    });
    const attacker = attackerOn(server.port, headersOf("attacker"));
    // Loads the parts that a process loads only once, such as the JSON Schema engine.
    const tools = [{ name: "warm", description: "d", parameters: { type: "object" } }];
    await attacker.send("POST", "/threads/warm/runs", JSON.stringify({ input: "bench 1 0 1 0 0.", tools }));
    const alone = await whileWaiting(server, () => sleep(ALONE_MS));
    const rows: Row[] = [];
    for (const attack of ATTACKS) rows.push(...(await attacked(server, { attack, attacker, alone })));
    await children.stop(server);
    rmSync(dir, { recursive: true });
    return rows;
  },
};

/** Returns an agent whose first answer delegates 128 tasks to the agent `bench`. Its script is a file in `dir`. */
function delegating(dir: string): object {
  const script = join(dir, "delegating.yaml");
  const task = { agent: "bench", task: "bench 5 0 1 0 0.", context: "" };
  const call = { tool: "delegate", args: { tasks: Array(16).fill(task) } };
  // JSON is valid YAML.
  writeFileSync(script, JSON.stringify([{ call: Array(8).fill(call) }, { say: "Done." }]));
  return { model: `scripted:${script}`, subagents: ["bench"] };
}

async function attacked(
  server: Server,
  { attack, attacker, alone }: { attack: Attack; attacker: Attacker; alone: readonly number[] },
): Promise<Row[]> {
  await attack.prepare?.(attacker);
  await startTurns(server);
  const answers = await whileWaiting(server, () => attack.perform(attacker));
  const { cpuMs } = await longestTurn(server);
  const [before, during] = [quantile(alone, 0.99), quantile(answers, 0.99)];
  const p99: Row = {
    figure: `${attack.name}: p99, ms`,
    bare: [before],
    skein: [during],
    ratio: [during / before],
    is: "neighbour",
  };
  return [
    p99,
    { figure: "  worst, ms", bare: [Math.max(...alone)], skein: [Math.max(...answers)] },
    { figure: "  longest tick of the event loop, CPU ms", skein: [cpuMs] },
  ];
}

/** Returns how long each response to tenant B took while `work` was running. */
async function whileWaiting(server: Server, work: () => Promise<void>): Promise<readonly number[]> {
  const data: NeighbourData = { port: server.port, headers: headersOf("neighbour") };
  const neighbour = fork(join(import.meta.dirname, "../neighbour.ts"), [JSON.stringify(data)]);
  try {
    await once(neighbour, "message");
    await work();
    const answered = once(neighbour, "message");
    neighbour.send("stop");
    // The process answers with one message.
    const [answers] = (await answered) as [number[]];
    return answers;
  } finally {
    neighbour.kill();
  }
}
