// Is the process there, and can it work.

import { z } from "zod";
import { AppError } from "../../core/errors.ts";
import type { HttpServices } from "../services.ts";
import type { App } from "../validation.ts";

export function healthRoutes(app: App, { stores, runs, backends, version, agents }: HttpServices): void {
  const tags = ["operations"];

  app.get(
    "/health",
    {
      exposeHeadRoute: true,
      schema: {
        summary: "Liveness: the process answers",
        tags,
        response: { 200: z.object({ status: z.literal("ok"), version: z.string(), agents: z.int() }) },
      },
    },
    async () => ({ status: "ok" as const, version, agents: agents.list().length }),
  );

  app.get(
    "/ready",
    {
      exposeHeadRoute: true,
      schema: {
        summary: "Readiness: what the server needs is there",
        tags,
        response: { 200: z.object({ status: z.literal("ready") }) },
      },
    },
    async () => {
      if (!runs.isOpen) throw new AppError("shutting_down", "The server is shutting down.");
      await Promise.all([stores.ping(), backends.ping()]);
      return { status: "ready" as const };
    },
  );
}
