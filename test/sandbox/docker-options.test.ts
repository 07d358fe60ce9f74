import { describe, expect, test } from "vitest";
import { DockerOptions } from "../../src/sandbox/docker/options.ts";

const MIB = 1024 ** 2;
const read = (more: object) => DockerOptions.safeParse({ type: "docker", image: "debian", ...more });

describe("/tmp of a sandbox", () => {
  test.each([
    ["512m", 64],
    ["200m", 64],
    ["128m", 35.2],
    ["48m", 3.2],
  ])("has its usual size, or the rest of a memory of %s: %d MiB", (memory, mib) => {
    const { tmp } = DockerOptions.parse({ type: "docker", image: "debian", memory });
    expect(tmp / MIB).toBeCloseTo(mib, 1);
  });

  test("must fit into the memory if the operator sets it", () => {
    expect(read({ memory: "128m", tmp: "35m" }).success).toBe(true);
    const { error } = read({ memory: "128m", tmp: "64m" });
    expect(error?.issues).toMatchObject([{ path: ["tmp"], message: expect.stringContaining("at most 35m") }]);
  });

  test("is not mentioned if only the memory is wrong", () => {
    for (const memory of [512, "1k", "lots"])
      expect(read({ memory }).error?.issues.map(({ path }) => path)).toEqual([["memory"]]);
  });
});

test("a memory without a unit means bytes, and the error suggests the likely unit", () => {
  expect(read({ memory: 512 }).error?.issues[0]?.message).toContain("did you mean `512m`?");
  expect(read({ memory: "1m" }).error?.issues[0]?.message).toBe("must be at least 48m, for example 96m");
});

test("a sandbox without an image is refused with an example", () => {
  const { error } = DockerOptions.safeParse({ type: "docker" });
  expect(error?.issues).toMatchObject([
    { path: ["image"], message: "is missing, for example python:3.12-slim" },
  ]);
});

describe("variables for secrets", () => {
  const variable = (more: object = {}) => ({ vault: "example", hosts: ["api.example.com"], ...more });
  const network = { allow: ["api.example.com"] };
  const faults = (options: object) => read(options).error?.issues.map(({ path }) => path.join("."));

  test("name hosts that the sandbox can reach", () => {
    const env = { API_TOKEN: variable() };
    expect(read({ env, network }).data?.env).toEqual({
      API_TOKEN: { vault: "example", per: "user", hosts: ["api.example.com"], http: false },
    });
    for (const other of ["none", "bridge", { allow: ["other.example"] }])
      expect(faults({ env, network: other })).toEqual(["env.API_TOKEN.hosts.0"]);
    expect(faults({ env: { API_TOKEN: variable({ hosts: ["*"] }) }, network: { allow: ["*"] } })).toEqual([
      "env.API_TOKEN.hosts.0",
    ]);
  });

  test("do not replace the sandbox's own", () => {
    for (const name of ["PATH", "https_proxy", "SSL_CERT_FILE", "LD_PRELOAD", "a-b"])
      expect(faults({ env: { [name]: variable() }, network })).toEqual([`env.${name}`]);
  });

  test("are limited to 32", () => {
    const of = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`T${at}`, variable()]));
    expect(faults({ env: of(32), network })).toBeUndefined();
    expect(faults({ env: of(33), network })).toEqual(["env"]);
  });
});
