// The Docker engine of the benchmark, with the tests' images.

import { spawnSync } from "node:child_process";
import { createReadStream } from "node:fs";
import { join } from "node:path";
import Docker from "dockerode";
import { startOwnEngine } from "../../test/support/own-engine.ts";

/** Created by script/test-images. `debian` contains Perl, so file operations use the helper; `busybox` has only shells. */
export type ImageName = "busybox" | "debian";

export interface BenchEngine {
  /** The value for the server's setting. */
  readonly host: string | undefined;
  readonly docker: Docker;
  /** Returns the name of the image, which is in the engine until the end. */
  image(name: ImageName): Promise<string>;
  close(): Promise<void>;
}

export const mayHaveOwnEngine = process.platform === "linux" && process.getuid?.() === 0;

/** Returns an engine that responds. The caller closes it. */
export async function openEngine(): Promise<BenchEngine> {
  const images = imagesFolder();
  const { host, docker, close } = mayHaveOwnEngine ? await startOwnEngine() : await machinesEngine();
  const added: Docker.Image[] = [];
  return {
    ...{ host, docker },
    async image(name) {
      const fullName = `skein-test/${name}`;
      const image = docker.getImage(fullName);
      const isThere = await image.inspect().then(
        () => true,
        () => false,
      );
      if (!isThere) added.push(image);
      const progress = await docker.loadImage(createReadStream(join(images, `${name}.tar`)));
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      docker.modem.followProgress(progress, (error) => (error ? reject(error) : resolve()));
      await promise;
      return fullName;
    },
    async close() {
      // An image that others use is kept.
      await Promise.allSettled(added.map((image) => image.remove()));
      await close();
    },
  };
}

async function machinesEngine(): Promise<Pick<BenchEngine, "host" | "docker" | "close">> {
  const docker = new Docker();
  await docker.ping().catch((error: Error) => {
    throw new Error(
      `No Docker engine answers (${error.message}). Start one, set DOCKER_HOST, or be root on Linux.`,
    );
  });
  return { host: undefined, docker, close: async () => {} };
}

function imagesFolder(): string {
  const script = join(import.meta.dirname, "../../script/test-images");
  const made = spawnSync("sh", [script], { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  if (made.status !== 0) throw new Error("The images cannot be built.");
  return made.stdout.trim();
}
