// Asking at the terminal what a run has asked.

import type { Interface } from "node:readline";
import { styleText } from "node:util";
import type { Answer, Interrupt } from "../client/client.ts";

/** Resolves with the answers, or with nothing when the user leaves one open. */
export async function answersTo(interrupts: readonly Interrupt[], ask: Ask): Promise<Answer[] | undefined> {
  const answers: Answer[] = [];
  for (const interrupt of interrupts) {
    const answer = await ASKING[interrupt.kind](interrupt, ask);
    if (!answer) return undefined;
    answers.push({ id: interrupt.id, ...answer });
  }
  return answers;
}

/** The text that the user enters; nothing when the terminal is closed, or the user presses Ctrl-C. */
export type Ask = (question: string) => Promise<string | undefined>;
type Asking = (interrupt: Interrupt, ask: Ask) => Promise<Omit<Answer, "id"> | undefined>;

const ASKING: Record<Interrupt["kind"], Asking> = {
  async approval({ prompt, name, args }, ask) {
    const what = `${styleText("yellow", `? ${prompt}`)}\n  ${name} ${styleText("dim", JSON.stringify(args))}\n`;
    const text = await ask(`${what}  [y]es, [a]lways in this thread, or no, and why: `);
    if (text === undefined) return undefined;
    if (/^y(es)?$/i.test(text)) return { decision: "approve" };
    if (/^a(lways)?$/i.test(text)) return { decision: "approve", remember: "session" };
    const reason = text.replace(/^no?[,.:]?\s*/i, "");
    return { decision: "deny", ...(reason ? { message: reason } : {}) };
  },
  async question({ prompt, options = [] }, ask) {
    const choices = options.map((option, index) => `  ${index + 1}. ${option}\n`).join("");
    const text = await ask(`${styleText("yellow", `? ${prompt}`)}\n${choices}  `);
    if (text === undefined) return undefined;
    return { decision: "respond", message: options[Number(text) - 1] ?? text };
  },
  async tool({ name }) {
    return { decision: "deny", message: `There is no \`${name}\` at a terminal.` };
  },
};

/** Asks at `terminal`. */
export function askingAt(terminal: Interface): Ask {
  return (question) =>
    new Promise((resolve) => {
      const leave = () => {
        terminal.off("SIGINT", leave).off("close", leave);
        resolve(undefined);
      };
      terminal.once("SIGINT", leave).once("close", leave);
      terminal.question(question, (text) => {
        terminal.off("SIGINT", leave).off("close", leave);
        resolve(text.trim());
      });
    });
}
