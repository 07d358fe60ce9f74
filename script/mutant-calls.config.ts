// Runs tests and records which functions of src/ each test file calls. script/mutants-generated.ts reads the record.
// Programs that tests start are not recorded.
//   vitest run --config script/mutant-calls.config.ts [FILE…]

import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { API } from "typescript/unstable/sync";

import { defineConfig, mergeConfig, type Plugin } from "vitest/config";
import tests from "../vitest.config.ts";
import { withMarks } from "./mutant-calls.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** Marks the beginning of each function before other plugins remove the types. */
function marks(): Plugin {
  const api = new API({ cwd: ROOT });
  const snapshot = api.updateSnapshot({
    openProjects: [`${ROOT}tsconfig.json`, `${ROOT}src/page/tsconfig.json`],
  });
  const sourceOf = (path: string) =>
    snapshot
      .getProjects()
      .map(({ program }) => program.getSourceFile(path))
      .find((file) => file !== undefined);
  return {
    name: "skein:calls",
    enforce: "pre",
    transform(_, id) {
      const [path = ""] = id.split("?");
      const source = path.startsWith(`${ROOT}src/`) ? sourceOf(path) : undefined;
      return source ? { code: withMarks(source, relative(ROOT, path)), map: null } : undefined;
    },
    closeBundle: () => api.close(),
  };
}

const { projects = [], ...shared } = tests.test ?? {};
const setup = "script/mutant-calls-setup.ts";

export default defineConfig({
  root: ROOT,
  plugins: [marks()],
  test: {
    ...shared,
    retry: 0,
    projects: projects
      .filter((project) => typeof project === "object")
      .map((project) => mergeConfig(project, { test: { setupFiles: [setup] } })),
  },
});
