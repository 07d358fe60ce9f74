// Applies flow rules to tools that the model's provider executes. Their calls cannot be decided one by one, so a rule that
// asks or denies removes the tool from the request.

import type { ModelRequest, ToolSchema } from "../../../core/model.ts";
import type { Run } from "../../../core/tool.ts";
import type { Hold } from "./hold.ts";

export async function unheld(request: ModelRequest, hold: Hold, run: Run): Promise<ModelRequest> {
  const held = new Set<ToolSchema>();
  for (const tool of request.tools) {
    const call = { id: "", name: tool.name, args: {} };
    const asked = { call, tool: run.tools.get(tool.name), signal: run.signal };
    if (tool.ofProvider && (await hold.judge(asked, run))) held.add(tool);
  }
  return held.size === 0 ? request : { ...request, tools: request.tools.filter((tool) => !held.has(tool)) };
}
