// Where the documentation is read: the package contains none of it.

import packageJson from "../../package.json" with { type: "json" };

/** The address of a page below docs/, such as `guides/redis.md`. */
export const docsPage = (page: string) => `${packageJson.homepage}/blob/main/docs/${page}`;
