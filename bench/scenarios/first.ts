import { row, type Scenario } from "../rig.ts";
import { script } from "../script.ts";

export const first: Scenario = {
  name: "first",
  about: "how long the first event and the first token take, one run at a time, paced 10 ms",
  async run(rig) {
    const pairs = await rig.pairs(async (server) => {
      const { firstEventMs, firstTokenMs } = await rig.load(server, {
        runs: 50,
        script: script({ tokens: 3, delayMs: 10 }),
      });
      return { event: firstEventMs, token: firstTokenMs };
    });
    return [
      row("first event, ms", pairs, "event", "first event"),
      row("first token, ms", pairs, "token", "first token"),
    ];
  },
};
