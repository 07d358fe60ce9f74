// test/features.md says for every capability where it is and which test holds it.

import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PAGE = readFileSync(join(ROOT, "test/features.md"), "utf8");

/** How many of each kind there are, counted from 1. */
const KINDS = {
  ...{ M: 22, T: 22, H: 24, L: 11, S: 16, F: 12, K: 7, Y: 4, Z: 8, G: 8, E: 12, A: 6, C: 9, P: 14, U: 5 },
  ...{ B: 17, O: 7, X: 3, W: 5, EF: 10, N: 7, RE: 4, CN: 5, CL: 4, SP: 5, LM: 6, ER: 6, PR: 3 },
};

const rows = PAGE.split("\n").flatMap((line) => {
  const [, id = "", , where = "", tests = ""] = line.split("|").map((cell) => cell.trim());
  return /^[A-Z]+\d+$/.test(id) ? [{ id, where, tests }] : [];
});

/** The files that a cell links to, each with the name that stands behind its colon. */
const linksIn = (cell: string) =>
  cell.split(" · ").flatMap((part) => {
    const [, path = "", name = ""] = /^\[.*\]\((.*?)\)(?:: (.*))?$/.exec(part) ?? [];
    return path ? [{ file: resolve(ROOT, "test", path), name }] : [];
  });

/** What its tests, and the groups of them, are called; those of the suites that it runs, too. */
function titlesIn(file: string): string[] {
  const text = readFileSync(file, "utf8");
  return [...text.matchAll(TITLE)].map(([, title = ""]) => title);
}

/** After `test(`, `describe(`, or what `test.each` returns; and what rows of its table begin with. */
const TITLE = /(?:(?:\b(?:test|rule|describe)\w*|[\])>`])\(|\[)\s*["'`](.*?[^\\])["'`],/g;

test("every capability has one row", () => {
  const all = Object.entries(KINDS).flatMap(([kind, count]) =>
    Array.from({ length: count }, (_, index) => `${kind}${index + 1}`),
  );
  expect(rows.map(({ id }) => id).toSorted()).toEqual(all.toSorted());
});

test("every row says where it is, and which test holds it", () => {
  const isMissing = (cell: string, ...folders: string[]) => {
    const files = linksIn(cell).map(({ file }) => file);
    const isIn = (file: string) => folders.some((folder) => file.startsWith(join(ROOT, folder)));
    return files.length === 0 || files.some((file) => !isIn(file) || !existsSync(file));
  };
  expect(rows.filter(({ where }) => isMissing(where, "src/")).map(({ id }) => id)).toEqual([]);
  expect(rows.filter(({ tests }) => isMissing(tests, "test/")).map(({ id }) => id)).toEqual([]);
});

test("every link is named after the file that it leads to", () => {
  const links = [
    ...PAGE.matchAll(/\[([a-z0-9/_.-]+)\]\(\.\.\/(?:src|test|examples)\/([^)]+?)(?:\.test)?\.tsx?\)/g),
  ];
  expect(links.length).toBeGreaterThan(250);
  expect(links.filter(([, name, path]) => name !== path).map(([link]) => link)).toEqual([]);
});

test("every test that is named is there", () => {
  const named = rows.flatMap(({ id, tests }) => linksIn(tests).map((link) => ({ id, ...link })));
  expect(named.length).toBeGreaterThan(250);
  const dead = named.filter(({ file, name }) => !titlesIn(file).some((title) => title.includes(name)));
  expect(dead.map(({ id, name }) => `${id}: ${name}`)).toEqual([]);
});
