import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openSqliteKeyFile } from "../../../src/engine/stores/sqlite/key-file.ts";
import { createApiKeys, issueApiKey } from "../../../src/server/auth/api-keys.ts";
import { apiKeysContract } from "../../contracts/api-keys.ts";
import { temporaryFolder } from "../../support/server.ts";

const ABOUT = { tenant: "acme", user: "ada", scopes: ["read" as const], name: "" };

const openKeys = (dir: string, now?: () => number) => {
  const { documents, close } = openSqliteKeyFile(dir, now);
  return { keys: createApiKeys(documents), close };
};

describe("in a file", () => {
  apiKeysContract(async (now) => openKeys(await temporaryFolder(), now));

  test("one process can create and revoke keys while another one checks them", async () => {
    const dir = await temporaryFolder();
    const server = openKeys(dir);
    const console = openKeys(dir);
    const { record } = await issueApiKey(console.keys, ABOUT);
    expect(await server.keys.find(record.id)).toMatchObject({ id: record.id });
    await console.keys.revoke(record.id);
    expect(await server.keys.find(record.id)).toHaveProperty("revoked_at");
    console.close();
    expect(await server.keys.find(record.id)).toHaveProperty("revoked_at");
    server.close();
  });

  test("several processes can be the first one", async () => {
    const dir = await temporaryFolder();
    const script = `
      const { openSqliteKeyFile } = await import(${JSON.stringify(new URL("../../../src/engine/stores/sqlite/key-file.ts", import.meta.url).href)});
      const { createApiKeys } = await import(${JSON.stringify(new URL("../../../src/server/auth/api-keys.ts", import.meta.url).href)});
      const { documents, close } = openSqliteKeyFile(process.argv[1]);
      const keys = createApiKeys(documents);
      for (let n = 0; n < 20; n++) await keys.create({ tenant: "t", user: "u", scopes: ["read"], name: "", id: process.pid + "-" + n, hash: "" });
      close();`;
    const run = `for n in 1 2 3; do "$0" --input-type=module -e "$1" "$2" & done; wait`;
    execFileSync("sh", ["-c", run, process.execPath, script, dir], {
      stdio: ["ignore", "ignore", "inherit"],
    });
    const { keys, close } = openKeys(dir);
    expect(await keys.list()).toHaveLength(60);
    close();
  });

  test("no one else on the machine can read them, and they contain no key", async () => {
    const dir = await temporaryFolder();
    const { keys, close } = openKeys(dir);
    const { key } = await issueApiKey(keys, ABOUT);
    close();
    const path = join(dir, "keys.db");
    expect(statSync(path).mode & 0o077).toBe(0);
    expect((await readFile(path)).includes(key.slice(-43))).toBe(false);
  });

  test("calls after closing return unavailable", async () => {
    const { keys, close } = openKeys(await temporaryFolder());
    close();
    close();
    await expect(keys.find("x")).rejects.toMatchObject({ code: "unavailable" });
    await expect(keys.list()).rejects.toMatchObject({ code: "unavailable" });
  });
});
