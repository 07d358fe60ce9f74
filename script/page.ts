// Builds the page into the folder `page` of a build:  page.ts DIST

import { join } from "node:path";
import { copyLicences } from "./licences.ts";
import { buildPage } from "./page-build.ts";

const [dist = "dist"] = process.argv.slice(2);
copyLicences(await buildPage(join(dist, "page")), dist);
