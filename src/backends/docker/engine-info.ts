// What the Docker engine tells, in our words.

import type Dockerode from "dockerode";

export class EngineError extends Error {
  override name = "EngineError";
  /** 404, 409, …; 0 when there was no answer. */
  readonly status: number;
  constructor(status: number, message: string, cause?: unknown) {
    super(message, { cause });
    this.status = status;
  }
}

export interface ContainerInfo {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  /** created, running, paused, restarting, removing, exited, dead. */
  readonly status: string;
  readonly exitCode: number;
  readonly oomKilled: boolean;
}

export interface ContainerSummary {
  readonly id: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly status: string;
  /** Milliseconds since 1970, by the engine's clock. */
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

export function volumeInfo(volume: Dockerode.VolumeInspectInfo): VolumeInfo {
  return { name: volume.Name, labels: volume.Labels ?? {}, options: volume.Options ?? {} };
}

export function networkInfo(network: Dockerode.NetworkInspectInfo): NetworkInfo {
  return {
    ...{ id: network.Id, name: network.Name, driver: network.Driver },
    ...{ isInternal: network.Internal, hasIpv6: network.EnableIPv6 },
    ...{ labels: network.Labels ?? {}, options: network.Options ?? {} },
    subnets: (network.IPAM?.Config ?? []).flatMap(({ Subnet }) => (Subnet ? [Subnet] : [])),
  };
}
