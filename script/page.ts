// Builds the page:  page.ts OUT

import { buildPage } from "./page-build.ts";

await buildPage(process.argv[2] ?? "dist/page");
