// The Docker engine of a test file. Which one it is, is found out by engine-setup.ts, for the files that
// vitest.config.ts lists. Where tests may have an engine of their own, each file has one to itself, until it is done;
// a third one waits for two others.

import { createReadStream } from "node:fs";
import { join } from "node:path";
import Docker from "dockerode";
import { afterAll, inject } from "vitest";
import { needing } from "./needing.ts";
import { type OwnEngine, startOwnEngine, takeTurn } from "./own-engine.ts";

/** Made by script/test-images. `debian`: GNU tools, dash, perl, python3. `bare`: no uid 1000, no /workspace. */
export type TestImage = "busybox" | "perl" | "debian" | "bare";

export interface Engine extends Pick<OwnEngine, "host" | "docker"> {
  /** Its name in the engine, where it is from then on. */
  image(name: TestImage): Promise<string>;
}

const found = inject("engine");
if (!found)
  throw new Error("A test that needs an engine is in a folder `docker`, or is named *.docker.test.ts.");

const endTurn = found.kind === "own" ? await takeTurn(Number(process.env.VITEST_POOL_ID) % 2) : undefined;
const own = endTurn && (await startOwnEngine());
if (own)
  afterAll(async () => {
    await own.close();
    endTurn();
  });

/** Besides that of the file, each with options of `dockerd`; where tests have none of their own, none. */
export async function moreEngines(options: readonly (readonly string[])[]): Promise<(Engine & OwnEngine)[]> {
  const engines = [];
  // One after the other: two that start at once make the same chains in the host's firewall.
  for (const each of own ? options : []) {
    const engine = await startOwnEngine(each);
    afterAll(engine.close);
    engines.push(withImages(engine));
  }
  return engines;
}

/** The tests get the engine; without one they are skipped. */
export function describeWithEngine(name: string, tests: (engine: Engine) => void): void {
  const what = found.kind === "none" ? `a Docker engine. ${found.why}` : "";
  needing(found.kind !== "none", what).describe(name, () => tests(withImages(own ?? notOwn)));
}

/** For tests that stop it, or see all that it has: they are skipped when it is not their own. */
export function describeWithOwnEngine(name: string, tests: (engine: Engine & OwnEngine) => void): void {
  const what = "a Docker engine of their own, for root on Linux";
  needing(own, what).describe(name, () => tests(withImages(own ?? notOwn)));
}

/** The machine's, if it has one. It is not for tests to start or to end. */
const refuse = async () => {
  throw new Error("This engine is the machine's.");
};
const notOwn: OwnEngine = {
  ...{ host: found.kind === "machine" ? found.host : "", docker: new Docker() },
  ...{ start: refuse, stop: refuse, kill: refuse, close: refuse },
};

function withImages<E extends Pick<OwnEngine, "docker">>(engine: E): E & Pick<Engine, "image"> {
  const loaded = new Map<TestImage, Promise<string>>();
  const image = (name: TestImage) => {
    const loading = loaded.get(name) ?? load(engine.docker, name);
    loaded.set(name, loading);
    return loading;
  };
  return { ...engine, image };
}

/** Also when another file loads the same one: the same archive is the same image. */
async function load(docker: Docker, name: TestImage): Promise<string> {
  if (found.kind === "none") throw new Error("There is no engine.");
  const progress = await docker.loadImage(createReadStream(join(found.images, `${name}.tar`)));
  await new Promise<void>((resolve, reject) => {
    docker.modem.followProgress(progress, (error) => (error ? reject(error) : resolve()));
  });
  return `skein-test/${name}`;
}
