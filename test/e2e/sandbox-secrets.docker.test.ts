// A secret in the vault of a user, from the API to the host that gets it, through the real process.

import { randomBytes } from "node:crypto";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { ASKING, secretHost } from "../sandbox/egress/secret-host.ts";
import { describeWithOwnEngine } from "../support/engine.ts";
import { serveWith } from "../support/process.ts";
import { temporaryFolder } from "../support/server.ts";

const SECRET = "s3cr3t-of-ada";

describeWithOwnEngine("an agent with a variable for a secret", (engine) => {
  test("uses it on behalf of its user, and no event, message, log line, export or file contains it", async () => {
    const host = await secretHost(
      ({ headers }, response) => response.end(JSON.stringify(headers)),
      onTestFinished,
    );
    const dir = await temporaryFolder();
    const authority = join(dir, "authority.pem");
    await writeFile(authority, host.authority.certificate);
    const target = `localhost:${host.port}`;
    const ask = { call: [{ tool: "execute", args: { command: command(target) } }] };
    const server = await serveWith(
      {
        auth: { scheme: "header", trusted_proxies: ["127.0.0.1"] },
        vault: { key: randomBytes(32).toString("base64") },
        store: "sqlite",
        backends: { docker: { host: engine.host, private_hosts: target } },
      },
      {
        dir,
        script: JSON.stringify([ask, { say: "done" }]),
        agent: {
          permissions: { mode: "bypass" },
          backend: {
            ...{ type: "docker", image: await engine.image("debian"), network: { allow: [target] } },
            env: { API_TOKEN: { vault: "example", hosts: [target] } },
          },
        },
        env: { LOG_LEVEL: "trace", NODE_EXTRA_CA_CERTS: authority },
      },
    );
    const as = (user: string) => {
      const headers = { "x-skein-tenant": "acme", "x-skein-user": user, "x-skein-scopes": "read,run,admin" };
      return createClient({ baseUrl: server.url, headers });
    };
    const run = async (user: string) => {
      const events: unknown[] = [];
      for await (const event of as(user).run("t", { input: "go" })) events.push(event);
      return JSON.stringify(events);
    };
    await as("ada").connections.put("example", {
      ...{ type: "environment_variable", secret_name: "API_TOKEN", secret_value: SECRET },
      networking: { type: "limited", allowed_hosts: ["localhost"] },
    });
    const events = await run("ada");
    expect(host.heard.map(({ headers }) => headers["x-key"])).toEqual([SECRET]);
    expect(events).toContain("skein_placeholder_");
    const uses = async () => (await as("ada").admin.audit({ action: "connection.use" })).items;
    await expect.poll(uses).toMatchObject([{ target: { type: "connection", id: "example", user: "ada" } }]);

    const refused = await run("bob");
    expect(refused).toContain("network_refused");
    expect(refused).toContain("the connection `example` does not exist");
    expect(host.heard).toHaveLength(1);

    const messages = JSON.stringify(await as("ada").threads.messages("t"));
    for (const each of [events, refused, messages, server.output()]) expect(each).not.toContain(SECRET);
    for (const file of await readdir(join(dir, "data"), { recursive: true, withFileTypes: true }))
      if (file.isFile() && file.name.includes("sqlite"))
        expect((await readFile(join(file.parentPath, file.name))).includes(SECRET)).toBe(false);
  });
});

const command = (target: string) =>
  `cat > ask.py <<'END'\n${ASKING}\nEND\npython3 ask.py https://${target}/ "X-Key: $API_TOKEN"`;
