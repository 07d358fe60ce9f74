import { row, type Scenario } from "../rig.ts";
import { script } from "../script.ts";

const TOKENS = 50;
/** Long enough that two tokens are combined only if the server is held up. */
const DELAY_MS = 10;

export const wire: Scenario = {
  name: "wire",
  about: "bytes that a client receives, with one token per packet",
  async run(rig) {
    const pairs = await rig.pairs(async (server) => {
      const bytesOf = async (tokens: number) =>
        (await rig.load(server, { script: script({ tokens, delayMs: DELAY_MS }) })).bytes;
      const short = await bytesOf(TOKENS);
      const token = ((await bytesOf(2 * TOKENS)) - short) / TOKENS;
      return { token, run: short - TOKENS * token };
    }, 3);
    return [
      row("bytes per token", pairs, "token", "token bytes"),
      row("bytes per run besides its tokens", pairs, "run"),
    ];
  },
};
