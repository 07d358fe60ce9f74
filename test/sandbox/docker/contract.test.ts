import { backendContract } from "../../contracts/backend/index.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { ada, configOf, newServer, newWorld } from "./opened.ts";

// test/sandbox/shell runs the same contract in every kind of shell, without an engine.
describeWithEngine("a Docker backend of an image with Perl", (engine) => {
  backendContract(async () => {
    const { pool } = newServer(engine, await newWorld());
    const backend = await pool.get(ada, await configOf(engine, "debian"));
    return { backend, close: () => pool.close() };
  });
});
