// The contract, and a page to read and try it.

import { createReadStream } from "node:fs";
import { AppError } from "../../core/errors.ts";
import { packageRoot } from "../../lib/package-root.ts";
import type { App } from "../validation.ts";

const ASSETS: ReadonlyMap<string, string> = new Map([
  ["swagger-ui.css", "text/css"],
  ["swagger-ui-bundle.js", "text/javascript"],
]);

const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Skein API</title>
<link rel="stylesheet" href="/docs/swagger-ui.css">
<div id="api"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script>SwaggerUIBundle({ url: "/openapi.yaml", dom_id: "#api", deepLinking: true });</script>
</html>
`;

export function docsRoutes(app: App): void {
  const schema = { hide: true };

  app.get("/", { schema }, async (_request, reply) => reply.redirect("/docs"));
  app.get("/docs", { schema }, async (_request, reply) => reply.type("text/html").send(PAGE));
  app.get("/openapi.yaml", { schema }, async (_request, reply) =>
    reply.type("application/yaml").send(createReadStream(new URL("openapi.yaml", packageRoot))),
  );
  app.get<{ Params: { asset: string } }>("/docs/:asset", { schema }, async ({ params }, reply) => {
    const type = ASSETS.get(params.asset);
    if (!type) throw new AppError("not_found", `There is no \`${params.asset}\` in the documentation.`);
    const file = new URL(`dist/swagger-ui/${params.asset}`, packageRoot); // put there by script/build
    return reply.type(type).header("cache-control", "max-age=86400").send(createReadStream(file));
  });
}
