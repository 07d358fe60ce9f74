import { expect, test } from "vitest";
import { ServerConfig } from "../../../src/server/config/server.ts";
import { bannerOf } from "../../../src/skein/cli/serve/banner.ts";

const printed = (model?: string) => bannerOf(ServerConfig.parse({}), "http://127.0.0.1:8000", model);

test("a server says where it serves, how to try it, and which model answers", () => {
  expect(printed("anthropic:claude-sonnet-4-5")).toMatch(
    /serves on http:\/\/127\.0\.0\.1:8000[\s\S]*asks anthropic:claude-sonnet-4-5\.\n[\s\S]*curl -N http:/,
  );
  expect(printed("scripted:demo")).toContain("set ANTHROPIC_API_KEY or OPENAI_API_KEY");
  expect(printed()).not.toContain("asks");
});
