import type { Owner } from "../../src/protocol/ids.ts";
import { specOf } from "../../src/sandbox/docker/container.ts";
import { DockerOptions } from "../../src/sandbox/docker/options.ts";
import type { ProcessBackends } from "../../src/sandbox/pool.ts";
import { fasterOf, type Pair, pairs, timed } from "./pairs.ts";
import type { Scenario, Stage } from "./stage.ts";
import { middle, type Row } from "./table.ts";
import { plainWay, skeinWay } from "./ways.ts";

const IMAGE = "busybox";

/** The time until the first command's result. */
interface Start {
  readonly ms: number;
  /** The part of that time until the backend was returned. */
  readonly getMs: number;
}

export const starts: Scenario = {
  name: "busybox: to the first command's result",
  async *run(stage) {
    const [first, second] = [stage.newServer(), stage.newServer()];
    // Servers inspect the engine only once, so the measurement starts after that.
    for (const server of [first, second]) await start(stage, server, stage.newOwner());
    const [fresh, stopped, adopted] = await measure(stage, first, second);
    yield* rows("a new user, ms", fresh);
    yield* rows("a user whose container is stopped, ms", stopped);
    yield* rows("a user whose container runs under another server, ms", adopted);
  },
};

function* rows(figure: string, measured: readonly Pair<Start>[]): Iterable<Row> {
  yield {
    figure,
    plain: middle(measured.map(({ plain }) => plain.ms)),
    skein: middle(measured.map(({ skein }) => skein.ms)),
    faster: fasterOf(measured, ({ ms }) => ms),
  };
  yield { figure: "… of which `pool.get`", skein: middle(measured.map(({ skein }) => skein.getMs)) };
}

/** Uses a new user and a new plain container for each round. */
async function measure(stage: Stage, first: ProcessBackends, second: ProcessBackends) {
  const config = await stage.config(IMAGE);
  const fresh: Pair<Start>[] = [];
  const stopped: Pair<Start>[] = [];
  const adopted: Pair<Start>[] = [];
  for (let round = 0; round < stage.rounds; round++) {
    const owner = stage.newOwner();
    const plain = await plainContainer(stage);
    const both = async (server: ProcessBackends, plainly: () => Promise<Start>) =>
      pairs(1, plainly, () => start(stage, server, owner));
    fresh.push(...(await both(first, plain.create)));
    await Promise.all([first.stop(owner, config), plain.stop()]);
    stopped.push(...(await both(first, plain.start)));
    adopted.push(...(await both(second, plain.use)));
    await Promise.all([second.stop(owner, config), plain.stop()]);
  }
  return [fresh, stopped, adopted] as const;
}

async function start({ config, signal }: Stage, server: ProcessBackends, owner: Owner): Promise<Start> {
  const options = await config(IMAGE);
  let getMs = Number.NaN;
  const ms = await timed(async () => {
    const began = performance.now();
    const backend = await server.get(owner, options);
    getMs = performance.now() - began;
    return skeinWay(backend, signal).run("true");
  }, 0);
  return { ms, getMs };
}

/** Uses the same specification, on a volume without a limit. */
async function plainContainer({ docker, plainName, config, signal }: Stage) {
  const name = plainName();
  const options = DockerOptions.parse(await config(IMAGE));
  const spec = specOf({ options, volume: name, network: "none", labels: {} });
  const container = docker.getContainer(name);
  const way = plainWay(docker, name, signal);
  const measured = async (prepare: () => Promise<unknown>): Promise<Start> => {
    const ms = await timed(async () => {
      await prepare();
      return way.run("true");
    }, 0);
    return { ms, getMs: Number.NaN };
  };
  const raise = () => container.start({ abortSignal: signal });
  return {
    create: () =>
      measured(async () => {
        await docker.createContainer({ ...spec, name, abortSignal: signal });
        await raise();
      }),
    start: () => measured(raise),
    use: () => measured(async () => {}),
    stop: () => container.stop({ t: 1, abortSignal: signal }),
  };
}
