// The environment of Node programs that tests start: as bare as a new machine's, but for the compile cache.

const { PATH = "", NODE_COMPILE_CACHE } = process.env;

export const NODE_ENV: Readonly<Record<string, string>> = {
  PATH,
  NODE_NO_WARNINGS: "1",
  ...(NODE_COMPILE_CACHE ? { NODE_COMPILE_CACHE } : {}),
};
