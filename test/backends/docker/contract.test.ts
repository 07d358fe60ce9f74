import { backendContract } from "../../contracts/backend/index.ts";
import { describeWithEngine, type TestImage } from "../../support/engine.ts";
import { ada, configOf, newServer, newWorld } from "./opened.ts";

const IMAGES: readonly TestImage[] = ["busybox", "debian"];

for (const image of IMAGES)
  describeWithEngine(`a Docker backend of the image ${image}`, (engine) => {
    backendContract(async () => {
      const { pool } = newServer(engine, await newWorld());
      const backend = await pool.get(ada, await configOf(engine, image));
      return { backend, close: () => pool.close() };
    });
  });
