// A sandbox whose commands use a secret that they never have.

import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Backend } from "../../../src/agent/core/backend.ts";
import { execute } from "../../support/backend.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { ASKING, newVault, secretHost } from "../egress/secret-host.ts";
import { ada, bob, configOf, newServer, newWorld, type Server } from "./opened.ts";

const { signal } = new AbortController();
const SECRET = "s3cr3t-of-ada";
const closers: (() => void)[] = [];
afterAll(() => {
  for (const close of closers) close();
});

describeWithEngine("a sandbox with a variable for a secret", (engine) => {
  let server: Server;
  let host: Awaited<ReturnType<typeof secretHost>>;
  let backend: Backend;
  let neighbour: Backend;
  const vaults = newVault();
  const config = async (more: object = {}) =>
    configOf(engine, "debian", {
      network: { allow: [`api.example:${host.port}`, `other.example:${host.port}`] },
      env: { API_TOKEN: { vault: "example", hosts: [`api.example:${host.port}`] } },
      ...more,
    });
  const ask = (header: string, its = backend, name = "api.example") =>
    execute(its, `python3 ask.py https://${name}:${host.port}/ "${header}"`);

  beforeAll(async () => {
    host = await secretHost(
      ({ headers }, response) => response.end(JSON.stringify(headers)),
      (close) => closers.push(close),
    );
    await vaults.vault.put(ada, "example", {
      ...{ type: "environment_variable", secret_name: "X", secret_value: SECRET },
      networking: { type: "limited", allowed_hosts: ["api.example"] },
    });
    const egress = {
      allow: () => true,
      resolve: async () => ["127.0.0.1"],
      authorities: [host.authority.certificate],
    };
    server = newServer(engine, await newWorld(), { egress }, { connections: vaults.vault });
    [backend, neighbour] = await Promise.all([
      server.pool.get(ada, await config()),
      server.pool.get(bob, await config()),
    ]);
    for (const each of [backend, neighbour]) await each.write("ask.py", Buffer.from(ASKING), signal);
  });

  test("its requests contain the secret, but the answers that a command reads do not", async () => {
    const { output, refused } = await ask("X-Key: $API_TOKEN");
    expect(refused).toBeUndefined();
    expect(host.heard.at(-1)?.headers["x-key"]).toBe(SECRET);
    expect(output).toMatch(/"x-key":"skein_placeholder_[0-9a-f]{32}"/);
    expect(output).not.toContain(SECRET);
  });

  test("the secret is in no variable, file, process or setting of the container", async () => {
    await ask("X-Key: $API_TOKEN");
    const { output } = await execute(
      backend,
      `env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; cat $(find / -xdev -type f -size -300k \\( -path '/workspace/*' -o -path '/tmp/*' -o -path '/dev/shm/*' \\) 2>/dev/null)`,
    );
    expect(output).toContain("API_TOKEN=skein_placeholder_");
    expect(output).not.toContain(SECRET);
    for (const { Id } of await engine.docker.listContainers()) {
      expect(JSON.stringify(await engine.docker.getContainer(Id).inspect())).not.toContain(SECRET);
      const all = { Cmd: ["sh", "-c", "cat /proc/*/environ /proc/*/cmdline"], User: "65533:65533" };
      const exec = await engine.docker.getContainer(Id).exec({ ...all, AttachStdout: true });
      expect(await text(await exec.start({}))).not.toContain(SECRET);
    }
    expect(JSON.stringify([server.warnings, server.states])).not.toContain(SECRET);
  });

  test("a neighbour gets nothing, with the same variable or with this sandbox's placeholder", async () => {
    const before = host.heard.length;
    const target = `api.example:${host.port}`;
    const own = await ask("X-Key: $API_TOKEN", neighbour);
    expect(own.output).toContain("API_TOKEN cannot be sent: the connection `example` does not exist");
    expect(own.refused).toEqual([{ target, reason: "connection" }]);
    const { output: placeholder } = await execute(backend, "printf %s $API_TOKEN");
    const taken = await ask(`X-Key: ${placeholder}`, neighbour);
    expect(taken.output).toContain("does not belong to any secret of this sandbox");
    expect(taken.refused).toEqual([{ target, reason: "placeholder" }]);
    expect(host.heard).toHaveLength(before);
  });

  test("the certificate of the sandbox is valid only for the named hosts, in addition to those that programs trust anyway", async () => {
    const { output } = await execute(backend, "grep -c BEGIN $SSL_CERT_FILE $NODE_EXTRA_CA_CERTS");
    const [all = 0, own = 0] = output.match(/\d+$/gm)?.map(Number) ?? [];
    expect(all).toBeGreaterThan(100);
    expect(own).toBe(1);
    expect((await ask("X-A: 1", backend, "other.example")).output).toMatch(/CERTIFICATE_VERIFY_FAILED/);
  });

  test("the placeholder stays the same after the sandbox is opened again, and works", async () => {
    const { output: before } = await execute(backend, "printf %s $API_TOKEN | tee token");
    await server.pool.stop(ada, await config());
    const again = await server.pool.get(ada, await config());
    expect((await execute(again, "printf %s $API_TOKEN; cat token")).output).toBe(before + before);
    expect((await ask("X-Key: $(cat token)", again)).output).toContain("200 OK");
    expect(host.heard.at(-1)?.headers["x-key"]).toBe(SECRET);
  });

  test("the files of at most eight openings are kept", async () => {
    for (let at = 0; at < 9; at++) {
      await server.pool.stop(bob, await config());
      neighbour = await server.pool.get(bob, await config());
      await execute(neighbour, "true");
    }
    const { output } = await execute(neighbour, "ls ~/.skein-authorities | wc -l");
    expect(Number(output)).toBe(8);
  });
});
