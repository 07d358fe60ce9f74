import { expect, test } from "vitest";
import type { DefaultModel } from "../../../src/agent/agents/registry.ts";
import { ServerConfig } from "../../../src/server/config/server.ts";
import { bannerOf } from "../../../src/skein/cli/serve/banner.ts";

const printed = (model?: DefaultModel) => bannerOf(ServerConfig.parse({}), "http://127.0.0.1:8000", model);

test("a server prints its address, how to try it, its model and the reason for the model", () => {
  const reason = "because ANTHROPIC_API_KEY is set";
  expect(printed({ name: "anthropic:claude-sonnet-4-5", reason })).toMatch(
    /serves on http:\/\/127\.0\.0\.1:8000[\s\S]*uses anthropic:claude-sonnet-4-5, because ANTHROPIC_API_KEY is set\.\n[\s\S]*curl -N http:/,
  );
  expect(printed({ name: "scripted:demo", reason: "because no key is set" })).toContain(
    "set ANTHROPIC_API_KEY or OPENAI_API_KEY",
  );
  expect(printed()).not.toContain("default agent");
});
