// Refuses a version of Node that is too old. src/index.ts imports this first, so the error names the reason instead of
// a missing method.

/** Must match `engines` in package.json. */
const OLDEST = 24;

if (Number.parseInt(process.versions.node, 10) < OLDEST)
  throw new Error(
    `Skein needs Node ${OLDEST} or newer; this is ${process.version}. Install it from https://nodejs.org. To talk to a running server from an older Node, use the package \`skein-client\`.`,
  );
