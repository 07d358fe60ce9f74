// The API of the LangGraph Platform: agents as assistants, for `@langchain/langgraph-sdk` and front ends that use it.
// docs/reference/wires/langgraph.md shows how to connect one.

import type { RouteServices } from "../../server/http/services.ts";
import type { App } from "../../server/http/validation.ts";
import { answerRefusals } from "../refusals.ts";
import { batchRoutes } from "./batch.ts";
import { cronRoutes } from "./crons.ts";
import { ERRORS } from "./errors.ts";
import { protocolRoutes } from "./protocol/index.ts";
import { assistantRoutes } from "./resources/assistants.ts";
import { stateRoutes } from "./resources/state.ts";
import { threadRoutes } from "./resources/threads.ts";
import { runRoutes } from "./runs.ts";
import { startRoutes } from "./starts.ts";

export function langgraphRoutes(app: App, services: RouteServices): void {
  answerRefusals(app, ERRORS);
  assistantRoutes(app, services);
  threadRoutes(app, services);
  stateRoutes(app, services);
  startRoutes(app, services);
  batchRoutes(app, services);
  cronRoutes(app, services);
  runRoutes(app, services);
  protocolRoutes(app, services);
}
