// The Docker calls that sandboxes need, each with a deadline. No other file calls Docker's client. A refused call
// throws an `EngineError`.

import { type Duplex, Readable } from "node:stream";
import type Dockerode from "dockerode";
import type { EngineSettings } from "../definition.ts";
import { engineCalls } from "./engine-connection.ts";
import { unless, unlessMissing } from "./engine-error.ts";

const CALL_MS = 10_000;
const START_MS = 30_000;
const PULL_MS = 10 * 60_000;
const COPY_MS = 30 * 60_000;
/** Two empty blocks, which mark the end of a tar archive. */
const EMPTY_TAR = Buffer.alloc(1024);

export type DockerClient = ReturnType<typeof connect>;

/** Creates the client. It keeps no connection open, so it does not need to be closed. */
export function connect(settings: Pick<EngineSettings, "host" | "tls">) {
  const call = engineCalls(settings);
  return {
    ...engineItself(call),
    ...containers(call),
    ...insideContainers(call),
    ...images(call),
    ...volumes(call),
    ...networks(call),
  };
}

type EngineCall = ReturnType<typeof engineCalls>;

const engineItself = (call: EngineCall) => ({
  ping: (ms = CALL_MS) =>
    call(undefined, ms, (docker, abortSignal) => {
      // `ping` accepts options like the other calls, but its type lacks them.
      const ping = docker.ping as (options: { abortSignal: AbortSignal }) => Promise<unknown>;
      return ping.call(docker, { abortSignal });
    }),

  /**
   * Returns the engine's security options, for example `name=seccomp,profile=default`, `name=userns`,
   * `name=rootless`.
   */
  securityOptions: (signal?: AbortSignal): Promise<readonly string[]> =>
    call(signal, CALL_MS, async (docker) => {
      const info: { SecurityOptions?: readonly string[] | null } = await docker.info();
      return info.SecurityOptions ?? [];
    }),

  /** Streams the events of containers with the label, until the stream ends or is destroyed. */
  events: (label: string, signal?: AbortSignal): Promise<Readable> =>
    call(signal, CALL_MS, async (docker) => {
      const filters = { type: ["container"], label: [label], event: ["die", "oom", "destroy"] };
      // The client returns a Node stream, but its type is narrower.
      return (await docker.getEvents({ filters: JSON.stringify(filters) })) as unknown as Readable;
    }),
});

const containers = (call: EngineCall) => ({
  inspect: (name: string, signal?: AbortSignal): Promise<ContainerInfo | undefined> =>
    unlessMissing(
      call(signal, CALL_MS, async (docker, abortSignal) => {
        const { Id, State, Config } = await docker.getContainer(name).inspect({ abortSignal });
        return {
          id: Id,
          labels: Config.Labels ?? {},
          status: State.Status,
          exitCode: State.ExitCode,
          oomKilled: State.OOMKilled,
        };
      }),
    ),

  /** Creates a container. Throws 409 if the name is taken, or 404 if the image or network is missing. */
  create: (name: string, spec: ContainerSpec, signal?: AbortSignal): Promise<string> =>
    call(signal, START_MS, async (docker, abortSignal) => {
      const { id } = await docker.createContainer({ ...spec, name, abortSignal });
      return id;
    }),

  /** Starts a container. Does nothing if it is already running. */
  start: (id: string, signal?: AbortSignal) =>
    call(signal, START_MS, (docker, abortSignal) => docker.getContainer(id).start({ abortSignal })).catch(
      unless(304),
    ),

  unpause: (id: string, signal?: AbortSignal) =>
    call(signal, CALL_MS, (docker, abortSignal) => docker.getContainer(id).unpause({ abortSignal })),

  /** Waits for a container to end. Resolves with its exit code. */
  wait: (id: string, signal?: AbortSignal): Promise<number> =>
    call(signal, START_MS, async (docker, abortSignal) => {
      const { StatusCode } = await docker.getContainer(id).wait({ abortSignal });
      return StatusCode;
    }),

  /** Stops a container. Does nothing if it is stopped or missing. */
  stop: (id: string, signal?: AbortSignal) =>
    call(signal, START_MS, (docker, abortSignal) =>
      docker.getContainer(id).stop({ t: 1, abortSignal }),
    ).catch(unless(304, 404)),

  /** Removes a container, even if it is running. Does nothing if it is missing. */
  remove: (id: string, signal?: AbortSignal) =>
    call(signal, START_MS, (docker, abortSignal) =>
      docker.getContainer(id).remove({ force: true, v: false, abortSignal }),
    ).catch(unless(404)),

  list: (label: string, signal?: AbortSignal): Promise<ContainerSummary[]> =>
    call(signal, START_MS, async (docker, abortSignal) => {
      const found = await docker.listContainers({ all: true, filters: { label: [label] }, abortSignal });
      return found.map(({ Id, Names, Labels, State, Created }) => ({
        id: Id,
        name: (Names[0] ?? "").slice(1),
        labels: Labels,
        status: State,
        createdAt: Created * 1000,
      }));
    }),
});

const insideContainers = (call: EngineCall) => ({
  /**
   * Returns a new process's input and output as one stream in the engine's frames. Destroying the stream does not end
   * the process.
   */
  exec: (
    id: string,
    { command, user, folder, environment }: ExecSpec,
    signal?: AbortSignal,
  ): Promise<Duplex> =>
    call(signal, CALL_MS, async (docker, abortSignal) => {
      const exec = await docker.getContainer(id).exec({
        Cmd: [...command],
        User: user,
        WorkingDir: folder,
        Env: [...environment],
        Tty: false,
        AttachStdin: true,
        AttachStdout: true,
        AttachStderr: true,
        abortSignal,
      });
      const stream = await exec.start({ hijack: true, stdin: true, Tty: false, abortSignal });
      if (abortSignal.aborted) stream.destroy();
      return stream;
    }),

  /**
   * Streams a folder as a tar whose entry names begin with the folder's name. The container does not have to
   * be running.
   */
  readFolder: (id: string, path: string, signal?: AbortSignal): Promise<Readable> =>
    call(signal, START_MS, async (docker) => {
      // The archive is a Node stream, but its type is narrower.
      return (await docker.getContainer(id).getArchive({ path })) as Readable;
    }),

  /**
   * Unpacks a tar into the root folder, with owners and modes. In any other folder, the engine would refuse links
   * that lead out of it. The container does not have to be running.
   */
  unpack: (id: string, tar: Readable, signal?: AbortSignal): Promise<void> =>
    call(signal, COPY_MS, async (docker, abortSignal) => {
      await docker.getContainer(id).putArchive(tar, { path: "/", abortSignal });
    }),
});

const images = (call: EngineCall) => ({
  /** Resolves once the image is present. Throws the registry's error. */
  pull: (image: string, signal?: AbortSignal): Promise<void> =>
    call(signal, PULL_MS, async (docker, abortSignal) => {
      const progress = await docker.pull(image, { abortSignal });
      await ended(docker, progress);
    }),

  /** Creates an image without files, unless an image with that name exists. */
  ensureEmptyImage: (name: string, signal?: AbortSignal): Promise<void> =>
    call(signal, START_MS, async (docker, abortSignal) => {
      const known = await docker.listImages({ filters: { reference: [name] }, abortSignal });
      if (known.length > 0) return;
      const [repo = "", tag = ""] = name.split(":");
      const progress = await docker.importImage(Readable.from([EMPTY_TAR]), { repo, tag });
      await ended(docker, progress);
    }),
});

const volumes = (call: EngineCall) => ({
  createVolume: (
    name: string,
    labels: Record<string, string>,
    options: Record<string, string>,
    signal?: AbortSignal,
  ): Promise<void> =>
    call(signal, CALL_MS, async (docker, abortSignal) => {
      await docker.createVolume({ Name: name, Labels: labels, DriverOpts: options, abortSignal });
    }),

  inspectVolume: (name: string, signal?: AbortSignal): Promise<VolumeInfo | undefined> =>
    unlessMissing(
      call(signal, CALL_MS, async (docker, abortSignal) =>
        volumeInfo(await docker.getVolume(name).inspect({ abortSignal })),
      ),
    ),

  /** Removes a volume. Does nothing if it is missing. Throws 409 while a container uses it. */
  removeVolume: (name: string, signal?: AbortSignal) =>
    call(signal, CALL_MS, (docker, abortSignal) => docker.getVolume(name).remove({ abortSignal })).catch(
      unless(404),
    ),

  listVolumes: (label: string, signal?: AbortSignal): Promise<VolumeInfo[]> =>
    call(signal, START_MS, async (docker, abortSignal) => {
      const { Volumes } = await docker.listVolumes({ filters: { label: [label] }, abortSignal });
      return (Volumes ?? []).map(volumeInfo);
    }),
});

const networks = (call: EngineCall) => ({
  createNetwork: (spec: NetworkSpec, signal?: AbortSignal): Promise<string> =>
    call(signal, CALL_MS, async (docker, abortSignal) => {
      const { id } = await docker.createNetwork({ ...spec, CheckDuplicate: true, abortSignal });
      return id;
    }),

  inspectNetwork: (name: string, signal?: AbortSignal): Promise<NetworkInfo | undefined> =>
    unlessMissing(
      call(signal, CALL_MS, async (docker) => networkInfo(await docker.getNetwork(name).inspect())),
    ),

  listNetworks: (label: string, signal?: AbortSignal): Promise<NetworkInfo[]> =>
    call(signal, CALL_MS, async (docker, abortSignal) => {
      const found = await docker.listNetworks({ filters: { label: [label] }, abortSignal });
      return found.map(networkInfo);
    }),

  /** Removes a network. Does nothing if it is missing. Throws 403 while containers are connected. */
  removeNetwork: (id: string, signal?: AbortSignal) =>
    call(signal, CALL_MS, (docker, abortSignal) => docker.getNetwork(id).remove({ abortSignal })).catch(
      unless(404),
    ),
});

/** Waits until a pull or an import ends. The engine reports its progress step by step. */
const ended = (docker: Dockerode, progress: NodeJS.ReadableStream): Promise<void> =>
  new Promise((resolve, reject) => {
    docker.modem.followProgress(progress, (error: Error | null) => (error ? reject(error) : resolve()));
  });

export interface ContainerInfo {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  /** One of `created`, `running`, `paused`, `restarting`, `removing`, `exited`, `dead`. */
  readonly status: string;
  readonly exitCode: number;
  readonly oomKilled: boolean;
}

export interface ContainerSummary {
  readonly id: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly status: string;
  /** The time of creation in milliseconds since 1970, by the engine's clock. */
  readonly createdAt: number;
}

export interface VolumeInfo {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly options: Readonly<Record<string, string>>;
}

export interface NetworkInfo {
  readonly id: string;
  readonly name: string;
  readonly driver: string;
  readonly isInternal: boolean;
  readonly hasIpv6: boolean;
  readonly labels: Readonly<Record<string, string>>;
  readonly options: Readonly<Record<string, string>>;
  readonly subnets: readonly string[];
}

export interface ExecSpec {
  readonly command: readonly string[];
  readonly user: string;
  readonly folder: string;
  readonly environment: readonly string[];
}

export type ContainerSpec = Omit<Dockerode.ContainerCreateOptions, "name" | "abortSignal">;
export type NetworkSpec = Pick<
  Dockerode.NetworkCreateOptions,
  "Name" | "Driver" | "Internal" | "EnableIPv6" | "Labels" | "Options"
>;

function volumeInfo(volume: Dockerode.VolumeInspectInfo): VolumeInfo {
  return { name: volume.Name, labels: volume.Labels ?? {}, options: volume.Options ?? {} };
}

function networkInfo(network: Dockerode.NetworkInspectInfo): NetworkInfo {
  return {
    id: network.Id,
    name: network.Name,
    driver: network.Driver,
    isInternal: network.Internal,
    hasIpv6: network.EnableIPv6,
    labels: network.Labels ?? {},
    options: network.Options ?? {},
    subnets: (network.IPAM?.Config ?? []).flatMap(({ Subnet }) => (Subnet ? [Subnet] : [])),
  };
}
