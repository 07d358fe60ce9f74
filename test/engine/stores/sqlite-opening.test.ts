// Which files are opened as a database, and which are refused and left as they are.

import { spawnSync } from "node:child_process";
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { copySmallFile } from "../../../src/engine/stores/sqlite/copies.ts";
import { Database } from "../../../src/engine/stores/sqlite/database.ts";
import { createSqliteStores } from "../../../src/engine/stores/sqlite/index.ts";
import { claimed } from "./fixture.ts";
import { descriptorsOf, temporaryDatabase } from "./sqlite-file.ts";

const { dataDir, inFile, path } = temporaryDatabase();

test("a database that lacks a table is refused and not kept open", () => {
  inFile((file) => file.exec("CREATE TABLE threads (id); PRAGMA user_version = 1"));
  for (let n = 0; n < 2; n++)
    expect(() => createSqliteStores({ path: path() })).toThrow(
      expect.objectContaining({ code: "unavailable", message: expect.not.stringContaining("in use") }),
    );
});

test("a file that is not a database is refused with its path", () => {
  writeFileSync(path(), "not a database ".repeat(1000));
  expect(() => createSqliteStores({ path: path() })).toThrow(path());
  expect(() => createSqliteStores({ path: join(path(), "below", "a.db") })).toThrow(
    expect.objectContaining({ code: "unavailable" }),
  );
});

test("a database is created together with its folder", async () => {
  const stores = createSqliteStores({ dataDir: join(dataDir(), "a", "b") });
  await stores.ping();
  await stores.close();
});

test("nothing follows a transaction whose commit was refused", () => {
  const database = new Database(path());
  const followed: string[] = [];
  const commit = () =>
    database.write((afterCommit) => {
      database.query("PRAGMA defer_foreign_keys = ON").run();
      database.query("INSERT INTO state (owner, thread_id, key, value) VALUES ('o', 'none', 'k', '1')").run();
      afterCommit(() => followed.push("effect"));
    });
  expect(commit).toThrow(expect.objectContaining({ code: "unavailable" }));
  expect(followed).toEqual([]);
  database.close();
});

test("a store whose file was removed or replaced is not ready, and reports the reason", async () => {
  const stores = createSqliteStores({ path: path() });
  renameSync(path(), `${path()}.away`);
  const refusal = {
    code: "unavailable",
    message: expect.stringMatching(/removed or replaced.*Restart the server/),
  };
  await expect(stores.ping()).rejects.toMatchObject(refusal);
  writeFileSync(path(), "");
  await expect(stores.ping()).rejects.toMatchObject(refusal);
  renameSync(`${path()}.away`, path());
  await stores.ping();
  await stores.close();
});

test("a database is opened only once, even within one process", async () => {
  const stores = createSqliteStores({ path: path() });
  expect(() => createSqliteStores({ path: path() })).toThrow(/in use/);
  await claimed(stores, "t");
  await stores.close();
  await createSqliteStores({ path: path() }).close();
});

/** As the last release opens it. */
const ALONE = "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; BEGIN IMMEDIATE; COMMIT";

/** What another process says that opens the file in that way. */
const openedElsewhere = (more: string) =>
  spawnSync(
    process.execPath,
    [
      "--disable-warning=ExperimentalWarning",
      "-e",
      `const file = new (require("node:sqlite").DatabaseSync)(process.argv[1]); file.exec("${ALONE}"); ${more}`,
      path(),
    ],
    { encoding: "utf8" },
  ).stderr;

test("this release and the previous one do not open each other's open database", async () => {
  const stores = createSqliteStores({ path: path() });
  expect(openedElsewhere("")).toContain("database is locked");
  await stores.close();
  expect(openedElsewhere("")).toBe("");
  const program = new URL("../../../src/engine/stores/sqlite/index.ts", import.meta.url).href;
  const opening = `import("${program}").then(({ createSqliteStores }) => createSqliteStores({ path: process.argv[1] }))`;
  const other = new DatabaseSync(path());
  other.exec(ALONE);
  const { stderr } = spawnSync(process.execPath, ["-e", opening, path()], { encoding: "utf8" });
  other.close();
  expect(stderr).toContain("in use by another process");
});

test("a copy that begins during a write succeeds", async () => {
  const database = new Database(path());
  const to = join(dataDir(), "copy.db");
  const copying = database.write(() => {
    database.query("CREATE TABLE more (a)").run();
    const promise = database.copyTo(to);
    // Lets the thread that copies meet the transaction.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
    return promise;
  });
  await copying;
  database.close();
  const copy = new Database(to);
  expect(copy.query("SELECT * FROM more").all()).toEqual([]);
  copy.close();
});

test("a copied small file does not stay open", async () => {
  new Database(path()).close();
  expect(await copySmallFile(path(), join(dataDir(), "copy.db"))).toBe(true);
  expect(descriptorsOf(path())).toBe(0);
});
