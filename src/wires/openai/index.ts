// OpenAI's API: agents as models, for clients of chat completions and of responses. docs/reference/wires/openai.md shows
// how to connect one.

import type { RouteServices } from "../../server/http/services.ts";
import type { App } from "../../server/http/validation.ts";
import { answerRefusals } from "../refusals.ts";
import { chatRoutes } from "./chat/index.ts";
import { ERRORS } from "./errors.ts";
import { modelRoutes } from "./resources/models.ts";
import { responseRoutes } from "./responses/index.ts";

export function openaiRoutes(app: App, services: RouteServices): void {
  answerRefusals(app, ERRORS);
  modelRoutes(app, services);
  chatRoutes(app, services);
  responseRoutes(app, services);
}
