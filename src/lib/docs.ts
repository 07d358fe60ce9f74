// Builds links to the documentation, which the package does not contain.

import packageJson from "../../package.json" with { type: "json" };

/** Returns the URL of a page below docs/, such as `guides/redis.md`. */
export const docsPage = (page: string) => `${packageJson.homepage}/blob/main/docs/${page}`;
