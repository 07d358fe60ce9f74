// Refuses a Node that is too old. src/index.ts imports this first: the error then names the reason, not a method that is
// missing.

/** As `engines` in package.json has it. */
const OLDEST = 24;

if (Number.parseInt(process.versions.node, 10) < OLDEST)
  throw new Error(
    `Skein needs Node ${OLDEST} or newer; this is ${process.version}. Install it from https://nodejs.org. To talk to a running server from an older Node, use the package \`skein-client\`.`,
  );
